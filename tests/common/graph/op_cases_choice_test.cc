#include "tests/common/graph/op_cases.h"

namespace mu {

void AddComparisonCases(OpCases& cases) {
  for (const char* op : {"greater", "greater_equal", "less", "less_equal"}) {
    cases[op] = {Accepts({I64({-1, 3}), I64({3})}, {}, {Bool({-1, 3})}),
                 Refuses({F32({2}), I32({2})}, {}, "one type"),
                 Refuses({F32({2}), F32({3})}, {}, "cannot be broadcast"),
                 Refuses({U8({2}), U8({2})}, {}, "must be float32 or int32 or int64")};
  }
  for (const char* op : {"equal", "not_equal"}) {
    cases[op] = {Accepts({U8({2}), U8({})}, {}, {Bool({2})}),
                 Accepts({Bool({2}), Bool({2})}, {}, {Bool({2})}),
                 Refuses({F32({2}), F32({4})}, {}, "cannot be broadcast")};
  }
  for (const char* op : {"logical_and", "logical_or"}) {
    cases[op] = {Accepts({Bool({-1, 3}), Bool({3})}, {}, {Bool({-1, 3})}),
                 Refuses({Bool({2}), F32({2})}, {}, "must be bool"),
                 Refuses({Bool({2}), Bool({3})}, {}, "cannot be broadcast")};
  }
  cases["logical_not"] = {Accepts({Bool({-1})}, {}, {Bool({-1})}),
                          Refuses({U8({2})}, {}, "must be bool")};
  cases["where"] = {Accepts({Bool({-1, 1}), F32({-1, 3}), F32({})}, {}, {F32({-1, 3})}),
                    Accepts({Bool({4, 1, 1}), I64({2, 1}), I64({3})}, {}, {I64({4, 2, 3})}),
                    Accepts({Bool({}), Bool({2}), Bool({1})}, {}, {Bool({2})}),
                    Refuses({F32({2}), F32({2}), F32({2})}, {}, "condition must be bool"),
                    Refuses({Bool({2}), F32({2}), I32({2})}, {}, "one type"),
                    Refuses({Bool({3}), F32({2}), F32({2})}, {}, "cannot be broadcast"),
                    Refuses({Bool({2}), F32({2})}, {}, "takes 3 inputs, got 2")};
}

void AddIntegerCases(OpCases& cases) {
  for (const char* op : {"floor_divide", "modulo"}) {
    cases[op] = {Accepts({I64({-1, 3}), I64({})}, {}, {I64({-1, 3})}),
                 Accepts({I32({2}), I32({2})}, {}, {I32({2})}),
                 Refuses({F32({2}), F32({2})}, {}, "must be int32 or int64"),
                 Refuses({I32({2}), I64({2})}, {}, "one type"),
                 Refuses({I32({2}), I32({3})}, {}, "cannot be broadcast")};
  }
  cases["hash_bucket"] = {
      Accepts({I32({-1, 2})}, {Int("buckets", 10)}, {I64({-1, 2})}),
      Accepts({I64({})}, {Int("buckets", 10), Int("seed", 7)}, {I64({})}),
      Refuses({I64({2})}, {Int("buckets", 0)}, "buckets must be positive, got 0"),
      Refuses({F32({2})}, {Int("buckets", 1)}, "must be int32 or int64")};
}

void AddReductionCases(OpCases& cases) {
  for (const char* op : {"reduce_max", "reduce_min", "reduce_prod"}) {
    cases[op] = {Accepts({I64({-1, 3})}, {}, {I64({})}),
                 Accepts({F32({-1, 3, 4})}, {Ints("axes", {2, 0}), Flag("keep_dims", true)},
                         {F32({1, 3, 1})}),
                 Accepts({F32({0})}, {}, {F32({})}),
                 Refuses({F32({2})}, {Ints("axes", {1})}, "axis 1 is outside"),
                 Refuses({Bool({2})}, {}, "must be float32")};
  }
  for (const char* op : {"reduce_any", "reduce_all"}) {
    cases[op] = {Accepts({Bool({-1, 3})}, {Ints("axes", {1})}, {Bool({-1})}),
                 Refuses({F32({2})}, {}, "must be bool"),
                 Refuses({Bool({2})}, {Ints("axes", {0, 0})}, "one axis twice")};
  }
  cases["argmax"] = {Accepts({F32({-1, 3, 4})}, {Int("axis", 1)}, {I64({-1, 4})}),
                     Accepts({I32({-1})}, {Int("axis", 0)}, {I64({})}),
                     Refuses({F32({2})}, {Int("axis", 1)}, "axis 1 is outside"),
                     Refuses({F32({2, 0})}, {Int("axis", 1)}, "no largest"),
                     Refuses({Bool({2})}, {Int("axis", 0)}, "must be float32"),
                     Refuses({F32({2})}, {}, "lacks attribute \"axis\"")};
  cases["cumsum"] = {
      Accepts({I64({-1, 3})}, {Int("axis", 0)}, {I64({-1, 3})}),
      Accepts({F32({3})}, {Int("axis", 0), Flag("exclusive", true), Flag("reverse", true)},
              {F32({3})}),
      Refuses({F32({})}, {Int("axis", 0)}, "axis 0 is outside"),
      Refuses({Bool({2})}, {Int("axis", 0)}, "must be float32")};
  cases["products_of_others"] = {Accepts({F32({-1, 3})}, {Ints("axes", {1})}, {F32({-1, 3})}),
                                 Refuses({I64({2})}, {}, "must be float32"),
                                 Refuses({F32({2})}, {Ints("axes", {2})}, "outside")};
  cases["sum_of_squares"] = {Accepts({F32({-1, 3}), F32({})}, {}, {F32({})}),
                             Accepts({F32({-1})}, {Flag("root", true)}, {F32({})}),
                             Refuses({F32({2}), I64({2})}, {}, "must be float32"),
                             Refuses({}, {}, "takes at least 1 inputs, got 0")};
}

void AddLayoutCases(OpCases& cases) {
  cases["expand_dims"] = {Accepts({F32({-1, 3})}, {Ints("axes", {0, 3})}, {F32({1, -1, 3, 1})}),
                          Accepts({Bool({})}, {Ints("axes", {0})}, {Bool({1})}),
                          Refuses({F32({2})}, {Ints("axes", {})}, "is empty"),
                          Refuses({F32({2})}, {Ints("axes", {2})}, "axis 2 is outside"),
                          Refuses({F32({2})}, {Ints("axes", {0, 0})}, "one axis twice")};
  cases["squeeze"] = {Accepts({F32({1, -1, 3, 1})}, {Ints("axes", {0, 3})}, {F32({-1, 3})}),
                      Accepts({I64({-1, -1})}, {Ints("axes", {1})}, {I64({-1})}),
                      Refuses({F32({2, 1})}, {Ints("axes", {0})}, "has not size 1"),
                      Refuses({F32({2, 1})}, {Ints("axes", {})}, "is empty"),
                      Refuses({F32({1})}, {Ints("axes", {1})}, "axis 1 is outside")};
  cases["tile"] = {Accepts({F32({-1, 3})}, {Ints("multiples", {2, 4})}, {F32({-1, 12})}),
                   Accepts({Bool({})}, {Ints("multiples", {})}, {Bool({})}),
                   Refuses({F32({2})}, {Ints("multiples", {0})}, "needs an entry from 1"),
                   Refuses({F32({2})}, {Ints("multiples", {1, 1})}, "for each of the 1 axes"),
                   Refuses({F32({1 << 30})}, {Ints("multiples", {1 << 30})}, "too large")};
  cases["tile_grad"] = {
      Accepts({F32({-1, 12}), I64({5, 3})}, {Ints("multiples", {2, 4})}, {F32({5, 3})}),
      Refuses({F32({10, 11}), F32({5, 3})}, {Ints("multiples", {2, 4})}, "differ"),
      Refuses({I64({10}), F32({5})}, {Ints("multiples", {2})}, "dy must be float32")};
  cases["pad"] = {
      Accepts({F32({-1, 3})}, {Ints("before", {1, 0}), Ints("after", {0, 2})}, {F32({-1, 5})}),
      Accepts({I64({3})}, {Ints("before", {1}), Ints("after", {1}), Real("value", -1)}, {I64({5})}),
      Refuses({I64({3})}, {Ints("before", {1}), Ints("after", {1}), Real("value", 0.5f)},
              "integers cannot be padded with 0.5"),
      Refuses({F32({3})}, {Ints("before", {-1}), Ints("after", {1})}, "\"before\" needs"),
      Refuses({F32({3})}, {Ints("before", {1}), Ints("after", {})}, "\"after\" needs"),
      Refuses({Bool({3})}, {Ints("before", {1}), Ints("after", {1})}, "must be float32")};
  cases["unpad"] = {Accepts({F32({-1, 5}), F32({-1, 3})}, {Ints("before", {1, 2})}, {F32({-1, 3})}),
                    Refuses({F32({5}), F32({3})}, {Ints("before", {3})}, "has no such box"),
                    Refuses({F32({5}), F32({3, 1})}, {Ints("before", {0})}, "has no such box"),
                    Refuses({F32({5}), F32({3})}, {Ints("before", {})}, "\"before\" needs")};
  cases["stop_gradient"] = {Accepts({Bool({-1, 2})}, {}, {Bool({-1, 2})}),
                            Refuses({F32({1}), F32({1})}, {}, "takes 1 inputs, got 2")};
}

void AddSequenceCases(OpCases& cases) {
  cases["pad_sequences"] = {
      Accepts({F32({-1, 16}), I32({-1})}, {Int("length", 5)}, {F32({-1, 5, 16})}),
      Accepts({I64({7}), I32({4})}, {Int("length", 2), Flag("keep_last", true)}, {I64({3, 2})}),
      Refuses({F32({}), I32({4})}, {Int("length", 5)}, "at least one axis"),
      Refuses({F32({3}), I64({4})}, {Int("length", 5)}, "splits must be int32"),
      Refuses({F32({3}), I32({4, 1})}, {Int("length", 5)}, "splits must have 1 axis"),
      Refuses({F32({3}), I32({0})}, {Int("length", 5)}, "batch + 1 entries"),
      Refuses({F32({3}), I32({4})}, {Int("length", 0)}, "length must be positive, got 0")};
  cases["pad_sequences_grad"] = {
      Accepts({F32({-1, 5, 16}), I32({-1}), F32({-1, 16})}, {Int("length", 5)}, {F32({-1, 16})}),
      Refuses({F32({3, 4}), I32({4}), F32({-1})}, {Int("length", 5)}, "differ"),
      Refuses({I64({3, 5}), I32({4}), I64({-1})}, {Int("length", 5)}, "dy must be float32")};
}

}  // namespace mu
