// Data sets and leases as a worker receives them, over files of any content: plain leases made from
// the files' layouts, and the leases of the input, whatever they say.
#include <algorithm>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/obs/log.h"
#include "tests/fuzz/scratch_directory.h"
#include "tests/fuzz/small_rows.h"
#include "tests/fuzz/structured.h"
#include "worker/data/dataset_reader.h"

namespace mu {
namespace {

constexpr uint32_t kMostModulo = 1 << 12;
constexpr int kMostFiles = 3;
constexpr int kMostBlocks = 16;

// All blocks of a file, in the places that its layout says.
pb::LeaseProto LeaseOf(uint32_t file, const pb::DatasetProto& dataset,
                       const pb::FileLayoutProto& layout) {
  pb::LeaseProto lease;
  for (int i = 0; i < std::min(layout.offsets_size(), kMostBlocks); ++i) {
    pb::BlockProto* const block = lease.add_blocks();
    block->set_file(file);
    block->set_first(uint64_t{dataset.block_records()} * static_cast<uint64_t>(i));
    block->set_count(static_cast<uint32_t>(
        std::min<uint64_t>(dataset.block_records(), layout.records() - block->first())));
    block->set_offset(layout.offsets(i));
    block->set_line(layout.lines(i));
    block->set_bytes((i + 1 < layout.offsets_size() ? layout.offsets(i + 1) : layout.bytes()) -
                     block->offset());
    block->set_file_bytes(layout.bytes());
    block->set_beginning(layout.beginnings(i));
  }
  return lease;
}

void ReadAll(DatasetReader* reader, const pb::LeaseProto& lease) {
  const auto data = reader->Read(lease);
  if (!data.ok()) return;
  uint64_t records = 0;
  for (uint32_t b = 0; b < (*data)->batches(); ++b) records += (*data)->MakeBatch(b).records;
  MU_CHECK(records == (*data)->records());
  MU_CHECK((*data)->MakeBatch((*data)->batches()).records == 0);
}

}  // namespace
}  // namespace mu

MUSTER_FUZZ_MESSAGE(muster::fuzz::DatasetInput) {
  static const mu::fuzzing::ScratchDirectory files;
  mu::SetLogSeverity(mu::LogSeverity::ERROR);
  muster::DatasetProto dataset = input.dataset();
  dataset.clear_files();
  for (int i = 0; i < std::min(input.files_size(), mu::kMostFiles); ++i)
    dataset.add_files(files.Write(absl::StrCat("data", i), input.files(i)));
  // One list of companions at most, which have files of their own contents.
  if (dataset.companions_size() > 1) return;
  if (dataset.companions_size() == 1) {
    dataset.mutable_companions(0)->clear_files();
    for (int i = 0; i < std::min(input.companion_files_size(), mu::kMostFiles); ++i) {
      dataset.mutable_companions(0)->add_files(
          files.Write(absl::StrCat("companion", i), input.companion_files(i)));
    }
  }
  if (dataset.records().modulo() > mu::kMostModulo || !mu::fuzzing::HasSmallRows(dataset)) return;
  const auto cache = std::make_shared<mu::FileCache>(files.path() + "/cache", 1 << 22);
  const auto reader = mu::DatasetReader::Create(dataset, cache);
  if (reader.ok()) {
    for (const muster::LeaseProto& lease : input.leases()) {
      if (lease.blocks_size() <= mu::kMostBlocks) mu::ReadAll(reader->get(), lease);
    }
    for (int i = 0; i < dataset.files_size(); ++i) {
      const uint32_t file = static_cast<uint32_t>(i);
      const auto layout = (*reader)->Layout(file);
      if (layout.ok()) mu::ReadAll(reader->get(), mu::LeaseOf(file, dataset, *layout));
    }
  }
  files.Clear();
}
