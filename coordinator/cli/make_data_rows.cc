#include "coordinator/cli/make_data_rows.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "common/base/hash.h"

namespace mu {
namespace {

constexpr int kFields = 26;
constexpr int kIntegers = 13;
constexpr int kCardinality[kFields] = {
    3,    10,   25,    50,    100,   200,   300,   500,   700,    1000,   1500,   2000,   3000,
    5000, 8000, 10000, 15000, 20000, 30000, 50000, 70000, 100000, 200000, 300000, 500000, 1000000};
constexpr int kPairs[][2] = {{2, 5},  {3, 9},  {7, 12},
                             {4, 15}, {8, 20}, {6, 11}};  // fields whose product carries signal
constexpr int kFactors = 4;
constexpr int64_t kCachedRanks = 1 << 16;  // rarer values are worked out when they occur
constexpr double kTail = 0.6, kOffset = 3.0;

// What the hash of a row's property is about; the numbers are the reference's.
enum Purpose : uint64_t { kRank = 1, kEffect, kPair, kInteger, kMissing, kLabel, kToken };

// The hash of several keys is this chain, from the seed on, and Mix64 at its end.
constexpr uint64_t Chain(uint64_t state, uint64_t key) {
  return Mix64((state + kGolden) ^ (key * 0xFF51AFD7ED558CCDull));
}
constexpr uint64_t Hash(uint64_t state, uint64_t key) { return Mix64(Chain(state, key)); }

// Mean 0, variance 1, from four uniforms.
double Normal(uint64_t x) {
  double total = 0;
  for (uint64_t k = 0; k < 4; ++k) total += UnitDouble(Mix64(x + k * kGolden));
  return (total - 2.0) * std::sqrt(3.0);
}

uint64_t HexText(uint32_t value) {
  constexpr char kDigits[] = "0123456789abcdef";
  char text[8];
  for (int i = 7; i >= 0; --i, value >>= 4) text[i] = kDigits[value & 15];
  uint64_t packed;
  std::memcpy(&packed, text, 8);
  return packed;
}

}  // namespace

ClickLogRows::ClickLogRows(uint64_t seed) {
  for (int f = 0; f < kFields; ++f) {
    const auto key = static_cast<uint64_t>(f);
    Field field{.cardinality = kCardinality[f],
                .mass = 1.0 - std::pow(1.0 + kCardinality[f] / kOffset, -kTail),
                .rank_state = Chain(Chain(seed, kRank), key),
                .effect_state = Chain(Chain(seed, kEffect), key),
                .pair_state = Chain(Chain(seed, kPair), key),
                .token_state = Chain(Chain(seed, kToken), key)};
    const bool in_pair =
        std::any_of(std::begin(kPairs), std::end(kPairs),
                    [f](const int(&pair)[2]) { return pair[0] == f || pair[1] == f; });
    const int64_t ranks = std::min<int64_t>(field.cardinality, kCachedRanks);
    std::vector<double> effects, factors;
    std::vector<uint64_t> tokens;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      effects.push_back(Effect(field, rank));
      tokens.push_back(Token(field, rank));
      for (int k = 0; in_pair && k < kFactors; ++k) factors.push_back(PairFactor(field, rank, k));
    }
    field.effects = std::move(effects);
    field.tokens = std::move(tokens);
    field.pair_factors = std::move(factors);
    fields_.push_back(std::move(field));
  }
  for (int j = 0; j < kIntegers; ++j) {
    integer_states_[j] = Chain(Chain(seed, kInteger), static_cast<uint64_t>(j));
    missing_states_[j] = Chain(Chain(seed, kMissing), static_cast<uint64_t>(j));
  }
  label_state_ = Chain(seed, kLabel);
}

double ClickLogRows::Effect(const Field& field, int64_t rank) const {
  if (static_cast<size_t>(rank) < field.effects.size()) return field.effects[rank];
  const double scale = 0.30 * std::min(1.0, std::sqrt(200.0 / (static_cast<double>(rank) + 1.0)));
  return scale * Normal(Hash(field.effect_state, static_cast<uint64_t>(rank)));
}

uint64_t ClickLogRows::Token(const Field& field, int64_t rank) const {
  if (static_cast<size_t>(rank) < field.tokens.size()) return field.tokens[rank];
  return HexText(static_cast<uint32_t>(Hash(field.token_state, static_cast<uint64_t>(rank))));
}

double ClickLogRows::PairFactor(const Field& field, int64_t rank, int k) const {
  const size_t cached = static_cast<size_t>(rank) * kFactors + static_cast<size_t>(k);
  if (cached < field.pair_factors.size()) return field.pair_factors[cached];
  return Normal(
      Hash(Chain(field.pair_state, static_cast<uint64_t>(rank)), static_cast<uint64_t>(k)));
}

double ClickLogRows::Dot(const Field& a, int64_t rank_a, const Field& b, int64_t rank_b) const {
  double dot = 0;
  for (int k = 0; k < kFactors; ++k) dot += PairFactor(a, rank_a, k) * PairFactor(b, rank_b, k);
  return dot;
}

// The order of the floating-point operations is the reference's.
ClickLogRows::Row ClickLogRows::Append(uint64_t index, std::string* lines) const {
  int64_t ranks[kFields];
  double logit = -1.45;
  for (int f = 0; f < kFields; ++f) {  // a truncated power law: few ids are frequent
    const Field& field = fields_[f];
    const double u = UnitDouble(Hash(field.rank_state, index));
    const double rank = kOffset * (std::pow(1.0 - u * field.mass, -1.0 / kTail) - 1.0);
    ranks[f] = std::min<int64_t>(static_cast<int64_t>(rank), field.cardinality - 1);
    logit += Effect(field, ranks[f]);
  }
  for (const auto& [f, g] : kPairs) {
    const double rarer = static_cast<double>(std::max(ranks[f], ranks[g]));
    logit += 0.20 * std::min(1.0, 200.0 / (rarer + 1.0)) *
             Dot(fields_[f], ranks[f], fields_[g], ranks[g]);
  }

  char line[512];
  char* p = line + 1;  // the label comes last
  for (int j = 0; j < kIntegers; ++j) {
    *p++ = '\t';
    if (UnitDouble(Hash(missing_states_[j], index)) < 0.04 * (j % 6)) continue;
    const double value = std::floor(std::exp(1.2 + 1.3 * Normal(Hash(integer_states_[j], index))));
    logit += (j % 2 == 0 ? 0.18 : -0.12) * (std::log1p(value) - 1.4);
    p = std::to_chars(p, p + 20, static_cast<int64_t>(value)).ptr;
  }
  for (int f = 0; f < kFields; ++f) {
    *p++ = '\t';
    const uint64_t token = Token(fields_[f], ranks[f]);
    std::memcpy(p, &token, 8);
    p += 8;
  }
  *p++ = '\n';

  const double probability = 1.0 / (1.0 + std::exp(-logit));
  const bool click = UnitDouble(Hash(label_state_, index)) < probability;
  line[0] = click ? '1' : '0';
  lines->append(line, static_cast<size_t>(p - line));
  return {.probability = static_cast<float>(probability), .click = click};
}

}  // namespace mu
