// What has been created for a job: variables, tables, servers, datasets, functions. Versioned, so
// that a worker can be sent just what it lacks (core/installations.h decides what that is). Not
// synchronised; the runtime guards it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/sharding/placement.h"
#include "coordinator/core/installations.h"
#include "coordinator/core/membership.h"
#include "proto/dataset.pb.h"
#include "proto/graph.pb.h"
#include "proto/table.pb.h"

namespace mu {

struct InstalledFunction {
  Fingerprint fingerprint;
  pb::FunctionProto proto;
};

class Catalog {
 public:
  explicit Catalog(Placement placement = PlaceByBytes{}) : placement_(std::move(placement)) {}

  uint64_t version() const { return version_; }
  // Of the catalog at the last UseRouting.
  uint64_t routing_version() const { return routing_version_; }
  const pb::RoutingProto& routing() const { return routing_; }  // that workers use
  // All variables and tables, without their places.
  const pb::RoutingProto& created() const { return created_; }
  // How many there are.
  uint64_t parameters() const {
    return static_cast<uint64_t>(created_.variables_size() + created_.tables_size());
  }

  // ALREADY_EXISTS for a name that is taken. The id is set in the returned proto.
  absl::StatusOr<pb::VariableProto> AddVariable(pb::VariableProto variable);
  absl::StatusOr<pb::TableProto> AddTable(pb::TableProto table);
  // A routing to these servers, in this generation, of all that was created until now. What has its
  // places keeps them. Versions grow, also over those of older coordinators.
  absl::StatusOr<std::shared_ptr<const pb::RoutingProto>> Route(CoordinatorEpoch epoch,
                                                                Generation generation,
                                                                const std::vector<Member>& servers);
  std::shared_ptr<const pb::RoutingProto> routed() const { return routed_; }  // the last; or null
  // The last Route is the one that workers use.
  void UseRouting();
  pb::DatasetProto AddDataset(pb::DatasetProto dataset);
  // A dataset whose files are known now; workers get it again.
  void UpdateDataset(const pb::DatasetProto& dataset);
  const InstalledFunction& AddFunction(Fingerprint fingerprint, pb::FunctionProto function);
  size_t functions() const { return functions_.size(); }
  const InstalledFunction* FindFunction(Fingerprint fingerprint) const;

  // A request to a worker as bytes, without its context (a field that may come before or after).
  // Made once, however many workers are sent it.
  struct Request {
    const char* method = nullptr;
    std::shared_ptr<const std::string> bytes;
  };
  const Request& RequestOf(const InstallPart& part) const { return requests_.at(part); }
  // What was added or changed since the last call.
  std::vector<InstallPart> TakeChanged() { return std::exchange(changed_, {}); }

 private:
  void Change(const InstallPart& part, const char* method,
              const google::protobuf::Message& request);

  const Placement placement_;
  uint64_t version_ = 0;
  pb::RoutingProto routing_, created_;
  std::shared_ptr<const pb::RoutingProto> routed_;
  uint64_t routing_version_ = 0;
  uint64_t last_dataset_ = 0;
  std::map<Fingerprint, InstalledFunction> functions_;
  std::map<InstallPart, Request> requests_;
  std::vector<InstallPart> changed_;
};

}  // namespace mu
