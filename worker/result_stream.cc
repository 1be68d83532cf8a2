#include "worker/result_stream.h"

#include <utility>

namespace mu {

void ResultStream::Add(muster::StepResult result, uint64_t now_ns) {
  *held_.add_steps() = std::move(result);
  if (sent_ && now_ns - last_sent_ns_ < kGroupNs) return;
  Flush();
  sent_ = true;
  last_sent_ns_ = now_ns;
}

void ResultStream::HandBack() {
  held_.set_handed_back(true);
  call_->Send(Buffer(held_.SerializeAsString()));
  held_.Clear();
}

void ResultStream::Flush() {
  if (held_.steps_size() == 0) return;
  call_->Send(Buffer(held_.SerializeAsString()));
  held_.Clear();
}

}  // namespace mu
