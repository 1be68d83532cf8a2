#include "coordinator/cli/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/graph/nearest_name.h"
#include "common/process/flags.h"
#include "common/process/observe_flags.h"
#include "common/process/tls_flags.h"
#include "coordinator/cli/make_data.h"
#include "coordinator/export/onnx_file.h"
#include "coordinator/soak/soak.h"
#include "coordinator/training/exit_code.h"

namespace mu {
namespace {

// What is too many for a machine or a cluster is told with the rest
constexpr uint64_t kMostDaemons = 1'000'000;

// CLI11 says only that it could not convert a text.
CLI::Validator WholeNumber(uint64_t least, uint64_t most) {
  return CLI::Validator(
      [least, most](const std::string& text) -> std::string {
        uint64_t value = 0;
        if (absl::SimpleAtoi(text, &value) && value >= least && value <= most) return "";
        return absl::StrCat("`", text, "` is no whole number from ", least, " to ", most);
      },
      "N");
}

void AddSetOption(CLI::App* command, CliOptions* options) {
  command
      ->add_option("--set", options->overrides,
                   "replaces a value of the job file; may stand several times")
      ->type_name("KEY.KEY=VALUE")
      ->allow_extra_args(false);
}

void AddJobFile(CLI::App* command, CliOptions* options) {
  command->add_option("job", options->job_file, "the job file (docs/job_file.md)")
      ->required()
      ->type_name("JOB.yaml");
  AddSetOption(command, options);
}

// Of commands that look at one of its sources.
void AddDataSource(CLI::App* command, CliOptions* options) {
  AddJobFile(command, options);
  command->add_option("--data", options->data_source, "which data of the job")
      ->check(CLI::IsMember({"train", "eval", "predict"}))
      ->capture_default_str();
}

// The processes that work for a job.
void AddClusterOptions(CLI::App* command, CliOptions* options) {
  command->add_flag("--local", options->local,
                    "start the daemons on this machine (the default without --listen)");
  command->add_option("--workers", options->workers, "workers to start or to wait for")
      ->check(WholeNumber(0, kMostDaemons))
      ->capture_default_str();
  command->add_option("--ps", options->ps, "parameter servers to start or to wait for")
      ->check(WholeNumber(0, kMostDaemons))
      ->capture_default_str();
  command
      ->add_option("--listen", options->listen,
                   "wait here for the daemons of a cluster instead of starting some")
      ->type_name("HOST:PORT");
  AddLogFormatFlag(command, &options->log_format);
  AddTlsFlags(command, &options->tls);
  command->add_flag("--insecure", options->insecure,
                    "listen off loopback although calls are not encrypted");
  command
      ->add_option("--start_timeout,--start-timeout", options->start_timeout_seconds,
                   "seconds until all daemons must be there")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command
      ->add_option("--member_timeout,--member-timeout", options->member_timeout_seconds,
                   "seconds without a heartbeat after which a daemon counts as lost")
      ->check(CLI::Range(0.5, 3600.0))
      ->capture_default_str();
  command
      ->add_option("--backup_after,--backup-after", options->backup_after_seconds,
                   "seconds without a result, and ten times a step's time, after which a function "
                   "runs on another worker too")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command
      ->add_option("--binary_dir,--binary-dir", options->binary_dir,
                   "where `worker` and `psserver` are (default: beside this program)")
      ->type_name("DIR");
}

void AddJobOptions(CLI::App* command, CliOptions* options) {
  AddJobFile(command, options);
  AddClusterOptions(command, options);
  command
      ->add_option("--job_dir,--job-dir", options->job_dir,
                   "logs, checkpoints, report (default ./runs/NAME-TIME)")
      ->type_name("DIR");
  AddHttpFlag(command, &options->http);
  command->add_flag("-v,--verbose", options->verbose,
                    "the coordinator's log goes to standard error too");
}

void AddSoakOptions(CLI::App* command, CliOptions* options) {
  command->add_option("jobs", options->job_files, "the job files, which take turns")
      ->required()
      ->type_name("JOB.yaml");
  AddSetOption(command, options);
  AddClusterOptions(command, options);
  command
      ->add_option("--record", options->record,
                   "the folder that says what each run did, this time and before; index.html in it "
                   "shows it")
      ->required()
      ->type_name("DIR");
  options->preemption = SoakOptions().preemption;
  command
      ->add_option("--preempt", options->preemption,
                   "what befalls the daemons while they train, as train's --chaos has it")
      ->type_name("worker:kill:every=20s,ps:kill:every=3m")
      ->capture_default_str();
  command
      ->add_option("--preempt_command,--preempt-command", options->preempt_command,
                   "with --listen: the shell command that ends a daemon; it finds MUSTER_ROLE, "
                   "MUSTER_ACTION and MUSTER_CHOICE in its environment")
      ->type_name("COMMAND");
  command
      ->add_option("--rounds", options->rounds,
                   "runs of each job with preemptions (default: one, or with --for as many as fit)")
      ->check(WholeNumber(1, kMostDaemons));
  command->add_option("--for", options->soak_for, "begin no run after this time")->type_name("1h");
  command
      ->add_option("--metric", options->metric,
                   "of the evaluation, by which quality is judged (default: the one that the job "
                   "itself goes by, or its first)")
      ->type_name("NAME");
  options->quality_limit = SoakLimits().quality;
  command
      ->add_option("--quality_limit,--quality-limit", options->quality_limit,
                   "a metric that is worse by more than this is flagged")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command
      ->add_option("--prices", options->prices,
                   "prices of machines, for the cost of each role (docs/soak.md)")
      ->type_name("PRICES.yaml");
}

void AddRunOptions(CLI::App* command, CliOptions* options) {
  command->add_option("--report", options->report, "write the run's facts here (docs/report.md)")
      ->type_name("FILE.json");
  command->add_option("--trace", options->trace, "write a Chrome trace of all processes here")
      ->type_name("FILE.json");
  command
      ->add_option("--checkpoint", options->checkpoint,
                   "begin with this checkpoint, or the newest of this run")
      ->type_name("DIR");
}

void AddExportOptions(CLI::App* command, CliOptions* options) {
  command
      ->add_option("source", options->export_source,
                   "the job file (its newest checkpoint), a run's directory or a checkpoint")
      ->required()
      ->type_name("JOB.yaml|DIR");
  command
      ->add_option("--checkpoint", options->checkpoint,
                   "of a job file: this checkpoint, or the newest of this run")
      ->type_name("DIR");
  command
      ->add_option("--job_dir,--job-dir", options->job_dir,
                   "of a job file: the run whose newest checkpoint is taken")
      ->type_name("DIR");
  AddSetOption(command, options);
  command
      ->add_option("--npy", options->npy,
                   "write each variable and table into this folder as NAME.npy, rows by id")
      ->type_name("DIR");
  command
      ->add_option("--safetensors", options->safetensors,
                   "write the variables and tables into this file")
      ->type_name("FILE");
  command
      ->add_option("--onnx", options->onnx,
                   "write the model of the job file as an ONNX graph, from columns to predictions")
      ->type_name("FILE");
  command
      ->add_option("--onnx_inside,--onnx-inside", options->onnx_inside,
                   "bytes of variables and tables that --onnx's file holds at most; the largest of "
                   "what is more goes beside it, into FILE.data")
      ->check(WholeNumber(0, kMostBytesInside))
      ->capture_default_str();
  command
      ->add_option("--name", options->names,
                   "of --npy and --safetensors: only what is called so, `*` stands for any text; "
                   "may stand several times")
      ->type_name("PATTERN")
      ->allow_extra_args(false);
}

// What to say of a first word that is no command; CLI11 would only say that one is needed.
std::string WrongCommand(const CLI::App& app, int argc, const char* const* argv) {
  if (argc < 2 || argv[1][0] == '-') return "";
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  if (std::find(names.begin(), names.end(), argv[1]) != names.end()) return "";
  return absl::StrCat("There is no command `", argv[1], "`", DidYouMean(argv[1], names),
                      " Run with --help for all of them.");
}

}  // namespace

std::optional<CliOptions> ParseOptions(int argc, const char* const* argv, int* exit_code) {
  CliOptions options;
  options.command_line.assign(argv, argv + argc);
  CLI::App app(
      "Muster: trains models on workers and parameter servers that may vanish at any moment",
      "coordinator");
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 done, 1 soak: a model got worse, 2 the job or its input is wrong, 3 the "
      "user's function failed, 4 machines failed, 5 another coordinator has taken the job over.");

