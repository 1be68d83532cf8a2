#include "common/records/field_slots.h"

namespace mu {

FieldSlots::FieldSlots(const FieldColumns& columns) {
  for (int i = 0; i < columns.size(); ++i) {
    const muster::CsvColumnProto& proto = columns.column(i).proto();
    const std::string& field = proto.field().empty() ? proto.name() : proto.field();
    of_.push_back(columns.is_cross(i) ? -1 : Slot(field));
    weights_of_.push_back(proto.weight_field().empty() ? -1 : Slot(proto.weight_field()));
  }
}

}  // namespace mu
