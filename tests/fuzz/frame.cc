// Frames of the data plane as bytes. What parses is written again and must be the same.
#include "common/rpc/frame.h"

#include <cstring>
#include <numeric>

#include "common/base/check.h"
#include "proto/psserver.pb.h"

namespace mu {
namespace {

template <typename Header>
void TryAs(const Buffer& frame) {
  Header header;
  const auto payload = ParseFrame(frame, &header);
  if (!payload.ok()) return;
  // Reads all of it.
  volatile int sum = std::accumulate(payload->begin(), payload->end(), 0);
  (void)sum;
  FrameWriter writer(header, payload->size());
  std::memcpy(writer.payload, payload->data(), payload->size());
  const Buffer again = std::move(writer.buffer).Finish();
  Header same;
  const auto read = ParseFrame(again, &same);
  MU_CHECK(read.ok() && *read == *payload);
  MU_CHECK(same.SerializeAsString() == header.SerializeAsString());
}

}  // namespace
}  // namespace mu

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const mu::Buffer frame(std::string(reinterpret_cast<const char*>(data), size));
  mu::TryAs<muster::PullRequest>(frame);
  mu::TryAs<muster::PushRequest>(frame);
  mu::TryAs<muster::PullReply>(frame);
  return 0;
}
