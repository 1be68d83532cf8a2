// The coordinator's calls to servers that take their time, save and restore: to all servers at
// once, tried again while it is the machine's fault, until somebody who knows that a server is gone
// interrupts them. Thread safe.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/client/ps_client.h"
#include "proto/psserver.pb.h"

namespace mu {

class ServerFiles {
 public:
  // Servers and routing are those that `client` has when a call is made.
  explicit ServerFiles(PsClient* client) : client_(client) {}

  // A call names the interruptions that there had been when whoever makes it last knew that all
  // servers were there: it ends CANCELLED if there is another one. Other errors are those of the
  // servers' handlers.
  uint64_t interruptions() const;
  absl::Status Configure(const pb::RequestContext& context, uint64_t interruptions);
  // Every server writes "ps-INDEX.safetensors" into `directory`, which all of them reach. By
  // server.
  absl::StatusOr<std::vector<pb::SaveReply>> Save(const pb::RequestContext& context,
                                                  const std::string& directory,
                                                  uint64_t interruptions);
  // By server. keep[i]: server i only takes the context's generation; else it loads `files` (none:
  // initial values).
  absl::StatusOr<std::vector<pb::RestoreReply>> Restore(
      const pb::RequestContext& context, const std::string& directory,
      const std::vector<pb::CheckpointFileProto>& files, const std::vector<bool>& keep,
      uint64_t interruptions);

  // Ends the calls that are under way.
  void Interrupt();

 private:
  template <typename Reply, typename Make>
  absl::StatusOr<std::vector<Reply>> CallAll(const char* method, uint64_t interruptions,
                                             const Make& make);

  PsClient* const client_;
  mutable Mutex mutex_;
  uint64_t interruptions_ ABSL_GUARDED_BY(mutex_) = 0;
  std::set<PsCallGroup*> under_way_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mu
