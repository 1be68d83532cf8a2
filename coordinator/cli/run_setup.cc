#include "coordinator/cli/run_setup.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "common/base/status.h"
#include "common/base/text.h"
#include "common/env/file.h"
#include "common/env/subprocess.h"
#include "common/process/observe_flags.h"
#include "coordinator/cli/continue_command.h"
#include "coordinator/cli/job_file.h"
#include "coordinator/cli/job_notes.h"
#include "coordinator/cli/placement_flag.h"
#include "coordinator/cli/run_outputs.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/cluster/checkpoint_verify.h"
#include "coordinator/frontend/model_registry.h"
#include "coordinator/frontend/paper_factory.h"
#include "coordinator/launch/chaos_plan.h"
#include "coordinator/training/job_data.h"
#include "coordinator/training/job_record.h"
#include "coordinator/training/trained_columns.h"

namespace mu {
namespace {

constexpr char kRuns[] = "runs";

// ./runs/NAME-TIME; several that begin in one second differ by their process.
std::string NewRunDirectory(const std::string& name) {
  const std::string time = absl::FormatTime("%Y%m%d-%H%M%S", absl::Now(), absl::LocalTimeZone());
  std::string path = absl::StrCat(kRuns, "/", name, "-", time);
  if (FileExists(path)) absl::StrAppend(&path, "-", ::getpid());
  return path;
}

std::string Absolute(const std::string& path) {
  const absl::StatusOr<std::string> absolute = AbsolutePath(path);
  return absolute.ok() ? *absolute : path;
}

// "NAME-20261121-093000", perhaps with "-PID": the run of a job called NAME, not of one called
// NAME-more.
bool IsRunOf(absl::string_view folder, const std::string& name) {
  if (!absl::ConsumePrefix(&folder, name + "-")) return false;
  const std::vector<absl::string_view> parts = absl::StrSplit(folder, '-');
  if (parts.size() < 2 || parts.size() > 3 || parts[0].size() != 8 || parts[1].size() != 6)
    return false;
  return absl::c_all_of(parts, [](absl::string_view part) {
    return !part.empty() && absl::c_all_of(part, [](char c) { return absl::ascii_isdigit(c); });
  });
}

// What `cli` names, or else all that there is for this job, the newest first.
absl::StatusOr<std::vector<std::string>> CandidateCheckpoints(const CliOptions& cli,
                                                              const muster::JobProto& job,
                                                              const std::string& job_dir) {
  if (!cli.checkpoint.empty()) {
    MU_ASSIGN_OR_RETURN(std::string named, FindCheckpoint(cli.checkpoint));
    return std::vector<std::string>{std::move(named)};
  }
  if (cli.job_dir.empty() && job.job_dir().empty()) return CheckpointsOfJob(kRuns, job.name());
  MU_ASSIGN_OR_RETURN(std::vector<std::string> found, CheckpointsAt(job_dir));
  std::reverse(found.begin(), found.end());
  return found;
}

// The first that fits the model. Problems, and notes about those that do not fit.
std::string ChooseCheckpoint(const std::vector<std::string>& candidates,
                             const muster::JobProto& job, const ModelRegistry& models,
                             std::vector<std::string>* notes, ProblemList* problems) {
  absl::Status misfit;
  for (const std::string& candidate : candidates) {
    const absl::Status fits = CheckCheckpointFits(job, models, candidate, /*loads=*/true);
    // One that cannot be read is a problem of its own.
    if (fits.ok() || !absl::IsInvalidArgument(fits)) {
      if (!misfit.ok()) {
        notes->push_back(absl::StrCat(candidates.front(), " does not fit the model: ",
                                      std::string(misfit.message()), ". ", candidate,
                                      " is taken, the newest that fits; --checkpoint=DIR names "
                                      "another"));
      }
      return candidate;
    }
    if (misfit.ok()) misfit = fits;
  }
  problems->Add(
      Place{"--checkpoint"},
      absl::StrCat(candidates.size() == 1 ? "" : "none of the checkpoints fits; ",
                   candidates.front(), " does not fit the model: ", std::string(misfit.message())),
      "name one of this model with --checkpoint=DIR, or train again");
  return "";
}

void SettleCheckpoint(const CliOptions& cli, JobUse use, const ModelRegistry& models,
                      RunSetup* setup, ProblemList* problems) {
  if (use == JobUse::kCheck || (use == JobUse::kTrain && cli.checkpoint.empty())) return;
  if (!cli.follow.empty()) return;  // they come one by one
  const auto found = CandidateCheckpoints(cli, setup->job, setup->options.job_dir);
  if (!found.ok()) {
    problems->Add(Place{"--checkpoint"}, std::string(found.status().message()),
                  !cli.checkpoint.empty() ? "name a checkpoint, or the folder of a run that has one"
                                          : "train first, or name a checkpoint");
    return;
  }
  const std::string chosen =
      use == JobUse::kTrain ? found->front()
                            : ChooseCheckpoint(*found, setup->job, models, &setup->notes, problems);
  if (chosen.empty()) return;
  setup->options.checkpoint = Absolute(chosen);
  const auto manifest = ReadManifest(setup->options.checkpoint);
  problems->Add(Place{"--checkpoint"}, manifest.ok()
                                           ? CheckSizes(setup->options.checkpoint, *manifest)
                                           : manifest.status());
}

void SettleChaos(const CliOptions& cli, RunOptions* options, ProblemList* problems) {
  if (cli.chaos.empty()) return;
  options->chaos = cli.chaos;
  if (!options->local) {
    problems->Add(Place{"--chaos"}, "works on the daemons of this machine only",
                  "use it with --local");
  }
  if (const auto plan = ChaosPlan::Parse(cli.chaos); !plan.ok()) {
    problems->Add(Place{"--chaos"}, std::string(plan.status().message()), "");
  }
}

// Each name once; what is wrong with them is told.
std::vector<std::string> PredictColumns(const std::vector<std::string>& given,
                                        ProblemList* problems) {
  std::vector<std::string> names;
  std::set<std::string> told;
  for (const std::string& name : given) {
    if (name.empty()) {
      if (told.insert(name).second)
        problems->Add(Place{"--columns"}, "there is an empty name", "leave out a comma");
    } else if (!absl::c_linear_search(names, name)) {
      names.push_back(name);
    } else if (told.insert(name).second) {
      problems->Add(Place{"--columns"}, absl::StrCat("names ", name, " twice"), "name it once");
    }
  }
  return names;
}

// Where the run's directory was named; nobody did: where another one can be.
Place PlaceOfJobDir(const CliOptions& cli, const JobFile& file) {
  const bool by_job = cli.job_dir.empty() && !file.job.job_dir().empty();
  return by_job ? file.places.Find("job_dir") : Place{"--job_dir"};
}

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

// Of a run whose values are taken, what its record says; otherwise the job's own data.train. The
// record knows what was trained, whatever the job file says by now. NOT_FOUND: neither is there.
absl::StatusOr<TrainedColumns> WhatWasTrained(const JobFile& file, JobUse use,
                                              const RunOptions& options) {
  if (use == JobUse::kEval || use == JobUse::kPredict) {
    absl::StatusOr<TrainedColumns> recorded = absl::NotFoundError("no checkpoint");
    if (!options.checkpoint.empty()) {
      recorded = TrainedColumnsOfCheckpoint(options.checkpoint);
    } else if (!options.follow.empty()) {
      recorded = TrainedColumnsOfRun(options.follow);
    }
    if (recorded.ok()) return recorded;
  }
  if (file.places.IsBad("data.train")) return absl::NotFoundError("data.train is wrong");
  return TrainedColumnsOf(file.job);
}

// Whether the columns of what is evaluated or predicted mean what they meant in training. `job` has
// the sources that the run reads, as far as they are right. Each line begins with its key.
void CheckMeaning(const muster::JobProto& job, JobUse use, const ModelRegistry& models,
                  const TrainedColumns& trained, std::vector<std::string>* problems,
                  std::vector<std::string>* notes) {
  const auto model = models.Create(job.model());
  PaperFactory paper;
  if (!model.ok() || !(*model)->Create(paper).ok()) return;  // CheckJob tells of it
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

// Looks at the data and the model, each once its keys are right, and at no data that this run does
// not read. Of data with wrong columns the others are looked at all the same, so that a mistake
// hides no other one.
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
  if (const auto trained = WhatWasTrained(file, use, options); trained.ok() && sound.has_model())
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

absl::StatusOr<std::string> CheckpointOfJob(const CliOptions& cli, const muster::JobProto& job) {
  MU_ASSIGN_OR_RETURN(
      const std::vector<std::string> found,
      CandidateCheckpoints(cli, job, cli.job_dir.empty() ? job.job_dir() : cli.job_dir));
  return found.front();
}

absl::StatusOr<std::vector<std::string>> CheckpointsOfJob(const std::string& runs,
                                                          const std::string& name) {
  std::vector<std::pair<int64_t, std::string>> found;  // by time
  if (const auto folders = ListDirectory(runs); folders.ok()) {
    for (const std::string& folder : *folders) {
      if (!IsRunOf(folder, name)) continue;
      absl::StatusOr<std::string> checkpoint = FindCheckpoint(JoinPath(runs, folder));
      if (!checkpoint.ok()) continue;
      const absl::StatusOr<FileInfo> info = GetFileInfo(JoinPath(*checkpoint, kManifestName));
      if (info.ok()) found.emplace_back(info->modified_ns, *std::move(checkpoint));
    }
  }
  if (found.empty()) {
    return absl::NotFoundError(
        absl::StrCat("no run of ", name, " below ./", runs, " has a checkpoint"));
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> checkpoints;
  for (auto& [time, path] : found) checkpoints.push_back(std::move(path));
  return checkpoints;
}

RunSetup SetUpRun(const CliOptions& cli, JobUse use, const ModelRegistry& models,
                  ProblemList* problems) {
  RunSetup setup;
  RunOptions& options = setup.options;
  options.local = cli.local || cli.listen.empty();
  const JobFile file = LoadJobFile(cli.job_file,
                                   {.use = use,
                                    .overrides = cli.overrides,
                                    .models = models.Names(),
                                    .files_elsewhere = !options.local},
                                   problems);
  setup.job = file.job;
  options.workers = cli.workers;
  options.ps = cli.ps;
  options.listen = cli.listen;
  options.tls = cli.tls;
  options.insecure = cli.insecure;
  options.http = cli.http;
  options.log_format = cli.log_format;
  if (!cli.http.empty()) {
    const auto http = HttpAddress(cli.http, cli.tls, cli.insecure);
    if (!http.ok()) problems->Add(Place{"command line"}, std::string(http.status().message()), "");
  }
  options.start_timeout = absl::Seconds(cli.start_timeout_seconds);
  options.member_timeout = absl::Seconds(cli.member_timeout_seconds);
  options.backup_after = absl::Seconds(cli.backup_after_seconds);
  options.binary_dir = cli.binary_dir.empty() ? FolderOfThisProgram() : cli.binary_dir;
  options.job_dir = Absolute(!cli.job_dir.empty()           ? cli.job_dir
                             : !setup.job.job_dir().empty() ? setup.job.job_dir()
                                                            : NewRunDirectory(setup.job.name()));
  if (use == JobUse::kTrain && cli.job_dir.empty() && setup.job.job_dir().empty()) {
    if (const std::string run = UnfinishedRun(kRuns, setup.job); !run.empty()) {
      setup.notes.push_back(absl::StrCat("a new run begins; ", run,
                                         " holds one of this job that has not come to its end: ",
                                         "--job_dir=", run, " continues it"));
    }
  }
  options.take_over = cli.take_over;
  options.train_again = cli.train_again;
  options.trace_file = cli.trace;
  if (!cli.follow.empty()) options.follow = Absolute(cli.follow);
  const Place job_dir_place = PlaceOfJobDir(cli, file);
  for (const auto& [place, path] :
       {std::pair(job_dir_place, options.job_dir), std::pair(Place{"--checkpoint"}, cli.checkpoint),
        std::pair(Place{"--binary_dir"}, options.binary_dir)}) {
    // What daemons are told travels as protobuf's text, which takes nothing else.
    if (const std::string valid = ValidUtf8(path); valid != path) {
      problems->Add(place, absl::StrCat(valid, " is not UTF-8"),
                    "rename the folder, or name another");
    }
  }
  SettleChaos(cli, &options, problems);
  SettlePlacement(cli, &options, problems);
  const bool new_directory = !FileExists(options.job_dir);
  SettleCheckpoint(cli, use, models, &setup, problems);
  if (use == JobUse::kPredict) {
    options.predict_out =
        cli.out.empty() ? JoinPath(options.job_dir, "predictions.csv") : Absolute(cli.out);
    options.predict_columns = PredictColumns(cli.columns, problems);
  }
  if (const absl::Status made = MakeJobDirectory(options.job_dir); !made.ok()) {
    problems->Add(job_dir_place, std::string(made.message()),
                  "name a folder that can be made and written to");
  }
  if (use != JobUse::kCheck) setup.report = CheckRunOutputs(cli, setup, job_dir_place, problems);
  for (const std::string& problem : CheckEnvironment(options))
    problems->Add(Place{"command line"}, problem);
  CheckDataAndModel(cli.job_file, file, use, models, options, &setup.notes, problems);
  // To find out whether the directory can be made, it was made.
  if (new_directory && (use == JobUse::kCheck || !problems->empty())) {
    ::rmdir(options.job_dir.c_str());
    if (DirectoryOf(options.job_dir) == Absolute(kRuns)) ::rmdir(kRuns);
  }
  return setup;
}

}  // namespace mu
