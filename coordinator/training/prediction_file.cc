#include "coordinator/training/prediction_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/base/status.h"
#include "common/env/file.h"

namespace mu {
namespace {

constexpr size_t kFlushBytes = size_t{1} << 20;

template <typename Number>
void Append(Number value, std::string* buffer) {
  char text[32];
  buffer->append(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

}  // namespace

PredictionFile::PredictionFile(std::string path, Forward forward, bool with_skipped)
    : path_(std::move(path)),
      temporary_(path_ + ".part"),
      forward_(std::move(forward)),
      with_skipped_(with_skipped) {}

PredictionFile::~PredictionFile() {
  if (complete_ || !out_.is_open()) return;
  out_.close();
  RemoveFile(temporary_).IgnoreError();
}

std::vector<std::string> PredictionFile::returns() const {
  std::vector<std::string> names;
  for (const CopiedColumn& column : forward_.columns) names.push_back(column.returned);
  for (const ForwardTask& task : forward_.tasks) names.push_back(task.prediction);
  return names;
}

std::vector<std::string> PredictionFile::Header() const {
  std::vector<std::string> names;
  for (const CopiedColumn& column : forward_.columns) names.push_back(column.name);
  for (const ForwardTask& task : forward_.tasks) {
    if (task.task != Task::kMultiClass) {
      names.push_back(task.name.empty() ? "prediction" : task.name);
      continue;
    }
    const std::string prefix = task.name.empty() ? "" : task.name + "_";
    names.push_back(prefix + "class");
    names.push_back(prefix + "probability");
  }
  if (with_skipped_) names.emplace_back("skipped");
  return names;
}

absl::Status PredictionFile::Open() {
  out_.open(temporary_, std::ios::trunc);
  if (!out_.good()) return absl::ResourceExhaustedError(absl::StrCat("cannot write ", temporary_));
  absl::StrAppend(&buffer_, absl::StrJoin(Header(), ","), "\n");
  return absl::OkStatus();
}

void PredictionFile::AppendNumber(float value) {
  if (!std::isfinite(value) && not_finite_++ == 0) first_not_finite_ = written_ + 1;
  Append(value, &buffer_);
}

void PredictionFile::AppendColumn(const Tensor& values, uint32_t record) {
  switch (values.dtype()) {
    case kInt64:
      return Append(values.flat<int64_t>()[record], &buffer_);
    case kInt32:
      return Append(values.flat<int32_t>()[record], &buffer_);
    case kUInt8:
      return Append(values.flat<uint8_t>()[record], &buffer_);
    default:
      return Append(values.flat<float>()[record], &buffer_);
  }
}

void PredictionFile::AppendPrediction(const ForwardTask& task, const Tensor& values,
                                      uint32_t record) {
  const absl::Span<const float> all = values.flat<float>();
  if (task.task != Task::kMultiClass) return AppendNumber(all[record]);
  const size_t classes = static_cast<size_t>(values.shape()[1]);
  const absl::Span<const float> row = all.subspan(record * classes, classes);
  const auto most = std::max_element(row.begin(), row.end());
  absl::StrAppend(&buffer_, most - row.begin(), ",");
  AppendNumber(*most);
}

void PredictionFile::AppendSkipped(const std::string& reason) {
  buffer_.append(Header().size() - 1, ',');
  absl::StrAppend(&buffer_, "\"", absl::StrReplaceAll(reason, {{"\"", "\"\""}, {"\n", " "}}),
                  "\"\n");
  ++written_;
  ++skipped_;
}

absl::Status PredictionFile::Add(const EvaluatedBatch& batch) {
  const size_t columns = forward_.columns.size(), tasks = forward_.tasks.size();
  for (size_t i = 0; batch.records > 0 && i < tasks; ++i)
    MU_RETURN_IF_ERROR(
        CheckPrediction(forward_.tasks[i], batch.values[columns + i], batch.records));
  size_t marked = 0;
  for (uint32_t record = 0; record <= batch.records; ++record) {
    for (; marked < batch.marked.size() && batch.marked[marked].before <= record; ++marked)
      if (with_skipped_) AppendSkipped(batch.marked[marked].reason);
    if (record == batch.records) break;
    for (size_t i = 0; i < columns; ++i) {
      AppendColumn(batch.values[i], record);
      buffer_ += ',';
    }
    for (size_t i = 0; i < tasks; ++i) {
      if (i > 0) buffer_ += ',';
      AppendPrediction(forward_.tasks[i], batch.values[columns + i], record);
    }
    if (with_skipped_) buffer_ += ',';
    buffer_ += '\n';
    ++written_;
  }
  return buffer_.size() < kFlushBytes ? absl::OkStatus() : Flush();
}

absl::Status PredictionFile::Flush() {
  out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
  buffer_.clear();
  if (out_.good()) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("cannot write ", temporary_));
}

absl::Status PredictionFile::Close() {
  MU_RETURN_IF_ERROR(Flush());
  out_.close();
  if (!out_.good()) return absl::ResourceExhaustedError(absl::StrCat("cannot write ", temporary_));
  MU_RETURN_IF_ERROR(RenameFile(temporary_, path_));
  complete_ = true;
  return absl::OkStatus();
}

}  // namespace mu
