// What the models of sequences share: a column of ids [batch, length], padded at the end, and one
// of how many of them are there.
#pragma once

#include <string>
#include <vector>

#include "coordinator/frontend/config_rules.h"

namespace mu {

inline std::string LengthColumn(const std::string& sequence) { return sequence + ".length"; }

// The two columns, as the data has them.
std::vector<pb::ColumnSchema> SequenceColumns(const std::string& sequence, int64_t length);

// Adds what is wrong with the key `length`.
void CheckLength(int64_t length, ConfigRules* rules);

}  // namespace mu
