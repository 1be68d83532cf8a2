// What has been created for a job: variables, tables, servers, datasets, functions. Versioned, so
// that a worker can be sent just what it lacks. Not synchronised; the runtime guards it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "coordinator/core/membership.h"
#include "proto/dataset.pb.h"
#include "proto/graph.pb.h"
#include "proto/table.pb.h"

namespace mu {

struct InstalledFunction {
  Fingerprint fingerprint;
  pb::FunctionProto proto;
  uint64_t version = 0;  // of the catalog when it was added
};

class Catalog {
 public:
  uint64_t version() const { return version_; }
  uint64_t routing_version() const {
    return routing_version_;
  }  // of the catalog at the last UseRouting
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

  // What was added or changed after `version`.
  struct Delta {
    uint64_t version = 0;  // up to which this brings a worker
    bool has_routing = false;
    pb::RoutingProto routing;
    std::vector<pb::DatasetProto> datasets;
    std::vector<InstalledFunction> functions;
  };
  Delta Since(uint64_t version) const;

 private:
  struct VersionedDataset {
    pb::DatasetProto proto;
    uint64_t version;
  };
  uint64_t version_ = 0;
  uint64_t routing_version_ = 0;  // the catalog's version of the last UseRouting
  pb::RoutingProto routing_, created_;
  std::shared_ptr<const pb::RoutingProto> routed_;
  std::map<uint64_t, VersionedDataset> datasets_;
  std::map<Fingerprint, InstalledFunction> functions_;
};

}  // namespace mu
