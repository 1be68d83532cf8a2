// Requests about parts of variables and tables as a client of another make may send them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/psserver/cluster.h"
#include "tests/psserver/frames.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::HasCode;
using ::mu::testing::StatusIs;
using ::testing::HasSubstr;

constexpr uint32_t kBias = 1, kSteps = 2, kSeen = 3, kAverage = 4, kKernel = 5, kItems = 100;
constexpr int64_t kRows = 300, kColumns = 700;  // of the kernel
constexpr size_t kDim = 16;                     // of items

// What a client of another make may send.
class MadeByHandTest : public ::testing::Test {
 protected:
  MadeByHandTest() {
    context_.set_job(1);
    context_.set_epoch(1);
    context_.set_generation(1);
    pb::ConfigurePsRequest request;
    *request.mutable_context() = context_;
    *request.mutable_routing() = testing::SmallModel(1);
    MU_EXPECT_OK(server_.Configure(request));
  }
  absl::Status Push(uint32_t variable, pb::VariableUpdate::Kind kind, uint32_t rows,
                    const std::string& payload, int times = 1) {
    pb::PushRequest request;
    *request.mutable_context() = context_;
    request.set_function(++function_);
    for (int i = 0; i < times; ++i) {
      auto* update = request.add_variables();
      update->set_variable(variable);
      update->set_kind(kind);
      update->set_rows(rows);
    }
    return testing::PushAndWait(&server_, testing::Frame(request, payload)).status();
  }

  Telemetry telemetry_;
  PsServer server_{{.telemetry = &telemetry_}};
  pb::RequestContext context_;
  uint64_t function_ = 0;
};

