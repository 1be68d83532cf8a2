// The numbers of a job that are asked for at any rate: the loop writes them after each event,
// whoever wants them reads them and waits for nobody. Thread safe.
#pragma once

#include <atomic>
#include <cstdint>

#include "coordinator/cluster/runtime_types.h"

namespace mu {

class PublishedCounts {
 public:
  void Publish(const RuntimeCounts& counts) {
    Visit(*this, counts,
          [](auto& published, auto value) { published.store(value, std::memory_order_relaxed); });
  }
  // Each number is of the latest event, or of one of the latest.
  RuntimeCounts Read() const {
    RuntimeCounts counts;
    Visit(*this, counts, [](const auto& published, auto& value) {
      value = published.load(std::memory_order_relaxed);
    });
    return counts;
  }

 private:
  template <typename Published, typename Counts, typename Copy>
  static void Visit(Published& published, Counts& counts, const Copy& copy) {
    copy(published.functions_, counts.functions);
    copy(published.runs_, counts.runs);
    copy(published.steps_, counts.steps);
    copy(published.samples_, counts.samples);
    copy(published.bad_records_, counts.bad_records);
    copy(published.workers_ready_, counts.workers_ready);
    copy(published.servers_, counts.servers);
    copy(published.unfinished_, counts.unfinished);
    copy(published.updates_paused_, counts.updates_paused);
  }

  std::atomic<uint64_t> functions_ = 0, runs_ = 0, steps_ = 0, samples_ = 0, bad_records_ = 0;
  std::atomic<size_t> workers_ready_ = 0, servers_ = 0, unfinished_ = 0;
  std::atomic<bool> updates_paused_ = false;
};

}  // namespace mu
