// What parameter servers answer to a worker's pull and push: frames and messages of any content.
#include <cstring>
#include <memory>
#include <vector>

#include "common/base/mutex.h"
#include "common/client/ps_client.h"
#include "common/rpc/frame.h"
#include "common/rpc/thread_pool.h"
#include "tests/fuzz/small_model.h"
#include "tests/fuzz/structured.h"

namespace mu {
namespace {

// The bytes of any message in a frame's header.
Buffer FrameOf(const std::string& header, const std::string& payload) {
  const size_t offset =
      (sizeof(uint32_t) + header.size() + kFrameAlignment - 1) / kFrameAlignment * kFrameAlignment;
  MutableBuffer buffer(offset + payload.size());
  std::memset(buffer.data(), 0, offset);
  const uint32_t size = static_cast<uint32_t>(header.size());
  std::memcpy(buffer.data(), &size, sizeof(size));
  std::memcpy(buffer.data() + sizeof(size), header.data(), header.size());
  std::memcpy(buffer.data() + offset, payload.data(), payload.size());
  return std::move(buffer).Finish();
}

class NoCall final : public ClientCall {
 public:
  void Cancel() override {}
};

// Answers each call with the next reply of the input, from a thread of its own.
class AnsweringChannel final : public Channel {
 public:
  explicit AnsweringChannel(const fuzz::PsReplies& input) : input_(input), threads_(1) {}
  std::shared_ptr<ClientCall> Unary(const std::string&, Buffer, CallOptions,
                                    std::function<void(absl::Status, Buffer)> done) override {
    threads_.Post([this, done = std::move(done)] {
      if (next_ >= input_.replies_size())
        return done(absl::InvalidArgumentError("no more"), Buffer());
      const fuzz::PsReply& reply = input_.replies(next_++);
      done(absl::Status(static_cast<absl::StatusCode>(reply.code() & 15), "as the input says"),
           reply.raw() ? Buffer(reply.payload()) : FrameOf(reply.header(), reply.payload()));
    });
    return std::make_shared<NoCall>();
  }
  std::shared_ptr<ClientCall> ServerStream(const std::string&, Buffer, CallOptions,
                                           std::function<void(Buffer)>,
                                           std::function<void(absl::Status)>) override {
    return nullptr;
  }
  std::shared_ptr<ClientStream> Converse(const std::string&, Conversation,
                                         std::function<void(absl::Status)>) override {
    return nullptr;
  }

 private:
  const fuzz::PsReplies& input_;
  int next_ = 0;  // of threads_
  ThreadPool threads_;
};

}  // namespace
}  // namespace mu

MUSTER_FUZZ_MESSAGE(muster::fuzz::PsReplies) {
  const auto channel = std::make_shared<mu::AnsweringChannel>(input);
  mu::PsClient client([&](const std::string&) { return channel; },
                      {.call_timeout = absl::Milliseconds(100),
                       .total_timeout = absl::Milliseconds(2),
                       .first_backoff = absl::Microseconds(100),  // some tries, little waiting
                       .longest_backoff = absl::Microseconds(500)});
  MU_CHECK(client.SetRouting(mu::fuzzing::SmallModel()).ok());
  mu::PsSession session(&client, {.context = mu::fuzzing::SmallContext(), .function = 1});
  std::vector<float> weights(12), bias(1), items(6), users(2);
  std::vector<int64_t> steps(1), item_ids = {3, 8, 39}, user_ids = {0, 8};
  std::vector<int32_t> seen(2);
  for (uint32_t step = 0; step < 2; ++step) {
    session.BeginStep(step);
    (void)session.Pull({{0, weights.data()}, {1, bias.data()}, {2, steps.data()}, {3, seen.data()}},
                       {{100, item_ids, items.data()}, {101, user_ids, users.data()}});
    (void)session.Push({{0, mu::VariableWrite::kGradient, weights.data()},
                        {2, mu::VariableWrite::kAssignAdd, steps.data()}},
                       {{100, item_ids, items.data()}});
  }
}
