#include "coordinator/export/export_values.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/name_pattern.h"
#include "common/base/status.h"
#include "common/env/file.h"
#include "common/graph/nearest_name.h"
#include "coordinator/export/output_file.h"

namespace mu {
namespace {

constexpr size_t kNpyAlignment = 64;

const char* NpyType(DType dtype) {
  switch (dtype) {
    case kFloat32:
      return "<f4";
    case kInt32:
      return "<i4";
    case kInt64:
      return "<i8";
    case kUInt8:
      return "|u1";
    case kBool:
      return "|b1";
    default:
      return "";
  }
}

// Where the value's file is; its name's slashes make folders.
absl::StatusOr<std::string> NpyPath(const std::string& folder, const std::string& name) {
  for (const absl::string_view part : absl::StrSplit(name, '/')) {
    if (part.empty() || part == "." || part == ".." || absl::StrContains(part, '\0'))
      return absl::InvalidArgumentError(
          absl::StrCat("'", name, "' cannot be the name of a .npy file; use --safetensors"));
  }
  return JoinPath(folder, name + ".npy");
}

std::string SomeOf(std::vector<std::string> names) {
  constexpr size_t kMost = 20;
  const bool more = names.size() > kMost;
  if (more) names.resize(kMost);
  return absl::StrCat(absl::StrJoin(names, ", "), more ? ", ..." : "");
}

}  // namespace

absl::StatusOr<std::vector<StoredValue>> SelectValues(const std::vector<StoredValue>& values,
                                                      const std::vector<std::string>& patterns) {
  if (patterns.empty()) return values;
  std::vector<std::string> names;
  std::vector<bool> chosen(values.size());
  for (const StoredValue& value : values) names.push_back(value.name);
  for (const std::string& pattern : patterns) {
    bool found = false;
    for (size_t i = 0; i < values.size(); ++i) {
      if (!MatchesPattern(names[i], pattern)) continue;
      chosen[i] = found = true;
    }
    if (!found) {
      return absl::NotFoundError(absl::StrCat("the checkpoint has no variable or table '", pattern,
                                              "'", DidYouMean(pattern, names), "; it has ",
                                              SomeOf(names)));
    }
  }
  std::vector<StoredValue> selected;
  for (size_t i = 0; i < values.size(); ++i) {
    if (chosen[i]) selected.push_back(values[i]);
  }
  return selected;
}

std::string NpyHeader(DType dtype, const Shape& shape) {
  std::string dims = absl::StrJoin(shape.dims(), ", ");
  if (shape.rank() == 1) dims += ",";
  std::string text = absl::StrCat("{'descr': '", NpyType(dtype),
                                  "', 'fortran_order': False, 'shape': (", dims, "), }");
  // Magic, version and length take ten bytes; a line feed ends the text.
  const size_t whole = (10 + text.size() + 1 + kNpyAlignment - 1) / kNpyAlignment * kNpyAlignment;
  text.resize(whole - 11, ' ');
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(text.size() & 0xFF);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

absl::StatusOr<std::vector<std::string>> NpyPaths(const std::vector<StoredValue>& values,
                                                  const std::string& folder) {
  std::vector<std::string> paths;
  for (const StoredValue& value : values) {
    MU_ASSIGN_OR_RETURN(paths.emplace_back(), NpyPath(folder, value.name));
  }
  return paths;
}

absl::StatusOr<std::vector<std::string>> WriteNpyFiles(const CheckpointValues& checkpoint,
                                                       const std::vector<StoredValue>& values,
                                                       const std::string& folder) {
  MU_ASSIGN_OR_RETURN(std::vector<std::string> paths, NpyPaths(values, folder));
  for (size_t i = 0; i < values.size(); ++i) {
    MU_RETURN_IF_ERROR(MakeDirectories(DirectoryOf(paths[i])));
    MU_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(paths[i]));
    MU_RETURN_IF_ERROR(file.Append(NpyHeader(values[i].dtype, values[i].shape)));
    MU_RETURN_IF_ERROR(
        checkpoint.Read(values[i], [&](absl::string_view bytes) { return file.Append(bytes); }));
    MU_RETURN_IF_ERROR(file.Finish());
  }
  return paths;
}

absl::Status WriteSafetensors(const CheckpointValues& checkpoint, std::vector<StoredValue> values,
                              const std::string& path) {
  std::stable_sort(values.begin(), values.end(), [](const StoredValue& a, const StoredValue& b) {
    return ElementSize(a.dtype) > ElementSize(b.dtype);
  });
  std::vector<TensorEntry> entries;
  for (const StoredValue& value : values) {
    entries.push_back({value.name, value.dtype, {value.shape.begin(), value.shape.end()}});
  }
  MU_ASSIGN_OR_RETURN(SafetensorsWriter writer,
                      SafetensorsWriter::Create(path, std::move(entries), {{"format", "muster"}}));
  for (const StoredValue& value : values) {
    MU_RETURN_IF_ERROR(checkpoint.Read(
        value, [&](absl::string_view bytes) { return writer.Append(bytes.data(), bytes.size()); }));
  }
  return writer.Finish();
}

}  // namespace mu
