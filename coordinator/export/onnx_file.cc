#include "coordinator/export/onnx_file.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/version.h"
#include "common/env/file.h"
#include "coordinator/export/onnx_ops.h"
#include "coordinator/export/output_file.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"

namespace mu {
namespace {

// So that a runtime can map the file.
constexpr uint64_t kPage = 4096;

// Protobuf's way to a file.
class FileStream : public google::protobuf::io::CopyingOutputStream {
 public:
  explicit FileStream(OutputFile* file) : file_(file) {}
  bool Write(const void* data, int size) override {
    status_ = file_->Append({static_cast<const char*>(data), static_cast<size_t>(size)});
    return status_.ok();
  }
  const absl::Status& status() const { return status_; }

 private:
  OutputFile* const file_;
  absl::Status status_;
};

pb::onnx::TensorProto Describe(const OnnxGraph::Stored& stored) {
  pb::onnx::TensorProto tensor;
  tensor.set_name(stored.name);
  for (const int64_t dim : stored.value.shape) tensor.add_dims(dim);
  tensor.set_data_type(OnnxType(stored.value.dtype));
  return tensor;
}

void AddProperty(const std::string& key, const std::string& value,
                 google::protobuf::RepeatedPtrField<pb::onnx::StringStringEntryProto>* to) {
  auto* entry = to->Add();
  entry->set_key(key);
  entry->set_value(value);
}

absl::Status PutInside(const OnnxGraph::Stored& stored, const CheckpointValues& checkpoint,
                       pb::onnx::GraphProto* graph) {
  pb::onnx::TensorProto* tensor = graph->add_initializer();
  *tensor = Describe(stored);
  std::string* data = tensor->mutable_raw_data();
  data->reserve(stored.value.bytes());
  return checkpoint.Read(stored.value, [&](absl::string_view bytes) {
    data->append(bytes.data(), bytes.size());
    return absl::OkStatus();
  });
}

absl::Status PutBeside(const OnnxGraph::Stored& stored, const CheckpointValues& checkpoint,
                       OutputFile* file, pb::onnx::GraphProto* graph) {
  MU_RETURN_IF_ERROR(file->Align(kPage));
  pb::onnx::TensorProto* tensor = graph->add_initializer();
  *tensor = Describe(stored);
  tensor->set_data_location(pb::onnx::TensorProto::EXTERNAL);
  AddProperty("location", BaseName(file->path()), tensor->mutable_external_data());
  AddProperty("offset", absl::StrCat(file->size()), tensor->mutable_external_data());
  AddProperty("length", absl::StrCat(stored.value.bytes()), tensor->mutable_external_data());
  return checkpoint.Read(stored.value,
                         [&](absl::string_view bytes) { return file->Append(bytes); });
}

}  // namespace

std::string OnnxDataPath(const std::string& path) { return absl::StrCat(path, ".data"); }

absl::StatusOr<OnnxFiles> WriteOnnx(const OnnxGraph& graph, const CheckpointValues& checkpoint,
                                    const std::map<std::string, std::string>& metadata,
                                    const std::string& path, uint64_t most_inside) {
  OnnxFiles files{.model = path};
  std::vector<OnnxGraph::Stored> stored = graph.stored();
  std::stable_sort(stored.begin(), stored.end(),
                   [](const auto& a, const auto& b) { return a.value.bytes() < b.value.bytes(); });
  pb::onnx::ModelProto model;
  model.set_ir_version(kOnnxIrVersion);
  model.set_producer_name("muster");
  model.set_producer_version(Version());
  model.add_opset_import()->set_version(kOnnxOpset);
  for (const auto& [key, value] : metadata) AddProperty(key, value, model.mutable_metadata_props());
  *model.mutable_graph() = graph.proto();

  size_t next = 0;
  while (next < stored.size() && files.bytes_inside + stored[next].value.bytes() <=
                                     std::min(most_inside, kMostBytesInside)) {
    files.bytes_inside += stored[next].value.bytes();
    MU_RETURN_IF_ERROR(PutInside(stored[next++], checkpoint, model.mutable_graph()));
  }
  std::optional<OutputFile> data;
  if (next < stored.size()) {
    files.data = OnnxDataPath(path);
    MU_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(files.data));
    for (; next < stored.size(); ++next) {
      files.bytes_beside += stored[next].value.bytes();
      MU_RETURN_IF_ERROR(PutBeside(stored[next], checkpoint, &file, model.mutable_graph()));
    }
    MU_RETURN_IF_ERROR(file.Sync());
    data.emplace(std::move(file));
  }
  MU_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  FileStream stream(&file);
  {
    google::protobuf::io::CopyingOutputStreamAdaptor adaptor(&stream);
    const bool written = model.SerializeToZeroCopyStream(&adaptor) && adaptor.Flush();
    MU_RETURN_IF_ERROR(stream.status());
    if (!written)
      return absl::ResourceExhaustedError(absl::StrCat(
          path, ": the model is larger than a protobuf message can be; put less inside"));
  }
  MU_RETURN_IF_ERROR(file.Sync());
  if (data.has_value()) {
    // An earlier model would read the new data as its own, and predict with them.
    if (FileExists(path)) {
      MU_RETURN_IF_ERROR(RemoveFile(path));
      MU_RETURN_IF_ERROR(SyncDirectory(DirectoryOf(path)));
    }
    MU_RETURN_IF_ERROR(data->Place());
  }
  MU_RETURN_IF_ERROR(file.Place());
  return files;
}

}  // namespace mu
