// Writes checkpoints without servers: variables and tables with the values that a test gives them.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/checkpoint/safetensors.h"
#include "common/checkpoint/tensor_names.h"
#include "common/env/file.h"
#include "common/sharding/partition.h"
#include "common/tensor/tensor.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/frontend/specs.h"

namespace mu::testing {

class CheckpointMaker {
 public:
  explicit CheckpointMaker(int files) : files_(static_cast<size_t>(files)) {}

  // Partition p goes to file p modulo the number of files.
  void AddVariable(const VariableSpec& spec, const Tensor& value) {
    pb::VariableProto proto = Define(spec);
    const char* bytes = static_cast<const char*>(value.raw());
    const RowLayout layout = LayoutOf(proto);
    for (int p = 0; p < proto.partition_starts_size(); ++p) {
      const int64_t begin = proto.partition_starts(p);
      const int64_t end =
          p + 1 < proto.partition_starts_size() ? proto.partition_starts(p + 1) : layout.rows;
      std::vector<int64_t> shape(spec.shape.begin(), spec.shape.end());
      if (!shape.empty()) shape[0] = end - begin;
      Add(p, {VariableTensorName(spec.name, static_cast<uint32_t>(p), "value"), spec.dtype, shape},
          std::string(bytes + begin * layout.bytes_per_row, (end - begin) * layout.bytes_per_row));
    }
  }
  // The manifest names it; no file has it.
  pb::VariableProto Define(const VariableSpec& spec) {
    pb::VariableProto proto = spec.ToProto().value();
    proto.set_id(next_id_++);
    proto.mutable_initializer()->set_seed(kSeed);
    for (const int64_t start : PartitionStarts(proto)) proto.add_partition_starts(start);
    *manifest.add_variables() = proto;
    return proto;
  }

  // Rows that are not given have never been touched.
  void AddTable(const EmbeddingTableSpec& spec, const std::map<int64_t, std::vector<float>>& rows) {
    pb::TableProto proto = spec.ToProto().value();
    proto.set_id(next_id_++);
    proto.mutable_initializer()->set_seed(kSeed);
    *manifest.add_tables() = proto;
    for (uint32_t p = 0; p < proto.partitions(); ++p) {
      std::string ids, values;
      int64_t count = 0;
      for (const auto& [id, row] : rows) {
        if (id % proto.partitions() != p) continue;
        ids.append(reinterpret_cast<const char*>(&id), sizeof(id));
        values.append(reinterpret_cast<const char*>(row.data()), row.size() * sizeof(float));
        ++count;
      }
      Add(static_cast<int>(p), {TableTensorName(spec.name, p, "ids"), kInt64, {count}}, ids);
      Add(static_cast<int>(p),
          {TableTensorName(spec.name, p, "values"), kFloat32, {count, spec.dim}}, values);
    }
  }

  // A tensor of a file, as it is.
  void Add(int partition, TensorEntry entry, std::string bytes) {
    files_[static_cast<size_t>(partition) % files_.size()].emplace_back(std::move(entry),
                                                                        std::move(bytes));
  }

  absl::Status Write(const std::string& directory) {
    MU_RETURN_IF_ERROR(MakeDirectories(directory));
    manifest.set_format_version(kCheckpointFormat);
    for (size_t i = 0; i < files_.size(); ++i) {
      auto& tensors = files_[i];
      std::stable_sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
        return ElementSize(a.first.dtype) > ElementSize(b.first.dtype);
      });
      std::vector<TensorEntry> entries;
      for (const auto& [entry, bytes] : tensors) entries.push_back(entry);
      const std::string name = absl::StrCat("ps-", i, ".safetensors");
      MU_ASSIGN_OR_RETURN(SafetensorsWriter writer,
                          SafetensorsWriter::Create(JoinPath(directory, name), entries, {}));
      for (const auto& [entry, bytes] : tensors)
        MU_RETURN_IF_ERROR(writer.Append(bytes.data(), bytes.size()));
      MU_RETURN_IF_ERROR(writer.Finish());
      pb::CheckpointFileProto* file = manifest.add_files();
      file->set_name(name);
      file->set_bytes(writer.bytes());
      file->set_crc32c(writer.crc32c());
    }
    return WriteManifest(directory, manifest);
  }

  static constexpr uint64_t kSeed = 5;
  pb::CheckpointProto manifest;

 private:
  std::vector<std::vector<std::pair<TensorEntry, std::string>>> files_;
  uint32_t next_id_ = 1;
};

}  // namespace mu::testing
