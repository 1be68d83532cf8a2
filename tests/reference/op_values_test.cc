// Kernels against the values that PyTorch gave (op_values.py wrote op_values.txt).
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
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

muster::AttrValue AttrOf(const std::string& text) {
  if (text == "true" || text == "false") return testing::BoolAttr(text == "true");
  if (text[0] == '[') return testing::IntsAttr(IntsOf(text));
  if (absl::StrContains(text, ".")) return testing::FloatAttr(std::stof(text));
  return testing::IntAttr(std::stoll(text));
}

Tensor TensorOf(const std::vector<std::string>& words) {
  DType dtype = pb::DTYPE_INVALID;
  for (const DType type : {kFloat32, kInt32, kInt64, kUInt8, kBool}) {
    if (words[1] == DTypeName(type)) dtype = type;
  }
  Tensor tensor(dtype, Shape(IntsOf(words[2])));
  EXPECT_EQ(static_cast<size_t>(tensor.elements()), words.size() - 3);
  WithType(dtype, [&](auto zero) {
    using T = decltype(zero);
    for (size_t i = 3; i < words.size(); ++i) {
      tensor.data<T>()[i - 3] =
          static_cast<T>(std::is_same_v<T, float> ? std::stof(words[i]) : std::stoll(words[i]));
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
  std::set<std::string> ops;
  for (const ValueCase& one : ReadCases("tests/reference/op_values.txt")) {
    SCOPED_TRACE(one.op + ", line " + std::to_string(one.line));
    ops.insert(one.op);
    const auto results = testing::RunOp(one.op, one.inputs, one.attrs);
    MU_ASSERT_OK(results.status());
    ExpectClose((*results)[0], one.output);
  }
  EXPECT_GE(ops.size(), 30u);
}

}  // namespace
}  // namespace mu
