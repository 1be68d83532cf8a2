// The folders of the checkpoints that servers may go back to, by number. Pure; not synchronised.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "coordinator/core/checkpoint_number.h"

namespace mu {

class CheckpointFolders {
 public:
  static constexpr size_t kMost = 8;  // more than there are restore points

  // All files and the manifest are there. Servers may go back to it from the commit on, so it has
  // to be known before.
  void Add(CheckpointNumber number, std::string folder) { folders_[number] = std::move(folder); }
  // It was committed. Only this makes older ones go.
  void Committed() {
    while (folders_.size() > kMost) folders_.erase(folders_.begin());
  }
  // It was not.
  void Remove(CheckpointNumber number) { folders_.erase(number); }

  std::optional<std::string> Find(CheckpointNumber number) const {
    const auto it = folders_.find(number);
    if (it == folders_.end()) return std::nullopt;
    return it->second;
  }

 private:
  std::map<CheckpointNumber, std::string> folders_;
};

}  // namespace mu
