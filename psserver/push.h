// A push, checked whole before anything of it is applied. Not thread safe; applying locks partition
// after partition.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/psserver.pb.h"
#include "psserver/payload.h"
#include "psserver/store/inherited_memory.h"
#include "psserver/store/store.h"
#include "psserver/table_keys.h"

namespace mu {

// Partitions that a push changes, and those that it leaves alone because they inherited it.
struct PushCounts {
  uint32_t updates = 0;
  uint32_t inherited = 0;
};

// The counts of a push that was checked before, from its header alone. `inherited` may be nullptr.
PushCounts CountUpdates(const muster::PushRequest& request, const InheritedMemory* inherited);

class PushPlan {
 public:
  // `directory` and `payload` outlive the plan. INVALID_ARGUMENT for malformed requests, updates of
  // a kind that the variable or table does not take, and updates that are not finite (names the
  // variable or table); OUT_OF_RANGE for ids that a table does not have.
  static absl::StatusOr<PushPlan> Check(const StoreDirectory& directory,
                                        const muster::PushRequest& request,
                                        absl::Span<const char> payload);
  // Takes what the partitions inherited out of the plan.
  void Skip(const InheritedMemory& inherited, const PushId& push);
  // Cannot fail. Once.
  void Apply();

 private:
  struct VariablePart {
    PartitionKey key;
    VariablePartition* partition;
    muster::VariableUpdate::Kind kind;
    const void* update;
  };

  explicit PushPlan(absl::Span<const char> payload)
      : payload_(std::make_unique<AlignedPayload>(payload)) {}
  absl::Status AddVariable(const StoreDirectory& directory, const muster::VariableUpdate& update,
                           PayloadReader* reader);
  absl::Status AddGradients(PayloadReader* reader);

  std::unique_ptr<AlignedPayload> payload_;
  std::vector<VariablePart> variables_;
  std::vector<RowSegment> segments_;
  std::vector<const float*> gradients_;  // of each segment
  float rate_scale_ = 1;
};

}  // namespace mu
