#include "coordinator/cli/data_and_model_check.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status.h"
#include "coordinator/cli/job_notes.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/frontend/model_registry.h"
#include "coordinator/frontend/paper_factory.h"
#include "coordinator/training/job_data.h"
#include "coordinator/training/job_record.h"
#include "coordinator/training/trained_columns.h"
#include "coordinator/training/trained_model.h"

namespace mu {
namespace {

// Of a source with mistakes in some of its columns and nowhere else, what is left without these and
// the crosses of them; empty if that is nothing.
pb::SourceProto SoundPart(const std::string& key, const pb::SourceProto& source,
                          const KeyPlaces& places) {
  const auto* const descriptor = pb::SourceProto::descriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const std::string& name = descriptor->field(i)->name();
    if (name != "columns" && places.IsBad(absl::StrCat(key, ".", name))) return {};
  }
  pb::SourceProto sound = source;
  sound.clear_columns();
  std::set<std::string> dropped;
  for (int i = 0; i < source.columns_size(); ++i) {
    const pb::JobColumnProto& column = source.columns(i);
    if (places.IsBad(absl::StrCat(key, ".columns[", i, "]"))) {
      dropped.insert(column.name());
    } else {
      *sound.add_columns() = column;
    }
  }
  auto* const columns = sound.mutable_columns();
  columns->erase(std::remove_if(columns->begin(), columns->end(),
                                [&](const pb::JobColumnProto& column) {
                                  return absl::c_any_of(column.of(), [&](const std::string& name) {
                                    return dropped.count(name) != 0;
                                  });
                                }),
                 columns->end());
  return columns->empty() ? pb::SourceProto() : sound;
}

// The job with these sources alone.
muster::JobProto WithSources(muster::JobProto job,
                             const std::map<std::string, pb::SourceProto>& used) {
  job.clear_data();
  for (const auto& [key, source] : used) {
    pb::JobDataProto* const data = job.mutable_data();
    *(key == "data.train"  ? data->mutable_train()
      : key == "data.eval" ? data->mutable_eval()
                           : data->mutable_predict()) = source;
  }
  return job;
}

// Clears the fields at `key` that are bad.
void ClearBadFields(const KeyPlaces& places, const std::string& key,
                    google::protobuf::Message* message) {
  const auto* const descriptor = message->GetDescriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const auto* const field = descriptor->field(i);
    if (places.IsBad(absl::StrCat(key, ".", field->name())))
      message->GetReflection()->ClearField(message, field);
  }
}

// A value that is told to be wrong says nothing of the model: without it the job is looked at on.
void ClearBadTraining(const KeyPlaces& places, muster::JobProto* job) {
  ClearBadFields(places, "training", job->mutable_training());
  for (int i = 0; i < job->parameters_size(); ++i)
    ClearBadFields(places, absl::StrCat("parameters[", i, "]"), job->mutable_parameters(i));
  FillJobDefaults(job);
}

// Whether the run would begin with what `warm_start` names: not if it goes on from a checkpoint of
// its own, which may be all that is left, nor from one that was named.
bool BeginsWarm(JobUse use, const RunOptions& options) {
  if (use == JobUse::kCheck) return true;
  return use == JobUse::kTrain && options.checkpoint.empty() &&
         !FindCheckpoint(options.job_dir).ok();
}

// Of a run whose values are taken, what its record says; where there is none, the job's own
// data.train. The record knows what was trained, whatever the job file says by now: one that does
// not say it is a problem. NOT_FOUND: neither is there.
absl::StatusOr<TrainedColumns> WhatWasTrained(const JobFile& file, JobUse use,
                                              const RunOptions& options, ProblemList* problems) {
  if (use == JobUse::kEval || use == JobUse::kPredict) {
    absl::StatusOr<TrainedColumns> recorded = absl::NotFoundError("no checkpoint");
    if (!options.checkpoint.empty()) {
      recorded = TrainedColumnsOfCheckpoint(options.checkpoint);
      if (!recorded.ok() && !absl::IsNotFound(recorded.status())) {
        problems->Add(Place{"--checkpoint"}, recorded.status());
        return recorded;
      }
    } else if (!options.follow.empty()) {
      // Looked at again when there is a checkpoint (FollowJob).
      recorded = TrainedColumnsOfRun(options.follow);
    }
    if (recorded.ok()) return recorded;
  }
  if (file.places.IsBad("data.train")) return absl::NotFoundError("data.train is wrong");
  return TrainedColumnsOf(file.job);
}

// What makes the model another function than the one whose values were trained.
void AddModelDifferences(const TrainedColumns& trained, const muster::JobProto& job,
                         std::vector<std::string>* problems, std::vector<std::string>* notes) {
  ModelDifferences differences = CompareModels(trained, job.model());
  for (std::string& problem : differences.problems) problems->push_back(std::move(problem));
  for (std::string& note : differences.notes) notes->push_back(std::move(note));
}

