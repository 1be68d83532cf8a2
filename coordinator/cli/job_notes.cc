#include "coordinator/cli/job_notes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/sharding/partition.h"
#include "coordinator/frontend/feature_models.h"
#include "coordinator/frontend/paper_factory.h"
#include "coordinator/frontend/variable_ops.h"

namespace mu {
namespace {

// Where `product` is worth a note: a step moves so many times as much as with it, and so many bytes
// more.
constexpr double kTimesMoved = 2;
constexpr double kBytesSaved = 8e6;

// Rounds promise the result of the large batch, which these take away: docs/consistency.md.
void NoteRounds(const muster::TrainingProto& training, std::vector<std::string>* notes) {
  const uint32_t replicas = training.sync().replicas();
  if (training.mode() != "sync" || replicas < 2) return;
  for (const auto& [key, bound] :
       {std::pair("clip_by_value", training.clip_by_value()),
        std::pair("clip_by_norm", training.clip_by_norm()),
        std::pair("clip_by_global_norm", training.clip_by_global_norm())}) {
    if (!(bound > 0)) continue;
    notes->push_back(absl::StrCat(
        "training.", key, ": with training.mode: sync it acts on the gradient of each of the ",
        replicas,
        " steps of a round, and not on their mean, so the result is not that of one large batch; a "
        "larger batch_size with training.micro_batches is clipped as a whole"));
  }
  if (training.sync().rows() == "sum") return;  // asks for steps one after the other
  for (const auto& [key, factor] : {std::pair("l1", training.l1()), std::pair("l2", training.l2()),
                                    std::pair("weight_decay", training.weight_decay())}) {
    if (!(factor > 0)) continue;
    notes->push_back(absl::StrCat(
        "training.", key, ": with training.mode: sync a table's row that only 1 of the ", replicas,
        " steps of a round uses gets about 1/", replicas,
        " of it, where one large batch gives the row all of it; variables get all of it. An "
        "optimizer's own penalty or decay (ftrl, adamw, lion) acts on such rows in full"));
  }
}

// Of an interval that is longer than the job, how long the job is; else "". How many steps an epoch
// has is not known yet.
std::string ShorterThanInterval(const muster::TrainingProto& training) {
  const uint32_t epochs = std::max(1u, training.epochs());
  if (training.eval_every().epochs() > epochs)
    return absl::StrCat(epochs, epochs == 1 ? " epoch" : " epochs");
  const uint64_t steps = training.max_steps();
  if (steps > 0 && training.eval_every().steps() > steps)
    return absl::StrCat(steps, steps == 1 ? " step" : " steps");
  return "";
}

// No mistake: data.eval may come from the command line of another run.
void NoteMeasuresOfNothing(const muster::EvaluationProto& evaluation,
                           std::vector<std::string>* notes) {
  for (const auto& [key, written] :
       {std::pair("metrics", evaluation.metrics_size() > 0),
        std::pair("group", evaluation.has_group()), std::pair("weight", evaluation.has_weight())}) {
    if (!written) continue;
    notes->push_back(absl::StrCat("evaluation.", key,
                                  ": has no effect, since there is no data.eval, which is what is "
                                  "evaluated; add data.eval, or remove this"));
  }
}

void NoteEvaluation(const muster::JobProto& job, std::vector<std::string>* notes) {
  if (!job.data().has_eval()) return NoteMeasuresOfNothing(job.evaluation(), notes);
  if (const std::string length = ShorterThanInterval(job.training()); !length.empty()) {
    notes->push_back(
        absl::StrCat("training.eval_every: is longer than the job, which ends after ", length,
                     ", so data.eval is evaluated at the end only; write less, or remove it"));
    return;
  }
  if (job.training().epochs() < 2) return;
  // Early stopping and the best checkpoints evaluate each epoch.
  if (job.training().has_eval_every() || job.has_early_stopping() ||
      job.checkpoint().has_keep_best())
    return;
  notes->push_back(absl::StrCat(
      "data.eval: is evaluated at the end only, after ", job.training().epochs(),
      " epochs, so nothing shows whether an earlier epoch was better; write training.eval_every: "
      "{epochs: 1} to see it, and early_stopping or checkpoint.keep_best to keep the best values"));
}

// Of products that servers compute only they know the gradients, so `auto` would read the weights.
bool ServersMayMultiply(const muster::TrainingProto& training) {
  return training.micro_batches() <= 1 && !(training.clip_by_value() > 0) &&
         !(training.clip_by_norm() > 0) && !(training.clip_by_global_norm() > 0) &&
         !(training.l1() > 0) && !(training.l2() > 0) && !(training.weight_decay() > 0);
}

// A layer of many classes that moves far more than it needs. How `parameters` would cut it does not
// matter much: sizes are rough.
void NoteProduct(const muster::JobProto& job, std::vector<std::string>* notes) {
  const FeatureModelKind* const kind = FeatureModelOf(job.model());
  if (kind == nullptr || !ServersMayMultiply(job.training())) return;
  muster::FeatureModelProto config = (job.model().*kind->config)();
  if (!config.has_classes() || config.has_product() || job.training().batch_size() == 0) return;
  config.set_product("auto");
  const auto model = FeatureModel::FromConfig(*kind, config);
  PaperFactory paper;
  if (!model.ok() || !(*model)->Create(paper).ok()) return;  // that is told elsewhere
  double now = 0, then = 0;
  for (const Variable& variable : paper.variables()) {
    const std::string& name = variable.proto().name();
    if (!absl::EndsWith(name, "/kernel_by_output") && !absl::EndsWith(name, "/numbers_by_class"))
      continue;
    const ProductBytes bytes =
        BytesOfProduct(job.training().batch_size(), variable.shape()[0], variable.shape()[1],
                       static_cast<int64_t>(PartitionStarts(variable.proto()).size()),
                       /*trains=*/true);
    now += bytes.read;
    then += std::min(bytes.read, bytes.from_servers);
  }
  if (now < kTimesMoved * then || now - then < kBytesSaved) return;
  notes->push_back(absl::StrFormat(
      "model.%s.product: is not written, so each step moves %.0f MB for the weights of %d classes "
      "and their gradient; write product: auto: the servers multiply with the weights then, and a "
      "step moves about %.0f MB. Checkpoints without it do not fit, so a run that has begun goes "
      "on as it is",
      kind->name, now / 1e6, config.classes(), then / 1e6));
}

}  // namespace

std::vector<std::string> JobNotes(const muster::JobProto& job, JobUse use) {
  std::vector<std::string> notes;
  if (use != JobUse::kTrain && use != JobUse::kCheck) return notes;
  NoteRounds(job.training(), &notes);
  NoteEvaluation(job, &notes);
  NoteProduct(job, &notes);
  return notes;
}

}  // namespace mu
