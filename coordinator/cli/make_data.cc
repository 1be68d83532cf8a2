#include "coordinator/cli/make_data.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/env/compression.h"
#include "common/env/file.h"
#include "common/metrics/binary_metrics.h"
#include "coordinator/cli/make_data_rows.h"

namespace mu {
namespace {

constexpr uint64_t kRowsPerFile = 50'000;
constexpr uint32_t kMaxDefaultFiles = 64;
constexpr uint64_t kChunkRows = 8192;  // that one thread makes, and one gzip member holds

struct Output {
  std::string path;
  std::string temporary;
  bool test = false;
};

struct Chunk {
  size_t file;
  uint64_t first;
  uint64_t rows;
  bool last;  // of its file
};

// Chunks are made in any order by all threads and written one after the other.
class Writer {
 public:
  Writer(const MakeDataOptions& options, std::vector<Output> outputs, std::vector<Chunk> chunks)
      : options_(options),
        rows_(options.seed),
        outputs_(std::move(outputs)),
        chunks_(std::move(chunks)) {}

  absl::Status Run(int threads, MakeDataResult* result) {
    std::vector<std::thread> pool;
    for (int i = 1; i < threads; ++i) pool.emplace_back([this] { Work(); });
    Work();
    for (std::thread& thread : pool) thread.join();
    MutexLock lock(&mutex_);
    if (!status_.ok()) {
      for (const Output& output : outputs_) RemoveFile(output.temporary).IgnoreError();
      return status_;
    }
    for (const Output& output : outputs_) result->files.push_back(output.path);
    result->rows = train_.count() + test_.count();
    result->clicks = clicks_;
    result->oracle_auc = test_.count() > 0 ? test_.auc() : train_.auc();
    return absl::OkStatus();
  }

 private:
  void Work() {
    std::string lines;
    std::vector<float> probabilities, labels;
    for (size_t i; (i = next_.fetch_add(1)) < chunks_.size();) {
      const Chunk& chunk = chunks_[i];
      lines.clear();
      probabilities.clear();
      labels.clear();
      for (uint64_t row = chunk.first; row < chunk.first + chunk.rows; ++row) {
        const ClickLogRows::Row made = rows_.Append(row, &lines);
        probabilities.push_back(made.probability);
        labels.push_back(made.click ? 1.0f : 0.0f);
      }
      absl::StatusOr<std::string> packed =
          Compress(options_.compress ? Compression::kGzip : Compression::kNone, lines);
      MutexLock lock(&mutex_);
      while (written_ != i && status_.ok()) turn_.Wait(&mutex_);
      if (status_.ok()) status_ = packed.ok() ? Write(chunk, *packed) : packed.status();
      if (status_.ok()) {
        BinaryMetrics& oracle = outputs_[chunk.file].test ? test_ : train_;
        status_ = oracle.Add(probabilities, labels);
        clicks_ += static_cast<uint64_t>(std::count(labels.begin(), labels.end(), 1.0f));
      }
      ++written_;
      turn_.SignalAll();
      if (!status_.ok()) return;
    }
  }

  absl::Status Write(const Chunk& chunk, const std::string& bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const Output& output = outputs_[chunk.file];
    MU_RETURN_IF_ERROR(AppendToFile(output.temporary, bytes));
    if (!chunk.last) return absl::OkStatus();
    return RenameFile(output.temporary, output.path);
  }

