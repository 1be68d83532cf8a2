// What can be found out about a job without starting anything.
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/env/file.h"
#include "common/graph/dataset_schema.h"
#include "common/graph/op_table.h"
#include "common/optimizer/optimizer_settings.h"
#include "common/process/observe_flags.h"
#include "common/process/tls_flags.h"
#include "common/rpc/transport.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/frontend/column_misfits.h"
#include "coordinator/frontend/model.h"
#include "coordinator/frontend/model_registry.h"
#include "coordinator/frontend/paper_factory.h"
#include "coordinator/passes/trace.h"
#include "coordinator/training/check_files.h"
#include "coordinator/training/forward.h"
#include "coordinator/training/job_columns.h"
#include "coordinator/training/job_data.h"
#include "coordinator/training/job_gradients.h"
#include "coordinator/training/parameter_rules.h"
#include "coordinator/training/train_job.h"
#include "coordinator/training/warm_start_job.h"

namespace mu {
namespace {

// Early stopping and keep_best go by metrics that are computed.
void CheckComputed(const muster::JobProto& job, const std::vector<std::string>& metrics,
                   std::vector<std::string>* problems) {
  const auto check = [&](bool there, const char* key, const std::string& metric) {
    if (!there || absl::c_linear_search(metrics, metric)) return;
    problems->push_back(absl::StrCat(
        key, ": is `", metric, "`, which is not computed; computed are ",
        absl::StrJoin(metrics, ", "), "; choose one of them, or add it to evaluation.metrics"));
  };
  check(job.has_early_stopping(), "early_stopping.metric", job.early_stopping().metric());
  check(job.checkpoint().has_keep_best(), "checkpoint.keep_best.metric",
        job.checkpoint().keep_best().metric());
}

// Of what names none. One that is wrong is told by whoever reads the job.
Optimizer DefaultOptimizer(const muster::JobProto& job) {
  if (job.optimizer().kind_case() != pb::OptimizerProto::KIND_NOT_SET &&
      CheckOptimizer(job.optimizer()).ok())
    return Optimizer(job.optimizer());
  return Sgd{.learning_rate = 1.0f};
}

// The columns that are, just as they are read, the labels of the model's tasks.
CheckedLabels LabelsOf(Model& model, const pb::SourceProto& source, pb::DatasetProto dataset) {
  dataset.set_id(1);
  std::set<std::string> binary;
  const auto function = Trace("labels", [&](FunctionBuilder& f) {
    const ModelOutput output = model.Build(f, f.NextBatch(Dataset(dataset)));
    for (const TaskOutput& task : TasksOf(output)) {
      if (!task.label.valid()) continue;
      const std::string name = absl::StrCat("label.", task.name);
      f.Return(name, task.label);
      if (task.task == Task::kBinaryClassification) binary.insert(name);
    }
  });
  CheckedLabels labels;
  if (!function.ok()) return labels;  // that is told where the model is traced as a whole
  for (const pb::ReturnProto& returned : function->returns()) {
    const pb::NodeProto& node = function->nodes(returned.value().node());
    if (DefOf(node).source != OpSource::kColumn) continue;
    const std::string& column = node.attrs().at("column").s();
    if (binary.count(returned.name()) != 0) labels.binary.push_back(column);
    // A value for missing ones is given by whoever expects them. Labels of text are looked at by
    // themselves.
    if (absl::c_none_of(source.columns(), [&](const pb::JobColumnProto& from) {
          return from.name() == column &&
                 (from.has_missing_value() || from.has_missing_id() || from.kind() == "label");
        })) {
      labels.required.push_back(column);
    }
  }
  return labels;
}

// The key of the job that a misfit is about.
std::string KeyOf(const ColumnMisfit& misfit, const muster::JobProto& job,
                  const pb::DatasetProto& dataset) {
  const FieldColumnList& columns = FieldColumnsOf(dataset);
  for (int i = 0; i < columns.size() && !misfit.data_key.empty(); ++i) {
    if (columns[i].name() == misfit.column)
      return absl::StrCat(dataset.name(), ".columns[", i, "].", misfit.data_key);
  }
  const std::string key = KeyOfColumn(job.model(), misfit.column);
  return key.empty() ? "model" : key;
}

// `trains`: the model has something to train; otherwise that is told already.
void CheckData(const muster::JobProto& job, DataPurpose purpose, Model* model, bool trains,
               const RunOptions& options, std::vector<std::string>* notes,
               std::vector<std::string>* problems) {
  const auto source = DatasetOf(job, purpose);
  if (!source.ok()) {
    problems->emplace_back(source.status().message());
    return;
  }
  pb::DatasetProto dataset = *source;
  CheckedLabels labels;
  if (model != nullptr) {
    BoundIds(*model, &dataset);
    if (purpose != DataPurpose::kPredict) {
      const pb::JobDataProto& data = job.data();
      labels =
          LabelsOf(*model, purpose == DataPurpose::kTrain ? data.train() : data.eval(), dataset);
    }
    labels.trains = purpose == DataPurpose::kTrain;
    if (purpose == DataPurpose::kPredict) {
      DropLabels(*model, options.predict_columns, &dataset);
      if (const absl::Status texts = WithTexts(options.predict_columns, &dataset); !texts.ok()) {
        problems->emplace_back(texts.message());
        return;
      }
    }
  }
  std::vector<std::string> found;
  for (std::string& problem :
       CheckFiles(dataset, /*files_elsewhere=*/!options.local, labels, &found)) {
    const bool by_column =
        dataset.has_arrays() && dataset.arrays().container() == pb::ArraysProto::NPY;
    problems->push_back(
        absl::StrCat(dataset.name(), by_column ? ".columns: " : ".files: ", problem));
  }
  for (const std::string& note : found) notes->push_back(absl::StrCat(dataset.name(), ": ", note));
  if (model == nullptr) return;
  const std::vector<ColumnMisfit> misfits = ColumnMisfits(*model, dataset, purpose);
  for (const ColumnMisfit& misfit : misfits) {
    problems->push_back(absl::StrCat(KeyOf(misfit, job, dataset), ": ", misfit.message,
                                     misfit.remedy.empty() ? "" : "; ", misfit.remedy));
  }
  if (!misfits.empty()) return;
  dataset.set_id(1);
  absl::StatusOr<Forward> forward = Forward();
  const auto function = Trace("step", [&](FunctionBuilder& f) {
    if (purpose == DataPurpose::kTrain) f.Train();
    const BatchRef batch = f.NextBatch(Dataset(dataset));
    const ModelOutput output = model->Build(f, batch);
    if (purpose == DataPurpose::kTrain && trains)
      f.Minimize(output.loss, {.gradients = GradientOptionsOf(job.training()),
                               .micro_batches = MicroBatchesOf(job.training())});
    if (purpose == DataPurpose::kPredict) {
      forward = ReturnPredictions(f, batch, output, options.predict_columns);
      return;
    }
    if (purpose == DataPurpose::kEval)
      forward = ReturnForEvaluation(f, batch, output, job.evaluation());
    f.Return("loss", output.loss);
  });
  if (!function.ok()) {
    problems->push_back(
        absl::StrCat("model on ", dataset.name(), ": ", std::string(function.status().message())));
    return;
  }
  absl::Status outputs = forward.status();
  if (outputs.ok() && purpose == DataPurpose::kEval) {
    const auto measurement = Measurement::Create(*forward, job.evaluation());
    outputs = measurement.status();
    if (outputs.ok()) CheckComputed(job, measurement->Names(), problems);
  }
  if (outputs.ok()) return;
  const bool of_key = absl::StartsWith(outputs.message(), "evaluation.") ||
                      absl::StartsWith(outputs.message(), "--columns: ");
  problems->push_back(absl::StrCat(of_key ? "" : absl::StrCat("model on ", dataset.name(), ": "),
                                   std::string(outputs.message())));
}

}  // namespace

absl::Status CheckCheckpointFits(const muster::JobProto& job, const ModelRegistry& models,
                                 const std::string& directory, bool loads) {
  const auto model = models.Create(job.model());
  PaperFactory paper{loads ? Optimizer(job.optimizer()) : Optimizer(Sgd{.learning_rate = 1.0f})};
  RuledFactory factory(job, &paper);
  if (!model.ok() || !(*model)->Create(factory).ok()) return absl::OkStatus();
  MU_ASSIGN_OR_RETURN(const pb::CheckpointProto manifest, ReadManifest(directory));
  pb::RoutingProto created;
  for (const Variable& variable : paper.variables()) *created.add_variables() = variable.proto();
  for (const EmbeddingTable& table : paper.tables()) *created.add_tables() = table.proto();
  for (pb::VariableProto& variable : *created.mutable_variables()) {
    for (const pb::VariableProto& saved : manifest.variables()) {
      if (saved.name() != variable.name() || loads) continue;
      *variable.mutable_optimizer() = saved.optimizer();
      *variable.mutable_partition_starts() = saved.partition_starts();
    }
  }
  for (pb::TableProto& table : *created.mutable_tables()) {
    for (const pb::TableProto& saved : manifest.tables()) {
      if (saved.name() != table.name()) continue;
      if (!loads) *table.mutable_optimizer() = saved.optimizer();
      // A table that says no number gets that of the checkpoint.
      if (!loads || table.partitions() == 0) table.set_partitions(saved.partitions());
    }
  }
  return CheckFits(manifest, created);
}

absl::Status MakeJobDirectory(const std::string& directory) {
  MU_RETURN_IF_ERROR(MakeDirectories(directory));
  if (access(directory.c_str(), W_OK) == 0) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(directory, " is not writable"));
}

