#include "coordinator/training/trained_model.h"

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/number_text.h"
#include "common/base/status.h"
#include "common/env/file.h"
#include "coordinator/frontend/model_doc.h"
#include "coordinator/frontend/paper_factory.h"
#include "coordinator/training/job_data.h"
#include "coordinator/training/job_record.h"

namespace mu {
namespace {

using google::protobuf::Message;
using Field = google::protobuf::FieldDescriptor;

constexpr char kNone[] = "none";

// Of no concern to who takes trained values, by the field's full name: only training reads it, it
// names what predictions are compared with, or it says where the same is computed.
bool ChangesNoPrediction(const Field* field) {
  static const auto* const kFields = new std::set<std::string>{
      "muster.MatrixFactorizationProto.rating_column",
      "muster.MatrixFactorizationProto.l2",
      "muster.FeatureModelProto.label_column",
      "muster.FeatureModelProto.product",
      "muster.CnnProto.label_column",
      "muster.CnnProto.dropout",
      "muster.ResNetProto.label_column",
      "muster.TwoTowerProto.negatives",
      "muster.TwoTowerProto.sampled",
      "muster.TwoTowerProto.frequency_column",
      "muster.TwoTowerProto.label_column",
      "muster.DinProto.label_column",
      "muster.SasRecProto.dropout",
      "muster.SasRecProto.item_column",  // of candidates, which training does not read
      "muster.SasRecProto.label_column",
      "muster.MmoeProto.tasks",  // their variables have their names
  };
  return kFields->contains(std::string(field->full_name()));
}

// The shortest text that is read as this float.
std::string ToText(float value) {
  const std::string text = absl::StrCat(value);
  float read = 0;
  return absl::SimpleAtof(text, &read) && read == value ? text : absl::StrFormat("%.9g", value);
}

// One value of a field, the one at `index` if it is repeated (-1: it is not).
std::string ValueText(const Message& message, const Field* field, int index) {
  const auto* const reflection = message.GetReflection();
  const bool many = index >= 0;
  switch (field->cpp_type()) {
    case Field::CPPTYPE_STRING:
      return many ? reflection->GetRepeatedString(message, field, index)
                  : reflection->GetString(message, field);
    case Field::CPPTYPE_FLOAT:
      return ToText(many ? reflection->GetRepeatedFloat(message, field, index)
                         : reflection->GetFloat(message, field));
    case Field::CPPTYPE_DOUBLE:
      return NumberText(many ? reflection->GetRepeatedDouble(message, field, index)
                             : reflection->GetDouble(message, field));
    case Field::CPPTYPE_UINT32:
      return absl::StrCat(many ? reflection->GetRepeatedUInt32(message, field, index)
                               : reflection->GetUInt32(message, field));
    case Field::CPPTYPE_INT64:
      return absl::StrCat(many ? reflection->GetRepeatedInt64(message, field, index)
                               : reflection->GetInt64(message, field));
    default:  // no key of a model has another type
      return message.ShortDebugString();
  }
}

class Comparison {
 public:
  Comparison(const std::string& model, const std::string& where, ModelDifferences* differences)
      : where_(where), differences_(differences) {
    for (const ModelDoc& doc : BuiltinModelDocs()) {
      if (doc.name != model) continue;
      for (const ModelKeyDoc& key : doc.keys) {
        defaults_[key.key] = key.default_value;
        // The docs describe the columns of an item below those of a user.
        absl::string_view rest = key.key;
        if (absl::ConsumePrefix(&rest, "user."))
          defaults_.emplace(absl::StrCat("item.", rest), key.default_value);
      }
    }
  }

  // `doc_key`: the key without the places in lists.
  void Compare(const Message& now, const Message& before, const std::string& key,
               const std::string& doc_key) {
    const auto* const descriptor = now.GetDescriptor();
    for (int i = 0; i < descriptor->field_count(); ++i) {
      const Field* const field = descriptor->field(i);
      if (ChangesNoPrediction(field)) continue;
      const std::string name = absl::StrCat(key, ".", field->name());
      const std::string doc_name =
          doc_key.empty() ? std::string(field->name()) : absl::StrCat(doc_key, ".", field->name());
      if (field->cpp_type() == Field::CPPTYPE_MESSAGE) {
        CompareLists(now, before, field, name, doc_name);
        continue;
      }
      const std::string is = TextOf(now, field, doc_name), was = TextOf(before, field, doc_name);
      if (is != was) Add(name, is, was);
    }
  }

 private:
  // All messages within a model's are in lists.
  void CompareLists(const Message& now, const Message& before, const Field* field,
                    const std::string& name, const std::string& doc_name) {
    const auto* const reflection = now.GetReflection();
    const int is = reflection->FieldSize(now, field), was = reflection->FieldSize(before, field);
    if (is != was) return Add(name, absl::StrCat(is, " long"), absl::StrCat(was, " long"));
    for (int i = 0; i < is; ++i) {
      Compare(reflection->GetRepeatedMessage(now, field, i),
              reflection->GetRepeatedMessage(before, field, i), absl::StrCat(name, "[", i, "]"),
              doc_name);
    }
  }

