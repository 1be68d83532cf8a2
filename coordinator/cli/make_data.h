// `coordinator make-data criteo`: writes a synthetic click log.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace mu {

struct MakeDataOptions {
  uint64_t rows = 0;  // 1 to kMostRows
  uint64_t seed = 1;
  uint64_t start = 0;      // the first row
  uint64_t test_rows = 0;  // written to test.tsv.gz besides, from row kTestStart on
  std::string out_dir;     // made if need be
  uint32_t files = 0;      // that the rows are split into; 0: one for each 50,000 rows, 64 at most
  int threads = 0;         // 0: one per processor
  bool compress = true;    // .tsv.gz, else .tsv
};

// Beside the data, written last and hidden from the glob DIR/*: the command that makes it again,
// and what AboutData says.
inline constexpr char kAboutName[] = ".about.txt";
inline constexpr uint64_t kTestStart = 1'000'000'000;
inline constexpr uint64_t kMostRows = 100'000'000'000;  // ten terabytes
inline constexpr uint64_t kMostStart = uint64_t{1} << 62;
inline constexpr uint32_t kMostFiles = 100'000;

struct MakeDataResult {
  std::vector<std::string> files;  // train-00000.tsv.gz, ..., and test.tsv.gz
  uint64_t rows = 0;
  uint64_t clicks = 0;
  // Of whoever knows each row's true probability: on the test rows if there are any, else on all.
  // NaN if all rows have the same label.
  double oracle_auc = 0;
};

// Two lines for people: how many rows and clicks, and the oracle's AUC.
std::string AboutData(const MakeDataOptions& options, const MakeDataResult& result);

// The same options but for `threads` give the same bytes. A file appears under its name when it is
// complete; existing ones of that name are replaced. INVALID_ARGUMENT: the options; ALREADY_EXISTS:
// the folder holds a train file that this would not replace, so that the data would be mixed;
// others as common/env/file.h.
absl::Status MakeCriteoData(const MakeDataOptions& options, MakeDataResult* result);

}  // namespace mu
