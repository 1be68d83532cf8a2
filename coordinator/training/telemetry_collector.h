// Gathers counters, timers and spans of all processes of a run. Thread safe.
#pragma once

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "common/base/mutex.h"
#include "common/obs/chrome_trace.h"
#include "common/obs/clock_samples.h"
#include "coordinator/cluster/coordinator.h"
#include "coordinator/training/train_job.h"

namespace mu {

// It asks all processes every few seconds, so that one that is killed is in the sums with what it
// said last. With `trace` it switches tracing on everywhere and takes the spans every second (the
// processes hold a bounded number); what was lost is said in the trace. Daemons that join later are
// included.
class TelemetryCollector {
 public:
  TelemetryCollector(Coordinator* coordinator, bool trace);
  ~TelemetryCollector();

  // Asks everybody once more and ends the thread. Call while the daemons live.
  void Stop();
  // Sums over all processes by name; for processes that are gone, what they said last.
  std::map<std::string, PartTime> TimeByPart() const;
  absl::Status WriteTrace(const std::string& path) const;

 private:
  struct Process {
    std::string name;
    std::map<std::string, PartTime> timers;
    uint64_t dropped_spans = 0;
    uint64_t answered = 0;  // which poll, last
    ClockSamples clock;
    struct Spans {
      size_t sample;                     // of the clock, of the answer that brought them
      std::vector<pb::SpanProto> spans;  // on the process's clock
    };
    std::vector<Spans> spans;
  };
  void Run();
  // Before the last one, cut short once Stop is called.
  void Poll(bool last);
  void EndThread();
  void Store(const std::string& key, const std::string& name, pb::TelemetryReply reply,
             uint64_t asked_ns, uint64_t answered_ns) ABSL_LOCKS_EXCLUDED(mutex_);
  // Keeps the number of processes that are gone within bounds; their times stay in the sums.
  void ForgetOldest() ABSL_LOCKS_EXCLUDED(mutex_);

  Coordinator* const coordinator_;
  const bool trace_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t polls_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, Process> processes_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, PartTime> forgotten_ ABSL_GUARDED_BY(mutex_);  // of those, all together
  std::thread thread_;
};

}  // namespace mu
