#include "common/rpc/status_proto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/error_kind.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

absl::Status OverTheWire(const absl::Status& status) {
  pb::StatusProto proto;
  EXPECT_TRUE(proto.ParseFromString(ToProto(status).SerializeAsString()));
  return FromProto(proto);
}

TEST(StatusProto, KeepsCodeMessageAndDetails) {
  MU_EXPECT_OK(OverTheWire(absl::OkStatus()));
  const absl::Status sent = WithKind(absl::DataLossError("caf\xC3\xA9.csv is damaged"),
                                     pb::ERROR_MACHINE, pb::ROLE_WORKER, 3);
  EXPECT_EQ(OverTheWire(sent), sent);
}

// protobuf refuses a message with such a text.
TEST(StatusProto, BytesThatAreNoTextBecomeQuestionMarks) {
  const absl::Status sent = WithKind(absl::NotFoundError("there is no caf\xE9.csv \xFF"),
                                     pb::ERROR_MACHINE, pb::ROLE_PSSERVER, 2);
  const absl::Status received = OverTheWire(sent);
  EXPECT_THAT(received, testing::StatusIs(absl::StatusCode::kNotFound,
                                          ::testing::Eq("there is no caf?.csv ?")));
  ASSERT_TRUE(DetailOf(received).has_value());
  EXPECT_EQ(DetailOf(received)->index(), 2u);
}

}  // namespace
}  // namespace mu