std::vector<std::string> CheckEnvironment(const RunOptions& options, bool* gathers) {
  std::vector<std::string> problems;
  *gathers = true;
  constexpr int kMost = 10'000, kMostLocal = 256;
  if (options.workers > kMost || options.ps > kMost ||
      (options.local && options.workers + options.ps > kMostLocal)) {
    problems.push_back(absl::StrCat(
        options.workers, " workers and ", options.ps, " parameter servers are more than ",
        options.local ? absl::StrCat("the ", kMostLocal, " processes that one machine starts")
                      : absl::StrCat("the ", kMost, " of each that a cluster may have"),
        "; see --workers and --ps"));
  }
  if (options.workers < 1 || options.ps < 1) {
    problems.push_back(
        absl::StrCat("a cluster needs at least 1 worker and 1 parameter server, not ",
                     options.workers, " and ", options.ps, "; see --workers and --ps"));
    *gathers = false;
  }
  if (options.local && !options.binary_dir.empty()) {
    for (const char* binary : {"/worker", "/psserver"}) {
      if (access((options.binary_dir + binary).c_str(), X_OK) != 0) {
        problems.push_back(
            absl::StrCat("there is no program ", options.binary_dir, binary, "; build it"));
      }
    }
  }
  if (options.local && options.tls.any() && !IsOffLoopback(options.http)) {
    problems.push_back(
        "--tls_cert, --tls_key and --tls_ca are for --listen, or for --http off loopback: the "
        "daemons of --local talk on loopback");
  }
  std::unique_ptr<RpcServer> listening;  // until --http was tried, which may name the same port
  if (!options.listen.empty()) {
    if (const absl::Status listens =
            CheckListening(options.listen, options.tls, options.insecure, pb::ROLE_COORDINATOR);
        !listens.ok()) {
      problems.emplace_back(listens.message());
      *gathers = false;
    } else if (auto server = NewGrpcTransport()->Listen(options.listen, MethodTable());
               server.ok()) {
      listening = *std::move(server);
    } else {
      problems.push_back(absl::StrCat("--listen: ", std::string(server.status().message())));
      *gathers = false;
    }
  }
  // Who is to be replaced may listen there until it ends.
  if (!options.http.empty() && !options.take_over) {
    // An address that is none is told by whoever reads the flag. gRPC listens as HTTP would.
    const auto http = HttpAddress(options.http, options.tls, options.insecure);
    if (http.ok()) {
      if (const auto server = NewGrpcTransport()->Listen(*http, MethodTable()); !server.ok())
        problems.push_back(absl::StrCat("--http: ", std::string(server.status().message())));
    }
  }
  return problems;
}