  const MakeDataOptions& options_;
  const ClickLogRows rows_;
  const std::vector<Output> outputs_;
  const std::vector<Chunk> chunks_;
  std::atomic<size_t> next_{0};
  Mutex mutex_;
  CondVar turn_;
  size_t written_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  BinaryMetrics train_ ABSL_GUARDED_BY(mutex_);
  BinaryMetrics test_ ABSL_GUARDED_BY(mutex_);
  uint64_t clicks_ ABSL_GUARDED_BY(mutex_) = 0;
};

absl::Status Check(const MakeDataOptions& options) {
  if (options.rows == 0)
    return absl::InvalidArgumentError("rows is 0; say how many to make with --rows=N");
  if (options.out_dir.empty())
    return absl::InvalidArgumentError("no folder to write to; name it with --out=DIR");
  if (options.files > kMostFiles || options.files > options.rows) {
    return absl::InvalidArgumentError(absl::StrCat(options.files, " files for ", options.rows,
                                                   " rows; make no more files than rows or ",
                                                   kMostFiles));
  }
  if (options.rows > kMostRows || options.test_rows > kMostRows || options.start > kMostStart) {
    return absl::InvalidArgumentError(absl::StrCat(
        "at most ", kMostRows, " rows can be made at once, and start is at most ", kMostStart));
  }
  if (options.test_rows > 0 && options.start < kTestStart + options.test_rows &&
      kTestStart < options.start + options.rows) {
    return absl::InvalidArgumentError(
        absl::StrCat("rows ", options.start, " to ", options.start + options.rows,
                     " overlap the test rows, which begin at ", kTestStart));
  }
  return absl::OkStatus();
}

// A glob over the folder must find the files of one run.
absl::Status CheckFolder(const std::string& folder, const std::vector<Output>& outputs) {
  absl::flat_hash_set<std::string> ours;
  for (const Output& output : outputs) ours.insert(BaseName(output.path));
  MU_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(folder));
  for (const std::string& name : names) {
    const bool data = absl::EndsWith(name, ".tsv") || absl::EndsWith(name, ".tsv.gz");
    if (!data || ours.contains(name)) continue;
    if (absl::StartsWith(name, "train-") || absl::StartsWith(name, "test.")) {
      return absl::AlreadyExistsError(
          absl::StrCat(JoinPath(folder, name), " is of another run and would be mixed",
                       " with the new files; remove it or name another folder"));
    }
  }
  return absl::OkStatus();
}

void Plan(const MakeDataOptions& options, std::vector<Output>* outputs,
          std::vector<Chunk>* chunks) {
  const char* const ending = options.compress ? ".tsv.gz" : ".tsv";
  const auto add = [&](const std::string& name, bool test, uint64_t first, uint64_t end) {
    const std::string path = JoinPath(options.out_dir, absl::StrCat(name, ending));
    outputs->push_back({path, absl::StrCat(path, ".tmp.", getpid()), test});
    for (uint64_t row = first; row < end; row += kChunkRows) {
      const uint64_t rows = std::min(kChunkRows, end - row);
      chunks->push_back({outputs->size() - 1, row, rows, row + rows == end});
    }
  };
  const uint64_t by_size = (options.rows + kRowsPerFile - 1) / kRowsPerFile;
  const uint64_t files =
      options.files > 0 ? options.files : std::min<uint64_t>(by_size, kMaxDefaultFiles);
  uint64_t first = options.start;
  for (uint64_t i = 0; i < files; ++i) {
    const uint64_t rows = options.rows / files + (i < options.rows % files ? 1 : 0);
    add(absl::StrFormat("train-%05d", i), false, first, first + rows);
    first += rows;
  }
  if (options.test_rows > 0) add("test", true, kTestStart, kTestStart + options.test_rows);
}

// Options that are not said are left out, so that the same data is described by the same line.
std::string CommandOf(const MakeDataOptions& options) {
  std::string line = absl::StrCat("coordinator make-data criteo --rows=", options.rows);
  if (options.test_rows > 0) absl::StrAppend(&line, " --test_rows=", options.test_rows);
  absl::StrAppend(&line, " --seed=", options.seed);
  if (options.start > 0) absl::StrAppend(&line, " --start=", options.start);
  if (options.files > 0) absl::StrAppend(&line, " --files=", options.files);
  return line;
}

}  // namespace

std::string AboutData(const MakeDataOptions& options, const MakeDataResult& result) {
  std::string text =
      absl::StrFormat("%d rows, %.2f%% of them clicks, in %d files\n", result.rows,
                      100.0 * static_cast<double>(result.clicks) / static_cast<double>(result.rows),
                      result.files.size());
  if (std::isfinite(result.oracle_auc)) {
    absl::StrAppendFormat(&text,
                          "the oracle, who knows each row's probability, has AUC %.4f on %s\n",
                          result.oracle_auc, options.test_rows > 0 ? "test.tsv.gz" : "these rows");
  }
  return text;
}

absl::Status MakeCriteoData(const MakeDataOptions& options, MakeDataResult* result) {
  *result = MakeDataResult();
  MU_RETURN_IF_ERROR(Check(options));
  std::vector<Output> outputs;
  std::vector<Chunk> chunks;
  Plan(options, &outputs, &chunks);
  MU_RETURN_IF_ERROR(MakeDirectories(options.out_dir));
  MU_RETURN_IF_ERROR(CheckFolder(options.out_dir, outputs));
  for (const Output& output : outputs) RemoveFile(output.temporary).IgnoreError();
  // Until all files are new it is not said of them.
  const std::string about = JoinPath(options.out_dir, kAboutName);
  if (FileExists(about)) MU_RETURN_IF_ERROR(RemoveFile(about));
  const int processors = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const int threads = options.threads > 0 ? options.threads : processors;
  Writer writer(options, std::move(outputs), std::move(chunks));
  MU_RETURN_IF_ERROR(writer.Run(threads, result));
  return WriteFileAtomic(about,
                         absl::StrCat(CommandOf(options), "\n", AboutData(options, *result)));
}

}  // namespace mu
