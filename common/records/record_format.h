// What a format knows of its files: what comes before the records, how records are told apart, and
// how one is parsed. This is the one seam between the formats and those who read files (the index,
// the reader of leases, the look at the first records): a format is a RecordFormat and a line in
// MakeRecordFormat.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/records/record_finder.h"
#include "common/records/record_parser.h"
#include "proto/dataset.pb.h"

namespace mu {

// For one file, whose head is known.
struct FileFormat {
  std::unique_ptr<const RecordFinder> finder;
  std::unique_ptr<const RecordParser> parser;
};

// Immutable, therefore thread safe. Made once for a dataset; what its files share (a vocabulary) is
// in it once.
class RecordFormat {
 public:
  virtual ~RecordFormat() = default;

  // Files that are read in lockstep: record i of each is a part of record i. All but the first must
  // have FixedRecords. Part 0 is DatasetProto.files, part p companions[p - 1].
  virtual int parts() const { return 1; }

  // Looks for what precedes the first record of a file that begins at `begin`. kFound: head->text
  // is what Open() takes and head->next where records begin. kMore and kBroken as in RecordFinder;
  // never kEnd.
  virtual FindResult FindHead(int part, const char* begin, const char* end, bool last,
                              FoundRecord* head) const = 0;

  // INVALID_ARGUMENT: the first of HeadProblems().
  virtual absl::StatusOr<FileFormat> Open(int part, absl::string_view head) const = 0;

  // A sentence for each thing in this head that the dataset cannot be read with.
  virtual std::vector<std::string> HeadProblems(int part, absl::string_view head) const;

  // "PATH:LINE", or what the format has for lines; `offset` is that of the unpacked bytes.
  virtual std::string Place(absl::string_view path, uint64_t line, uint64_t offset) const = 0;
};

// INVALID_ARGUMENT: the dataset's format does not make sense, the message says in which field.
absl::StatusOr<std::shared_ptr<const RecordFormat>> MakeRecordFormat(
    const muster::DatasetProto& dataset);
// The same without making it.
absl::Status CheckFormat(const muster::DatasetProto& dataset);

}  // namespace mu