std::vector<std::string> CheckJob(const muster::JobProto& job, const ModelRegistry& models,
                                  const RunOptions& options, std::vector<std::string>* notes) {
  std::vector<std::string> problems;
  std::unique_ptr<Model> model;
  bool trains = true;
  if (ModelName(job.model()).empty()) {
    // Only the data is looked at.
  } else if (auto created = models.Create(job.model()); created.ok()) {
    model = *std::move(created);
    PaperFactory paper(DefaultOptimizer(job), static_cast<uint32_t>(std::max(options.ps, 0)));
    RuledFactory factory(job, &paper);
    if (const absl::Status status = model->Create(factory); !status.ok()) {
      problems.push_back(absl::StrCat("model: ", std::string(status.message())));
      model = nullptr;
    } else {
      for (std::string& problem : factory.Problems()) problems.push_back(std::move(problem));
      if (std::string frozen = factory.NothingToTrain();
          !frozen.empty() && job.data().has_train()) {
        problems.push_back(std::move(frozen));
        trains = false;
      }
      if (job.has_warm_start()) {
        for (std::string& problem : CheckWarmStart(job, paper, notes))
          problems.push_back(std::move(problem));
      }
    }
  } else {
    // One line for each key that is wrong.
    for (const absl::string_view line : absl::StrSplit(created.status().message(), '\n'))
      problems.push_back(absl::StrCat("model: ", line));
  }
  if (job.data().has_train())
    CheckData(job, DataPurpose::kTrain, model.get(), trains, options, notes, &problems);
  // Without data of its own, predicting takes the evaluation's, and needs no label of them.
  const bool predicts_eval = !options.predict_out.empty() && !job.data().has_predict();
  if (job.data().has_eval() && !predicts_eval)
    CheckData(job, DataPurpose::kEval, model.get(), trains, options, notes, &problems);
  if (job.data().has_predict() || (job.data().has_eval() && predicts_eval))
    CheckData(job, DataPurpose::kPredict, model.get(), trains, options, notes, &problems);
  return problems;
}

}  // namespace mu
