#include "coordinator/frontend/memory_data.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/records/array_head.h"

namespace mu {
namespace {

// The path of a column's file, which is on no disk.
std::string PathOf(const std::string& column) { return absl::StrCat("memory:", column); }

std::string TooLarge() {
  return absl::StrCat("the records have more than ", kMaxInlineBytes,
                      " bytes, the limit of what travels with a dataset; write them into files and "
                      "read these with mu::Npy");
}

std::string WrongColumn(const std::string& name, const Tensor& tensor, int64_t records) {
  if (tensor.dtype() != kFloat32 && tensor.dtype() != kInt64) {
    return absl::StrCat("column \"", name, "\" is ", DTypeName(tensor.dtype()),
                        "; columns are float32 or int64");
  }
  if (tensor.shape().rank() == 0)
    return absl::StrCat("column \"", name, "\" is a scalar; its first axis counts the records");
  if (tensor.shape()[0] != records) {
    return absl::StrCat("column \"", name, "\" has ", tensor.shape()[0],
                        " records, the first column has ", records);
  }
  return "";
}

}  // namespace

DatasetSpec FromTensors(const std::vector<std::pair<std::string, Tensor>>& columns) {
  if (columns.empty()) return DatasetSpec::Refused("no columns are given");
  std::vector<NpyColumn> described;
  uint64_t bytes = 0;
  const Tensor& first = columns[0].second;
  for (const auto& [name, tensor] : columns) {
    const int64_t records = first.shape().rank() == 0 ? 0 : first.shape()[0];
    if (const std::string wrong = WrongColumn(name, tensor, records); !wrong.empty())
      return DatasetSpec::Refused(wrong);
    bytes += tensor.bytes();
    described.push_back({.name = name,
                         .files = {PathOf(name)},
                         .shape = {tensor.shape().begin() + 1, tensor.shape().end()},
                         .ids = tensor.dtype() == kInt64});
  }
  if (bytes > kMaxInlineBytes) return DatasetSpec::Refused(TooLarge());
  DatasetSpec spec = Npy(described);
  spec.Name("memory");
  for (const auto& [name, tensor] : columns) spec.InlineFile(PathOf(name), NpyOf(tensor));
  return spec;
}

absl::Span<float> GeneratedRecord::Floats(size_t column) {
  Column& c = columns_.at(column);
  return c.floats.empty() ? absl::Span<float>() : absl::MakeSpan(c.floats).last(c.width);
}

absl::Span<int64_t> GeneratedRecord::Ints(size_t column) {
  Column& c = columns_.at(column);
  return c.ints.empty() ? absl::Span<int64_t>() : absl::MakeSpan(c.ints).last(c.width);
}

DatasetSpec FromGenerator(const std::vector<MemoryColumn>& columns,
                          const std::function<bool(GeneratedRecord&)>& generate) {
  GeneratedRecord record;
  uint64_t record_bytes = 0;
  for (const MemoryColumn& column : columns) {
    if (column.dtype != kFloat32 && column.dtype != kInt64) {
      return DatasetSpec::Refused(absl::StrCat("column \"", column.name, "\" is ",
                                               DTypeName(column.dtype),
                                               "; columns are float32 or int64"));
    }
    GeneratedRecord::Column& made = record.columns_.emplace_back();
    made.width = static_cast<size_t>(column.shape.elements());
    record_bytes += made.width * ElementSize(column.dtype);
  }
  if (record_bytes == 0) return DatasetSpec::Refused("no columns are given");
  const auto resize = [&](size_t records) {
    for (size_t i = 0; i < columns.size(); ++i) {
      GeneratedRecord::Column& column = record.columns_[i];
      if (columns[i].dtype == kFloat32) {
        column.floats.resize(records * column.width);
      } else {
        column.ints.resize(records * column.width);
      }
    }
  };
  size_t records = 0;
  for (;; ++records) {
    if ((records + 1) * record_bytes > kMaxInlineBytes) return DatasetSpec::Refused(TooLarge());
    resize(records + 1);
    if (!generate(record)) break;
  }
  resize(records);
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (size_t i = 0; i < columns.size(); ++i) {
    Shape shape({static_cast<int64_t>(records)});
    for (const int64_t size : columns[i].shape) shape.Append(size);
    const GeneratedRecord::Column& column = record.columns_[i];
    tensors.emplace_back(columns[i].name,
                         columns[i].dtype == kFloat32
                             ? Tensor::Of<float>(shape, absl::MakeConstSpan(column.floats))
                             : Tensor::Of<int64_t>(shape, absl::MakeConstSpan(column.ints)));
  }
  return FromTensors(tensors);
}

}  // namespace mu
