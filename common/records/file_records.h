// The records of a dataset's file and of those that are read in lockstep with it, parsed one after
// the other, on the machine that has the files: for what looks at data without training.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/records/record_stream.h"

namespace mu {

// INVALID_ARGUMENT: a file whose records are all of one size has not as many bytes as its head
// says.
absl::Status WrongFileSize(absl::string_view path, const FixedRecords& fixed, uint64_t bytes);

// Not thread safe.
class FileRecords {
 public:
  enum class Next { kGood, kBad, kEnd };

  explicit FileRecords(std::shared_ptr<const RecordFormat> format) : format_(std::move(format)) {}

  // `paths` as PartsOfFile() says. What the heads lack becomes problems, each with its place; then
  // nothing can be read. Errors as RecordStream.
  absl::Status Open(absl::Span<const std::string> paths, std::vector<std::string>* problems);

  // Fills the next row of `columns`, if the record is to be kept; the caller commits or drops it.
  // Errors as RecordStream.
  absl::StatusOr<Next> ParseNext(bool keep, ColumnSet* columns);
  // "PATH:LINE" of the last record, in the first of the files.
  std::string place() const { return parts_.front().stream.place(); }
  // "PATH:LINE: column X: ..." of the last record, which was bad.
  const std::string& problem() const { return problem_; }
  // The last record, of the first of the files; valid until the next call.
  absl::string_view record() const { return record_; }

 private:
  struct Part {
    RecordStream stream;
    FileFormat format;
  };

  const std::shared_ptr<const RecordFormat> format_;
  std::vector<Part> parts_;
  std::string problem_;
  absl::string_view record_;
};

}  // namespace mu
