#include "common/records/example_parser.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/records/wire_reader.h"

namespace mu {
namespace {

constexpr uint32_t kFeatures = 1, kFeature = 1, kKey = 1, kValue = 2, kItem = 1;

bool ReadBytes(absl::string_view list, std::vector<absl::string_view>* values) {
  WireReader reader(list);
  while (reader.Next()) {
    if (reader.Is(kItem, WireReader::kBytes)) values->push_back(reader.bytes());
  }
  return reader.ok();
}

bool ReadFloats(absl::string_view list, std::vector<float>* values) {
  WireReader reader(list);
  while (reader.Next()) {
    const bool one = reader.Is(kItem, WireReader::kFixed32);
    if (!one && !reader.Is(kItem, WireReader::kBytes)) continue;
    const absl::string_view bytes = reader.bytes();
    if (bytes.size() % sizeof(float) != 0) return false;
    const size_t before = values->size();
    values->resize(before + bytes.size() / sizeof(float));
    std::memcpy(values->data() + before, bytes.data(), bytes.size());
  }
  return reader.ok();
}

bool ReadInts(absl::string_view list, std::vector<int64_t>* values) {
  WireReader reader(list);
  while (reader.Next()) {
    if (reader.Is(kItem, WireReader::kVarint)) {
      values->push_back(static_cast<int64_t>(reader.number()));
    } else if (reader.Is(kItem, WireReader::kBytes)) {
      absl::string_view packed = reader.bytes();
      while (!packed.empty()) {
        uint64_t value = 0;
        if (!WireReader::TakeVarint(&packed, &value)) return false;
        values->push_back(static_cast<int64_t>(value));
      }
    }
  }
  return reader.ok();
}

// An empty text is a missing value, as in every format.
bool IsMissing(absl::string_view text) { return text.empty(); }
template <typename T>
bool IsMissing(T /*number*/) {
  return false;
}

}  // namespace

ExampleParser::ExampleParser(std::shared_ptr<const FieldColumns> columns)
    : columns_(std::move(columns)), slots_(*columns_) {}

// Of a key that stands there twice the last counts, as in every reader of protobuf's maps.
bool ExampleParser::LocateEntry(absl::string_view entry, Features* features) const {
  absl::string_view key, value;
  WireReader reader(entry);
  while (reader.Next()) {
    if (reader.Is(kKey, WireReader::kBytes)) key = reader.bytes();
    if (reader.Is(kValue, WireReader::kBytes)) value = reader.bytes();
  }
  if (!reader.ok()) return false;
  const int slot = slots_.Find(key);
  if (slot < 0) return true;
  Feature& feature = (*features)[static_cast<size_t>(slot)];
  feature = Feature();
  WireReader lists(value);
  while (lists.Next()) {
    if (lists.type() != WireReader::kBytes || lists.field() > 3) continue;
    feature.type = static_cast<Feature::Type>(lists.field());
    feature.list = lists.bytes();
  }
  return lists.ok();
}

bool ExampleParser::Locate(absl::string_view message, Features* features) const {
  features->assign(static_cast<size_t>(slots_.size()), Feature());
  WireReader example(message);
  while (example.Next()) {
    if (!example.Is(kFeatures, WireReader::kBytes)) continue;
    WireReader entries(example.bytes());
    while (entries.Next()) {
      if (entries.Is(kFeature, WireReader::kBytes) && !LocateEntry(entries.bytes(), features))
        return false;
    }
    if (!entries.ok()) return false;
  }
  return example.ok();
}

bool ExampleParser::Parse(absl::string_view message, ColumnSet* columns, std::string* error) const {
  static thread_local Features features;
  if (!Locate(message, &features)) {
    *error = "the record is no tf.Example message";
    return false;
  }
  FieldRow row(*columns_, columns, error);
  for (int column = 0; column < columns_->size(); ++column) {
    if (!columns_->is_cross(column) && !Store(column, features, &row, error)) return false;
  }
  return row.Finish();
}

bool ExampleParser::Store(int column, const Features& features, FieldRow* row,
                          std::string* error) const {
  static thread_local std::vector<absl::string_view> texts;
  static thread_local std::vector<float> floats;
  static thread_local std::vector<int64_t> ints;
  const Feature& feature = features[static_cast<size_t>(slots_.of(column))];
  bool good = true;
  texts.clear();
  floats.clear();
  ints.clear();
  switch (feature.type) {
    case Feature::kNone:
      return row->Missing(column);
    case Feature::kBytes:
      good = ReadBytes(feature.list, &texts);
      if (good) return StoreValues(column, texts, features, row, error);
      break;
    case Feature::kFloats:
      good = ReadFloats(feature.list, &floats);
      if (good) return StoreValues(column, floats, features, row, error);
      break;
    case Feature::kInts:
      good = ReadInts(feature.list, &ints);
      if (good) return StoreValues(column, ints, features, row, error);
      break;
  }
  *error = absl::StrCat("column ", columns_->column(column).name(), ": the feature is damaged");
  return false;
}

bool ExampleParser::ReadWeights(int column, const Features& features, size_t count,
                                std::vector<float>* weights, std::string* error) const {
  weights->clear();
  const int slot = slots_.weights_of(column);
  if (slot < 0) {
    weights->assign(count, 1.0f);
    return true;
  }
  const Feature& feature = features[static_cast<size_t>(slot)];
  bool good = feature.type == Feature::kFloats && ReadFloats(feature.list, weights) &&
              weights->size() == count;
  for (const float weight : *weights) good = good && weight - weight == 0;
  if (good) return true;
  const muster::CsvColumnProto& proto = columns_->column(column).proto();
  *error = absl::StrCat("column ", proto.name(), ": the feature \"", proto.weight_field(),
                        "\" must have as many finite floats as there are values, ", count);
  return false;
}

template <typename T>
bool ExampleParser::StoreValues(int column, const std::vector<T>& values, const Features& features,
                                FieldRow* row, std::string* error) const {
  static thread_local std::vector<float> weights;
  if (values.empty()) return row->Missing(column);
  if (!columns_->has_several(column)) {
    if (values.size() == 1)
      return IsMissing(values[0]) ? row->Missing(column) : row->Set(column, values[0]);
    *error = absl::StrCat("column ", columns_->column(column).name(), ": the feature has ",
                          values.size(), " values; write list: true for several values");
    return false;
  }
  if (!ReadWeights(column, features, values.size(), &weights, error)) return false;
  row->Begin(column);
  for (size_t i = 0; i < values.size(); ++i) {
    if (!(IsMissing(values[i]) ? row->AddMissing(column)
                               : row->Add(column, values[i], weights[i]))) {
      return false;
    }
  }
  return row->End(column);
}

}  // namespace mu
