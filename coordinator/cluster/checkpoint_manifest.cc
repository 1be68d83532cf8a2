#include "coordinator/cluster/checkpoint_manifest.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/crc32c.h"
#include "common/env/file.h"
#include "common/optimizer/optimizer_settings.h"
#include "common/sharding/partition.h"
#include "coordinator/cluster/described_parameters.h"
#include "coordinator/cluster/position_file.h"
#include "google/protobuf/util/json_util.h"

namespace mu {
namespace {

std::string ManifestPath(const std::string& directory) { return directory + "/manifest.json"; }

constexpr std::string_view kNoSum = "00000000";

// Where the text has its own sum: the last string of these digits, since that key comes last.
// Replaces it by zeros, and returns the sum of what is then there.
std::string SumWithout(const std::string& digits, std::string* json, size_t* place) {
  *place = json->rfind("\"" + digits + "\"") + 1;
  json->replace(*place, kNoSum.size(), kNoSum);
  return absl::StrFormat("%08x", Crc32c(json->data(), json->size()));
}

// The value that a server would load. A table of other partitions is another one.
std::string ValueOf(const DescribedParameter& described) {
  if (!described.is_table) return described.what;
  const int64_t partitions = described.partitions.empty() ? 0 : described.partitions.front();
  return absl::StrCat(described.what, " in ", partitions, " partitions");
}
// With the optimizer's slots.
std::string ToString(const DescribedParameter& described) {
  return absl::StrCat(ValueOf(described), ", ", described.optimizer);
}

}  // namespace

absl::Status WriteManifest(const std::string& directory, const pb::CheckpointProto& manifest) {
  std::string json;
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  pb::CheckpointProto summed = manifest;
  if (manifest.position().functions_size() > kMostReadableFunctions) {
    MU_RETURN_IF_ERROR(WritePositionFile(directory, manifest.position()));
    summed.set_format_version(kPositionFileFormat);
    summed.mutable_position()->clear_functions();
    summed.mutable_position()->clear_leases();
  }
  summed.set_manifest_crc32c(std::string(kNoSum));
  if (const auto status = google::protobuf::util::MessageToJsonString(summed, &json, options);
      !status.ok()) {
    return absl::InternalError(
        absl::StrCat("the manifest cannot be written as JSON: ", status.ToString()));
  }
  size_t place;
  const std::string sum = SumWithout(summed.manifest_crc32c(), &json, &place);
  json.replace(place, sum.size(), sum);
  return WriteFileAtomic(ManifestPath(directory), json);
}

absl::StatusOr<pb::CheckpointProto> ReadManifest(const std::string& directory) {
  const std::string path = ManifestPath(directory);
  MU_ASSIGN_OR_RETURN(std::string json, ReadFile(path));
  pb::CheckpointProto manifest;
  if (const auto status = google::protobuf::util::JsonStringToMessage(json, &manifest);
      !status.ok()) {
    // Its further lines show the text around the place.
    const std::string text = status.ToString();
    return absl::DataLossError(absl::StrCat(path, " is damaged (", text.substr(0, text.find('\n')),
                                            "); use another checkpoint"));
  }
  const uint32_t format = manifest.format_version();
  if (format != kCheckpointFormat && format != kPositionFileFormat) {
    return absl::DataLossError(absl::StrCat(path, " has format ", format, "; this program reads ",
                                            kCheckpointFormat, " and ", kPositionFileFormat));
  }
  // Earlier programs wrote none.
  if (const std::string sum = manifest.manifest_crc32c(); !sum.empty()) {
    size_t place;
    if (sum.size() != kNoSum.size() || SumWithout(sum, &json, &place) != sum) {
      return absl::DataLossError(absl::StrCat(
          path, " is damaged: its text does not have the CRC32C ", sum,
          "; use another checkpoint, or, if it was changed on purpose, remove manifest_crc32c"));
    }
    manifest.clear_manifest_crc32c();
  }
  // A file that nobody names would not be missed: what it holds would start from initial values.
  if (manifest.updates_size() > 0 && manifest.updates_size() != manifest.files_size()) {
    return absl::DataLossError(absl::StrCat(path, " is damaged: it names ", manifest.files_size(),
                                            " of ", manifest.updates_size(),
                                            " files; use another checkpoint"));
  }
  if (format == kPositionFileFormat) {
    MU_ASSIGN_OR_RETURN(pb::JobPositionProto position, ReadPositionFile(directory));
    manifest.mutable_position()->mutable_functions()->Swap(position.mutable_functions());
    manifest.mutable_position()->mutable_leases()->Swap(position.mutable_leases());
    manifest.set_format_version(kCheckpointFormat);
  }
  return manifest;
}

pb::RoutingProto WithPartitions(pb::RoutingProto routing) {
  for (pb::VariableProto& variable : *routing.mutable_variables()) {
    if (!variable.partition_starts().empty()) continue;
    for (const int64_t start : PartitionStarts(variable)) variable.add_partition_starts(start);
  }
  return routing;
}

absl::Status CheckFits(const pb::CheckpointProto& manifest, const pb::RoutingProto& routing) {
  const auto saved = DescribeParameters(manifest),
             wanted = DescribeParameters(WithPartitions(routing));
  std::vector<std::string> differences;
  const std::string frozen = DescribeOptimizer({});
  for (const auto& [name, wants] : wanted) {
    const auto it = saved.find(name);
    if (it == saved.end()) {
      differences.push_back(absl::StrCat("'", name, "' is not in the checkpoint"));
    } else if (ValueOf(it->second) != ValueOf(wants) ||
               // What is not trained any more needs no slots.
               (it->second.optimizer != wants.optimizer && wants.optimizer != frozen)) {
      differences.push_back(absl::StrCat("'", name, "' is ", ToString(wants), " in the job and ",
                                         ToString(it->second), " in the checkpoint"));
    } else if (!it->second.partitions.empty() && it->second.partitions != wants.partitions) {
      differences.push_back(
          absl::StrCat("'", name, "' has ", wants.partitions.size(), " partitions in the job and ",
                       it->second.partitions.size(),
                       " in the checkpoint, and needs the partitioner with which it was saved"));
    }
  }
  for (const auto& [name, has] : saved) {
    if (!wanted.contains(name))
      differences.push_back(absl::StrCat("'", name, "' of the checkpoint is not in the job"));
  }
  if (differences.empty()) return absl::OkStatus();
  const size_t count = differences.size();
  if (count > 5) differences.resize(5);
  return absl::InvalidArgumentError(
      absl::StrCat("the checkpoint is of another job (", count,
                   " differences): ", absl::StrJoin(differences, "; ")));
}

}  // namespace mu
