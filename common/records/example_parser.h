// Messages of tf.Example: named features, each a list of bytes, floats or int64. Their format is
// that of protobuf:
//
//   Example   { Features features = 1; }
//   Features  { map<string, Feature> feature = 1; }
//   Feature   { oneof { BytesList = 1; FloatList = 2; Int64List = 3 } }, each { repeated value = 1
//   }
//
// It is read here by hand, since most features of a message are often not wanted and none needs to
// be copied.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/records/field_columns.h"
#include "common/records/field_slots.h"
#include "common/records/record_parser.h"

namespace mu {

class ExampleParser final : public RecordParser {
 public:
  explicit ExampleParser(std::shared_ptr<const FieldColumns> columns);

  bool Parse(absl::string_view message, ColumnSet* columns, std::string* error) const override;

 private:
  struct Feature {
    enum Type { kNone, kBytes, kFloats, kInts };
    Type type = kNone;
    absl::string_view list;  // of BytesList, FloatList or Int64List
  };
  using Features = std::vector<Feature>;  // by slot

  bool Locate(absl::string_view message, Features* features) const;
  bool LocateEntry(absl::string_view entry, Features* features) const;
  bool Store(int column, const Features& features, FieldRow* row, std::string* error) const;
  bool ReadWeights(int column, const Features& features, size_t count, std::vector<float>* weights,
                   std::string* error) const;
  template <typename T>
  bool StoreValues(int column, const std::vector<T>& values, const Features& features,
                   FieldRow* row, std::string* error) const;

  const std::shared_ptr<const FieldColumns> columns_;
  const FieldSlots slots_;
};

}  // namespace mu
