// Kernels against the values that PyTorch gave (op_values.py wrote op_values.txt).
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tests/common/exec/run_op.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

struct ValueCase {
  std::string op;
  int line = 0;  // of the file
  testing::GraphMaker::Attrs attrs;
  std::vector<Tensor> inputs;
  Tensor output;
};

// "[1,2]"
std::vector<int64_t> IntsOf(absl::string_view text) {
  std::vector<int64_t> values;
  for (const absl::string_view part :
       absl::StrSplit(text.substr(1, text.size() - 2), ',', absl::SkipEmpty())) {
    int64_t value = 0;
    EXPECT_TRUE(absl::SimpleAtoi(part, &value)) << part;
    values.push_back(value);
  }
  return values;
}

DType TypeCalled(const std::string& name) {
  for (const DType type : {kFloat32, kInt32, kInt64, kUInt8, kBool}) {
    if (name == DTypeName(type)) return type;
  }
  return pb::DTYPE_INVALID;
}

muster::AttrValue AttrOf(const std::string& text) {
  if (text == "true" || text == "false") return testing::BoolAttr(text == "true");
  if (text[0] == '[') return testing::IntsAttr(IntsOf(text));
  if (text[0] == '<') return testing::ShapeAttr(Shape(IntsOf(text)));
  if (const DType dtype = TypeCalled(text); dtype != pb::DTYPE_INVALID)
    return testing::TypeAttr(dtype);
  if (absl::StrContains(text, ".")) return testing::FloatAttr(std::stof(text));
  return testing::IntAttr(std::stoll(text));
}

Tensor TensorOf(const std::vector<std::string>& words) {
  const DType dtype = TypeCalled(words[1]);
  Tensor tensor(dtype, Shape(IntsOf(words[2])));
  EXPECT_EQ(static_cast<size_t>(tensor.elements()), words.size() - 3);
  WithType(dtype, [&](auto zero) {
    using T = decltype(zero);
    for (size_t i = 3; i < words.size(); ++i) {
      double value = 0;
      EXPECT_TRUE(absl::SimpleAtod(words[i], &value)) << words[i];
      tensor.data<T>()[i - 3] = static_cast<T>(value);
    }
  });
  return tensor;
}

std::vector<ValueCase> ReadCases(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  std::vector<ValueCase> cases;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words[0] == "op") {
      cases.push_back({words[1], number, {}, {}, Tensor()});
      for (size_t i = 2; i < words.size(); ++i) {
        const std::pair<std::string, std::string> attr = absl::StrSplit(words[i], '=');
        cases.back().attrs.push_back({attr.first, AttrOf(attr.second)});
      }
    } else if (words[0] == "in") {
      cases.back().inputs.push_back(TensorOf(words));
    } else {
      cases.back().output = TensorOf(words);
    }
  }
  return cases;
}

void ExpectClose(const Tensor& is, const Tensor& wanted) {
  ASSERT_EQ(is.dtype(), wanted.dtype());
  ASSERT_EQ(is.shape(), wanted.shape());
  WithType(is.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < is.elements(); ++i) {
      const double a = static_cast<double>(is.data<T>()[i]);
      const double b = static_cast<double>(wanted.data<T>()[i]);
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      const double tolerance = std::is_same_v<T, float> ? 1e-5 * (1 + std::abs(b)) : 0;
      EXPECT_NEAR(a, b, tolerance) << "element " << i;
    }
  });
}

TEST(OpValues, AreThoseOfPyTorch) {
  for (const ValueCase& one : ReadCases("tests/reference/op_values.txt")) {
    SCOPED_TRACE(one.op + ", line " + std::to_string(one.line));
    const auto results = testing::RunOp(one.op, one.inputs, one.attrs);
    MU_ASSERT_OK(results.status());
    ExpectClose((*results)[0], one.output);
  }
}

// Ops that have no case in op_values.txt, and why. "neural_ops: NAME" is compared with PyTorch by
// that case (tests/coordinator/frontend/pytorch_test.cc); a gradient op by the case's gradients.
const std::map<std::string, std::string>& WithoutCase() {
  static const auto* const reasons = new std::map<std::string, std::string>{
      {"batch_matmul", "neural_ops: batch_matmul"},
      {"softmax", "neural_ops: softmax"},
      {"log_softmax", "neural_ops: log_softmax"},
      {"logsumexp", "neural_ops: logsumexp"},
      {"softmax_cross_entropy", "neural_ops: softmax_cross_entropy"},
      {"sparse_softmax_cross_entropy", "neural_ops: sparse_softmax_cross_entropy"},
      {"layer_norm", "neural_ops: layer_norm"},
      {"layer_norm_grad", "neural_ops: layer_norm"},
      {"rms_norm", "neural_ops: rms_norm"},
      {"rms_norm_grad", "neural_ops: rms_norm"},
      {"pairwise_interactions", "neural_ops: pairwise_interactions"},
      {"pairwise_interactions_grad", "neural_ops: pairwise_interactions"},
      {"conv2d", "neural_ops: conv2d_same"},
      {"conv2d_input_grad", "neural_ops: conv2d_same"},
      {"conv2d_filter_grad", "neural_ops: conv2d_same"},
      {"max_pool2d", "neural_ops: max_pool2d_overlapping"},
      {"max_pool2d_grad", "neural_ops: max_pool2d_overlapping"},
      {"avg_pool2d", "neural_ops: avg_pool2d_same"},
      {"avg_pool2d_grad", "neural_ops: avg_pool2d_same"},
      {"embedding_lookup", "neural_ops: embedding_bag_mean"},
      {"embedding_gradient", "neural_ops: embedding_bag_mean"},
      {"segment_combine", "neural_ops: embedding_bag_sqrtn"},
      {"segment_combine_grad", "neural_ops: embedding_bag_sqrtn"},
      {"hash_bucket", "PyTorch has no such hash; bucket_hash_test.cc has its values"},
      {"count", "a product of sizes, of no values"},
      {"unique", "PyTorch sorts the ids; this one keeps their order"},
      {"dropout", "draws other random numbers than PyTorch; random_test.cc"},
      {"random_uniform", "draws other random numbers than PyTorch; random_test.cc"},
  };
  return *reasons;
}

TEST(OpValues, EveryOpHasACaseOrAReason) {
  std::set<std::string> cases, neural;
  for (const ValueCase& one : ReadCases("tests/reference/op_values.txt")) cases.insert(one.op);
  std::ifstream file("tests/reference/neural_ops.json");
  for (const auto& one : nlohmann::json::parse(file)) neural.insert(one.at("name"));
  std::set<std::string> reasons;
  for (const auto& [op, reason] : WithoutCase()) {
    EXPECT_NE(AllOps().Find(op), nullptr) << op;
    EXPECT_EQ(cases.count(op), 0u) << op << " has a case and needs no reason";
    absl::string_view name = reason;
    if (absl::ConsumePrefix(&name, "neural_ops: ")) {
      EXPECT_EQ(neural.count(std::string(name)), 1u) << op;
    }
    reasons.insert(op);
  }
  for (const OpDef* def : AllOps().All()) {
    if (!def->has_kernel()) continue;  // there is nothing that it computes
    EXPECT_EQ(cases.count(def->name) + reasons.count(def->name), 1u)
        << def->name << ": add a case to op_values.py, or the reason why there is none";
  }
}

}  // namespace
}  // namespace mu
