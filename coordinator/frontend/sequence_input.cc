#include "coordinator/frontend/sequence_input.h"

namespace mu {

std::vector<pb::ColumnSchema> SequenceColumns(const std::string& sequence, int64_t length) {
  return {MakeColumn(sequence, kInt64, {kUnknownDim, length}),
          MakeColumn(LengthColumn(sequence), kInt64, {kUnknownDim})};
}

void CheckLength(int64_t length, ConfigRules* rules) {
  rules->Range("length", length, 2, 1 << 16, "the same as that of the data's column", true);
}

}  // namespace mu
