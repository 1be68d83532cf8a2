#include <limits>

#include "tests/common/graph/op_cases.h"

namespace mu {
namespace {

void AddSoftmaxCases(OpCases& cases) {
  cases["erf"] = {Accepts({F32({-1, 3})}, {}, {F32({-1, 3})}),
                  Refuses({I64({3})}, {}, "must be float32")};
  for (const char* op : {"softmax", "log_softmax"}) {
    cases[op] = {Accepts({F32({-1, 3})}, {}, {F32({-1, 3})}), Accepts({F32({4})}, {}, {F32({4})}),
                 Refuses({F32({})}, {}, "at least 1 axis"),
                 Refuses({I64({2, 3})}, {}, "x must be float32")};
  }
  cases["logsumexp"] = {Accepts({F32({-1, 3, 4})}, {}, {F32({-1, 3})}),
                        Accepts({F32({4})}, {}, {F32({})}),
                        Refuses({F32({})}, {}, "at least 1 axis")};
  cases["softmax_cross_entropy"] = {
      Accepts({F32({-1, 10}), F32({32, 10})}, {}, {F32({32})}),
      Refuses({F32({-1, 10}), F32({-1})}, {}, "differ"),
      Refuses({F32({-1, 10}), I64({-1, 10})}, {}, "labels must be float32")};
  cases["sparse_softmax_cross_entropy"] = {
      Accepts({F32({-1, 10}), I64({-1})}, {}, {F32({-1})}),
      Accepts({F32({-1, 50, 10}), I32({8, 50})}, {}, {F32({8, 50})}),
      Accepts({F32({10}), I64({})}, {}, {F32({})}),
      Refuses({F32({-1, 10}), I64({-1, 10})}, {}, "without its last axis"),
      Refuses({F32({-1, 10}), I64({-1, 1})}, {}, "without its last axis"),
      Refuses({F32({-1, 10}), F32({-1})}, {}, "labels must be int32 or int64"),
      Refuses({F32({}), I64({})}, {}, "at least 1 axis")};
  cases["sparse_softmax_cross_entropy_grad"] = {
      Accepts({F32({-1}), F32({-1, 10}), I64({-1})}, {}, {F32({-1, 10})}),
      Refuses({F32({3}), F32({4, 10}), I64({4})}, {}, "differ"),
      Refuses({F32({4}), F32({4, 10}), F32({4})}, {}, "labels must be int32 or int64")};
}

void AddNormCases(OpCases& cases) {
  cases["layer_norm"] = {
      Accepts({F32({-1, 5, 8}), F32({8}), F32({8})}, {}, {F32({-1, 5, 8})}),
      Accepts({F32({2, 8}), F32({8}), F32({8})}, {Real("epsilon", 0)}, {F32({2, 8})}),
      Refuses({F32({2, 8}), F32({7}), F32({8})}, {}, "gamma float32[7]"),
      Refuses({F32({2, 8}), F32({8}), F32({1, 8})}, {}, "beta must have 1 axis"),
      Refuses({F32({2, 8}), F32({8}), F32({8})}, {Real("epsilon", -1)}, "not below 0"),
      Refuses({F32({2, 8}), F32({8})}, {}, "takes 3 inputs, got 2")};
  cases["layer_norm_grad"] = {
      Accepts({F32({-1, 8}), F32({-1, 8}), F32({8})}, {}, {F32({-1, 8}), F32({8}), F32({8})}),
      Refuses({F32({2, 8}), F32({3, 8}), F32({8})}, {}, "differ"),
      Refuses({F32({2, 8}), F32({2, 8}), F32({4})}, {}, "gamma float32[4]")};
  cases["rms_norm"] = {
      Accepts({F32({-1, 8}), F32({8})}, {}, {F32({-1, 8})}),
      Refuses({F32({2, 8}), F32({7})}, {}, "gamma float32[7]"),
      Refuses({F32({}), F32({8})}, {}, "at least 1 axis"),
      Refuses({F32({2, 8}), F32({8})}, {Real("epsilon", std::numeric_limits<float>::infinity())},
              "must be finite")};
  cases["rms_norm_grad"] = {
      Accepts({F32({-1, 8}), F32({-1, 8}), F32({8})}, {}, {F32({-1, 8}), F32({8})}),
      Refuses({F32({2, 8}), F32({2, 4}), F32({4})}, {}, "differ")};
}

void AddInteractionCases(OpCases& cases) {
  cases["pairwise_interactions"] = {Accepts({F32({-1, 27, 16})}, {}, {F32({-1, 351})}),
                                    Accepts({F32({5, 1, 16})}, {}, {F32({5, 0})}),
                                    Accepts({F32({5, -1, 16})}, {}, {F32({5, -1})}),
                                    Refuses({F32({27, 16})}, {}, "x must have 3 axes"),
                                    Refuses({F32({1, 70000, 1})}, {}, "at most 65536 vectors"),
                                    Refuses({I64({1, 2, 3})}, {}, "x must be float32")};
  cases["pairwise_interactions_grad"] = {
      Accepts({F32({-1, 351}), F32({-1, 27, 16})}, {}, {F32({-1, 27, 16})}),
      Refuses({F32({4, 350}), F32({4, 27, 16})}, {}, "differ"),
      Refuses({F32({4, 351}), F32({27, 16})}, {}, "x must have 3 axes")};
}

// The cases with windows of 2 by 3.
std::vector<InferCase> WithPools(std::vector<InferCase> cases) {
  const NamedAttr size = Ints("size", {2, 3});
  for (InferCase& one : cases) one.attrs[size.first] = size.second;
  return cases;
}

void AddImageCases(OpCases& cases) {
  const NamedAttr valid = Text("padding", "valid"), same = Text("padding", "same");
  const NamedAttr by_one = Ints("strides", {1, 1}), by_two = Ints("strides", {2, 2});
  cases["conv2d"] = {
      Accepts({F32({-1, 28, 28, 1}), F32({3, 3, 1, 32})}, {by_one, valid}, {F32({-1, 26, 26, 32})}),
      Accepts({F32({-1, 28, 28, 1}), F32({3, 3, 1, 32})}, {by_one, same}, {F32({-1, 28, 28, 32})}),
      Accepts({F32({4, 29, 6, 3}), F32({3, 2, 3, 8})}, {by_two, same}, {F32({4, 15, 3, 8})}),
      Accepts({F32({4, 29, 7, 3}), F32({3, 2, 3, 8})}, {by_two, valid}, {F32({4, 14, 3, 8})}),
      Accepts({F32({4, -1, 7, 3}), F32({3, -1, 3, 8})}, {by_one, valid}, {F32({4, -1, -1, 8})}),
      Refuses({F32({4, 8, 8, 3}), F32({3, 3, 4, 8})}, {by_one, valid},
              "filter float32[3, 3, 4, 8]"
              " reads 4"),
      Refuses({F32({4, 2, 8, 3}), F32({3, 3, 3, 8})}, {by_one, valid}, "does not fit"),
      Refuses({F32({4, 8, 8}), F32({3, 3, 3, 8})}, {by_one, valid}, "x must have 4 axes"),
      Refuses({F32({4, 8, 8, 3}), F32({0, 3, 3, 8})}, {by_one, same}, "too small"),
      Refuses({F32({4, 8, 8, 3}), F32({3, 3, 3, 8})}, {Ints("strides", {1}), valid},
              "must be two numbers"),
      Refuses({F32({4, 8, 8, 3}), F32({3, 3, 3, 8})}, {Ints("strides", {0, 1}), valid},
              "must be two numbers"),
      Refuses({F32({4, 8, 8, 3}), F32({3, 3, 3, 8})}, {by_one, Text("padding", "full")},
              "padding must be same or valid"),
      Refuses({F32({4, 8, 8, 3}), F32({3, 3, 3, 8})}, {by_one}, "lacks attribute \"padding\"")};
  const std::vector<TensorSpec> images = {F32({-1, 26, 26, 32}), F32({-1, 28, 28, 1}),
                                          F32({3, 3, 1, 32})};
  cases["conv2d_input_grad"] = {
      Accepts(images, {by_one, valid}, {F32({-1, 28, 28, 1})}),
      Refuses(images, {by_one, same}, "differ"),
      Refuses({I64({1, 26, 26, 32}), images[1], images[2]}, {by_one, valid}, "dy must be float32")};
  cases["conv2d_filter_grad"] = {Accepts(images, {by_one, valid}, {F32({3, 3, 1, 32})}),
                                 Refuses(images, {by_two, valid}, "differ")};
  for (const char* op : {"max_pool2d", "avg_pool2d"}) {
    cases[op] = WithPools({Accepts({F32({-1, 6, 6, 5})}, {by_one, valid}, {F32({-1, 5, 4, 5})}),
                           Accepts({F32({-1, 5, 6, 5})}, {by_two, same}, {F32({-1, 3, 3, 5})}),
                           Refuses({F32({-1, 1, 6, 5})}, {by_one, valid}, "does not fit"),
                           Refuses({F32({-1, 6, 6})}, {by_one, valid}, "x must have 4 axes")});
    cases[op].push_back(Refuses({F32({-1, 6, 6, 5})}, {by_one, valid, Ints("size", {2, -1})},
                                "attribute \"size\" must be two numbers"));
    cases[op + std::string("_grad")] = WithPools(
        {Accepts({F32({4, 5, 4, 5}), F32({-1, 6, 6, 5})}, {by_one, valid}, {F32({-1, 6, 6, 5})}),
         Refuses({F32({4, 5, 5, 5}), F32({-1, 6, 6, 5})}, {by_one, valid}, "differ")});
  }
}

}  // namespace

void AddNeuralCases(OpCases& cases) {
  AddSoftmaxCases(cases);
  AddNormCases(cases);
  AddInteractionCases(cases);
  AddImageCases(cases);
}

}  // namespace mu