  CLI::App* train = app.add_subcommand("train", "trains a job, evaluates and saves the model");
  CLI::App* eval =
      app.add_subcommand("eval", "evaluates a saved model on the job's evaluation data");
  CLI::App* predict = app.add_subcommand("predict", "writes a saved model's predictions");
  CLI::App* check =
      app.add_subcommand("check", "lists all that is wrong with a job, and runs nothing");
  for (CLI::App* command : {train, eval, predict, check}) AddJobOptions(command, &options);
  for (CLI::App* command : {train, eval, predict}) AddRunOptions(command, &options);
  predict
      ->add_option("--out", options.out,
                   "the predictions (default: predictions.csv in the run's directory)")
      ->type_name("FILE.csv");
  predict
      ->add_option("--columns", options.columns,
                   "columns of the data that are copied before the predictions")
      ->delimiter(',')
      ->type_name("NAME,NAME");

  eval->add_option("--follow", options.follow,
                   "evaluate each checkpoint of this run's directory as it comes, until its job is "
                   "over")
      ->type_name("DIR")
      ->excludes("--checkpoint");

  train
      ->add_option(
          "--chaos", options.chaos,
          "kills, hangs or drains daemons of --local while they train (docs/fault_tolerance.md)")
      ->type_name("worker:kill:every=3s,ps:kill:every=20s,seed=7");
  train
      ->add_option("--parent_pipe_fd", options.parent_pipe_fd,
                   "ends at once when this pipe's other end closes (for launchers)")
      ->type_name("FD");
  train
      ->add_option("--placement", options.placement,
                   "which server gets which partition: balanced by bytes, one after the other, or "
                   "balanced by the bytes that an earlier run has read and updated, as the file of "
                   "its --report says (default: bytes)")
      ->type_name("bytes|round_robin|load=REPORT.json");

