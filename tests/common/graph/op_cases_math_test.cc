#include "tests/common/graph/op_cases.h"

namespace mu {

void AddElementwiseCases(OpCases& cases) {
  for (const char* op : {"add", "subtract", "multiply", "maximum", "minimum"}) {
    cases[op] = {
        Accepts({F32({2, 3}), F32({2, 3})}, {}, {F32({2, 3})}),
        Accepts({F32({-1, 3}), F32({3})}, {}, {F32({-1, 3})}),
        Accepts({F32({4, 1, 3}), F32({2, 1})}, {}, {F32({4, 2, 3})}),
        Accepts({F32({-1}), F32({1})}, {}, {F32({-1})}),
        Accepts({F32({-1}), F32({5})}, {}, {F32({5})}),
        Accepts({F32({5}), F32({-1})}, {}, {F32({5})}),
        Accepts({I32({2}), I32({})}, {}, {I32({2})}),
        Accepts({I64({0}), I64({1})}, {}, {I64({0})}),
        Refuses({F32({2}), F32({3})}, {}, "cannot be broadcast"),
        Refuses({F32({2}), I64({2})}, {}, "one type"),
        Refuses({Bool({2}), Bool({2})}, {}, "must be float32 or int32 or int64"),
        Refuses({F32({2})}, {}, "takes 2 inputs, got 1"),
        Refuses({F32({2}), F32({2})}, {Int("axis", 1)}, "no attribute \"axis\""),
    };
  }
  cases["divide"] = {Accepts({F32({-1, 3}), F32({})}, {}, {F32({-1, 3})}),
                     Refuses({I64({2}), I64({2})}, {}, "must be float32"),
                     Refuses({F32({2}), F32({3})}, {}, "cannot be broadcast")};
  cases["pow"] = {Accepts({F32({-1, 3}), F32({})}, {}, {F32({-1, 3})}),
                  Refuses({I64({2}), I64({2})}, {}, "must be float32"),
                  Refuses({F32({2}), F32({3})}, {}, "cannot be broadcast")};
  for (const char* op : {"negate", "abs", "sign"}) {
    cases[op] = {Accepts({I64({-1})}, {}, {I64({-1})}), Accepts({F32({2})}, {}, {F32({2})}),
                 Refuses({Bool({1})}, {}, "must be float32"),
                 Refuses({}, {}, "takes 1 inputs, got 0")};
  }
  for (const char* op : {"relu", "sigmoid", "tanh", "log", "log1p", "exp", "sqrt", "square", "sin",
                         "cos", "floor", "ceil", "round"}) {
    cases[op] = {Accepts({F32({-1, 3})}, {}, {F32({-1, 3})}), Accepts({F32({})}, {}, {F32({})}),
                 Refuses({I64({3})}, {}, "must be float32"),
                 Refuses({F32({3}), F32({3})}, {}, "takes 1 inputs, got 2")};
  }
  cases["cast"] = {Accepts({F32({-1, 2})}, {Type(kInt64)}, {I64({-1, 2})}),
                   Accepts({Bool({2})}, {Type(kFloat32)}, {F32({2})}),
                   Refuses({F32({2})}, {}, "lacks attribute \"dtype\""),
                   Refuses({F32({2})}, {Int("dtype", 1)}, "must be of kind dtype"),
                   Refuses({F32({2})}, {Type(muster::DTYPE_INVALID)}, "not an element type")};
  cases["sigmoid_cross_entropy"] = {Accepts({F32({-1}), F32({7})}, {}, {F32({7})}),
                                    Accepts({F32({-1, 2}), F32({-1, 2})}, {}, {F32({-1, 2})}),
                                    Refuses({F32({-1, 1}), F32({-1})}, {}, "differ"),
                                    Refuses({F32({2}), F32({3})}, {}, "differ"),
                                    Refuses({F32({2}), I64({2})}, {}, "labels must be float32")};
}

void AddMathCases(OpCases& cases) {
  cases["matmul"] = {
      Accepts({F32({-1, 13}), F32({13, 5})}, {}, {F32({-1, 5})}),
      Accepts({F32({13, -1}), F32({13, 5})}, {Flag("transpose_a", true)}, {F32({-1, 5})}),
      Accepts({F32({2, 13}), F32({5, 13})}, {Flag("transpose_b", true)}, {F32({2, 5})}),
      Accepts({F32({13, 2}), F32({5, 13})}, {Flag("transpose_a", true), Flag("transpose_b", true)},
              {F32({2, 5})}),
      Refuses({F32({2, 3}), F32({4, 5})}, {}, "inner sizes differ"),
      Refuses({F32({2, 3}), F32({3, 5})}, {Flag("transpose_b", true)}, "inner sizes differ"),
      Refuses({F32({3}), F32({3, 5})}, {}, "a must have 2 axes"),
      Refuses({I32({2, 3}), I32({3, 5})}, {}, "must be float32")};
  cases["batch_matmul"] = {Accepts({F32({-1, 2, 3}), F32({-1, 3, 4})}, {}, {F32({-1, 2, 4})}),
                           Accepts({F32({-1, 27, 16}), F32({6, 27, 16})},
                                   {Flag("transpose_b", true)}, {F32({6, 27, 27})}),
                           Refuses({F32({2, 2, 3}), F32({3, 3, 4})}, {}, "matrices"),
                           Refuses({F32({2, 2, 3}), F32({2, 4, 4})}, {}, "inner sizes differ"),
                           Accepts({F32({2, 3}), F32({3, 4})}, {}, {F32({2, 4})}),
                           Accepts({F32({-1, 8, 5, 3}), F32({3, 4})}, {}, {F32({-1, 8, 5, 4})}),
                           Accepts({F32({-1, 1, 5, 3}), F32({8, 4, 3})},
                                   {Flag("transpose_b", true)}, {F32({-1, 8, 5, 4})}),
                           Refuses({F32({2, 2, 2, 3}), F32({3, 3, 4})}, {}, "matrices"),
                           Refuses({F32({3}), F32({3, 4})}, {}, "at least 2 axes")};
  for (const char* op : {"reduce_sum", "reduce_mean"}) {
    cases[op] = {Accepts({F32({-1, 3})}, {}, {F32({})}),
                 Accepts({F32({-1, 3, 4})}, {Ints("axes", {0, 2})}, {F32({3})}),
                 Accepts({F32({-1, 3, 4})}, {Ints("axes", {2, 0}), Flag("keep_dims", true)},
                         {F32({1, 3, 1})}),
                 Accepts({F32({})}, {}, {F32({})}),
                 Refuses({F32({2})}, {Ints("axes", {1})}, "axis 1 is outside"),
                 Refuses({F32({2})}, {Ints("axes", {-1})}, "axis -1 is outside"),
                 Refuses({F32({2, 2})}, {Ints("axes", {1, 1})}, "one axis twice"),
                 Refuses({Bool({2})}, {}, "must be float32")};
  }
  cases["reduce_sum"].push_back(Accepts({I64({-1})}, {}, {I64({})}));
  cases["reduce_mean"].push_back(Refuses({I64({-1})}, {}, "must be float32"));
  cases["mean_squared_error"] = {Accepts({F32({-1}), F32({-1})}, {}, {F32({})}),
                                 Refuses({F32({-1, 1}), F32({-1})}, {}, "differ"),
                                 Refuses({F32({2}), F32({3})}, {}, "differ"),
                                 Refuses({I64({2}), F32({2})}, {}, "predictions must be float32")};
  cases["count"] = {Accepts({I64({-1, 3})}, {}, {F32({})}),
                    Accepts({F32({-1, 3})}, {Ints("axes", {0})}, {F32({})}),
                    Accepts({F32({-1})}, {Flag("at_least_one", false)}, {F32({})}),
                    Refuses({F32({2})}, {Ints("axes", {1})}, "outside")};
}

}  // namespace mu