TEST_F(MadeByHandTest, PushesOfPartsAreChecked) {
  using testing::Bytes;
  const auto scatter = pb::VariableUpdate::SCATTER_ADD;
  const auto product = pb::VariableUpdate::PRODUCT_GRADIENT;
  const std::string row = Bytes<int64_t>({2}) + Bytes<int32_t>({1, 0});
  MU_EXPECT_OK(Push(kSeen, scatter, 1, row));
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(Push(kSeen, scatter, 1, row + row, 2), StatusIs(invalid, HasSubstr("twice")));
  EXPECT_THAT(Push(kSeen, scatter, 2, row), HasCode(invalid)) << "shorter than it says";
  EXPECT_THAT(Push(kSeen, scatter, 1, Bytes<int64_t>({4}) + Bytes<int32_t>({1, 0})),
              HasCode(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(Push(kAverage, scatter, 2, Bytes<int64_t>({1, 1}) + Bytes<float>({3e38f, 3e38f})),
              StatusIs(invalid, HasSubstr("NaN or infinity")))
      << "the sum is not finite";
  const auto update = pb::VariableUpdate::SCATTER_UPDATE, assign = pb::VariableUpdate::ASSIGN;
  MU_EXPECT_OK(Push(kSeen, update, 1, row));
  EXPECT_THAT(Push(kSeen, update, 1, row + row, 2), StatusIs(invalid, HasSubstr("twice")));
  EXPECT_THAT(Push(kSeen, update, 2, row), HasCode(invalid)) << "shorter than it says";
  EXPECT_THAT(Push(kSeen, update, 1, Bytes<int64_t>({4}) + Bytes<int32_t>({1, 0})),
              HasCode(absl::StatusCode::kOutOfRange));
  const float infinite = std::numeric_limits<float>::infinity();
  EXPECT_THAT(Push(kAverage, update, 1, Bytes<int64_t>({1}) + Bytes<float>({infinite, 0})),
              StatusIs(invalid, HasSubstr("NaN or infinity")));
  EXPECT_THAT(Push(kAverage, assign, 0, Bytes<float>({0, infinite, 0, 0})),
              StatusIs(invalid, HasSubstr("NaN or infinity")));
  EXPECT_THAT(Push(kSteps, assign, 0, ""), HasCode(invalid)) << "shorter than the variable";
  EXPECT_THAT(Push(kSteps, product, 1, ""), HasCode(invalid)) << "no optimizer";
  EXPECT_THAT(Push(kBias, product, 1, std::string(64, '\0')),
              StatusIs(invalid, HasSubstr("no float32 matrix")));
  EXPECT_THAT(Push(kKernel, product, 1u << 31, ""), StatusIs(invalid, HasSubstr("records")));
  EXPECT_THAT(Push(kKernel, product, 1000, std::string(64, '\0')), HasCode(invalid));
}

// x is that of the product before only if nothing comes in between, and the batch is as large.
TEST_F(MadeByHandTest, ProductsShareWhatTheyMultiplyIfTheyFollowEachOther) {
  pb::PushRequest request;
  *request.mutable_context() = context_;
  const auto add = [&](uint32_t variable, pb::VariableUpdate::Kind kind, uint32_t partition,
                       uint32_t rows) {
    auto* update = request.add_variables();
    update->set_variable(variable);
    update->set_kind(kind);
    update->set_partition(partition);
    update->set_rows(rows);
  };
  const auto push = [&](const std::string& payload) {
    request.set_function(++function_);
    return testing::PushAndWait(&server_, testing::Frame(request, payload)).status();
  };
  const auto product = pb::VariableUpdate::PRODUCT_GRADIENT;
  const std::string dy(100 * sizeof(float), '\0'), x(kColumns * sizeof(float), '\0');
  add(kKernel, product, 0, 1);
  add(kKernel, product, 1, 1);
  MU_EXPECT_OK(push(dy + x + dy));
  EXPECT_THAT(push(dy + x + dy + x), HasCode(absl::StatusCode::kInvalidArgument));
  request.mutable_variables(1)->set_rows(2);
  EXPECT_THAT(push(dy + x + dy + dy),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("several sizes")));
  request.mutable_variables()->RemoveLast();
  add(kSteps, pb::VariableUpdate::ASSIGN_ADD, 0, 0);
  add(kKernel, product, 1, 1);
  MU_EXPECT_OK(push(dy + x + std::string(8, '\0') + dy + x));
}

TEST_F(MadeByHandTest, PullsOfPartsAreChecked) {
  pb::PullRequest request;
  *request.mutable_context() = context_;
  auto* key = request.add_variables();
  key->set_variable(kKernel);
  const auto rows = [&](uint64_t first, uint64_t count) {
    key->set_first_row(first);
    key->set_rows(count);
    return server_.Pull(testing::Frame(request, "")).status();
  };
  MU_EXPECT_OK(rows(99, 1));
  EXPECT_THAT(rows(99, 2), HasCode(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(rows(2, std::numeric_limits<uint64_t>::max()),
              HasCode(absl::StatusCode::kOutOfRange));
  request.clear_variables();
  auto* product = request.add_products();
  const auto refused = [&](uint32_t variable, uint32_t batch, uint32_t partition) {
    product->set_variable(variable);
    product->set_rows(batch);
    product->set_partition(partition);
    EXPECT_THAT(server_.Pull(testing::Frame(request, std::string(64, '\0'))),
                HasCode(absl::StatusCode::kInvalidArgument))
        << variable;
  };
  refused(kKernel, 1, 0);  // its x is missing
  refused(kKernel, 1, 9);
  refused(kSteps, 1, 0);
  refused(77, 1, 0);
}

TEST_F(MadeByHandTest, ScansAreChecked) {
  pb::ScanRequest request;
  *request.mutable_context() = context_;
  request.set_table(kItems);
  request.set_most_rows(1);
  MU_EXPECT_OK(server_.Scan(request));
  request.set_position(std::numeric_limits<uint64_t>::max());
  MU_EXPECT_OK(server_.Scan(request)) << "beyond the end there is nothing";
  request.set_most_rows(0);
  EXPECT_THAT(server_.Scan(request), HasCode(absl::StatusCode::kInvalidArgument));
  request.set_most_rows(1);
  request.set_partition(64);
  EXPECT_THAT(server_.Scan(request), HasCode(absl::StatusCode::kInvalidArgument));
  request.set_partition(0);
  request.set_table(7);
  EXPECT_THAT(server_.Scan(request), HasCode(absl::StatusCode::kInvalidArgument));
  request.mutable_context()->set_job(9);
  EXPECT_THAT(server_.Scan(request), HasCode(absl::StatusCode::kFailedPrecondition));
}

TEST_F(MadeByHandTest, OtherRowsUnderOnePlaceAreNoRepeat) {
  pb::AssignRequest request;
  *request.mutable_context() = context_;
  request.set_function(1);
  request.set_variable(kItems);
  request.set_table(true);
  request.add_rows(64);
  request.set_value(testing::Bytes(std::vector<float>(kDim, 2.0f)));
  MU_ASSERT_OK(testing::AssignAndWait(&server_, request));
  MU_ASSERT_OK_AND_ASSIGN(const pb::AssignReply again, testing::AssignAndWait(&server_, request));
  EXPECT_TRUE(again.repeated());
  request.set_rows(0, 128);
  EXPECT_THAT(testing::AssignAndWait(&server_, request),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("place 1 among")))
      << "other rows are no repeat";
  request.set_function(2);
  request.add_rows(128);
  request.set_value(testing::Bytes(std::vector<float>(2 * kDim, 2.0f)));
  EXPECT_THAT(testing::AssignAndWait(&server_, request),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("twice")));
  request.mutable_rows()->RemoveLast();
  EXPECT_THAT(testing::AssignAndWait(&server_, request),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("takes 64 bytes")));
  request.set_value(testing::Bytes(std::vector<float>(kDim, std::nanf(""))));
  EXPECT_THAT(testing::AssignAndWait(&server_, request),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("NaN")));
  request.set_value(testing::Bytes(std::vector<float>(kDim, 2.0f)));
  request.set_rows(0, 65);
  EXPECT_THAT(testing::AssignAndWait(&server_, request), HasCode(absl::StatusCode::kOutOfRange))
      << "65 is not in partition 0";
}

}  // namespace
}  // namespace mu
