// What the readers will say of the beginning of a file, found out without reading the rest of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/records/first_values.h"
#include "common/records/label_texts.h"
#include "common/records/record_format.h"
#include "proto/dataset.pb.h"

namespace mu {

struct LabelRange {
  uint64_t labels = 0;
  float least = 0, most = 0;

  void Add(const LabelRange& more) {
    if (more.labels == 0) return;
    least = labels == 0 ? more.least : std::min(least, more.least);
    most = labels == 0 ? more.most : std::max(most, more.most);
    labels += more.labels;
  }
};

struct FirstRecords {
  // What the reader will refuse, each "FILE:LINE: what is wrong; what to do" (or "FILE ..." where
  // it has no lines).
  std::vector<std::string> problems;
  // That were found, good or bad, the header not among them; at most what was asked for.
  uint64_t records = 0;
  uint64_t good = 0;  // of those that the dataset keeps
  // Of a dataset that skips bad records: all of this file, to its end, are bad, which is a problem
  // unless other files have good ones. Empty: not so.
  std::string none_good;
  // What is wrong with labels of two classes that are read as numbers: the place of the first that
  // is below 0 or above 1, and what to do. Empty: nothing.
  std::string not_binary;
  // By the name of each column that has `positive` texts.
  std::map<std::string, LabelTexts::Found> labels;
  // By the name of each label of two classes: all values, of text labels 0 and 1.
  std::map<std::string, LabelRange> binary;
  // By the name of each column of csv, jsonl and tfrecord.
  std::map<std::string, FieldCounts> counts;
  std::set<std::string> fields;  // of jsonl and tfrecord: that any of the records has
};

// Opens the file (plain, gzip or zstd) and those that are read in lockstep with it
// (PartsOfFile()), finds the dataset's columns in their heads, and parses those of its first `most`
// records that the dataset keeps, with the parser that training uses. The
// dataset's format must have passed CheckFormat(); its list of files is not looked at. Bad records
// are problems if the dataset fails by them; if it skips them, only a file none of whose first
// `most` records, at least 100, is good. `binary`: the columns that the model takes as labels of
// two classes. `format`: the dataset's, of MakeRecordFormat, for those who look at many files,
// since to make one takes time where there is a vocabulary; null: it is made here.
FirstRecords ReadFirstRecords(const muster::DatasetProto& dataset,
                              absl::Span<const std::string> paths, uint64_t most,
                              const std::vector<std::string>& binary = {},
                              std::shared_ptr<const RecordFormat> format = nullptr);

// The same, but reads on until each column that has `positive` texts has had one, or to the end.
FirstRecords ReadUntilPositive(const muster::DatasetProto& dataset,
                               absl::Span<const std::string> paths,
                               std::shared_ptr<const RecordFormat> format = nullptr);

// The same, until each of the columns `binary` has had two values.
FirstRecords ReadUntilVaried(const muster::DatasetProto& dataset,
                             absl::Span<const std::string> paths,
                             const std::vector<std::string>& binary,
                             std::shared_ptr<const RecordFormat> format = nullptr);

}  // namespace mu
