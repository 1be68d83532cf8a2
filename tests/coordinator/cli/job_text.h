// A small job that is right, and what ParseJob says of it after a change.
#pragma once

#include <algorithm>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "coordinator/cli/job_file.h"

namespace mu::testing {

// Line numbers matter to the tests.
inline std::string GoodJob() {
  return "name: criteo-dlrm\n"                                                  // 1
         "seed: 1\n"                                                            // 2
         "data:\n"                                                              // 3
         "  train:\n"                                                           // 4
         "    format: criteo_tsv\n"                                             // 5
         "    files: [tests/coordinator/cli/CMakeLists.txt]\n"                  // 6
         "    shuffle: {records: 1000}\n"                                       // 7
         "model:\n"                                                             // 8
         "  dlrm:\n"                                                            // 9
         "    embedding_dim: 16\n"                                              // 10
         "    hash_buckets: 1000\n"                                             // 11
         "    bottom_mlp: [32, 16]\n"                                           // 12
         "    top_mlp: [32, 1]\n"                                               // 13
         "optimizer:\n"                                                         // 14
         "  adagrad: {learning_rate: 0.02}\n"                                   // 15
         "training: {epochs: 1, batch_size: 512, steps_per_function: auto}\n";  // 16
}

inline std::string GoodCsvJob() {
  return "name: mf\n"                                                     // 1
         "data:\n"                                                        // 2
         "  train:\n"                                                     // 3
         "    format: csv\n"                                              // 4
         "    files: [tests/coordinator/cli/CMakeLists.txt]\n"            // 5
         "    records: {modulo: 10, keep: [0, 1]}\n"                      // 6
         "    columns:\n"                                                 // 7
         "      - {name: user, field: userId, kind: id, buckets: 10}\n"   // 8
         "      - {name: item, field: movieId, kind: id, buckets: 20}\n"  // 9
         "      - {name: rating, kind: number}\n"                         // 10
         "model:\n"                                                       // 11
         "  matrix_factorization:\n"                                      // 12
         "    {dim: 4, users: 10, items: 20, user_column: user, item_column: item, rating_column: "
         "rating}\n"                                  // 13
         "optimizer: {sgd: {learning_rate: 0.1}}\n";  // 14
}

// A change of a job that is right, and what is said of it.
struct Mistake {
  std::string name;
  std::string from, to;  // in the job's text
  std::string problems;  // all that is said

  friend void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.name; }
};

// `text` with its first `from` replaced; `from` must be there.
inline std::string With(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  MU_CHECK(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

inline Environment NoEnvironment() {
  return [](const std::string&) { return std::optional<std::string>(); };
}

// The problems of a job, one line each. Tests run in the project's root, which the paths above are
// relative to.
inline std::string ProblemsOf(const std::string& text,
                              JobFileOptions options = {.environment = NoEnvironment()}) {
  ProblemList problems;
  ParseJob(text, "job.yaml", ".", options, &problems);
  return problems.ToString();
}

inline std::string ProblemsWithSet(const std::string& text, std::vector<std::string> overrides) {
  return ProblemsOf(text, {.overrides = std::move(overrides), .environment = NoEnvironment()});
}

}  // namespace mu::testing
