#include "coordinator/cli/checkpoint_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "common/base/status.h"
#include "common/env/file.h"
#include "common/optimizer/optimizer_settings.h"
#include "common/tensor/dtype.h"
#include "coordinator/cli/report.h"
#include "coordinator/training/values_moment.h"

namespace mu {
namespace {

std::string Time(int64_t ns) {
  return ns == 0 ? "-"
                 : absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::FromUnixNanos(ns),
                                    absl::LocalTimeZone());
}

uint64_t BytesOf(const pb::CheckpointProto& manifest) {
  uint64_t bytes = 0;
  for (const auto& file : manifest.files()) bytes += file.bytes();
  return bytes;
}

std::string Number(uint64_t number) { return WithCommas(static_cast<double>(number)); }

void DescribePosition(const pb::JobPositionProto& position, std::string* text) {
  uint64_t begun = 0, left = 0;
  for (const auto& function : position.functions()) {
    begun += function.bound() ? 1 : 0;
    left += function.steps() - function.next_step();
  }
  absl::StrAppendFormat(
      text, "\nposition: next function %d; %d unfinished (%d begun) with %s steps left\n",
      position.next_function(), position.functions_size(), begun, Number(left));
  for (const auto& dataset : position.datasets()) {
    absl::StrAppendFormat(
        text, "  data %s: epoch %d, %s leases begun, %d of them with batches left\n",
        dataset.name(), dataset.epoch() + 1, Number(dataset.next_lease()), dataset.begun_size());
  }
}

}  // namespace

std::string FormatBytes(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1000 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  return unit == 0 ? absl::StrCat(bytes, " B") : absl::StrFormat("%.1f %s", value, kUnits[unit]);
}

std::string CheckpointTable(const std::vector<CheckpointRow>& rows) {
  std::string text =
      absl::StrFormat("%-16s %-19s %12s %14s %10s %6s %6s  %s\n", "checkpoint", "written", "steps",
                      "samples", "size", "files", "epoch", "state");
  for (const CheckpointRow& row : rows) {
    absl::StrAppendFormat(&text, "%-16s %-19s %12s %14s %10s %6d %6d  %s\n", BaseName(row.path),
                          Time(row.written_ns), Number(row.manifest.steps()),
                          Number(row.manifest.samples()), FormatBytes(BytesOf(row.manifest)),
                          row.manifest.files_size(), row.manifest.epoch(),
                          row.problem.empty() ? "complete" : row.problem);
  }
  return text;
}

std::string CheckpointDescription(const CheckpointRow& row) {
  const pb::CheckpointProto& manifest = row.manifest;
  const uint64_t seen = MomentOfValues(manifest).steps;
  std::string text = absl::StrFormat(
      "%s\nformat %d, job %016x, coordinator's epoch %d, written %s\nsteps %s, samples %s%s\n\n"
      "files (%s):\n",
      row.path, manifest.format_version(), manifest.job(), manifest.epoch(), Time(row.written_ns),
      Number(manifest.steps()), Number(manifest.samples()),
      seen == manifest.steps() ? ""
                               : absl::StrCat("; the best values, after ", Number(seen), " steps"),
      FormatBytes(BytesOf(manifest)));
  for (const auto& file : manifest.files()) {
    absl::StrAppendFormat(&text, "  %-24s %10s  crc32c %08x\n", file.name(),
                          FormatBytes(file.bytes()), file.crc32c());
  }
  if (manifest.variables_size() > 0) absl::StrAppend(&text, "\nvariables:\n");
  for (const auto& variable : manifest.variables()) {
    absl::StrAppendFormat(
        &text, "  %-24s %s [%s], %d partitions, %s\n", variable.name(),
        std::string(DTypeName(variable.dtype())), absl::StrJoin(variable.shape().dims(), ", "),
        std::max(1, variable.partition_starts_size()), OptimizerName(variable.optimizer()));
  }
  if (manifest.tables_size() > 0) absl::StrAppend(&text, "\ntables:\n");
  for (const auto& table : manifest.tables()) {
    absl::StrAppendFormat(&text, "  %-24s %s rows of %d, %d partitions, %s\n", table.name(),
                          Number(static_cast<uint64_t>(table.rows())), table.dim(),
                          table.partitions(), OptimizerName(table.optimizer()));
  }
  if (manifest.has_position()) DescribePosition(manifest.position(), &text);
  if (!manifest.user_state().empty())
    absl::StrAppend(&text, "\nuser state: ", manifest.user_state(), "\n");
  return text;
}

}  // namespace mu
