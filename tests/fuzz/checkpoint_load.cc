// Restoring a small model from files that describe any tensors, with the sizes and sums that the
// request would say of them.
#include <cstring>
#include <nlohmann/json.hpp>

#include "common/base/crc32c.h"
#include "common/obs/log.h"
#include "psserver/checkpoint/checkpoint.h"
#include "tests/fuzz/scratch_directory.h"
#include "tests/fuzz/small_model.h"
#include "tests/fuzz/structured.h"

namespace mu {
namespace {

std::string Encode(const fuzz::TensorsFile& file) {
  std::string header = file.header(), data;
  if (header.empty()) {
    nlohmann::ordered_json json = nlohmann::ordered_json::object();
    for (const auto& tensor : file.tensors()) {
      auto& entry = json[tensor.name()];
      entry["dtype"] = tensor.dtype();
      entry["shape"] = nlohmann::ordered_json::array();
      for (const int64_t dim : tensor.shape()) entry["shape"].push_back(dim);
      const size_t begin = data.size();
      data += tensor.data();
      entry["data_offsets"] = {begin, data.size()};
    }
    header = json.dump();
  } else {
    for (const auto& tensor : file.tensors()) data += tensor.data();
  }
  const uint64_t size = header.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof(size)) + header + data;
}

}  // namespace
}  // namespace mu

MUSTER_FUZZ_MESSAGE(muster::fuzz::CheckpointInput) {
  static const mu::fuzzing::ScratchDirectory directory;
  mu::SetLogSeverity(mu::LogSeverity::ERROR);
  mu::CheckpointFiles files;
  for (const auto& file : input.files()) {
    muster::CheckpointFileProto* const proto = files.Add();
    proto->set_name(file.name());
    if (!mu::CheckFileName(file.name()).ok() || file.name().size() > 200) continue;
    const std::string bytes = mu::Encode(file);
    directory.Write(file.name(), bytes);
    proto->set_bytes(bytes.size() + static_cast<uint64_t>(file.wrong_bytes()));
    proto->set_crc32c(mu::Crc32c(bytes.data(), bytes.size()));
  }
  mu::Store store;
  MU_CHECK(store.Configure(mu::fuzzing::SmallModel(), 0).ok());
  const auto model = store.directory();
  if (mu::VerifyCheckpointFiles(*model, directory.path(), files).ok())
    (void)mu::LoadCheckpoint(*model, directory.path(), files, input.low_water());
  directory.Clear();
}
