// Groups of functions that run beside training.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "coordinator/core/group_id.h"

namespace mu {

// Functions that are joined, cancelled and fail together: those of one evaluation, say. Copies are
// the same group. Dropping the last copy cancels what is left of it and frees its view. A default
// one is training.
class FunctionGroup {
 public:
  FunctionGroup() = default;
  bool made() const { return made_ != nullptr; }  // else it is training

 private:
  friend class Coordinator;
  struct Made {
    GroupId id;
    const void* owner = nullptr;  // the coordinator that made it
    std::shared_ptr<void> drop;   // drops it at its end
  };
  explicit FunctionGroup(std::shared_ptr<const Made> made) : made_(std::move(made)) {}
  std::shared_ptr<const Made> made_;
};

struct GroupOptions {
  // The directory of a checkpoint, whose values its functions read, whatever training does
  // meanwhile. Servers hold these values beside the current ones, and the checkpoint is not deleted
  // as long. Groups of the same checkpoint share them. Empty: the current values.
  std::string checkpoint = {};
};

}  // namespace mu
