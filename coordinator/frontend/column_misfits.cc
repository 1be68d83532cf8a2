#include "coordinator/frontend/column_misfits.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/graph/dataset_schema.h"
#include "common/graph/nearest_name.h"

namespace mu {
namespace {

// What a record has in a column.
struct Form {
  bool ids = false;
  bool list = false;
  bool weighted = false;
  bool sequence = false;
  Shape shape;  // of one that is no list, with the batch

  bool one() const { return !list && !sequence && shape.rank() < 2; }
  int64_t length() const { return shape.rank() > 1 ? shape[1] : kUnknownDim; }
};

// By name, in the order of names: what the tensors of a schema are together.
std::map<std::string, Form> FormsOf(const std::vector<pb::ColumnSchema>& columns) {
  std::map<std::string, Form> forms;
  for (const pb::ColumnSchema& column : columns) {
    absl::string_view name = column.name();
    if (absl::ConsumeSuffix(&name, ".values")) {
      Form& form = forms[std::string(name)];
      form.list = form.ids = true;
    } else if (absl::ConsumeSuffix(&name, ".weights")) {
      forms[std::string(name)].weighted = true;
    } else if (absl::ConsumeSuffix(&name, ".length")) {
      forms[std::string(name)].sequence = true;
    } else if (!absl::ConsumeSuffix(&name, ".splits")) {
      Form& form = forms[std::string(name)];
      form.ids = column.dtype() == pb::INT64;
      form.shape = Shape(column.shape());
    }
  }
  return forms;
}

std::string ToText(const Form& form) {
  const char* const values = form.ids ? "ids" : "numbers";
  if (form.list) return form.weighted ? "a list of ids with weights" : "a list of ids";
  if (form.sequence) return absl::StrCat("a sequence of ", form.length(), " ", values);
  if (form.one()) return form.ids ? "an id" : "a number";
  std::vector<int64_t> sizes;
  for (int i = 1; i < form.shape.rank(); ++i) sizes.push_back(form.shape[i]);
  return absl::StrCat(values, " of shape [", absl::StrJoin(sizes, ", "), "]");
}

bool Fits(const Form& has, const Form& needs) {
  if (has.list != needs.list || has.ids != needs.ids) return false;
  if (has.list) return has.weighted || !needs.weighted;
  return has.shape == needs.shape && (has.sequence || !needs.sequence);
}

// What to write in the job file. `csv`: the source separates values; others have lists.
std::string RemedyFor(const Form& has, const Form& needs, bool csv) {
  const std::string several = csv ? "`separator`" : "list: true";
  const std::string weights = csv ? "`weight_separator`" : "`weight_field`";
  if (has.ids && !needs.ids) {
    return absl::StrCat("write kind: ", has.list ? "list" : "id",
                        " and `rows` for the feature, or for the column kind: number, of a label "
                        "kind: label");
  }
  if (needs.ids && !has.ids) {
    return "write for the column kind: id, hash, vocabulary, class or bucket, or kind: number for "
           "the feature";
  }
  if (needs.list && has.sequence) return "remove `length` of the column";
  if (needs.list && !has.list) {
    return absl::StrCat("write ", several, needs.weighted ? " and " + weights : "",
                        " for the column, or kind: id for the feature");
  }
  if (needs.list)
    return absl::StrCat("write ", weights, " for the column, or kind: list for the feature");
  if (needs.sequence && has.one())
    return absl::StrCat("write ", several, " and length: ", needs.length(), " for the column");
  if (needs.sequence) return absl::StrCat("write length: ", needs.length(), " for the column");
  if (has.list) {
    return absl::StrCat("write kind: ", has.weighted ? "weighted_list" : "list",
                        " for the feature, or one value a record for the column");
  }
  return "write the same sizes in the model as in `shape` or `length` of the column";
}

// Of ids, those for missing values and padding too: whether all are below the rows that the model
// has for them.
void CheckBound(const pb::CsvColumnProto& column, int64_t bound,
                std::vector<ColumnMisfit>* misfits) {
  const auto add = [&](const char* key, std::string has, std::string remedy) {
    misfits->push_back(
        {column.name(), key,
         absl::StrCat("column \"", column.name(), "\" ", has, ", the model has rows for ", bound),
         std::move(remedy)});
  };
  const std::string smaller =
      absl::StrCat("write an id below ", bound, ", or more rows in the model");
  const bool hashed = column.kind() == pb::CsvColumnProto::HASH;
  const bool missing =
      column.has_missing_id() && !column.required() && column.missing_id() >= bound;
  const bool padded = column.length() > 0 && column.padding() >= bound;
  if (missing) add("missing_id", absl::StrCat("has `missing_id` ", column.missing_id()), smaller);
  if (padded) add("padding", absl::StrCat("has `padding` ", column.padding()), smaller);
  // Ids of the file itself get the model's bound (BoundIds).
  if (column.kind() == pb::CsvColumnProto::ID) return;
  pb::CsvColumnProto plain = column;  // without what is told already
  if (missing || column.required()) plain.clear_missing_id();
  if (padded) plain.clear_length();
  const int64_t own = IdBoundOf(plain);
  if (own <= bound) return;
  if (hashed) {
    add("buckets", absl::StrCat("is hashed into ", column.buckets(), " buckets"),
        absl::StrCat("write buckets: ", bound, ", or more rows in the model"));
  } else {
    add("", absl::StrCat("has ids from 0 to ", own - 1),
        absl::StrCat("write rows: ", own, " in the model"));
  }
}

}  // namespace

std::vector<ColumnMisfit> ColumnMisfits(const Model& model, const pb::DatasetProto& dataset,
                                        DataPurpose purpose) {
  const std::map<std::string, Form> has = FormsOf(SchemaOf(dataset));
  const std::map<std::string, Form> needs = FormsOf(model.ColumnsFor(purpose));
  const std::string data = dataset.name().empty() ? "the data" : dataset.name();
  std::vector<std::string> names;
  for (const auto& [name, form] : has) names.push_back(name);
  std::vector<ColumnMisfit> misfits;
  for (const auto& [name, need] : needs) {
    const auto found = has.find(name);
    if (found == has.end()) {
      misfits.push_back(
          {name, "",
           absl::StrCat(data, " has no column \"", name, "\", ", ToText(need), "; it has ",
                        absl::StrJoin(names, ", "), DidYouMean(name, names)),
           ""});
    } else if (!Fits(found->second, need)) {
      misfits.push_back({name, "",
                         absl::StrCat("column \"", name, "\" of ", data, " is ",
                                      ToText(found->second), ", the model reads ", ToText(need)),
                         RemedyFor(found->second, need, dataset.has_csv())});
    }
  }
  const std::map<std::string, int64_t> bounds = model.IdBounds();
  for (const pb::CsvColumnProto& column : FieldColumnsOf(dataset)) {
    const auto bound = bounds.find(column.name());
    if (bound != bounds.end() && IsIds(column)) CheckBound(column, bound->second, &misfits);
  }
  for (const auto& [column, own] : IdBoundsOfFormat(dataset)) {
    const auto bound = bounds.find(column);
    if (bound == bounds.end() || own <= bound->second) continue;
    misfits.push_back({column, "",
                       absl::StrCat("column \"", column, "\" of ", data, " has ids below ", own,
                                    ", the model has rows for ", bound->second),
                       absl::StrCat("write rows: ", own)});
  }
  return misfits;
}

}  // namespace mu
