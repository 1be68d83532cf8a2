// export: a saved model for other programs.
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status.h"
#include "common/env/file.h"
#include "coordinator/cli/checkpoint_choice.h"
#include "coordinator/cli/commands.h"
#include "coordinator/cli/data_and_model_check.h"
#include "coordinator/cli/job_file.h"
#include "coordinator/cli/notices.h"
#include "coordinator/cli/output_check.h"
#include "coordinator/cluster/checkpoint_verify.h"
#include "coordinator/export/checkpoint_values.h"
#include "coordinator/export/export_values.h"
#include "coordinator/export/onnx_export.h"
#include "coordinator/export/onnx_file.h"
#include "coordinator/export/prediction_graph.h"
#include "coordinator/frontend/model_registry.h"
#include "coordinator/frontend/paper_factory.h"
#include "coordinator/training/exit_code.h"
#include "coordinator/training/job_data.h"
#include "coordinator/training/train_job.h"
#include "coordinator/training/values_moment.h"

namespace mu {
namespace {

// Where the model's values are, and the job if one was named.
struct Source {
  JobFile file;
  bool has_job = false;
  std::string checkpoint;
};

Source FindSource(const CliOptions& cli, const ModelRegistry& models,
                  std::vector<std::string>* notes, ProblemList* problems) {
  Source source;
  absl::StatusOr<CheckpointCandidates> found;
  if (DirectoryExists(cli.export_source)) {
    found = CandidatesAt(cli.export_source);
    if (!cli.checkpoint.empty() || !cli.job_dir.empty()) {
      problems->Add(Place{"command line"},
                    absl::StrCat(cli.export_source,
                                 " is a folder, so --checkpoint and --job_dir mean nothing"),
                    "name either");
    }
  } else {
    source.has_job = true;
    const auto before = problems->size();
    source.file = LoadJobFile(cli.export_source,
                              {.use = JobUse::kExport,
                               .overrides = cli.overrides,
                               .models = models.Names(),
                               .files_elsewhere = true},
                              problems);
    if (problems->size() > before) return source;
    found = CandidatesOf(cli, source.file.job);
  }
  const Place place{source.has_job ? "--checkpoint" : cli.export_source};
  if (!found.ok()) {
    problems->Add(place, std::string(found.status().message()),
                  "train first, or name a checkpoint, or the folder of a run that has one");
    return source;
  }
  const auto fits = [&](const std::string& checkpoint) {
    // Values without the model are those of whatever model.
    return source.has_job && !cli.onnx.empty()
               ? CheckCheckpointFits(source.file.job, models, checkpoint, /*loads=*/false)
               : absl::OkStatus();
  };
  source.checkpoint = ChooseCheckpoint(*found, place, fits, notes, problems);
  return source;
}

void CheckTargets(const CliOptions& cli, ProblemList* problems) {
  if (cli.npy.empty() && cli.safetensors.empty() && cli.onnx.empty()) {
    problems->Add(Place{"command line"}, "nothing says what to write",
                  "use --npy=DIR, --safetensors=FILE or --onnx=FILE");
  }
  if (!cli.onnx.empty() && DirectoryExists(cli.export_source)) {
    problems->Add(Place{"--onnx"}, "needs the model, which a checkpoint does not describe",
                  absl::StrCat("name the job file, and --checkpoint=", cli.export_source));
  }
  if (!cli.npy.empty() && FileExists(cli.npy) && !DirectoryExists(cli.npy))
    problems->Add(Place{"--npy"}, absl::StrCat(cli.npy, " is a file"), "name a folder");
}

// What no output may replace.
std::vector<InputFile> InputsOfExport(const CliOptions& cli, const Source& source) {
  std::vector<InputFile> inputs;
  if (source.has_job) inputs = InputsOf(cli.export_source, source.file.job);
  if (source.checkpoint.empty()) return inputs;
  inputs.push_back({source.checkpoint, "the checkpoint that is read"});
  if (const std::string run = RunOfCheckpoint(source.checkpoint); !run.empty()) {
    for (InputFile& file : FilesOfTrainedRun(run)) inputs.push_back(std::move(file));
  }
  return inputs;
}

// The data of --onnx lies beside it if it is large. The files of --npy are checked once their names
// are known.
void CheckFiles(const CliOptions& cli, const Source& source, ProblemList* problems) {
  std::vector<PlannedOutput> outputs;
  for (const auto& [flag, path] :
       {std::pair("--safetensors", cli.safetensors), std::pair("--onnx", cli.onnx),
        std::pair("--onnx", cli.onnx.empty() ? "" : OnnxDataPath(cli.onnx))}) {
    outputs.push_back({.place = Place{flag}, .path = path, .folder_is_made = true});
  }
  CheckOutputs(outputs, InputsOfExport(cli, source), problems);
}

absl::Status CheckNpyFiles(const std::vector<StoredValue>& values, const CliOptions& cli,
                           const Source& source) {
  MU_ASSIGN_OR_RETURN(const std::vector<std::string> paths, NpyPaths(values, cli.npy));
  std::vector<PlannedOutput> outputs;
  for (const std::string& path : paths)
    outputs.push_back(
        {Place{"--npy"}, path, /*folder_is_made=*/true, /*remedy=*/"name another folder"});
  ProblemList problems;
  CheckOutputs(outputs, InputsOfExport(cli, source), &problems);
  return problems.ToStatus();
}

absl::Status ExportValues(const CliOptions& cli, const Source& source,
                          const CheckpointValues& checkpoint) {
  if (cli.npy.empty() && cli.safetensors.empty()) return absl::OkStatus();
  MU_ASSIGN_OR_RETURN(const std::vector<StoredValue> values,
                      SelectValues(checkpoint.values(), cli.names));
  if (!cli.npy.empty()) {
    MU_RETURN_IF_ERROR(CheckNpyFiles(values, cli, source));
    MU_ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                        WriteNpyFiles(checkpoint, values, cli.npy));
    for (size_t i = 0; i < values.size(); ++i)
      absl::PrintF("%s: %s%s\n", paths[i], std::string(DTypeName(values[i].dtype)),
                   values[i].shape.ToString());
  }
  if (cli.safetensors.empty()) return absl::OkStatus();
  MU_RETURN_IF_ERROR(MakeDirectories(DirectoryOf(cli.safetensors)));
  MU_RETURN_IF_ERROR(WriteSafetensors(checkpoint, values, cli.safetensors));
  absl::PrintF("%s: %d tensors\n", cli.safetensors, values.size());
  return absl::OkStatus();
}

// Of the data that `predict` reads, or else of what the job has; no file is looked at.
absl::StatusOr<pb::DatasetProto> ColumnsOf(const muster::JobProto& job) {
  const muster::JobDataProto& data = job.data();
  return DatasetOf(job, data.has_predict() || data.has_eval() || !data.has_train()
                            ? DataPurpose::kPredict
                            : DataPurpose::kTrain);
}

// That the values have seen.
uint64_t StepsOf(const CheckpointValues& checkpoint) {
  return MomentOfValues(checkpoint.manifest()).steps;
}

absl::Status ExportOnnx(const CliOptions& cli, const muster::JobProto& job,
                        const ModelRegistry& models, const CheckpointValues& checkpoint) {
  MU_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, models.Create(job.model()));
  PaperFactory factory;
  MU_RETURN_IF_ERROR(model->Create(factory));
  MU_ASSIGN_OR_RETURN(const pb::DatasetProto data, ColumnsOf(job));
  MU_ASSIGN_OR_RETURN(const pb::FunctionProto function, TracePrediction(*model, data));
  MU_ASSIGN_OR_RETURN(const OnnxGraph graph, OnnxOf(function, checkpoint));
  MU_RETURN_IF_ERROR(MakeDirectories(DirectoryOf(cli.onnx)));
  MU_ASSIGN_OR_RETURN(const OnnxFiles files,
                      WriteOnnx(graph, checkpoint,
                                {{"muster_job", job.name()},
                                 {"muster_model", ModelName(job.model())},
                                 {"muster_steps", absl::StrCat(StepsOf(checkpoint))}},
                                cli.onnx, cli.onnx_inside));
  absl::PrintF("%s: %d nodes, %d bytes of variables and tables\n", files.model,
               graph.proto().node_size(), files.bytes_inside);
  if (!files.data.empty())
    absl::PrintF("%s: %d bytes of variables and tables\n", files.data, files.bytes_beside);
  return absl::OkStatus();
}