  train->add_flag("--take_over,--take-over", options.take_over,
                  "replaces a coordinator that is training this job in the same job_dir (for a "
                  "cluster manager whose coordinator hangs or is out of reach)");
  train->add_flag("--train_again,--train-again", options.train_again,
                  "trains again in a job_dir whose job is done, from the start or from the values "
                  "of --checkpoint; without it nothing is trained there");

  CLI::App* make_data = app.add_subcommand("make-data", "makes synthetic data");
  make_data->add_option("kind", options.data_kind, "what to make")
      ->required()
      ->check(CLI::IsMember({"criteo"}));
  make_data->add_option("--rows", options.rows, "how many")
      ->required()
      ->check(WholeNumber(1, kMostRows));
  make_data->add_option("--seed", options.seed, "of the rows and of the truth behind them")
      ->check(WholeNumber(0, ~uint64_t{0}))
      ->capture_default_str();
  make_data->add_option("--start", options.start, "index of the first row")
      ->check(WholeNumber(0, kMostStart))
      ->capture_default_str();
  make_data
      ->add_option("--test_rows,--test-rows", options.test_rows,
                   "rows of test.tsv.gz, which no training row equals")
      ->check(WholeNumber(0, kMostRows))
      ->capture_default_str();
  make_data
      ->add_option("--files", options.files,
                   "that the rows are split into (default: one for each 50,000)")
      ->check(WholeNumber(1, kMostFiles));
  make_data->add_option("--out", options.out, "the folder")->required()->type_name("DIR");

