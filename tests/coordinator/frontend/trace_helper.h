// Traces small functions for the front end's tests.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/base/hash.h"
#include "coordinator/passes/trace.h"
#include "tests/testing/fake_factory.h"
#include "tests/testing/matchers.h"

namespace mu {

inline Dataset MakeDataset(const DatasetSpec& spec, uint64_t id = 1) {
  pb::DatasetProto proto = spec.ToProto().value();
  proto.set_id(id);
  return Dataset(std::move(proto));
}

inline Dataset Criteo() { return MakeDataset(CriteoTsv({"x.tsv"}, 7).Batch(4)); }

inline Variable MakeVariable(const std::string& name, const Shape& shape, DType dtype = kFloat32,
                             uint32_t id = 1) {
  pb::VariableProto proto =
      VariableSpec{.name = name, .shape = shape, .dtype = dtype}.ToProto().value();
  proto.set_id(id);
  if (proto.trainable()) proto.mutable_optimizer()->mutable_sgd()->set_learning_rate(1);
  return Variable(std::move(proto));
}

// The error that tracing gives, which must be the user's and name this file and the line.
inline std::string TraceError(int line, const std::function<void(FunctionBuilder&)>& build) {
  const auto traced = Trace("f", build);
  if (traced.ok()) {
    ADD_FAILURE() << "there was no error";
    return "";
  }
  EXPECT_EQ(traced.status().code(), absl::StatusCode::kInvalidArgument) << traced.status();
  EXPECT_EQ(KindOf(traced.status()), pb::ERROR_USER);
  const auto detail = DetailOf(traced.status());
  if (!detail) {
    ADD_FAILURE() << "no detail: " << traced.status();
    return "";
  }
  EXPECT_EQ(detail->location().line(), line) << traced.status();
  EXPECT_THAT(detail->location().file(), ::testing::HasSubstr("_test.cc"));
  EXPECT_THAT(std::string(traced.status().message()),
              ::testing::HasSubstr("_test.cc:" + std::to_string(line)));
  EXPECT_THAT(std::string(traced.status().message()), ::testing::HasSubstr("function \"f\""));
  return std::string(traced.status().message());
}

}  // namespace mu
