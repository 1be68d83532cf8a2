#include "coordinator/cli/job_validation.h"

#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "coordinator/cli/scalar.h"

namespace mu {
namespace {

constexpr uint32_t kMaxBatchSize = 1 << 20;
constexpr uint32_t kMaxStepsPerFunction = 10'000;
constexpr uint32_t kMaxInFlight = 64;

bool IsJobName(const std::string& name) {
  if (name.empty() || name.size() > 100 || !absl::ascii_isalnum(name[0])) return false;
  for (const char c : name) {
    if (!absl::ascii_isalnum(c) && c != '-' && c != '_' && c != '.') return false;
  }
  return true;
}

void ValidateTraining(const pb::TrainingProto& training, std::vector<JobProblem>* problems) {
  const auto batch = [&](const std::string& key, bool written, uint32_t size) {
    if (written && (size == 0 || size > kMaxBatchSize)) {
      problems->push_back(
          {key, absl::StrCat("must be from 1 to ", kMaxBatchSize, ", not ", size), ""});
    }
  };
  if (training.has_epochs() && training.epochs() == 0) {
    problems->push_back({"training.epochs", "must be at least 1", "leave it out for 1"});
  }
  batch("training.batch_size", training.has_batch_size(), training.batch_size());
  // Where no batch size is written, this is before it has its default.
  const uint32_t size = training.has_batch_size() ? training.batch_size() : kDefaultBatchSize;
  if (training.has_micro_batches() &&
      (training.micro_batches() == 0 || training.micro_batches() > size)) {
    problems->push_back({"training.micro_batches",
                         absl::StrCat("must be from 1 to the batch size, ", size, ", not ",
                                      training.micro_batches()),
                         "1 computes a batch as a whole"});
  }
  const std::string& steps = training.steps_per_function();
  const absl::StatusOr<uint64_t> packed = ParseUint(steps);
  if (training.has_steps_per_function() && steps != "auto" &&
      (!packed.ok() || *packed == 0 || *packed > kMaxStepsPerFunction)) {
    problems->push_back(
        {"training.steps_per_function",
         absl::StrCat("must be auto or from 1 to ", kMaxStepsPerFunction, ", not `", steps, "`"),
         ""});
  }
  const double gap = training.max_gap();
  if (training.has_max_gap() && !(gap > 0 && gap <= 1)) {
    problems->push_back({"training.max_gap",
                         absl::StrCat("must be above 0 and at most 1, not ", gap),
                         "0.01 keeps the gaps between functions under 1%"});
  }
  if (training.has_max_gap() && packed.ok()) {
    problems->push_back({"training.max_gap",
                         absl::StrCat("is for steps_per_function: auto, and "
                                      "training.steps_per_function is ",
                                      steps),
                         "remove one of them"});
  }
  const absl::StatusOr<uint64_t> warmup = ParseUint(training.warmup_steps());
  if (training.has_warmup_steps() && training.warmup_steps() != "auto" &&
      (!warmup.ok() || *warmup > std::numeric_limits<uint32_t>::max())) {
    problems->push_back(
        {"training.warmup_steps",
         absl::StrCat("must be auto or a whole number up to ", std::numeric_limits<uint32_t>::max(),
                      ", not `", training.warmup_steps(), "`"),
         "0 begins with the whole learning rate"});
  }
  const std::pair<const char*, float> amounts[] = {
      {"clip_by_value", training.clip_by_value()},
      {"clip_by_norm", training.clip_by_norm()},
      {"clip_by_global_norm", training.clip_by_global_norm()},
      {"l1", training.l1()},
      {"l2", training.l2()},
      {"weight_decay", training.weight_decay()}};
  for (const auto& [key, amount] : amounts) {
    if (amount >= 0 && std::isfinite(amount)) continue;
    problems->push_back({absl::StrCat("training.", key),
                         absl::StrCat("must not be negative, not ", amount),
                         "0 leaves gradients as they are"});
  }
  batch("training.eval_batch_size", training.eval_batch_size() != 0, training.eval_batch_size());
  const uint32_t in_flight = training.functions_in_flight();
  if (training.has_functions_in_flight() && (in_flight == 0 || in_flight > kMaxInFlight)) {
    problems->push_back({"training.functions_in_flight",
                         absl::StrCat("must be from 1 to ", kMaxInFlight, ", not ", in_flight),
                         "2 hides the round trip"});
  }
}

}  // namespace

std::vector<std::pair<std::string, const pb::SourceProto*>> SourcesFor(
    JobUse use, const pb::JobDataProto& data) {
  std::vector<std::pair<std::string, const pb::SourceProto*>> sources;
  if (use == JobUse::kExport) return sources;
  const bool all = use == JobUse::kCheck;
  if (data.has_train() && (all || use == JobUse::kTrain))
    sources.emplace_back("data.train", &data.train());
  // Without data of its own, `predict` takes the evaluation's.
  if (data.has_eval() && (use != JobUse::kPredict || !data.has_predict())) {
    sources.emplace_back("data.eval", &data.eval());
  }
  if (data.has_predict() && (all || use == JobUse::kPredict))
    sources.emplace_back("data.predict", &data.predict());
  return sources;
}

std::vector<JobProblem> ValidateJob(const pb::JobProto& job, JobUse use) {
  std::vector<JobProblem> problems;
  if (!IsJobName(job.name())) {
    problems.push_back(
        {"name",
         "must be 1 to 100 letters, digits, `-`, `_` and `.`, beginning with a letter or digit",
         "it names the run's directory", true});
  }
  const pb::JobDataProto& data = job.data();
  const auto need = [&](bool there, const std::string& key, const std::string& command) {
    if (!there) {
      problems.push_back({key, absl::StrCat("names no data, which ", command, " needs"),
                          "write format and files there", true});
    }
  };
  if (use == JobUse::kTrain || use == JobUse::kCheck)
    need(data.has_train(), "data.train", "`train`");
  if (use == JobUse::kEval) need(data.has_eval(), "data.eval", "`eval`");
  if (use == JobUse::kPredict)
    need(data.has_predict() || data.has_eval(), "data.predict", "`predict`");
  if (data.has_train()) ValidateSource(data.train(), "data.train", &problems);
  if (data.has_eval()) ValidateSource(data.eval(), "data.eval", &problems);
  if (data.has_predict()) ValidateSource(data.predict(), "data.predict", &problems);
  ValidateModel(job, use, &problems);
  ValidateOptimizers(job, &problems);
  ValidateTraining(job.training(), &problems);
  ValidateConsistency(job, &problems);
  ValidateRecovery(job, &problems);
  ValidateEvaluation(job, &problems);
  return problems;
}

void FillJobDefaults(pb::JobProto* job) {
  pb::TrainingProto* training = job->mutable_training();
  if (!training->has_epochs()) training->set_epochs(1);
  if (!training->has_batch_size()) training->set_batch_size(kDefaultBatchSize);
  if (!training->has_steps_per_function()) training->set_steps_per_function("auto");
  if (!training->has_warmup_steps()) training->set_warmup_steps("auto");
  if (training->eval_batch_size() == 0) training->set_eval_batch_size(training->batch_size());
  if (training->functions_in_flight() == 0) training->set_functions_in_flight(2);
  pb::CheckpointOptionsProto* checkpoint = job->mutable_checkpoint();
  if (!checkpoint->has_every()) checkpoint->set_every("5m");
  if (!checkpoint->has_keep()) checkpoint->set_keep(3);
  if (!job->has_recovery()) job->set_recovery("all");
  pb::JobDataProto* data = job->mutable_data();
  for (pb::SourceProto* source : {data->has_train() ? data->mutable_train() : nullptr,
                                  data->has_eval() ? data->mutable_eval() : nullptr,
                                  data->has_predict() ? data->mutable_predict() : nullptr}) {
    if (source == nullptr) continue;
    if (!source->has_on_bad_record()) source->set_on_bad_record("fail");
    if (source->format() != "csv") continue;
    if (!source->has_header()) source->set_header(true);
    if (!source->has_delimiter()) source->set_delimiter(",");
    if (!source->has_quote()) source->set_quote("\"");
    for (pb::JobColumnProto& column : *source->mutable_columns()) {
      if (!column.has_field() && !column.has_index()) column.set_field(column.name());
    }
  }
}

}  // namespace mu