  std::string TextOf(const Message& message, const Field* field, const std::string& doc_name) {
    if (field->is_repeated()) {
      std::vector<std::string> values;
      for (int i = 0; i < message.GetReflection()->FieldSize(message, field); ++i)
        values.push_back(ValueText(message, field, i));
      return values.empty() ? kNone : absl::StrCat("[", absl::StrJoin(values, ", "), "]");
    }
    const std::string text = ValueText(message, field, -1);
    const bool is_set = message.GetReflection()->HasField(message, field) && !text.empty();
    if (is_set) return text;
    const auto by_default = defaults_.find(doc_name);
    return by_default == defaults_.end() || by_default->second.empty() ? text : by_default->second;
  }

  void Add(const std::string& key, const std::string& is, const std::string& was) {
    differences_->problems.push_back(
        absl::StrCat(key, ": is ", is, ", in ", where_, " ", was,
                     ": the values were trained for another function; write it as it is there"));
  }

  const std::string where_;
  ModelDifferences* const differences_;
  std::map<std::string, std::string> defaults_;  // by key; empty: it has none
};

// Of a user's own model, key by key.
std::vector<std::string> CompareOptions(const std::string& model, const std::string& now,
                                        const std::string& before, const std::string& where) {
  using Json = nlohmann::json;
  const Json is = Json::parse(now, nullptr, /*allow_exceptions=*/false);
  const Json was = Json::parse(before, nullptr, /*allow_exceptions=*/false);
  std::vector<std::string> notes;
  if (is == was || !is.is_object() || !was.is_object()) return notes;
  std::set<std::string> keys;
  for (const Json* options : {&is, &was}) {
    for (const auto& [key, value] : options->items()) keys.insert(key);
  }
  const auto shown = [](const Json& options, const std::string& key) -> std::string {
    const auto found = options.find(key);
    if (found == options.end()) return "not given";
    return found->dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  for (const std::string& key : keys) {
    const std::string has = shown(is, key), had = shown(was, key);
    if (has == had) continue;
    notes.push_back(absl::StrCat("model.", model, ".", key, ": is ", has, ", in ", where, " ", had,
                                 ": unless only training reads it, the values were trained for "
                                 "another function"));
  }
  return notes;
}

}  // namespace

ModelDifferences CompareModels(const TrainedColumns& trained, const pb::ModelProto& model) {
  ModelDifferences differences;
  const std::string name = ModelName(model), before = ModelName(trained.model);
  if (name.empty() || before.empty()) return differences;
  const std::string where = trained.record.empty() ? "the job" : trained.record;
  if (name != before || model.kind_case() != trained.model.kind_case()) {
    differences.problems.push_back(absl::StrCat("model: is ", name, ", in ", where, " ", before,
                                                ": the values were trained for another function; "
                                                "write the model as it is there"));
    return differences;
  }
  if (model.has_custom()) {
    differences.notes =
        CompareOptions(name, model.custom().json(), trained.model.custom().json(), where);
    return differences;
  }
  const Field* const kind = pb::ModelProto::descriptor()->FindFieldByNumber(model.kind_case());
  const auto* const reflection = model.GetReflection();
  Comparison(name, where, &differences)
      .Compare(reflection->GetMessage(model, kind), reflection->GetMessage(trained.model, kind),
               absl::StrCat("model.", name), "");
  return differences;
}

absl::Status CheckEvaluatesWhatWasTrained(const pb::JobProto& job, const ModelRegistry& models,
                                          const std::string& checkpoint,
                                          std::vector<std::string>* notes) {
  absl::StatusOr<TrainedColumns> trained = TrainedColumnsOfCheckpoint(checkpoint);
  if (absl::IsFailedPrecondition(trained.status())) {
    trained = TrainedColumnsOfRun(DirectoryOf(DirectoryOf(checkpoint)));
    if (trained.ok()) {
      notes->push_back(absl::StrCat(
          checkpoint, " is older than the run that ", trained->record,
          " describes, and it is not known what it was trained with: its metrics, and those of "
          "other checkpoints of before that run, are right only if that was the same"));
    }
  }
  if (absl::IsNotFound(trained.status())) return absl::OkStatus();  // only the user knows
  MU_RETURN_IF_ERROR(trained.status());
  std::vector<std::string> problems = CompareModels(*trained, job.model()).problems;
  const auto model = models.Create(job.model());
  const auto dataset = DatasetOf(job, DataPurpose::kEval);
  PaperFactory paper;
  if (model.ok() && dataset.ok() && (*model)->Create(paper).ok()) {
    for (std::string& problem : CompareColumns(*trained, *dataset, FingerprintsOf(*dataset),
                                               ColumnsReadBy(**model, DataPurpose::kEval)))
      problems.push_back(std::move(problem));
  }
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
}

}  // namespace mu
