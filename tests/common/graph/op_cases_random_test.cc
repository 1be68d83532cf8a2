#include "tests/common/graph/op_cases.h"

namespace mu {

void AddRandomCases(OpCases& cases) {
  cases["dropout"] = {
      Accepts({F32({-1, 3})}, {Real("rate", 0.5f), Int("seed", 1), Int("index", 0)},
              {F32({-1, 3})}),
      Refuses({F32({3})}, {Real("rate", 1), Int("seed", 1), Int("index", 0)}, "below 1, got 1"),
      Refuses({F32({3})}, {Real("rate", -0.1f), Int("seed", 1), Int("index", 0)}, "at least 0"),
      Refuses({F32({3})}, {Real("rate", NAN), Int("seed", 1), Int("index", 0)}, "at least 0"),
      Refuses({I64({3})}, {Real("rate", 0.5f), Int("seed", 1), Int("index", 0)}, "must be float32"),
      Refuses({F32({3})}, {Real("rate", 0.5f), Int("seed", 1)}, "lacks attribute \"index\"")};
  cases["random_uniform"] = {
      Accepts({I64({-1, 3})}, {Int("seed", 1), Int("index", 0)}, {F32({-1, 3})}),
      Accepts({F32({})}, {Real("low", -2), Real("high", 3), Int("seed", 1), Int("index", 0)},
              {F32({})}),
      Refuses({F32({2})}, {Real("low", 1), Int("seed", 1), Int("index", 0)}, "[1, 1) is not"),
      Refuses({F32({2})}, {Real("low", NAN), Int("seed", 1), Int("index", 0)}, "is not"),
      Refuses({F32({2})}, {}, "lacks attribute \"seed\"")};
}

}  // namespace mu
