// The command line, parsed. See `coordinator --help`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/env/tls_files.h"

namespace mu {

struct CliOptions {
  enum Command {
    kTrain,
    kEval,
    kPredict,
    kCheck,
    kMakeData,
    kStatus,
    kCheckpoints,
    kStats,
    kMakeVocab,
    kModels,
    kDescribe,
    kMetrics,
    kExport,
    kSoak
  };
  Command command = kTrain;
  std::vector<std::string> command_line;  // as it was given, the program first

  // train, eval, predict, check
  std::string job_file;
  bool local = false;
  int workers = 2;
  int ps = 2;
  std::vector<std::string> overrides;  // of --set
  std::string report;
  std::string trace;
  std::string job_dir;
  std::string listen;
  TlsFiles tls;  // status, too
  bool insecure = false;
  std::string http;
  std::string log_format = "text";
  double start_timeout_seconds = 60;
  double member_timeout_seconds = 10;
  double backup_after_seconds = 30;
  std::string binary_dir;
  std::string checkpoint;
  std::string follow;  // eval: a run's directory, whose checkpoints are evaluated as they come
  std::string out;     // predict: the CSV; make-data: the folder; stats, make-vocab: the file
  std::vector<std::string> columns;  // predict: of the data, copied beside the predictions
  std::string chaos;                 // train: faults on demand
  int parent_pipe_fd = -1;           // train: ends at once when this pipe closes
  std::string placement;             // train: of partitions on servers
  bool take_over = false;            // train
  bool train_again = false;          // train
  bool verbose = false;

  // make-data
  std::string data_kind;
  uint64_t rows = 0;
  uint64_t seed = 1;
  uint64_t start = 0;
  uint64_t test_rows = 0;
  uint32_t files = 0;  // 0: as many as suit the rows

  // stats, make-vocab
  std::string data_source = "train";
  std::string column;
  uint64_t min_count = 1;

  std::string address;  // status

  bool markdown = false;  // models, metrics
  std::string model;      // describe

  // checkpoints
  std::string checkpoints_action;  // list, verify, show
  std::string checkpoint_directory;

  // export; also job_dir, checkpoint, overrides
  std::string export_source;  // a job file, or where a checkpoint is
  std::string npy;
  std::string safetensors;
  std::string onnx;
  uint64_t onnx_inside = uint64_t{1} << 30;
  std::vector<std::string> names;  // patterns

  // soak; also what train has of the cluster
  std::vector<std::string> job_files;
  std::string record;
  std::string preemption;
  std::string preempt_command;
  uint64_t rounds = 0;   // 0: not given
  std::string soak_for;  // a time; empty: not given
  std::string metric;
  double quality_limit = 0;
  std::string prices;
};

// Nothing, with the exit code in `*exit_code`, if there is nothing to run: help was asked for
// (printed to standard output) or the line is wrong (what and how is printed to standard error).
std::optional<CliOptions> ParseOptions(int argc, const char* const* argv, int* exit_code);

}  // namespace mu
