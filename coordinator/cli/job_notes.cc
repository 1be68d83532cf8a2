#include "coordinator/cli/job_notes.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace mu {
namespace {

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

void NoteEvaluation(const muster::JobProto& job, std::vector<std::string>* notes) {
  if (!job.data().has_eval() || job.training().epochs() < 2) return;
  // Early stopping and the best checkpoints evaluate each epoch.
  if (job.training().has_eval_every() || job.has_early_stopping() ||
      job.checkpoint().has_keep_best())
    return;
  notes->push_back(absl::StrCat(
      "data.eval: is evaluated at the end only, after ", job.training().epochs(),
      " epochs, so nothing shows whether an earlier epoch was better; write training.eval_every: "
      "{epochs: 1} to see it, and early_stopping or checkpoint.keep_best to keep the best values"));
}

}  // namespace

std::vector<std::string> JobNotes(const muster::JobProto& job, JobUse use) {
  std::vector<std::string> notes;
  if (use != JobUse::kTrain && use != JobUse::kCheck) return notes;
  NoteRounds(job.training(), &notes);
  NoteEvaluation(job, &notes);
  return notes;
}

}  // namespace mu
