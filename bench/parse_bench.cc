// Parsing of click log lines, beside what the machine does when it only looks for the line ends
// (memchr), and of each other format. One core.
//   parse_bench                              # the rows of `coordinator make-data criteo`, and made
//   ones parse_bench --benchmark_filter=BM_Parse/jsonl
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "common/env/file.h"
#include "common/graph/dataset_schema.h"
#include "common/records/array_head.h"
#include "common/records/record_format.h"
#include "common/records/tfrecord_format.h"
#include "coordinator/cli/make_data_rows.h"
#include "worker/data/dataset_reader.h"

namespace mu {
namespace {

constexpr uint32_t kRows = 100'000;

const std::string& Lines() {
  static const std::string* const lines = [] {
    const ClickLogRows rows(1);
    auto* text = new std::string;
    for (uint64_t i = 0; i < kRows; ++i) rows.Append(i, text);
    text->append(kRecordPadding, '\0');
    return text;
  }();
  return *lines;
}

absl::string_view Text() {
  return absl::string_view(Lines()).substr(0, Lines().size() - kRecordPadding);
}

pb::DatasetProto Dataset() {
  pb::DatasetProto dataset;
  dataset.mutable_criteo_tsv()->set_hash_buckets(100'000);
  dataset.set_batch_size(2048);
  dataset.set_block_records(8192);
  return dataset;
}

void Report(benchmark::State& state) {
  const auto iterations = static_cast<int64_t>(state.iterations());
  state.SetBytesProcessed(iterations * static_cast<int64_t>(Text().size()));
  state.counters["lines/s"] =
      benchmark::Counter(static_cast<double>(iterations) * kRows, benchmark::Counter::kIsRate);
}

void BM_FindLineEnds(benchmark::State& state) {
  Lines();
  for (auto _ : state) {
    const char* p = Text().data();
    const char* const end = p + Text().size();
    size_t lines = 0;
    while (p < end && (p = static_cast<const char*>(
                           std::memchr(p, '\n', static_cast<size_t>(end - p)))) != nullptr) {
      ++lines;
      ++p;
    }
    benchmark::DoNotOptimize(lines);
  }
  Report(state);
}
BENCHMARK(BM_FindLineEnds)->Unit(benchmark::kMillisecond);

void BM_ParseCriteo(benchmark::State& state) {
  const pb::DatasetProto dataset = Dataset();
  const FileFormat format = MakeRecordFormat(dataset).value()->Open(0, "").value();
  std::string error;
  Lines();
  for (auto _ : state) {
    ColumnSet columns(SchemaOf(dataset), kRows);
    const char* p = Text().data();
    FoundRecord found;
    while (format.finder->Find(p, Text().data() + Text().size(), true, 1, &found) ==
           FindResult::kFound) {
      p = found.next;
      if (format.parser->Parse(found.text, &columns, &error)) columns.CommitRow();
    }
    if (columns.rows() != kRows) state.SkipWithError("a line did not parse");
  }
  Report(state);
}
BENCHMARK(BM_ParseCriteo)->Unit(benchmark::kMillisecond);

// From the file to all batches of a permuted lease.
void BM_ReadLease(benchmark::State& state) {
  const absl::StatusOr<TempDirectory> directory = TempDirectory::Create("parse_bench");
  if (!directory.ok()) return state.SkipWithError("no temporary directory");
  const std::string path = JoinPath(directory->path(), "rows.tsv");
  pb::DatasetProto dataset = Dataset();
  dataset.add_files(path);
  if (!AppendToFile(path, Text()).ok()) return state.SkipWithError("cannot write the rows");
  const auto reader = DatasetReader::Create(dataset, nullptr).value();
  pb::LeaseProto lease;
  lease.set_permutation(7);
  pb::BlockProto* block = lease.add_blocks();
  block->set_count(kRows);
  if (!reader->Layout(0).ok()) return state.SkipWithError("cannot index the rows");
  for (auto _ : state) {
    const auto data = reader->Read(lease);
    if (!data.ok()) return state.SkipWithError("cannot read the rows");
    for (uint32_t b = 0; b < (*data)->batches(); ++b)
      benchmark::DoNotOptimize((*data)->MakeBatch(b));
  }
  Report(state);
}
BENCHMARK(BM_ReadLease)->Unit(benchmark::kMillisecond);

void BM_IndexFile(benchmark::State& state) {
  Lines();
  for (auto _ : state) {
    FileIndexer indexer("rows", MakeRecordFormat(Dataset()).value(), 0, 8192);
    constexpr size_t kChunk = size_t{1} << 20;
    for (size_t i = 0; i < Text().size(); i += kChunk) {
      if (!indexer.Write(Text().substr(i, kChunk)).ok()) state.SkipWithError("cannot index");
    }
    if (indexer.Finish()->records != kRows) state.SkipWithError("lines are missing");
  }
  Report(state);
}
BENCHMARK(BM_IndexFile)->Unit(benchmark::kMillisecond);

// The other formats: records of a few dozen fields as users have them, from the unpacked file to
// the columns. Figures are bytes of the file.
struct Input {
  pb::DatasetProto dataset;
  std::string bytes;  // kRecordPadding bytes of 0 follow
  uint32_t records = 0;
};

pb::CsvColumnProto* AddColumn(FieldColumnList* columns, const std::string& name,
                              pb::CsvColumnProto::Kind kind) {
  pb::CsvColumnProto* const column = columns->Add();
  column->set_name(name);
  column->set_index(-1);
  column->set_kind(kind);
  if (kind == pb::CsvColumnProto::HASH) column->set_buckets(100'000);
  return column;
}

constexpr uint32_t kFieldRecords = 20'000;
constexpr int kNumbers = 13, kTexts = 13;

std::string NumberText(SplitMix* random) { return absl::StrCat(random->Below(100'000) / 100.0); }
std::string WordText(SplitMix* random) {
  return absl::StrCat("word-", absl::Hex(random->Below(1 << 20)));
}

Input CsvInput() {
  Input input;
  input.records = kFieldRecords;
  auto* const csv = input.dataset.mutable_csv();
  csv->set_header(true);
  for (int i = 0; i < kNumbers; ++i)
    AddColumn(csv->mutable_columns(), absl::StrCat("n", i), pb::CsvColumnProto::NUMBER);
  for (int i = 0; i < kTexts; ++i)
    AddColumn(csv->mutable_columns(), absl::StrCat("t", i), pb::CsvColumnProto::HASH);
  for (int i = 0; i < csv->columns_size(); ++i)
    absl::StrAppend(&input.bytes, i > 0 ? "," : "", csv->columns(i).name());
  input.bytes += "\n";
  SplitMix random(1);
  for (uint32_t r = 0; r < input.records; ++r) {
    for (int i = 0; i < kNumbers; ++i) absl::StrAppend(&input.bytes, NumberText(&random), ",");
    for (int i = 0; i < kTexts; ++i)
      absl::StrAppend(&input.bytes, WordText(&random), i + 1 < kTexts ? "," : "\n");
  }
  return input;
}

Input JsonlInput() {
  Input input;
  input.records = kFieldRecords;
  auto* const columns = input.dataset.mutable_jsonl()->mutable_columns();
  SplitMix random(1);
  for (uint32_t r = 0; r < input.records; ++r) {
    input.bytes += "{";
    for (int i = 0; i < kNumbers; ++i)
      absl::StrAppend(&input.bytes, "\"n", i, "\": ", NumberText(&random), ", ");
    for (int i = 0; i < kTexts; ++i) {
      absl::StrAppend(&input.bytes, "\"t", i, "\": \"", WordText(&random), "\"",
                      i + 1 < kTexts ? ", " : "}\n");
    }
  }
  for (int i = 0; i < kNumbers; ++i)
    AddColumn(columns, absl::StrCat("n", i), pb::CsvColumnProto::NUMBER);
  for (int i = 0; i < kTexts; ++i)
    AddColumn(columns, absl::StrCat("t", i), pb::CsvColumnProto::HASH);
  return input;
}

// A field of type 2 of protobuf's wire format.
std::string Wire(int field, const std::string& bytes) {
  std::string wire = {static_cast<char>(field << 3 | 2)};
  size_t size = bytes.size();
  for (; size >= 0x80; size >>= 7) wire.push_back(static_cast<char>(size | 0x80));
  wire.push_back(static_cast<char>(size));
  return wire + bytes;
}

Input TfrecordInput() {
  Input input;
  input.records = kFieldRecords;
  auto* const columns = input.dataset.mutable_tfrecord()->mutable_columns();
  SplitMix random(1);
  const auto feature = [](const std::string& name, int list, const std::string& values) {
    return Wire(1, Wire(1, name) + Wire(2, Wire(list, values)));
  };
  for (uint32_t r = 0; r < input.records; ++r) {
    std::string features;
    for (int i = 0; i < kNumbers; ++i) {
      const auto number = static_cast<float>(random.Below(100'000)) / 100;
      features += feature(absl::StrCat("n", i), 2,
                          Wire(1, std::string(reinterpret_cast<const char*>(&number), 4)));
    }
    for (int i = 0; i < kTexts; ++i)
      features += feature(absl::StrCat("t", i), 1, Wire(1, WordText(&random)));
    input.bytes += TfrecordFrame(Wire(1, features));
  }
  for (int i = 0; i < kNumbers; ++i)
    AddColumn(columns, absl::StrCat("n", i), pb::CsvColumnProto::NUMBER);
  for (int i = 0; i < kTexts; ++i)
    AddColumn(columns, absl::StrCat("t", i), pb::CsvColumnProto::HASH);
  return input;
}

Input LibsvmInput() {
  Input input;
  input.records = kFieldRecords;
  input.dataset.mutable_libsvm()->set_features(1 << 20);
  SplitMix random(1);
  for (uint32_t r = 0; r < input.records; ++r) {
    input.bytes += r % 2 == 0 ? "1" : "0";
    uint64_t id = 0;
    for (int i = 0; i < kNumbers + kTexts; ++i)
      absl::StrAppend(&input.bytes, " ", id += 1 + random.Below(1000), ":", NumberText(&random));
    input.bytes += "\n";
  }
  return input;
}

Input LibffmInput() {
  Input input;
  input.records = kFieldRecords;
  input.dataset.mutable_libffm()->set_features(1 << 20);
  input.dataset.mutable_libffm()->set_fields(kNumbers + kTexts);
  SplitMix random(1);
  for (uint32_t r = 0; r < input.records; ++r) {
    input.bytes += r % 2 == 0 ? "1" : "0";
    for (int i = 0; i < kNumbers + kTexts; ++i)
      absl::StrAppend(&input.bytes, " ", i, ":", random.Below(1 << 20), ":", NumberText(&random));
    input.bytes += "\n";
  }
  return input;
}

pb::ArrayColumnProto* AddArray(pb::DatasetProto* dataset, DType dtype) {
  pb::ArrayColumnProto* const column = dataset->mutable_arrays()->add_columns();
  column->set_name("x");
  column->set_dtype(dtype);
  return column;
}

Input IdxInput() {
  Input input;
  input.records = 20'000;
  AddArray(&input.dataset, kFloat32)->add_shape(784);
  input.dataset.mutable_arrays()->mutable_columns(0)->set_scale(1.0f / 255);
  input.bytes = std::string("\0\0\x08\x02\0\0\x4E\x20\0\0\x03\x10", 12);
  SplitMix random(1);
  while (input.bytes.size() < 12 + size_t{784} * input.records)
    input.bytes.push_back(static_cast<char>(random.Next()));
  return input;
}

Input NpyInput() {
  Input input;
  input.records = 100'000;
  input.dataset.mutable_arrays()->set_container(pb::ArraysProto::NPY);
  AddArray(&input.dataset, kFloat32)->add_shape(64);
  std::vector<float> values(size_t{64} * input.records);
  SplitMix random(1);
  for (float& value : values) value = static_cast<float>(random.Unit());
  input.bytes = NpyOf(Tensor::Of<float>({input.records, 64}, values));
  return input;
}

void BM_Parse(benchmark::State& state, Input (*make)()) {
  Input input = make();
  const size_t size = input.bytes.size();
  input.bytes.append(kRecordPadding, '\0');
  const char* const end = input.bytes.data() + size;
  const auto format = MakeRecordFormat(input.dataset).value();
  FoundRecord found;
  if (format->FindHead(0, input.bytes.data(), end, true, &found) != FindResult::kFound)
    return state.SkipWithError("the head is not found");
  const FileFormat file = format->Open(0, found.text).value();
  const char* const begin = found.next;
  std::string error;
  for (auto _ : state) {
    ColumnSet columns(SchemaOf(input.dataset), input.records);
    const char* p = begin;
    while (file.finder->Find(p, end, true, 1, &found) == FindResult::kFound) {
      p = found.next;
      if (!file.parser->Parse(found.text, &columns, &error)) break;
      columns.CommitRow();
    }
    if (columns.rows() != input.records) state.SkipWithError(error.c_str());
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) * static_cast<int64_t>(size));
  state.counters["records/s"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * input.records, benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(BM_Parse, csv, CsvInput)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Parse, jsonl, JsonlInput)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Parse, tfrecord, TfrecordInput)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Parse, libsvm, LibsvmInput)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Parse, libffm, LibffmInput)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Parse, idx, IdxInput)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Parse, npy, NpyInput)->Unit(benchmark::kMillisecond);

void BM_MakeRows(benchmark::State& state) {
  const ClickLogRows rows(1);
  std::string text;
  for (auto _ : state) {
    text.clear();
    for (uint64_t i = 0; i < kRows; ++i) rows.Append(i, &text);
    benchmark::DoNotOptimize(text.data());
  }
  Report(state);
}
BENCHMARK(BM_MakeRows)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace mu

BENCHMARK_MAIN();
