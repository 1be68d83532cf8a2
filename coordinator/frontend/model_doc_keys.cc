#include "coordinator/frontend/model_doc_keys.h"

#include "common/base/check.h"

namespace mu {
namespace {

using Field = google::protobuf::FieldDescriptor;

std::string TypeOf(const Field* field) {
  const bool many = field->is_repeated();
  switch (field->cpp_type()) {
    case Field::CPPTYPE_MESSAGE:
      return many ? "list of maps" : "map";
    case Field::CPPTYPE_STRING:
      return many ? "list of texts" : "text";
    case Field::CPPTYPE_BOOL:
      return "true or false";
    case Field::CPPTYPE_FLOAT:
    case Field::CPPTYPE_DOUBLE:
      return many ? "list of numbers" : "number";
    default:
      return many ? "list of whole numbers" : "whole number";
  }
}

}  // namespace

void AddKeys(const google::protobuf::Descriptor* message, const std::string& prefix,
             std::initializer_list<KeyText> texts, ModelDoc* doc) {
  for (const KeyText& text : texts) {
    const Field* const field = message->FindFieldByName(text.key);
    MU_CHECK(field != nullptr);
    doc->keys.push_back({prefix + text.key, TypeOf(field), text.default_value, text.meaning});
  }
}

void AddFeatureKeys(const std::string& prefix, ModelDoc* doc) {
  AddKeys(pb::FeatureProto::descriptor(), prefix,
          {{"column", "",
            "the column's name. In `criteo_tsv`: `dense` (13 numbers) and `ids` (26 ids); in "
            "`libsvm`: `features`; in `libffm`: `field_0`, `field_1`, ..."},
           {"kind", "number",
            "`number`; `id`: one id, of a column of kind `id`, `hash`, `vocabulary`, `class`, "
            "`bucket` or `cross`; `list`: such a column (no `cross`) with a `separator` (`csv`) or "
            "`list: true` (`jsonl`, `tfrecord`), whose vectors are added up; `weighted_list`: the "
            "same with a weight for each vector (`weight_separator`, `weight_field`), as `libsvm` "
            "and `libffm` give them"},
           {"size", "one", "`number`, `id`: how many a record has; each id has a table of its own"},
           {"rows", "none",
            "`id` and lists (required): rows of the table; ids must be below it. `hash` columns "
            "and `criteo_tsv` hash into so many buckets"},
           {"mean", "0", "`number`: subtracted from it"},
           {"stddev", "1", "`number`: it is then divided by it"}},
          doc);
}

}  // namespace mu
