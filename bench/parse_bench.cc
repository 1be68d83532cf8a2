// Parsing of click log lines, beside what the machine does when it only looks for the line ends
// (memchr). One core.
//   parse_bench                  # the rows of `coordinator make-data criteo`
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "common/env/file.h"
#include "common/graph/dataset_schema.h"
#include "common/records/record_parser.h"
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
  const auto parser = MakeRecordParser(dataset, "").value();
  const RecordSyntax syntax = SyntaxOf(dataset);
  std::string error;
  Lines();
  for (auto _ : state) {
    ColumnSet columns(SchemaOf(dataset), kRows);
    const char* p = Text().data();
    FoundRecord found;
    while (FindRecord(syntax, p, Text().data() + Text().size(), true, 1, &found) ==
           FindResult::kFound) {
      p = found.next;
      if (parser->Parse(found.text, &columns, &error)) columns.CommitRow();
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
    FileIndexer indexer("rows", RecordSyntax(), 8192);
    constexpr size_t kChunk = size_t{1} << 20;
    for (size_t i = 0; i < Text().size(); i += kChunk) {
      if (!indexer.Write(Text().substr(i, kChunk)).ok()) state.SkipWithError("cannot index");
    }
    if (indexer.Finish()->records != kRows) state.SkipWithError("lines are missing");
  }
  Report(state);
}
BENCHMARK(BM_IndexFile)->Unit(benchmark::kMillisecond);

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
