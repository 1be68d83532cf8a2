#include "tests/common/graph/op_cases.h"

namespace mu {
namespace {

void AddSourceCases(OpCases& cases) {
  pb::TensorProto torn = Tensor::Scalar<float>(1).ToProto();
  torn.set_data("abc");
  NamedAttr torn_value{"value", {}};
  *torn_value.second.mutable_tensor() = torn;
  pb::TensorProto odd_bool = Tensor::Scalar<bool>(true).ToProto();
  odd_bool.set_data("\x02");
  NamedAttr odd_value{"value", {}};
  *odd_value.second.mutable_tensor() = odd_bool;
  const Tensor three = Tensor::Of<int32_t>({3}, {1, 2, 3});
  cases["constant"] = {
      Accepts({}, {Value(three)}, {I32({3})}), Refuses({}, {}, "lacks attribute \"value\""),
      Refuses({}, {torn_value}, "3 bytes"), Refuses({}, {odd_value}, "neither 0 nor 1"),
      Refuses({F32({})}, {Value(three)}, "takes 0 inputs")};
  cases["arg"] = {Accepts({}, {Int("index", 0), Type(kInt64)}, {I64({})}),
                  Refuses({}, {Int("index", -1), Type(kInt64)}, "negative"),
                  Refuses({}, {Int("index", 0)}, "lacks attribute \"dtype\"")};
  cases["worker_index"] = {Accepts({}, {}, {I64({})}), Refuses({I64({})}, {}, "takes 0 inputs")};
  cases["batch_column"] = {
      Accepts({}, {Text("column", "x"), Type(kFloat32), Dims({-1, 13})}, {F32({-1, 13})}),
      Refuses({}, {Text("column", ""), Type(kFloat32), Dims({-1})}, "is empty"),
      Refuses({}, {Text("column", "x"), Type(kFloat32), Dims({})}, "at least one axis"),
      Refuses({}, {Text("column", "x"), Type(kFloat32), Dims({-2})}, "cannot be")};
  cases["variable_read"] = {
      Accepts({}, {Text("variable", "w"), Int("id", 3), Type(kFloat32), Dims({2, 3})},
              {F32({2, 3})}),
      Refuses({}, {Text("variable", "w"), Int("id", 3), Type(kFloat32), Dims({-1})},
              "unknown size"),
      Refuses({}, {Text("variable", "w"), Type(kFloat32), Dims({1})}, "lacks attribute \"id\"")};
}

void AddUpdateCases(OpCases& cases) {
  const NamedAttr name = Text("variable", "w");
  const NamedAttr id = Int("id", 3);
  cases["assign_add"] = {
      Accepts({I64({2, 3})}, {name, id, Type(kInt64), Dims({2, 3})}, {}),
      Accepts({F32({-1, 3})}, {name, id, Type(kFloat32), Dims({2, 3})}, {}),
      Refuses({F32({2, 3})}, {name, id, Type(kInt64), Dims({2, 3})}, "but variable \"w\" is"),
      Refuses({F32({3})}, {name, id, Type(kFloat32), Dims({2, 3})}, "but variable \"w\" is"),
      Refuses({F32({3})}, {name, id, Type(kFloat32), Dims({-1})}, "unknown size"),
      Refuses({Bool({3})}, {name, id, Type(kBool), Dims({3})}, "delta must be float32")};
  cases["assign"] = {
      Accepts({I64({2, 3})}, {name, id, Type(kInt64), Dims({2, 3})}, {}),
      Accepts({Bool({3})}, {name, id, Type(kBool), Dims({3})}, {}),
      Refuses({F32({2, 3})}, {name, id, Type(kInt64), Dims({2, 3})}, "but variable \"w\" is"),
      Refuses({F32({3})}, {name, id, Type(kFloat32), Dims({2, 3})}, "the value is float32[3] but")};
  cases["apply_gradient"] = {
      Accepts({F32({2, 3})}, {name, id, Type(kFloat32), Dims({2, 3})}, {}),
      Refuses({I64({2})}, {name, id, Type(kInt64), Dims({2})}, "the gradient must be float32"),
      Refuses({F32({2, 4})}, {name, id, Type(kFloat32), Dims({2, 3})}, "but variable \"w\" is")};
}

void AddPartCases(OpCases& cases) {
  const NamedAttr name = Text("variable", "w");
  const NamedAttr id = Int("id", 3);
  const NamedAttr first = Int("first", 1);
  const NamedAttr f32 = Type(kFloat32);
  cases["variable_rows"] = {
      Accepts({}, {name, id, f32, Dims({4, 3}), first, Int("count", 3)}, {F32({3, 3})}),
      Accepts({}, {name, id, Type(kInt64), Dims({4}), first, Int("count", 0)}, {I64({0})}),
      Refuses({}, {name, id, f32, Dims({4, 3}), first, Int("count", 4)}, "are not within the 4"),
      Refuses({}, {name, id, f32, Dims({4, 3}), first, Int("count", -1)}, "are not within the 4"),
      Refuses({}, {name, id, f32, Dims({4, 3}), Int("first", -1), Int("count", 1)}, "not within"),
      Refuses({}, {name, id, f32, Dims({}), first, Int("count", 0)}, "no rows")};
  cases["scatter_add"] = {
      Accepts({I64({-1}), F32({-1, 3})}, {name, id, f32, Dims({4, 3})}, {}),
      Accepts({I64({2}), I32({2})}, {name, id, Type(kInt32), Dims({4})}, {}),
      Refuses({I64({2}), F32({3, 3})}, {name, id, f32, Dims({4, 3})}, "but those rows"),
      Refuses({I64({2}), I64({2, 3})}, {name, id, f32, Dims({4, 3})}, "but those rows"),
      Refuses({I32({2}), F32({2, 3})}, {name, id, f32, Dims({4, 3})}, "rows must be int64"),
      Refuses({I64({2, 1}), F32({2, 3})}, {name, id, f32, Dims({4, 3})}, "rows must"),
      Refuses({I64({2}), F32({2})}, {name, id, f32, Dims({})}, "no rows")};
  cases["scatter_update"] = {
      Accepts({I64({-1}), F32({-1, 3})}, {name, id, f32, Dims({4, 3})}, {}),
      Refuses({I64({2}), F32({3, 3})}, {name, id, f32, Dims({4, 3})}, "the value is float32[3, 3]"),
      Refuses({I32({2}), F32({2, 3})}, {name, id, f32, Dims({4, 3})}, "rows must be int64"),
      Refuses({I64({2}), F32({2})}, {name, id, f32, Dims({})}, "no rows")};
  cases["sharded_matmul"] = {
      Accepts({F32({-1, 3})}, {name, id, f32, Dims({4, 3})}, {F32({-1, 4})}),
      Refuses({F32({-1, 4})}, {name, id, f32, Dims({4, 3})}, "but variable \"w\" is"),
      Refuses({F32({3})}, {name, id, f32, Dims({4, 3})}, "but variable \"w\" is"),
      Refuses({F32({-1, 3})}, {name, id, f32, Dims({0, 3})}, "that have elements"),
      Refuses({F32({-1, 3})}, {name, id, f32, Dims({4, 3, 1})}, "float32 matrices"),
      Refuses({I64({-1, 3})}, {name, id, f32, Dims({4, 3})}, "x must be float32")};
  cases["sharded_matmul_back"] = {
      Accepts({F32({-1, 4})}, {name, id, f32, Dims({4, 3})}, {F32({-1, 3})}),
      Refuses({F32({-1, 3})}, {name, id, f32, Dims({4, 3})}, "but variable \"w\" is")};
  cases["apply_product_gradient"] = {
      Accepts({F32({-1, 4}), F32({-1, 3})}, {name, id, f32, Dims({4, 3})}, {}),
      Refuses({F32({-1, 3}), F32({-1, 4})}, {name, id, f32, Dims({4, 3})}, "dy is"),
      Refuses({F32({5, 4}), F32({6, 3})}, {name, id, f32, Dims({4, 3})}, "have other records")};
}

void AddTableCases(OpCases& cases) {
  const NamedAttr name = Text("table", "t");
  const NamedAttr id = Int("id", 1);
  const NamedAttr rows = Int("rows", 100);
  const NamedAttr dim = Int("dim", 8);
  const NamedAttr sum = Text("combiner", "sum");
  const NamedAttr mean = Text("combiner", "mean");
  cases["embedding_lookup"] = {
      Accepts({I64({-1})}, {name, id, rows, dim}, {F32({-1, 8})}),
      Accepts({I32({-1, 1})}, {name, id, rows, dim}, {F32({-1, 1, 8})}),
      Accepts({I64({-1}), I32({-1})}, {name, id, rows, dim, sum}, {F32({-1, 8})}),
      Accepts({I64({-1}), I32({5}), F32({-1})}, {name, id, rows, dim, mean}, {F32({4, 8})}),
      Refuses({F32({-1})}, {name, id, rows, dim}, "ids must be int32 or int64"),
      Refuses({I64({-1}), I32({-1})}, {name, id, rows, dim}, "takes ids only"),
      Refuses({I64({-1})}, {name, id, rows, dim, sum}, "values, splits"),
      Refuses({I64({-1, 2}), I32({-1})}, {name, id, rows, dim, sum}, "values must have 1 axis"),
      Refuses({I64({-1}), I64({-1})}, {name, id, rows, dim, sum}, "splits must be int32"),
      Refuses({I64({-1}), I32({0})}, {name, id, rows, dim, sum}, "batch + 1"),
      Refuses({I64({3}), I32({2}), F32({4})}, {name, id, rows, dim, sum}, "shape of values"),
      Refuses({I64({-1})}, {name, id, rows, dim, Text("combiner", "max")},
              "none, sum, mean or sqrtn"),
      Refuses({I64({-1})}, {name, id, rows, Int("dim", 0)}, "cannot have 100 rows of 0")};
  cases["embedding_gradient"] = {
      Accepts({I64({-1}), F32({-1, 8})}, {name, id, rows, dim}, {}),
      Accepts({I64({-1}), I32({5}), F32({-1}), F32({4, 8})}, {name, id, rows, dim, mean}, {}),
      Refuses({I64({-1}), F32({-1, 7})}, {name, id, rows, dim}, "differ"),
      Refuses({I64({-1}), I64({-1, 8})}, {name, id, rows, dim}, "the gradient must be float32"),
      Refuses({I64({-1})}, {name, id, rows, dim}, "takes 2 to 4 inputs")};
  cases["unique"] = {Accepts({I64({-1, 2}), I32({7})}, {}, {I64({-1}), I32({-1, 2}), I32({7})}),
                     Refuses({}, {}, "at least 1"), Refuses({F32({3})}, {}, "ids must be int32")};
  cases["pull_rows"] = {Accepts({I64({-1})}, {name, id, rows, dim}, {F32({-1, 8})}),
                        Refuses({I32({-1})}, {name, id, rows, dim}, "ids must be int64"),
                        Refuses({I64({-1, 1})}, {name, id, rows, dim}, "1 axis"),
                        Refuses({I64({-1})}, {name, id, Int("rows", 0), dim}, "cannot have")};
  cases["push_rows"] = {
      Accepts({I64({-1}), F32({-1, 8})}, {name, id, rows, dim}, {}),
      Refuses({I64({-1}), F32({-1, 9})}, {name, id, rows, dim}, "differ"),
      Refuses({I64({-1}), I64({-1, 8})}, {name, id, rows, dim}, "must be float32")};
  cases["segment_combine"] = {
      Accepts({F32({-1, 8}), I32({-1}), I32({-1})}, {sum}, {F32({-1, 8})}),
      Accepts({F32({-1, 8}), I32({9}), I32({4}), F32({9})}, {mean}, {F32({3, 8})}),
      Refuses({F32({-1, 8}), I64({-1}), I32({-1})}, {sum}, "positions must be int32"),
      Refuses({F32({8}), I32({-1}), I32({-1})}, {sum}, "rows must have 2 axes"),
      Refuses({F32({-1, 8}), I32({-1}), I32({-1})}, {Text("combiner", "none")},
              "sum, mean or sqrtn"),
      Refuses({F32({-1, 8}), I32({-1}), I32({-1})}, {}, "lacks attribute \"combiner\"")};
  cases["segment_combine_grad"] = {
      Accepts({F32({-1, 8}), I32({-1}), I32({-1}), F32({-1, 8})}, {sum}, {F32({-1, 8})}),
      Accepts({F32({3, 8}), I32({9}), I32({4}), F32({5, 8}), F32({9})}, {mean}, {F32({5, 8})}),
      Refuses({F32({3, 7}), I32({9}), I32({4}), F32({5, 8})}, {mean}, "differ"),
      Refuses({F32({2, 8}), I32({9}), I32({4}), F32({5, 8})}, {mean}, "differ"),
      Refuses({I32({3, 8}), I32({9}), I32({4}), F32({5, 8})}, {mean}, "dy must be float32")};
}

void AddAccumulationCases(OpCases& cases) {
  const NamedAttr mean = Text("combine", "mean");
  const NamedAttr sum = Text("combine", "sum");
  cases["accumulate"] = {Accepts({F32({2, -1})}, {mean}, {F32({2, -1})}),
                         Accepts({I64({})}, {sum}, {I64({})}),
                         Refuses({I64({})}, {mean}, "what is averaged must be float32"),
                         Refuses({Bool({})}, {sum}, "what is added up must be float32"),
                         Refuses({F32({})}, {Text("combine", "max")}, "mean or sum, got \"max\""),
                         Refuses({F32({})}, {}, "lacks attribute \"combine\"")};
  cases["accumulate_rows"] = {
      Accepts({I64({-1}), F32({-1, 8}), F32({-1, -1})}, {},
              {I64({-1}), F32({-1, 8}), F32({-1, 8})}),
      Accepts({I64({3}), F32({3, 8}), F32({3, 8})}, {}, {I64({-1}), F32({-1, 8}), F32({-1, 8})}),
      Refuses({I32({3}), F32({3, 8}), F32({3, 8})}, {}, "ids must be int64"),
      Refuses({I64({3, 1}), F32({3, 8}), F32({3, 8})}, {}, "ids must have 1 axis"),
      Refuses({I64({3}), I64({3, 8}), F32({3, 8})}, {}, "the gradient must be float32"),
      Refuses({I64({3}), F32({3}), F32({3, 8})}, {}, "the gradient must have 2 axes"),
      Refuses({I64({3}), F32({3, 8}), F32({3})}, {}, "rows must have 2 axes"),
      Refuses({I64({3}), F32({4, 8}), F32({3, 8})}, {}, "3 and 4"),
      Refuses({I64({3}), F32({3, 8}), F32({4, 8})}, {}, "3 and 4"),
      Refuses({I64({3}), F32({3, 8}), F32({3, 7})}, {}, "8 and 7"),
      Refuses({I64({3}), F32({3, 8})}, {}, "takes 3 inputs")};
}

}  // namespace

void AddParameterCases(OpCases& cases) {
  AddSourceCases(cases);
  AddUpdateCases(cases);
  AddPartCases(cases);
  AddTableCases(cases);
  AddAccumulationCases(cases);
}

}  // namespace mu
