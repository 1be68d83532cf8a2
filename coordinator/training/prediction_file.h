// A CSV file of predictions, a line for each record, which appears under its name once it is
// complete.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/tensor/tensor.h"
#include "coordinator/training/forward.h"

namespace mu {

// Columns by task: `prediction`, or the task's name; multi-class: `class` and its `probability`
// (`NAME_class`, `NAME_probability`), the most probable one. Numbers are the shortest that give the
// same float32 again. Not synchronised.
class PredictionFile {
 public:
  PredictionFile(std::string path, std::vector<ForwardTask> tasks);
  ~PredictionFile();  // removes what is not complete

  absl::Status Open();
  // One batch; `values` are parallel to the tasks. RESOURCE_EXHAUSTED if the disk is full.
  absl::Status Add(uint32_t records, absl::Span<const Tensor> values);
  absl::Status Close();

  uint64_t written() const { return written_; }  // lines behind the header
  // Predictions that are NaN or infinite, and the line of the first (from 1, header not counted).
  uint64_t not_finite() const { return not_finite_; }
  uint64_t first_not_finite() const { return first_not_finite_; }

 private:
  std::string Header() const;
  void AppendPrediction(const ForwardTask& task, const Tensor& values, uint32_t record);
  void AppendNumber(float value);
  absl::Status Flush();

  const std::string path_;
  const std::string temporary_;
  const std::vector<ForwardTask> tasks_;
  std::ofstream out_;
  std::string buffer_;
  uint64_t written_ = 0;
  uint64_t not_finite_ = 0;
  uint64_t first_not_finite_ = 0;
  bool complete_ = false;
};

}  // namespace mu
