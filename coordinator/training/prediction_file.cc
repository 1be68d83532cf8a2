#include "coordinator/training/prediction_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/error_kind.h"
#include "common/base/status.h"
#include "common/env/file.h"
#include "common/records/packed_text.h"

namespace mu {
namespace {

constexpr size_t kFlushBytes = size_t{1} << 20;

template <typename Number>
void Append(Number value, std::string* buffer) {
  char text[32];
  buffer->append(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

// As RFC 4180 says.
void AppendField(absl::string_view text, std::string* buffer) {
  if (text.find_first_of(",\"\r\n") == absl::string_view::npos) {
    absl::StrAppend(buffer, text);
  } else {
    absl::StrAppend(buffer, "\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
  }
}

// INVALID_ARGUMENT unless these are the values and the splits of a list of each record.
absl::Status CheckList(const CopiedColumn& column, const Tensor* list, uint32_t records) {
  bool fits = list[0].dtype() == kInt64 && list[1].dtype() == kInt32 &&
              list[1].elements() == int64_t{records} + 1;
  if (fits) {
    const absl::Span<const int32_t> splits = list[1].flat<int32_t>();
    fits = splits[0] == 0 && std::is_sorted(splits.begin(), splits.end()) &&
           splits[records] == list[0].elements();
  }
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("column '", column.name,
                                                 "' has no text for each "
                                                 "of ",
                                                 records, " records"));
}

}  // namespace

PredictionFile::PredictionFile(std::string path, Forward forward, bool with_skipped)
    : path_(std::move(path)),
      temporary_(absl::StrCat(path_, ".part-", ::getpid())),  // nobody else's, such as an input's
      compression_(CompressionOfName(path_)),
      forward_(std::move(forward)),
      with_skipped_(with_skipped) {}

PredictionFile::~PredictionFile() {
  if (!complete_ && created_) RemoveFile(temporary_).IgnoreError();
}

std::vector<std::string> PredictionFile::returns() const {
  std::vector<std::string> names;
  for (const ForwardTask& task : forward_.tasks) names.push_back(task.prediction);
  for (const CopiedColumn& column : forward_.columns)
    if (!column.value.empty()) names.push_back(column.value);
  return names;
}

std::vector<std::string> PredictionFile::returned_lists() const {
  std::vector<std::string> names;
  for (const CopiedColumn& column : forward_.columns) {
    if (!column.value.empty()) continue;
    names.push_back(column.texts);
    names.push_back(column.splits);
  }
  return names;
}

std::vector<size_t> PredictionFile::PlacesOfColumns() const {
  size_t value = forward_.tasks.size(), text = returns().size();
  std::vector<size_t> places;
  for (const CopiedColumn& column : forward_.columns) {
    places.push_back(column.value.empty() ? text : value);
    (column.value.empty() ? text : value) += column.value.empty() ? 2 : 1;
  }
  return places;
}

std::vector<std::string> PredictionFile::Header() const {
  std::vector<std::string> predicted;
  for (const ForwardTask& task : forward_.tasks) {
    if (task.task != Task::kMultiClass) {
      predicted.push_back(task.name.empty() ? "prediction" : task.name);
      continue;
    }
    const std::string prefix = task.name.empty() ? "" : task.name + "_";
    predicted.push_back(prefix + "class");
    predicted.push_back(prefix + "probability");
  }
  if (with_skipped_) predicted.emplace_back("skipped");
  // Who reads a file with two columns of one name gets the first one, say the label for the
  // prediction.
  const std::set<std::string> taken(predicted.begin(), predicted.end());
  std::set<std::string> used = taken;
  for (const CopiedColumn& column : forward_.columns) used.insert(column.name);
  std::vector<std::string> names;
  for (const CopiedColumn& column : forward_.columns) {
    std::string name = column.name;
    if (taken.contains(name)) {
      do {
        name += ".data";
      } while (!used.insert(name).second);
    }
    names.push_back(std::move(name));
  }
  names.insert(names.end(), predicted.begin(), predicted.end());
  return names;
}

absl::Status PredictionFile::Open() {
  fd_.Reset(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd_.valid()) return ErrnoToStatus(errno, "write", temporary_);
  created_ = true;
  const std::vector<std::string> names = Header();
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) buffer_ += ',';
    AppendField(names[i], &buffer_);
  }
  buffer_ += '\n';
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

void PredictionFile::AppendText(const Tensor& texts, const Tensor& splits, uint32_t record) {
  const absl::Span<const int32_t> ends = splits.flat<int32_t>();
  const auto begin = static_cast<size_t>(ends[record]);
  const std::string text = UnpackText(
      texts.flat<int64_t>().subspan(begin, static_cast<size_t>(ends[record + 1]) - begin));
  AppendField(text, &buffer_);
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
  const size_t tasks = forward_.tasks.size();
  const std::vector<size_t> places = PlacesOfColumns();
  for (size_t i = 0; batch.records > 0 && i < tasks; ++i)
    MU_RETURN_IF_ERROR(CheckPrediction(forward_.tasks[i], batch.values[i], batch.records));
  for (size_t i = 0; batch.records > 0 && i < places.size(); ++i) {
    if (forward_.columns[i].value.empty())
      MU_RETURN_IF_ERROR(CheckList(forward_.columns[i], &batch.values[places[i]], batch.records));
  }
  size_t marked = 0;
  for (uint32_t record = 0; record <= batch.records; ++record) {
    for (; marked < batch.marked.size() && batch.marked[marked].before <= record; ++marked)
      if (with_skipped_) AppendSkipped(batch.marked[marked].reason);
    if (record == batch.records) break;
    for (size_t i = 0; i < places.size(); ++i) {
      const Tensor& values = batch.values[places[i]];
      if (forward_.columns[i].value.empty()) {
        AppendText(values, batch.values[places[i] + 1], record);
      } else {
        AppendColumn(values, record);
      }
      buffer_ += ',';
    }
    for (size_t i = 0; i < tasks; ++i) {
      if (i > 0) buffer_ += ',';
      AppendPrediction(forward_.tasks[i], batch.values[i], record);
    }
    if (with_skipped_) buffer_ += ',';
    buffer_ += '\n';
    ++written_;
  }
  return buffer_.size() < kFlushBytes ? absl::OkStatus() : Flush();
}

// What the disk lacks, or how it fails, is the machine's.
absl::Status PredictionFile::CannotWrite(int error) const {
  return WithKind(ErrnoToStatus(error, "write", temporary_), pb::ERROR_MACHINE);
}

absl::Status PredictionFile::Flush() {
  // One member after the other is one file.
  MU_ASSIGN_OR_RETURN(const std::string packed, Compress(compression_, buffer_));
  absl::string_view left = packed;
  while (!left.empty()) {
    const ssize_t n = ::write(fd_.get(), left.data(), left.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return CannotWrite(errno);
    left.remove_prefix(static_cast<size_t>(n));
  }
  buffer_.clear();
  return absl::OkStatus();
}

absl::Status PredictionFile::Close() {
  MU_RETURN_IF_ERROR(Flush());
  // It reports what a network file system could not store.
  if (::close(fd_.Release()) != 0) return CannotWrite(errno);
  MU_RETURN_IF_ERROR(RenameFile(temporary_, path_));
  complete_ = true;
  return absl::OkStatus();
}

}  // namespace mu