// Whether the model, and the columns of what is evaluated or predicted, mean what they meant in
// training. `job` has the sources that the run reads, as far as they are right. Each line begins
// with its key.
void CheckMeaning(const muster::JobProto& job, JobUse use, const ModelRegistry& models,
                  const TrainedColumns& trained, std::vector<std::string>* problems,
                  std::vector<std::string>* notes) {
  const auto model = models.Create(job.model());
  PaperFactory paper;
  if (!model.ok() || !(*model)->Create(paper).ok()) return;  // CheckJob tells of it
  AddModelDifferences(trained, job, problems, notes);
  const auto compare = [&](DataPurpose purpose) {
    const auto dataset = DatasetOf(job, purpose);
    if (!dataset.ok()) return;  // the same
    const std::set<std::string> used = ColumnsReadBy(**model, purpose);
    for (std::string& problem : CompareColumns(trained, *dataset, FingerprintsOf(*dataset), used))
      problems->push_back(std::move(problem));
    for (std::string& note : ComparePositives(trained, *dataset, used))
      notes->push_back(std::move(note));
  };
  if (job.data().has_eval() && use != JobUse::kPredict) compare(DataPurpose::kEval);
  // Without data of its own, predicting takes the evaluation's.
  if (job.data().has_predict() || use == JobUse::kPredict) compare(DataPurpose::kPredict);
}

// Of a line that begins with a key of the job, where that is written, and what is said of it.
std::pair<Place, std::string> Placed(const std::string& path, const JobFile& file,
                                     absl::string_view line) {
  // What a model says of itself may name one of its own keys.
  if (absl::StartsWith(line, "model: model.")) absl::ConsumePrefix(&line, "model: ");
  const std::string key(line.substr(0, line.find_first_of(": ")));
  // What a source or a model does not say is told where it is written.
  const bool known =
      file.places.Has(key) || absl::StartsWith(key, "data.") || absl::StartsWith(key, "model.");
  const Place place = known ? file.places.Find(key) : Place{path};
  // The place of a value from the command line names the key already.
  if (place.source == absl::StrCat("--set ", key))
    absl::ConsumePrefix(&line, absl::StrCat(key, ": "));
  return {place, std::string(line)};
}

// Tells of lines that begin with keys of the job.
void TellOf(const std::string& path, const JobFile& file, const std::vector<std::string>& found,
            const std::vector<std::string>& found_notes, std::vector<std::string>* notes,
            ProblemList* problems) {
  for (const std::string& problem : found) {
    const std::string key = problem.substr(0, problem.find_first_of(": "));
    if (absl::StartsWith(key, "parameters[") && file.places.IsBad(key)) continue;
    auto [place, text] = Placed(path, file, problem);
    problems->Add(std::move(place), std::move(text));
  }
  for (const std::string& told : found_notes) {
    const auto [place, text] = Placed(path, file, told);
    notes->push_back(absl::StrCat(place.ToString(), ": ", text));
  }
}

}  // namespace

void CheckTrainedModel(const std::string& path, const JobFile& file, const std::string& checkpoint,
                       std::vector<std::string>* notes, ProblemList* problems) {
  const auto trained = TrainedColumnsOfCheckpoint(checkpoint);
  if (absl::IsNotFound(trained.status())) return;  // only the user knows
  if (!trained.ok()) return problems->Add(Place{"--checkpoint"}, trained.status());
  std::vector<std::string> found, found_notes;
  AddModelDifferences(*trained, file.job, &found, &found_notes);
  TellOf(path, file, found, found_notes, notes, problems);
}

void CheckDataAndModel(const std::string& path, const JobFile& file, JobUse use,
                       const ModelRegistry& models, const RunOptions& options,
                       std::vector<std::string>* notes, ProblemList* problems) {
  std::map<std::string, pb::SourceProto> whole, parts;
  for (const auto& [key, source] : SourcesFor(use, file.job.data())) {
    if (!file.places.IsBad(key)) {
      whole[key] = *source;
    } else if (pb::SourceProto part = SoundPart(key, *source, file.places);
               part.ByteSizeLong() > 0) {
      parts[key] = std::move(part);
    }
  }
  muster::JobProto sound = WithSources(file.job, whole);
  if (file.places.IsBad("model")) sound.clear_model();
  if (file.places.IsBad("warm_start") || !BeginsWarm(use, options)) sound.clear_warm_start();
  // What is wrong with the list of metrics says nothing of who goes by one of them.
  if (file.places.IsBad("evaluation") || file.places.IsBad("early_stopping"))
    sound.clear_early_stopping();
  if (file.places.IsBad("evaluation") || file.places.IsBad("checkpoint"))
    sound.mutable_checkpoint()->clear_keep_best();
  if (file.places.IsBad("evaluation")) sound.clear_evaluation();
  ClearBadTraining(file.places, &sound);
  std::vector<std::string> found = CheckJob(sound, models, options, notes);
  std::vector<std::string> found_notes = JobNotes(file.job, use);
  const auto trained = WhatWasTrained(file, use, options, problems);
  if (trained.ok() && sound.has_model())
    CheckMeaning(sound, use, models, *trained, &found, &found_notes);
  if (!parts.empty()) {
    muster::JobProto partly = WithSources(file.job, parts);
    partly.clear_model();
    partly.clear_evaluation();
    partly.clear_early_stopping();
    partly.mutable_checkpoint()->clear_keep_best();
    for (std::string& problem : CheckJob(partly, models, options, notes))
      found.push_back(std::move(problem));
  }
  TellOf(path, file, found, found_notes, notes, problems);
}

}  // namespace mu
