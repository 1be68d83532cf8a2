#include "coordinator/training/check_files.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/env/file.h"
#include "common/env/glob.h"
#include "common/records/first_records.h"
#include "common/records/record_parser.h"

namespace mu {
namespace {

// Files of one dataset are mostly alike: the first are read well, of the others the header and one
// record.
constexpr size_t kWellReadFiles = 4;
constexpr uint64_t kWellRead = 100;
// Past so many, one reads on only in vain: the same mistake is in every file.
constexpr size_t kMostProblems = 20;

}  // namespace

std::vector<std::string> CheckFiles(const pb::DatasetProto& dataset, bool files_elsewhere) {
  std::vector<std::string> problems;
  if (const absl::Status format = CheckFormat(dataset); !format.ok())
    return {std::string(format.message())};
  std::vector<std::string> files;
  for (const std::string& pattern : dataset.files()) {
    absl::StatusOr<std::vector<std::string>> matches = ExpandFiles(pattern);
    if (matches.ok()) {
      files.insert(files.end(), matches->begin(), matches->end());
    } else {
      problems.emplace_back(matches.status().message());
    }
  }
  uint64_t records = 0;
  bool unseen = false;
  for (size_t i = 0; i < files.size() && problems.size() < kMostProblems; ++i) {
    if (files_elsewhere && access(files[i].c_str(), R_OK) != 0) {
      unseen = true;
      continue;
    }
    FirstRecords first = ReadFirstRecords(dataset, files[i], i < kWellReadFiles ? kWellRead : 1);
    records += first.records;
    for (std::string& problem : first.problems) problems.push_back(std::move(problem));
  }
  if (problems.size() >= kMostProblems)
    problems.push_back("there may be more problems, these are enough to begin with");
  if (problems.empty() && !files.empty() && !unseen && records == 0) {
    problems.push_back(absl::StrCat("there are no records in ",
                                    files.size() == 1 ? files.front() : "any of the files"));
  }
  return problems;
}

}  // namespace mu
