// Files and datasets for tests of worker/data.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "common/env/compression.h"
#include "common/env/file.h"
#include "common/records/bucket_hash.h"
#include "tests/testing/matchers.h"
#include "worker/data/dataset_reader.h"

namespace mu {

// A directory of its own with files in it, and a cache beside them.
class DataTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MU_ASSERT_OK_AND_ASSIGN(root_, MakeTempDirectory("data_test"));
    cache_ = std::make_shared<FileCache>(JoinPath(root_, "cache"), uint64_t{64} << 20);
  }
  void TearDown() override {
    cache_.reset();
    MU_ASSERT_OK(RemoveTree(root_));
  }

  std::string Path(absl::string_view name) const { return JoinPath(root_, name); }
  // Packed as the name says.
  std::string Write(absl::string_view name, const std::string& contents) const {
    const std::string path = Path(name);
    const Compression compression = name.find(".gz") != absl::string_view::npos ? Compression::kGzip
                                    : name.find(".zst") != absl::string_view::npos
                                        ? Compression::kZstd
                                        : Compression::kNone;
    RemoveFile(path).IgnoreError();
    EXPECT_THAT(AppendToFile(path, Compress(compression, contents).value()), testing::IsOk());
    return path;
  }

  std::shared_ptr<DatasetReader> Reader(const pb::DatasetProto& dataset,
                                        size_t most_lease_bytes = 0) const {
    absl::StatusOr<std::shared_ptr<DatasetReader>> reader =
        DatasetReader::Create(dataset, cache_, most_lease_bytes);
    EXPECT_THAT(reader, testing::IsOk());
    return reader.ok() ? *reader : nullptr;
  }

  std::string root_;
  std::shared_ptr<FileCache> cache_;
};

inline pb::CsvColumnProto* AddColumn(pb::DatasetProto* dataset, const std::string& name,
                                     pb::CsvColumnProto::Kind kind, int index = -1) {
  pb::CsvColumnProto* column = dataset->mutable_csv()->add_columns();
  column->set_name(name);
  column->set_kind(kind);
  column->set_index(index);
  if (kind == pb::CsvColumnProto::HASH) column->set_buckets(1000);
  if (kind == pb::CsvColumnProto::LABEL) column->add_positive("yes");
  return column;
}

inline pb::LeaseProto LeaseOf(std::vector<pb::BlockProto> blocks, uint64_t permutation = 0) {
  pb::LeaseProto lease;
  for (pb::BlockProto& block : blocks) *lease.add_blocks() = std::move(block);
  lease.set_permutation(permutation);
  return lease;
}

inline pb::BlockProto Block(uint32_t file, uint64_t first, uint32_t count) {
  pb::BlockProto block;
  block.set_file(file);
  block.set_first(first);
  block.set_count(count);
  return block;
}

// All blocks of the first file, which say where they are; `size` is the dataset's block_records.
inline std::vector<pb::BlockProto> BlocksOf(const pb::FileLayoutProto& layout, uint32_t size) {
  std::vector<pb::BlockProto> blocks;
  for (int i = 0; i < layout.offsets_size(); ++i) {
    const uint64_t first = static_cast<uint64_t>(i) * size;
    pb::BlockProto block =
        Block(0, first, static_cast<uint32_t>(std::min<uint64_t>(size, layout.records() - first)));
    const uint64_t end = i + 1 < layout.offsets_size() ? layout.offsets(i + 1) : layout.bytes();
    block.set_offset(layout.offsets(i));
    block.set_bytes(end - layout.offsets(i));
    block.set_line(layout.lines(i));
    block.set_file_bytes(layout.bytes());
    block.set_beginning(layout.beginnings(i));
    blocks.push_back(block);
  }
  return blocks;
}

// All records of a file as one lease.
inline absl::StatusOr<std::shared_ptr<const LeaseData>> ReadFileWhole(DatasetReader* reader,
                                                                      uint32_t file = 0) {
  const absl::StatusOr<pb::FileLayoutProto> layout = reader->Layout(file);
  if (!layout.ok()) return layout.status();
  return reader->Read(LeaseOf({Block(file, 0, static_cast<uint32_t>(layout->records()))}));
}

template <typename T>
std::vector<T> Values(const Batch& batch, absl::string_view column) {
  const Tensor* tensor = batch.Find(column);
  EXPECT_NE(tensor, nullptr) << column;
  if (tensor == nullptr) return {};
  const auto flat = tensor->flat<T>();
  return std::vector<T>(flat.begin(), flat.end());
}

}  // namespace mu
