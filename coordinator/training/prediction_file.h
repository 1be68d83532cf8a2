// A CSV file of predictions, a line for each record, which appears under its name once it is
// complete. A name that ends in .gz or .zst makes it a compressed one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/env/compression.h"
#include "common/env/unique_fd.h"
#include "common/tensor/tensor.h"
#include "coordinator/training/evaluator.h"
#include "coordinator/training/forward.h"

namespace mu {

// First the columns that are copied, as their fields stand in the data where they are texts (quoted
// as RFC 4180 says), then each task: `prediction`, or the task's name; multi-class: `class` and its
// `probability` (`NAME_class`, `NAME_probability`), the most probable one. Numbers are the shortest
// that give the same float32 again. Where records may be left out, a last column `skipped` says
// why; the other fields of such a line are empty. A copied column that is called as one of the
// columns behind it has `.data` after its name. Not synchronised.
class PredictionFile {
 public:
  // `with_skipped`: the batches' marked records get lines.
  PredictionFile(std::string path, Forward forward, bool with_skipped);
  ~PredictionFile();  // removes what is not complete

  // What Add wants of a batch, for ForEachBatchOptions.
  std::vector<std::string> returns() const;
  std::vector<std::string> returned_lists() const;
  // Of these, errors of the disk are those of common/env/file.h: RESOURCE_EXHAUSTED if it is full.
  absl::Status Open();
  absl::Status Add(const EvaluatedBatch& batch);
  absl::Status Close();

  uint64_t written() const { return written_; }  // lines behind the header
  uint64_t skipped() const { return skipped_; }  // of those
  // Predictions that are NaN or infinite, and the line of the first (from 1, header not counted).
  uint64_t not_finite() const { return not_finite_; }
  uint64_t first_not_finite() const { return first_not_finite_; }

 private:
  std::vector<std::string> Header() const;
  // Where each copied column is in a batch's values; of a text its values, then its splits.
  std::vector<size_t> PlacesOfColumns() const;
  void AppendColumn(const Tensor& values, uint32_t record);
  void AppendText(const Tensor& texts, const Tensor& splits, uint32_t record);
  void AppendPrediction(const ForwardTask& task, const Tensor& values, uint32_t record);
  void AppendNumber(float value);
  void AppendSkipped(const std::string& reason);
  absl::Status Flush();
  absl::Status CannotWrite(int error) const;

  const std::string path_;
  const std::string temporary_;
  const Compression compression_;
  const Forward forward_;
  const bool with_skipped_;
  UniqueFd fd_;  // of temporary_
  bool created_ = false;
  std::string buffer_;
  uint64_t written_ = 0;
  uint64_t skipped_ = 0;
  uint64_t not_finite_ = 0;
  uint64_t first_not_finite_ = 0;
  bool complete_ = false;
};

}  // namespace mu
