#include "coordinator/frontend/config_rules.h"

#include "absl/strings/str_cat.h"

namespace mu {
namespace {

constexpr int64_t kMostWidth = 1 << 16;
constexpr int64_t kMostRows = 1'000'000'000'000;

}  // namespace

void ConfigRules::Add(const std::string& key, std::string message, std::string remedy,
                      bool required) {
  problems_->push_back({key, std::move(message), std::move(remedy), required});
}

void ConfigRules::Column(const std::string& key, const std::string& name) {
  if (name.empty()) Add(key, "must name a column of the data", "", true);
}

void ConfigRules::Range(const std::string& key, int64_t value, int64_t least, int64_t most,
                        const std::string& remedy, bool required) {
  if (value >= least && value <= most) return;
  Add(key, absl::StrCat("must be from ", least, " to ", most, ", not ", value), remedy, required);
}

void ConfigRules::Widths(const std::string& key,
                         const google::protobuf::RepeatedField<uint32_t>& widths) {
  if (widths.empty()) Add(key, "names no layers", "write a list of widths such as [64, 32]", true);
  for (int i = 0; i < widths.size(); ++i)
    Range(absl::StrCat(key, "[", i, "]"), widths[i], 1, kMostWidth);
}

void ConfigRules::Dropout(const std::string& key, float rate) {
  if (rate >= 0 && rate < 1) return;
  Add(key, absl::StrCat("must be from 0 and below 1, not ", rate), "leave it out for none");
}

void ConfigRules::Features(const std::string& key, const FeatureSet::Config& features) {
  std::vector<ModelProblem> found;
  FeatureSet::Check(features, &found);
  // FeatureSet calls its keys "features" and "features[i].KEY".
  for (ModelProblem& problem : found) {
    problem.key = absl::StrCat(key, problem.key.substr(std::string("features").size()));
    problems_->push_back(std::move(problem));
  }
}

void ConfigRules::Rows(const std::string& key, int64_t rows) {
  Range(key, rows, 1, kMostRows, "ids are below it", true);
}

absl::Status FirstProblem(const std::string& model, const std::vector<ModelProblem>& problems) {
  if (problems.empty()) return absl::OkStatus();
  const ModelProblem& first = problems[0];
  return absl::InvalidArgumentError(absl::StrCat("model.", model, ".", first.key, ": ",
                                                 first.message, first.remedy.empty() ? "" : "; ",
                                                 first.remedy));
}

}  // namespace mu
