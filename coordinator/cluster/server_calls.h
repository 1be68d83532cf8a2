// The calls to parameter servers over the transport.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/client/ps_admin.h"
#include "common/client/ps_client.h"
#include "coordinator/cluster/server_api.h"

namespace mu {

class ServerCalls final : public ServerApi {
 public:
  // Errors: those of the servers' handlers; UNAVAILABLE with {ERROR_MACHINE, ROLE_PSSERVER, index}
  // if a server stays out of reach.
  explicit ServerCalls(PsClient::Connect connect);

  absl::Status Configure(const Call& call) override;
  absl::StatusOr<std::vector<pb::RestoreReply>> Restore(const Call& call, const SavedState& from,
                                                        const std::vector<bool>& keep) override;
  absl::StatusOr<std::vector<pb::SaveReply>> Save(const Call& call,
                                                  const std::string& directory) override;
  std::map<uint32_t, absl::Status> Fence(const pb::RequestContext& context,
                                         const std::vector<uint32_t>& servers) override;
  absl::StatusOr<std::vector<uint32_t>> CommitRound(const Call& call, const RoundSet& set) override;
  absl::Status LoadView(const Call& call, ViewId view, const SavedState& from) override;
  absl::Status DropView(const Call& call, ViewId view) override;
  absl::Status Assign(const pb::RequestContext& context, FunctionId place,
                      const Assignment& assignment) override;

  // Reads go to the servers of the newest Configure or Restore.
  PsClient* client() { return &client_; }
  PsAdmin* admin() { return &admin_; }

 private:
  absl::Status SendRouting(const Call& call, bool loads);
  template <typename Reply, typename Make>
  absl::StatusOr<std::vector<Reply>> CallAll(const Call& call, const char* method,
                                             const Make& make);

  PsClient client_;
  PsAdmin admin_;
};

}  // namespace mu