absl::Status Export(const CliOptions& cli, const Source& source, const ModelRegistry& models) {
  absl::StatusOr<CheckpointValues> opened = CheckpointValues::Open(source.checkpoint);
  if (IsDamage(opened.status())) {
    const Place place{source.has_job ? "--checkpoint" : cli.export_source};
    const std::string remedy = InsteadOf(source.checkpoint, place);
    return absl::DataLossError(
        absl::StrCat(opened.status().message(), remedy.empty() ? "" : "; ", remedy));
  }
  MU_ASSIGN_OR_RETURN(const CheckpointValues checkpoint, std::move(opened));
  absl::PrintF("exports %s (%d steps)\n", source.checkpoint, StepsOf(checkpoint));
  MU_RETURN_IF_ERROR(ExportValues(cli, source, checkpoint));
  if (cli.onnx.empty()) return absl::OkStatus();
  return ExportOnnx(cli, source.file.job, models, checkpoint);
}

}  // namespace

int RunExportCommand(const CliOptions& cli, const ModelRegistry& models) {
  ProblemList problems;
  CheckTargets(cli, &problems);
  std::vector<std::string> notes;
  const Source source = FindSource(cli, models, &notes, &problems);
  CheckFiles(cli, source, &problems);
  if (source.has_job && !cli.onnx.empty() && !source.checkpoint.empty())
    CheckTrainedModel(cli.export_source, source.file, source.checkpoint, &notes, &problems);
  if (!problems.empty()) {
    absl::FPrintF(stderr, "%d problem%s; nothing was written:\n%s", problems.size(),
                  problems.size() == 1 ? "" : "s", problems.ToString());
  }
  for (const std::string& note : notes) Notices(/*json=*/false).Note(note);
  if (!problems.empty()) return kExitBadJob;
  const absl::Status exported = Export(cli, source, models);
  std::fflush(stdout);
  if (exported.ok()) return kExitDone;
  absl::FPrintF(stderr, "error: %s\n", std::string(exported.message()));
  const bool machine = absl::IsResourceExhausted(exported) || absl::IsInternal(exported);
  return machine ? kExitMachines : kExitBadJob;
}

}  // namespace mu
