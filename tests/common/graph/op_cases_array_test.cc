#include "tests/common/graph/op_cases.h"

namespace mu {

void AddArrayCases(OpCases& cases) {
  cases["concat"] = {Accepts({F32({-1, 2}), F32({-1, 3})}, {Int("axis", 1)}, {F32({-1, 5})}),
                     Accepts({F32({-1, 2}), F32({4, 2})}, {Int("axis", 0)}, {F32({-1, 2})}),
                     Accepts({F32({-1, 2}), F32({4, 3})}, {Int("axis", 1)}, {F32({4, 5})}),
                     Accepts({I64({3})}, {Int("axis", 0)}, {I64({3})}),
                     Refuses({F32({2, 2}), F32({3, 2})}, {Int("axis", 1)}, "does not fit input 0"),
                     Refuses({F32({2}), F32({2, 1})}, {Int("axis", 0)}, "does not fit input 0"),
                     Refuses({F32({2}), I64({2})}, {Int("axis", 0)}, "one type"),
                     Refuses({F32({2})}, {Int("axis", 1)}, "axis 1 is outside"),
                     Refuses({}, {Int("axis", 0)}, "at least 1 inputs")};
  cases["slice"] = {
      Accepts({I64({-1, 26})}, {Ints("begin", {0, 3}), Ints("size", {-1, 1})}, {I64({-1, 1})}),
      Accepts({F32({5})}, {Ints("begin", {2}), Ints("size", {-1})}, {F32({3})}),
      Accepts({F32({5})}, {Ints("begin", {5}), Ints("size", {0})}, {F32({0})}),
      Accepts({F32({-1})}, {Ints("begin", {2}), Ints("size", {7})}, {F32({7})}),
      Refuses({F32({5})}, {Ints("begin", {2}), Ints("size", {4})}, "leaves axis 0"),
      Refuses({F32({5})}, {Ints("begin", {6}), Ints("size", {-1})}, "leaves axis 0"),
      Refuses({F32({5})}, {Ints("begin", {-1}), Ints("size", {1})}, "leaves axis 0"),
      Refuses({F32({5})}, {Ints("begin", {0}), Ints("size", {-2})}, "leaves axis 0"),
      Refuses({F32({-1})}, {Ints("begin", {INT64_MAX}), Ints("size", {1})}, "leaves axis 0"),
      Refuses({F32({5})}, {Ints("begin", {0, 0}), Ints("size", {1, 1})}, "for each of the 1 axes"),
      Refuses({F32({5})}, {Ints("begin", {0})}, "lacks attribute \"size\"")};
  cases["reshape"] = {Accepts({F32({-1, 4})}, {Dims({-1, 2, 2})}, {F32({-1, 2, 2})}),
                      Accepts({F32({3, 4})}, {Dims({-1, 6})}, {F32({2, 6})}),
                      Accepts({F32({1})}, {Dims({})}, {F32({})}),
                      Refuses({F32({3, 4})}, {Dims({5, -1})}, "cannot become"),
                      Refuses({F32({3, 4})}, {Dims({13})}, "cannot become"),
                      Refuses({F32({-1})}, {Dims({-1, -1})}, "more than one unknown"),
                      Refuses({F32({-1})}, {Dims({1 << 30, 1 << 30})}, "too large")};
  cases["transpose"] = {Accepts({F32({-1, 2, 3})}, {Ints("perm", {2, 0, 1})}, {F32({3, -1, 2})}),
                        Accepts({F32({})}, {Ints("perm", {})}, {F32({})}),
                        Refuses({F32({2, 3})}, {Ints("perm", {0, 0})}, "no permutation"),
                        Refuses({F32({2, 3})}, {Ints("perm", {0})}, "no permutation"),
                        Refuses({F32({2, 3})}, {Ints("perm", {0, 2})}, "no permutation")};
  cases["gather"] = {Accepts({F32({10, 4}), I64({-1, 2})}, {}, {F32({-1, 2, 4})}),
                     Accepts({F32({-1, 9}), I32({3})}, {Int("axis", 1)}, {F32({-1, 3})}),
                     Accepts({U8({4}), I64({})}, {}, {U8({})}),
                     Refuses({F32({10}), F32({2})}, {}, "indices must be int32 or int64"),
                     Refuses({F32({10}), I64({2})}, {Int("axis", 1)}, "axis 1 is outside"),
                     Refuses({F32({}), I64({2})}, {}, "axis 0 is outside")};
  for (const char* op : {"zeros_like", "ones_like"}) {
    cases[op] = {Accepts({I64({-1, 3})}, {}, {I64({-1, 3})}),
                 Refuses({Bool({3})}, {}, "must be float32")};
  }
}

void AddGradientCases(OpCases& cases) {
  cases["relu_grad"] = {Accepts({F32({-1, 3}), F32({4, 3})}, {}, {F32({4, 3})}),
                        Refuses({F32({3}), F32({4})}, {}, "differ"),
                        Refuses({F32({3}), I64({3})}, {}, "y must be float32")};
  cases["broadcast_like"] = {
      Accepts({F32({}), F32({-1, 3})}, {}, {F32({-1, 3})}),
      Accepts({F32({3}), I64({-1, 3})}, {}, {F32({-1, 3})}),
      Accepts({F32({-1}), F32({-1, 3})}, {Ints("axes", {1})}, {F32({-1, 3})}),
      Refuses({F32({2}), F32({-1, 3})}, {}, "cannot be broadcast"),
      Refuses({F32({1, 2, 3}), F32({2, 3})}, {}, "cannot be broadcast"),
      Refuses({F32({3}), F32({2, 3})}, {Ints("axes", {0, 1})}, "has not the rank"),
      Refuses({F32({3}), F32({2, 3})}, {Ints("axes", {2})}, "outside")};
  cases["reduce_to_like"] = {Accepts({F32({-1, 3}), F32({3})}, {}, {F32({3})}),
                             Accepts({F32({4, 3}), F32({4, 1})}, {}, {F32({4, 1})}),
                             Refuses({F32({3}), F32({-1, 3})}, {}, "cannot be broadcast"),
                             Refuses({F32({4, 3}), F32({2})}, {}, "cannot be broadcast"),
                             Refuses({Bool({3}), F32({})}, {}, "must be float32")};
  cases["reshape_like"] = {Accepts({F32({-1, 4}), I64({-1, 2, 2})}, {}, {F32({-1, 2, 2})}),
                           Refuses({F32({6}), F32({2, 2})}, {}, "cannot take the shape")};
  cases["slice_grad"] = {
      Accepts({F32({-1, 1}), F32({-1, 26})}, {Ints("begin", {0, 3})}, {F32({-1, 26})}),
      Refuses({F32({2}), F32({3})}, {Ints("begin", {2})}, "no such slice"),
      Refuses({F32({2}), F32({3})}, {Ints("begin", {-1})}, "no such slice"),
      Refuses({F32({2}), F32({-1})}, {Ints("begin", {INT64_MAX})}, "no such slice"),
      Refuses({F32({2}), F32({3})}, {Ints("begin", {})}, "no such slice"),
      Refuses({I64({2}), I64({3})}, {Ints("begin", {0})}, "dy must be float32")};
  cases["concat_piece"] = {
      Accepts({F32({-1, 2}), F32({-1, 2}), F32({-1, 2})}, {Int("axis", 0), Int("index", 1)},
              {F32({-1, 2})}),
      Accepts({F32({5}), F32({2}), F32({3})}, {Int("axis", 0), Int("index", 1)}, {F32({3})}),
      Refuses({F32({5}), F32({2}), F32({3})}, {Int("axis", 0), Int("index", 2)}, "no input 2"),
      Refuses({F32({5}), F32({2}), F32({3})}, {Int("axis", 0), Int("index", -1)}, "no input -1"),
      Refuses({F32({5}), F32({2}), F32({4})}, {Int("axis", 0), Int("index", 0)},
              "the pieces have 6"),
      Refuses({F32({5, 2}), F32({2, 3})}, {Int("axis", 0), Int("index", 0)}, "no concatenation"),
      Refuses({F32({5}), F32({2})}, {Int("axis", 1), Int("index", 0)}, "outside")};
  cases["gather_grad"] = {
      Accepts({F32({-1, 2, 4}), I64({-1, 2}), F32({10, 4})}, {}, {F32({10, 4})}),
      Accepts({F32({-1, 3}), I32({3}), F32({-1, 9})}, {Int("axis", 1)}, {F32({-1, 9})}),
      Refuses({F32({2, 5}), I64({2}), F32({10, 4})}, {}, "should have gather's shape"),
      Refuses({F32({2, 4}), F32({2}), F32({10, 4})}, {}, "indices must be int32"),
      Refuses({F32({2}), I64({2}), F32({})}, {}, "outside")};
}

}  // namespace mu
