#include "coordinator/training/job_columns.h"

#include <google/protobuf/reflection.h>

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace mu {
namespace {

using Column = pb::CsvColumnProto;

constexpr std::pair<const char*, Column::Kind> kKinds[] = {
    {"number", Column::NUMBER}, {"id", Column::ID},       {"hash", Column::HASH},
    {"label", Column::LABEL},   {"class", Column::CLASS}, {"vocabulary", Column::VOCABULARY},
    {"bucket", Column::BUCKET}, {"cross", Column::CROSS}};

// Text columns without `buckets` and criteo data for a model that hashes itself get this many.
constexpr int64_t kDefaultHashBuckets = 100'000;

// The rows of the table that a model has for one of its features; 0: none. Features are lists of
// FeatureProto in the model's configuration, whatever their keys are.
int64_t RowsOf(const pb::ModelProto& model, const std::string& column) {
  const auto* const kind = model.GetDescriptor()->FindFieldByNumber(model.kind_case());
  if (kind == nullptr) return 0;
  const google::protobuf::Message& config = model.GetReflection()->GetMessage(model, kind);
  for (int i = 0; i < config.GetDescriptor()->field_count(); ++i) {
    const auto* const field = config.GetDescriptor()->field(i);
    if (!field->is_repeated() || field->message_type() != pb::FeatureProto::descriptor()) continue;
    for (const pb::FeatureProto& feature :
         config.GetReflection()->GetRepeatedFieldRef<pb::FeatureProto>(config, field)) {
      if (feature.column() == column) return feature.rows();
    }
  }
  return 0;
}

// Below `path`: fields that name columns are called column, or something_column.
std::string KeyIn(const google::protobuf::Message& config, const std::string& path,
                  const std::string& column) {
  using Field = google::protobuf::FieldDescriptor;
  const auto* const reflection = config.GetReflection();
  std::vector<const Field*> fields;
  reflection->ListFields(config, &fields);
  for (const Field* const field : fields) {
    const std::string key = absl::StrCat(path, ".", field->name());
    if (field->cpp_type() == Field::CPPTYPE_STRING && !field->is_repeated() &&
        (field->name() == "column" || absl::EndsWith(field->name(), "_column")) &&
        reflection->GetString(config, field) == column) {
      return key;
    }
    if (field->cpp_type() != Field::CPPTYPE_MESSAGE || !field->is_repeated()) continue;
    for (int i = 0; i < reflection->FieldSize(config, field); ++i) {
      const std::string found = KeyIn(reflection->GetRepeatedMessage(config, field, i),
                                      absl::StrCat(key, "[", i, "]"), column);
      if (!found.empty()) return found;
    }
  }
  return "";
}

}  // namespace

std::string KeyOfColumn(const pb::ModelProto& model, const std::string& column) {
  const auto* const kind = model.GetDescriptor()->FindFieldByNumber(model.kind_case());
  if (kind == nullptr) return "";
  return KeyIn(model.GetReflection()->GetMessage(model, kind), absl::StrCat("model.", kind->name()),
               column);
}

int64_t BucketsOf(const pb::ModelProto& model, const std::string& column) {
  const int64_t rows = model.has_dlrm() ? model.dlrm().hash_buckets() : RowsOf(model, column);
  return rows > 0 ? rows : kDefaultHashBuckets;
}

namespace {

absl::Status SetKind(const pb::JobColumnProto& from, Column* column) {
  for (const auto& [name, kind] : kKinds) {
    if (from.kind() != name) continue;
    column->set_kind(kind);
    return absl::OkStatus();
  }
  std::string names;
  for (const auto& [name, kind] : kKinds) absl::StrAppend(&names, names.empty() ? "" : ", ", name);
  return absl::InvalidArgumentError(absl::StrCat(
      "column '", from.name(), "' has the unknown kind '", from.kind(), "'; use one of ", names));
}

// What only some kinds have.
void SetRules(const pb::JobColumnProto& from, const pb::ModelProto& model, Column* column) {
  const bool hashed = column->kind() == Column::HASH || column->kind() == Column::CROSS;
  column->set_buckets(from.has_buckets() ? from.buckets()
                      : hashed           ? BucketsOf(model, from.name())
                                         : 0);
  *column->mutable_positive() = from.positive();
  *column->mutable_classes() = from.classes();
  *column->mutable_boundaries() = from.boundaries();
  *column->mutable_of() = from.of();
  if (from.has_seed()) column->set_seed(from.seed());
  if (from.has_mean()) column->set_mean(from.mean());
  if (from.has_stddev()) column->set_stddev(from.stddev());
  if (column->kind() != Column::VOCABULARY) return;
  column->set_vocabulary_file(from.vocabulary());
  column->set_oov_buckets(from.has_oov_buckets() ? from.oov_buckets() : 1);
}

// One value or several, and what stands for none.
void SetForm(const pb::JobColumnProto& from, Column* column) {
  column->set_missing_value(from.missing_value());
  if (from.has_missing_id()) column->set_missing_id(from.missing_id());
  column->set_required(from.required());
  column->set_separator(from.separator());
  column->set_list(from.list());
  column->set_weight_separator(from.weight_separator());
  column->set_weight_field(from.weight_field());
  column->set_length(from.length());
  column->set_padding(from.padding());
  column->set_truncate(from.truncate() == "begin" ? Column::TRUNCATE_BEGIN : Column::TRUNCATE_END);
  for (const uint32_t size : from.shape()) column->add_shape(size);
}

}  // namespace

absl::Status FillColumns(const pb::SourceProto& source, const pb::ModelProto& model,
                         FieldColumnList* columns) {
  for (const pb::JobColumnProto& from : source.columns()) {
    Column* const column = columns->Add();
    column->set_name(from.name());
    column->set_index(from.has_index() ? from.index() : -1);
    if (from.has_field()) column->set_field(from.field());
    MU_RETURN_IF_ERROR(SetKind(from, column));
    SetRules(from, model, column);
    SetForm(from, column);
  }
  return absl::OkStatus();
}

}  // namespace mu
