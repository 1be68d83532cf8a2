#include "worker/held_results.h"

#include <cstddef>
#include <utility>

#include "common/rpc/resumable_end.h"

namespace mu {

muster::RunReply SendAllButLast(ServerCall& call, muster::RunReply held) {
  muster::RunReply reply;
  size_t bytes = 0;
  for (muster::StepResult& step : *held.mutable_steps()) {
    const size_t more = step.ByteSizeLong();
    if (bytes > 0 && bytes + more > kMessageBytes) {
      call.Send(Buffer(reply.SerializeAsString()));
      reply.Clear();
      bytes = 0;
    }
    bytes += more;
    *reply.add_steps() = std::move(step);
  }
  return reply;
}

}  // namespace mu
