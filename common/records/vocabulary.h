// Lists of texts, whose places in the list are ids.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/dataset.pb.h"

namespace mu {

// What a dataset may carry in its vocabularies: they travel to every worker with it.
inline constexpr uint64_t kMaxVocabularyBytes = uint64_t{32} << 20;

// Immutable, therefore thread safe.
class Vocabulary {
 public:
  // `lines`: the texts, each followed by "\n".
  explicit Vocabulary(std::string lines);
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;

  int64_t size() const { return static_cast<int64_t>(ids_.size()); }
  // -1: it is not there.
  int64_t Find(absl::string_view text) const {
    const auto found = ids_.find(text);
    return found == ids_.end() ? -1 : found->second;
  }

 private:
  const std::string lines_;
  absl::flat_hash_map<absl::string_view, int64_t> ids_;
};

// Puts the files of the dataset's vocabularies into it, where they are not yet. Codes as file.h.
// INVALID_ARGUMENT "FILE:LINE: ...": a text stands twice or is empty, the file is too large.
absl::Status ReadVocabularies(muster::DatasetProto* dataset);

}  // namespace mu
