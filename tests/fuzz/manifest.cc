// The manifest of a checkpoint, as bytes. One that is read is written again and must be the same.
#include "common/base/check.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "tests/fuzz/scratch_directory.h"
#include "tests/fuzz/small_model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const mu::fuzzing::ScratchDirectory directory;
  directory.Write("manifest.json", {reinterpret_cast<const char*>(data), size});
  const auto manifest = mu::ReadManifest(directory.path());
  if (!manifest.ok()) return 0;
  (void)mu::CheckFits(*manifest, mu::fuzzing::SmallModel());
  MU_CHECK(mu::WriteManifest(directory.path(), *manifest).ok());
  const auto again = mu::ReadManifest(directory.path());
  MU_CHECK(again.ok());
  return 0;
}
