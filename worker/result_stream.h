// Sends the results of a run's steps, those of very quick steps several in one message.
//
// For one thread at a time.
#pragma once

#include <cstdint>
#include <memory>

#include "common/rpc/transport.h"
#include "proto/worker.pb.h"

namespace mu {

class ResultStream {
 public:
  // A result is held back only while less than this has passed since the last message.
  static constexpr uint64_t kGroupNs = 2'000'000;

  explicit ResultStream(std::shared_ptr<ServerCall> call) : call_(std::move(call)) {}

  // `now_ns` is a monotonic time.
  void Add(muster::StepResult result, uint64_t now_ns);
  // Sends what is held back. Before the call is finished, however it ends.
  void Flush();
  // The steps that are left are for another worker. Before the call is finished OK.
  void HandBack();

 private:
  const std::shared_ptr<ServerCall> call_;
  muster::RunReply held_;
  bool sent_ = false;
  uint64_t last_sent_ns_ = 0;
};

}  // namespace mu
