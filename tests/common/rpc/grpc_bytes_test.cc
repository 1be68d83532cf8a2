// What only gRPC has: bytes from strangers at its port, its sizes, its statuses.
#if MUSTER_WITH_GRPC
#include "common/rpc/grpc_bytes.h"

#include <vector>

#include "common/base/status.h"
#include "tests/common/rpc/transport_fixture.h"
#include "tests/testing/stranger.h"

namespace mu {
namespace {

using ::mu::testing::Dial;
using ::mu::testing::HasCode;
using ::mu::testing::Noise;
using ::mu::testing::StatusIs;
using ::testing::HasSubstr;

TEST(GrpcPort, StrangersDoNoHarm) {
  auto transport = NewGrpcTransport();
  MU_ASSERT_OK_AND_ASSIGN(auto server, transport->Listen("127.0.0.1:0", EchoMethods()));
  auto channel = transport->Connect(server->address(), pb::ROLE_PSSERVER);
  MU_ASSERT_OK(CallText(*channel, "/test/Echo", "x"));
  std::vector<UniqueFd> open;
  SplitMix random(11);
  for (int i = 0; i < 20; ++i) {
    UniqueFd fd = Dial(server->address());
    std::string bytes = i % 3 == 0   ? "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
                        : i % 3 == 1 ? "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                                     : "";
    bytes += Noise(&random, 4000);
    (void)send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (i % 2 == 0) open.push_back(std::move(fd));
    EXPECT_EQ(CallText(*channel, "/test/Echo", "still here").value(), "still here");
  }
  auto other = transport->Connect(server->address(), pb::ROLE_PSSERVER);
  EXPECT_EQ(CallText(*other, "/test/Echo", "and new ones come in").value(), "and new ones come in");
}

TEST(GrpcPort, TooLargeAMessageIsRefusedAndTheConnectionStays) {
  auto transport = NewGrpcTransport({.max_message_bytes = 10'000});
  MU_ASSERT_OK_AND_ASSIGN(auto server, transport->Listen("127.0.0.1:0", EchoMethods()));
  auto channel = transport->Connect(server->address(), pb::ROLE_PSSERVER);
  EXPECT_THAT(CallText(*channel, "/test/Echo", std::string(20'000, 'x')).status(),
              HasCode(absl::StatusCode::kResourceExhausted));
  auto large = NewGrpcTransport();
  auto generous = large->Connect(server->address(), pb::ROLE_PSSERVER);
  EXPECT_THAT(CallText(*generous, "/test/Echo", std::string(20'000, 'x')).status(),
              HasCode(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(CallText(*generous, "/test/Echo", std::string(5'000, 'x')).value().size(), 5'000u);
}

TEST(GrpcPort, AddressesThatAreWrongSayWhy) {
  auto transport = NewGrpcTransport();
  EXPECT_THAT(transport->Listen("nothing", {}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("HOST:PORT")));
  EXPECT_THAT(transport->Listen("127.0.0.1:99999", {}).status(),
              HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(transport->Listen("192.0.2.1:0", {}).status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("give a host")));
}

TEST(GrpcBytes, LargeBuffersTravelWithoutACopy) {
  auto owner = std::make_shared<std::string>(100'000, 'x');
  std::weak_ptr<std::string> weak = owner;
  const char* data = owner->data();
  {
    const grpc::ByteBuffer bytes = ToByteBuffer(Buffer(std::move(owner), data, 100'000));
    EXPECT_FALSE(weak.expired());
    grpc::Slice slice;
    ASSERT_TRUE(bytes.TrySingleSlice(&slice).ok());
    EXPECT_EQ(static_cast<const void*>(slice.begin()), data);
    const Buffer back = FromByteBuffer(bytes);
    EXPECT_EQ(back.size(), 100'000u);
    if (reinterpret_cast<uintptr_t>(data) % 16 == 0) {
      EXPECT_EQ(back.data(), data);
    }
  }
  EXPECT_TRUE(weak.expired());
}

TEST(GrpcBytes, PiecesBecomeOne) {
  grpc::Slice slices[] = {grpc::Slice("abc"), grpc::Slice(std::string(1000, 'd')),
                          grpc::Slice("e")};
  const Buffer buffer = FromByteBuffer(grpc::ByteBuffer(slices, 3));
  EXPECT_EQ(TextOf(buffer), "abc" + std::string(1000, 'd') + "e");
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 16, 0u);
}

TEST(GrpcStatus, EveryCodeAndPayloadRoundTrips) {
  for (int code = 0; code <= 16; ++code) {
    absl::Status status(static_cast<absl::StatusCode>(code), "text");
    if (!status.ok())
      status.SetPayload("type.googleapis.com/muster.ErrorDetail",
                        absl::Cord(std::string("\x08\x03", 2)));
    EXPECT_EQ(FromGrpcStatus(ToGrpcStatus(status)), status);
  }
  // Details of strangers that are no StatusProto are left out.
  EXPECT_EQ(FromGrpcStatus(grpc::Status(grpc::StatusCode::INTERNAL, "m", "\xFF\xFF")),
            absl::InternalError("m"));
}

}  // namespace
}  // namespace mu
#endif
