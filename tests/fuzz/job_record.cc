// A job directory's job.json, as bytes. One that is read is written again and must be the same.
#include "coordinator/training/job_record.h"

#include "common/base/check.h"
#include "tests/fuzz/scratch_directory.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const mu::fuzzing::ScratchDirectory directory;
  directory.Write("job.json", {reinterpret_cast<const char*>(data), size});
  const auto record = mu::ReadJobRecord(directory.path());
  if (!record.ok()) return 0;
  (void)mu::JobDifferences(record->job, muster::JobProto());
  MU_CHECK(mu::WriteJobRecord(directory.path(), *record).ok());
  const auto again = mu::ReadJobRecord(directory.path());
  MU_CHECK(again.ok() && again->status == record->status);
  MU_CHECK(mu::JobFingerprint(again->job) == mu::JobFingerprint(record->job));
  return 0;
}
