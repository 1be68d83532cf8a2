#include "coordinator/cli/job_file.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status.h"
#include "common/base/text.h"
#include "common/env/file.h"
#include "common/env/file_kind.h"
#include "coordinator/cli/config_override.h"
#include "coordinator/cli/job_paths.h"
#include "coordinator/frontend/feature_models.h"

namespace mu {
namespace {

constexpr uint64_t kMaxJobFileBytes = 1 << 20;

// So that what a user's model says of one of its keys has its place.
void NotePlaces(const ConfigNode& node, const std::string& key, KeyPlaces* places) {
  for (const ConfigEntry& entry : node.entries) {
    const std::string below = absl::StrCat(key, ".", entry.key);
    places->Set(below,
                entry.value.kind == ConfigNode::kScalar ? entry.value.place : entry.key_place);
    NotePlaces(entry.value, below, places);
  }
  for (size_t i = 0; i < node.items.size(); ++i) {
    const std::string below = absl::StrCat(key, "[", i, "]");
    places->Set(below, node.items[i].place);
    NotePlaces(node.items[i], below, places);
  }
}

// A user's model is a key under `model`, its map kept as JSON for the user's own code.
MessageHook UserModels(const std::vector<std::string>& models, KeyPlaces* places,
                       ProblemList* problems) {
  MessageHook hook;
  hook.message = pb::ModelProto::descriptor()->full_name();
  hook.hidden = {"custom"};
  hook.is_refused = [](const std::string& path) {
    for (const FeatureModelKind& kind : FeatureModelKinds()) {
      absl::string_view key = path;
      if (absl::ConsumePrefix(&key, absl::StrCat("model.", kind.name, ".")))
        return !FeatureModel::HasKey(kind, key);
    }
    return false;
  };
  for (const std::string& model : models) {
    if (pb::ModelProto::descriptor()->FindFieldByName(model) == nullptr) hook.keys.push_back(model);
  }
  hook.read = [places, problems](const std::string& key, const ConfigNode& value,
                                 google::protobuf::Message* message) {
    pb::CustomModelProto* custom = static_cast<pb::ModelProto*>(message)->mutable_custom();
    custom->set_name(key);
    custom->set_json("{}");
    if (value.kind == ConfigNode::kMap) {
      custom->set_json(ConfigToJson(value));
      NotePlaces(value, absl::StrCat("model.", key), places);
    } else if (value.kind == ConfigNode::kList || value.kind == ConfigNode::kScalar) {
      problems->Add(value.place,
                    absl::StrCat("`model.", key, "` must be a map of keys, not ", value.Describe()),
                    absl::StrCat("write ", key, ": {}"));
    }
  };
  return hook;
}

// What the key's own rule says of a number that the field's type does not hold, such as "must be
// from 1 to 1048576, not -3"; if it allows the nearest one that it holds, what the type says.
std::string OfNumberBeyondType(const std::vector<JobProblem>& found, const std::string& key,
                               const KeyPlaces::BeyondType& number) {
  for (const JobProblem& problem : found) {
    absl::string_view rule = problem.message;
    if (problem.key != key || !absl::StartsWith(rule, "must be ")) continue;
    absl::ConsumeSuffix(&rule, absl::StrCat(", not ", number.nearest));
    return absl::StrCat(rule, ", not ", number.text,
                        problem.remedy.empty() ? "" : absl::StrCat("; ", problem.remedy));
  }
  return number.problem;
}

void AddJobProblems(const std::vector<JobProblem>& found, KeyPlaces* places,
                    ProblemList* problems) {
  for (const auto& [key, number] : places->beyond_type()) {
    problems->Add(places->Find(key),
                  absl::StrCat("`", key, "` ", OfNumberBeyondType(found, key, number)));
    places->MarkBad(key);
  }
  for (const JobProblem& problem : found) {
    if (places->IsBad(problem.key)) continue;
    const bool missing = problem.required && !places->Has(problem.key);
    problems->Add(places->Find(problem.key),
                  missing
                      ? absl::StrCat("the key `", problem.key, "` is missing: it ", problem.message)
                      : absl::StrCat("`", problem.key, "` ", problem.message),
                  problem.remedy);
  }
  // After all have been told: one key may have several.
  for (const JobProblem& problem : found) places->MarkBad(problem.key);
}

// What daemons are told travels as protobuf's text, which takes nothing else. The first byte that
// is none is a problem.
bool IsText(const std::string& text, const std::string& source, bool whole, ProblemList* problems) {
  const std::string valid = ValidUtf8(text);
  if (valid == text) return true;
  // As far as they are equal they have the same length.
  const size_t at = static_cast<size_t>(
      std::mismatch(text.begin(), text.end(), valid.begin()).first - text.begin());
  const size_t line_begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
  Place place{source};
  if (!whole) {
    place.line = 1 + static_cast<int>(std::count(
                         text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
    place.column = 1 + static_cast<int>(at - line_begin);
  }
  problems->Add(std::move(place), "this is not UTF-8",
                "save the job file, or write the value, as UTF-8");
  return false;
}

}  // namespace

JobFile ParseJob(const std::string& text, const std::string& source, const std::string& directory,
                 const JobFileOptions& options, ProblemList* problems) {
  JobFile file;
  file.places = KeyPlaces(Place{source, 1, 1});
  if (!IsText(text, source, /*whole=*/false, problems)) return file;
  const size_t before = problems->size();
  ConfigNode root = ParseConfig(text, source, /*whole=*/false, problems);
  if (root.kind == ConfigNode::kNull && problems->size() > before) return file;  // not YAML at all
  for (const std::string& assignment : options.overrides) {
    if (IsText(assignment, "--set", /*whole=*/true, problems))
      ApplyOverride(assignment, &root, problems);
  }
  ExpandEnvironment(options.environment, &root, problems);
  MessageReader(UserModels(options.models, &file.places, problems), &file.places, problems)
      .Read(root, "", &file.job);
  AddJobProblems(ValidateJob(file.job, options.use), &file.places, problems);
  FillJobDefaults(&file.job);

  const auto used = SourcesFor(options.use, file.job.data());
  pb::JobDataProto* data = file.job.mutable_data();
  const auto resolve = [&](const std::string& key, pb::SourceProto* from) {
    const bool is_used =
        std::any_of(used.begin(), used.end(), [&](const auto& each) { return each.first == key; });
    const FilesAre where = !is_used                  ? FilesAre::kNotRead
                           : options.files_elsewhere ? FilesAre::kElsewhere
                                                     : FilesAre::kHere;
    ResolveFiles(key, directory, where, options.vocabularies_exist, file.places, from, problems);
  };
  if (data->has_train()) resolve("data.train", data->mutable_train());
  if (data->has_eval()) resolve("data.eval", data->mutable_eval());
  if (data->has_predict()) resolve("data.predict", data->mutable_predict());
  if (!file.job.job_dir().empty()) file.job.set_job_dir(JoinPath(directory, file.job.job_dir()));
  if (!file.job.warm_start().checkpoint().empty()) {
    pb::WarmStartProto* warm = file.job.mutable_warm_start();
    warm->set_checkpoint(JoinPath(directory, warm->checkpoint()));
  }
  return file;
}

JobFile LoadJobFile(const std::string& path, const JobFileOptions& options, ProblemList* problems) {
  const auto fail = [&](const absl::Status& status) {
    problems->Add(Place{path}, status);
    return JobFile();
  };
  const absl::StatusOr<uint64_t> size = FileSize(path);
  if (absl::IsNotFound(size.status())) {
    problems->Add(Place{path}, "there is no such job file",
                  LinkTarget(path).empty() ? "check the path; deploy/jobs has examples"
                                           : MissingRemedy(path));
    return JobFile();
  }
  if (!size.ok()) return fail(size.status());
  if (IsSpecialFile(path)) {
    problems->Add(Place{path}, "a job file cannot be a pipe, a socket or a device",
                  "it may be read again to continue the job: save it as a file");
    return JobFile();
  }
  if (*size > kMaxJobFileBytes) {
    problems->Add(Place{path},
                  absl::StrCat("a job file of ", *size, " bytes is larger than the limit of ",
                               kMaxJobFileBytes),
                  "is it a data file?");
    return JobFile();
  }
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return fail(text.status());
  const absl::StatusOr<std::string> absolute = AbsolutePath(path);
  if (!absolute.ok()) return fail(absolute.status());
  return ParseJob(*text, path, DirectoryOf(*absolute), options, problems);
}

}  // namespace mu
