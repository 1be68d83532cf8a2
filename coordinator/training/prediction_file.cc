#include "coordinator/training/prediction_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "common/env/file.h"

namespace mu {
namespace {

constexpr size_t kFlushBytes = size_t{1} << 20;

}  // namespace

PredictionFile::PredictionFile(std::string path, std::vector<ForwardTask> tasks)
    : path_(std::move(path)), temporary_(path_ + ".part"), tasks_(std::move(tasks)) {}

PredictionFile::~PredictionFile() {
  if (complete_ || !out_.is_open()) return;
  out_.close();
  RemoveFile(temporary_).IgnoreError();
}

std::string PredictionFile::Header() const {
  std::vector<std::string> names;
  for (const ForwardTask& task : tasks_) {
    if (task.task != Task::kMultiClass) {
      names.push_back(task.name.empty() ? "prediction" : task.name);
      continue;
    }
    const std::string prefix = task.name.empty() ? "" : task.name + "_";
    names.push_back(prefix + "class");
    names.push_back(prefix + "probability");
  }
  return absl::StrJoin(names, ",");
}

absl::Status PredictionFile::Open() {
  out_.open(temporary_, std::ios::trunc);
  if (!out_.good()) return absl::ResourceExhaustedError(absl::StrCat("cannot write ", temporary_));
  absl::StrAppend(&buffer_, Header(), "\n");
  return absl::OkStatus();
}

void PredictionFile::AppendNumber(float value) {
  if (!std::isfinite(value) && not_finite_++ == 0) first_not_finite_ = written_ + 1;
  char text[32];
  buffer_.append(text, std::to_chars(text, text + sizeof(text), value).ptr);
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

absl::Status PredictionFile::Add(uint32_t records, absl::Span<const Tensor> values) {
  if (records == 0) return absl::OkStatus();
  for (size_t i = 0; i < tasks_.size(); ++i)
    MU_RETURN_IF_ERROR(CheckPrediction(tasks_[i], values[i], records));
  for (uint32_t record = 0; record < records; ++record) {
    for (size_t i = 0; i < tasks_.size(); ++i) {
      if (i > 0) buffer_ += ',';
      AppendPrediction(tasks_[i], values[i], record);
    }
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