  CLI::App* stats = app.add_subcommand(
      "stats", "prints what the values of the job's columns are like: means, extremes, how many");
  AddDataSource(stats, &options);
  stats->add_option("--out", options.out, "write them here as JSON, too")->type_name("FILE.json");
  CLI::App* make_vocab =
      app.add_subcommand("make-vocab", "writes the texts of a column, the most frequent first");
  AddDataSource(make_vocab, &options);
  make_vocab->add_option("--column", options.column, "the column's name")
      ->required()
      ->type_name("NAME");
  make_vocab->add_option("--out", options.out, "the vocabulary, one text a line")
      ->required()
      ->type_name("FILE");
  make_vocab
      ->add_option("--min_count,--min-count", options.min_count,
                   "leaves out texts that stand there less often")
      ->check(WholeNumber(1, ~uint64_t{0}))
      ->capture_default_str();

  CLI::App* status = app.add_subcommand("status", "shows a running coordinator's cluster");
  status->add_option("address", options.address, "where it listens")
      ->required()
      ->type_name("HOST:PORT");
  AddTlsFlags(status, &options.tls);

  CLI::App* checkpoints = app.add_subcommand("checkpoints", "looks at a run's checkpoints");
  checkpoints
      ->add_option("action", options.checkpoints_action,
                   "list them, verify every file's size and CRC32C, or show what one holds")
      ->required()
      ->check(CLI::IsMember({"list", "verify", "show"}));
  checkpoints
      ->add_option("directory", options.checkpoint_directory,
                   "a run's directory, its folder of checkpoints, or one (show: the newest)")
      ->required()
      ->type_name("DIR");

  CLI::App* models = app.add_subcommand("models", "lists the models that a job file can name");
  CLI::App* metrics =
      app.add_subcommand("metrics", "lists the metrics that a job file can ask for, by task");
  for (CLI::App* command : {models, metrics})
    command->add_flag("--markdown", options.markdown, "as the page in docs/reference");
  CLI::App* describe =
      app.add_subcommand("describe", "prints a model's keys: type, default and meaning");
  describe->add_option("model", options.model, "its name, one of `coordinator models`")
      ->type_name("MODEL");

  CLI::App* export_model = app.add_subcommand(
      "export", "writes a saved model for other programs (docs/serving.md); starts no cluster");
  AddExportOptions(export_model, &options);

  CLI::App* soak = app.add_subcommand(
      "soak", "trains jobs again and again while daemons are taken away, and keeps a record");
  AddSoakOptions(soak, &options);

  // Handled before (RunCli); here it is for --help.
  app.add_subcommand("health", "whether a running coordinator is healthy (for probes)");

  FinishFlags(&app, "coordinator");
  if (const std::string wrong = WrongCommand(app, argc, argv); !wrong.empty()) {
    std::cerr << wrong << "\n";
    *exit_code = kExitBadJob;
    return std::nullopt;
  }
  // The edge to CLI11, which throws.
  try {
    ParseFlags(&app, argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error, std::cout, std::cerr);
    *exit_code = code == 0 ? kExitDone : kExitBadJob;
    return std::nullopt;
  }
  const std::pair<CLI::App*, CliOptions::Command> commands[] = {
      {train, CliOptions::kTrain},
      {eval, CliOptions::kEval},
      {predict, CliOptions::kPredict},
      {check, CliOptions::kCheck},
      {make_data, CliOptions::kMakeData},
      {status, CliOptions::kStatus},
      {stats, CliOptions::kStats},
      {make_vocab, CliOptions::kMakeVocab},
      {checkpoints, CliOptions::kCheckpoints},
      {models, CliOptions::kModels},
      {describe, CliOptions::kDescribe},
      {metrics, CliOptions::kMetrics},
      {export_model, CliOptions::kExport},
      {soak, CliOptions::kSoak}};
  for (const auto& [command, value] : commands) {
    if (command->parsed()) options.command = value;
  }
  return options;
}

}  // namespace mu
