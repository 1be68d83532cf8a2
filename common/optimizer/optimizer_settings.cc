#include "common/optimizer/optimizer_settings.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"

namespace mu {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using muster::OptimizerProto;
using Range = OptimizerKey::Range;

// The message of the kind that is set, and its fields.
class Settings {
 public:
  Settings(OptimizerProto* optimizer, const OptimizerKind& kind)
      : message_(optimizer->GetReflection()->MutableMessage(
            optimizer, optimizer->GetDescriptor()->FindFieldByName(kind.name))),
        reflection_(message_->GetReflection()) {}

  const FieldDescriptor* Field(const OptimizerKey& key) const {
    const FieldDescriptor* field = message_->GetDescriptor()->FindFieldByName(key.name);
    MU_CHECK(field != nullptr);
    return field;
  }
  // A field without presence is left out if it is 0.
  bool IsSet(const OptimizerKey& key) const { return reflection_->HasField(*message_, Field(key)); }
  float Number(const OptimizerKey& key) const {
    return reflection_->GetFloat(*message_, Field(key));
  }
  std::string Text(const OptimizerKey& key) const {
    return reflection_->GetString(*message_, Field(key));
  }
  void SetNumber(const OptimizerKey& key, float value) {
    reflection_->SetFloat(message_, Field(key), value);
  }
  void SetDefault(const OptimizerKey& key) {
    switch (key.range) {
      case Range::kFlag:
        return reflection_->SetBool(message_, Field(key), key.fallback != 0);
      case Range::kChoice:
        return reflection_->SetString(message_, Field(key), key.choices[0]);
      default:
        return SetNumber(key, static_cast<float>(key.fallback));
    }
  }
  bool HasUnknownFields() const { return !reflection_->GetUnknownFields(*message_).empty(); }

 private:
  Message* const message_;
  const google::protobuf::Reflection* const reflection_;
};

std::string NumberProblem(const OptimizerKey& key, float value) {
  // Steps flush smaller numbers to 0, and what is above 0 may be what one divides by.
  constexpr float kLeast = std::numeric_limits<float>::min();
  if (!std::isfinite(value)) return "must be a finite number";
  switch (key.range) {
    case Range::kAboveZero:
      if (!(value > 0)) return "must be above 0";
      break;
    case Range::kNotNegative:
      if (value < 0) return "must not be negative";
      break;
    case Range::kBelowOne:
      if (value < 0 || value >= 1) return "must be from 0 to below 1";
      break;
    default:
      return "";
  }
  if (value != 0 && value < kLeast)
    return absl::StrCat("must be at least ", kLeast, " if it is not 0");
  return "";
}

std::string ProblemOf(const Settings& settings, const OptimizerKey& key, std::string* given) {
  if (key.range == Range::kFlag) return "";
  if (key.range == Range::kChoice) {
    const std::string text = settings.Text(key);
    if (std::find(key.choices.begin(), key.choices.end(), text) != key.choices.end()) return "";
    *given = text;
    return absl::StrCat("must be ", absl::StrJoin(key.choices, " or "));
  }
  *given = absl::StrCat(settings.Number(key));
  return NumberProblem(key, settings.Number(key));
}

std::string RemedyOf(const OptimizerKey& key) {
  if (*key.usual != '\0') return key.usual;
  return absl::StrCat("leave it out for ", DefaultText(key));
}

}  // namespace

std::string DefaultText(const OptimizerKey& key) {
  switch (key.range) {
    case Range::kFlag:
      return key.fallback != 0 ? "true" : "false";
    case Range::kChoice:
      return key.choices[0];
    default:
      return absl::StrCat(key.fallback);
  }
}

OptimizerProto WithDefaults(OptimizerProto optimizer) {
  const OptimizerKind* kind = FindOptimizer(optimizer.kind_case());
  if (kind == nullptr) return optimizer;
  Settings settings(&optimizer, *kind);
  for (const OptimizerKey& key : kind->keys) {
    if (!settings.IsSet(key)) settings.SetDefault(key);
  }
  return optimizer;
}

std::vector<OptimizerProblem> ProblemsOf(const OptimizerProto& optimizer) {
  std::vector<OptimizerProblem> problems;
  const OptimizerKind* kind = FindOptimizer(optimizer.kind_case());
  if (kind == nullptr) return problems;
  OptimizerProto full = WithDefaults(optimizer);
  const Settings settings(&full, *kind);
  for (const OptimizerKey& key : kind->keys) {
    OptimizerProblem problem{absl::StrCat(kind->name, ".", key.name), "", RemedyOf(key)};
    problem.message = ProblemOf(settings, key, &problem.given);
    if (!problem.message.empty()) problems.push_back(std::move(problem));
  }
  if (problems.empty() && kind->problem != nullptr) {
    if (std::string together = kind->problem(full); !together.empty())
      problems.push_back({kind->name, std::move(together), ""});
  }
  return problems;
}

absl::Status CheckOptimizer(const OptimizerProto& optimizer) {
  const OptimizerKind* kind = FindOptimizer(optimizer.kind_case());
  OptimizerProto copy = optimizer;
  // Of a newer program: parsed, a kind that this one does not know looks like no optimizer, and a
  // number of a known kind would be left out.
  if (!optimizer.GetReflection()->GetUnknownFields(optimizer).empty() ||
      (kind != nullptr && Settings(&copy, *kind).HasUnknownFields())) {
    return absl::InvalidArgumentError(
        "its optimizer is of a kind that this program does not know, or has a setting that it does "
        "not know; start all daemons from the same version");
  }
  const std::vector<OptimizerProblem> problems = ProblemsOf(optimizer);
  if (problems.empty()) return absl::OkStatus();
  const OptimizerProblem& first = problems.front();
  const size_t dot = first.key.find('.');
  return absl::InvalidArgumentError(
      absl::StrCat(kind->name, ": ",
                   dot == std::string::npos ? "" : absl::StrCat(first.key.substr(dot + 1), " "),
                   first.message, first.given.empty() ? "" : absl::StrCat(", got ", first.given)));
}

SlotLayouts SlotsOf(const OptimizerProto& optimizer, uint64_t width) {
  const OptimizerKind* kind = FindOptimizer(optimizer.kind_case());
  return kind == nullptr ? SlotLayouts() : kind->slots(WithDefaults(optimizer), width);
}

std::string OptimizerName(const OptimizerProto& optimizer) {
  const OptimizerKind* kind = FindOptimizer(optimizer.kind_case());
  return kind == nullptr ? "no optimizer" : kind->name;
}

std::string DescribeOptimizer(const OptimizerProto& optimizer) {
  std::vector<std::string> names;
  for (const SlotLayout& slot : SlotsOf(optimizer, 2)) names.push_back(slot.name);
  return absl::StrCat(OptimizerName(optimizer), names.empty() ? "" : " with slots ",
                      absl::StrJoin(names, ", "));
}

OptimizerProto ScaleLearningRate(OptimizerProto optimizer, float factor) {
  const OptimizerKind* kind = FindOptimizer(optimizer.kind_case());
  if (kind == nullptr) return optimizer;
  Settings settings(&optimizer, *kind);
  for (const OptimizerKey& key : kind->keys) {
    if (std::string("learning_rate") == key.name)
      settings.SetNumber(key, settings.Number(key) * factor);
  }
  return optimizer;
}

}  // namespace mu
