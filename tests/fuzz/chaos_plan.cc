// --chaos plans: their text, and the first events of those that parse.
#include "coordinator/launch/chaos_plan.h"

#include <string>

#include "common/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto plan = mu::ChaosPlan::Parse(std::string(reinterpret_cast<const char*>(data), size));
  if (!plan.ok()) return 0;
  absl::Duration before;
  for (int i = 0; i < 50; ++i) {
    const auto event = plan->Next();
    if (!event.has_value()) break;
    MU_CHECK(event->at >= before);
    before = event->at;
  }
  return 0;
}
