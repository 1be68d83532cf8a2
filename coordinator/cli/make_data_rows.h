// The rows of the synthetic click log: Criteo's shape, with click probabilities that are known. Row
// i depends on (seed, i) alone. They are those of a reference in another language, whose checksum
// tests/coordinator/make_data holds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mu {

// Immutable, therefore thread safe. Costs some 0.1 s and 20 MB to make: what frequent values stand
// for is worked out once.
class ClickLogRows {
 public:
  explicit ClickLogRows(uint64_t seed);

  struct Row {
    float probability;  // of a click
    bool click;
  };
  // Appends the line of row `index`, with its newline: label, 13 integers, 26 categoricals, tab
  // separated.
  Row Append(uint64_t index, std::string* lines) const;

 private:
  struct Field {
    int cardinality;
    double mass;          // of the power law before it is cut
    uint64_t rank_state;  // hash states after the keys that do not change
    uint64_t effect_state;
    uint64_t pair_state;
    uint64_t token_state;
    std::vector<double> effects;       // of the first ranks
    std::vector<uint64_t> tokens;      // their eight digits, as characters
    std::vector<double> pair_factors;  // four per rank, only of fields that occur in pairs
  };

  double Effect(const Field& field, int64_t rank) const;
  uint64_t Token(const Field& field, int64_t rank) const;
  double PairFactor(const Field& field, int64_t rank, int k) const;
  double Dot(const Field& a, int64_t rank_a, const Field& b, int64_t rank_b) const;

  std::vector<Field> fields_;
  uint64_t integer_states_[13];
  uint64_t missing_states_[13];
  uint64_t label_state_;
};

}  // namespace mu
