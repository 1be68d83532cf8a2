#include "coordinator/training/checkpointer.h"

#include <algorithm>

#include "common/base/steady_now.h"
#include "common/obs/log.h"
#include "coordinator/cluster/checkpoint_manifest.h"

namespace mu {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(100);
// Between two that are due for what has to be remembered: one that fails, on a full disk say, is
// not tried all the time.
constexpr absl::Duration kBetween = absl::Seconds(1);
// Where servers are lost often, hardly a checkpoint would come to its end if each that was ended by
// that were taken again only when the next is due.
constexpr absl::Duration kFirstPause = absl::Seconds(1), kLongestPause = absl::Seconds(30);

}  // namespace

Checkpointer::Checkpointer(Coordinator* coordinator, CheckpointerOptions options)
    : coordinator_(coordinator), options_(std::move(options)) {
  {
    MutexLock lock(&mutex_);
    last_time_ = SteadyNow();
    pause_ = kFirstPause;
    last_steps_ = coordinator_->Stats().steps;
    answered_ = Requests();
  }
  coordinator_->EnableRecovery(options_.directory, options_.recovery);
  thread_ = std::thread([this] { Run(); });
}

Checkpointer::~Checkpointer() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  thread_.join();
}

uint64_t Checkpointer::Requests() const {
  return options_.requests == nullptr ? 0 : options_.requests->load();
}

bool Checkpointer::Due() {
  if (!coordinator_->begun()) return false;  // there is nothing but initial values
  if (Requests() != answered_) return true;
  if (SteadyNow() - last_time_ >= options_.every) return true;
  if (options_.every_steps > 0 && coordinator_->Stats().steps >= last_steps_ + options_.every_steps)
    return true;
  if (SteadyNow() >= again_) return true;
  return SteadyNow() - last_time_ >= kBetween &&
         coordinator_->runtime().uncovered_functions() > options_.most_uncovered;
}

void Checkpointer::Run() {
  while (true) {
    {
      MutexLock lock(&mutex_);
      if (!stopping_) changed_.WaitFor(&mutex_, kLook);
      if (stopping_) return;
      if (!Due()) continue;
    }
    TakeIfDue();
  }
}

void Checkpointer::TakeIfDue() {
  MutexLock taking(&taking_);
  {
    // Somebody else's TakeNow may have been waited for.
    MutexLock lock(&mutex_);
    if (stopping_ || !Due()) return;
  }
  const auto taken = Take();
  if (!taken.ok() && !absl::IsCancelled(taken.status())) {
    MU_LOG(ERROR, "a checkpoint failed, training goes on: {}", taken.status());
  }
  MutexLock lock(&mutex_);
  again_ = absl::InfiniteFuture();
  if (!absl::IsUnavailable(taken.status())) return;
  again_ = SteadyNow() + pause_;
  pause_ = std::min(2 * pause_, kLongestPause);
}

absl::StatusOr<std::string> Checkpointer::TakeNow() {
  MutexLock taking(&taking_);
  return Take();
}

absl::StatusOr<std::string> Checkpointer::TakeWhole() {
  constexpr int kTries = 20;
  absl::Status lost;
  for (int i = 0; i < kTries; ++i) {
    MU_RETURN_IF_ERROR(coordinator_->Join());
    const auto taken = TakeNow();
    if (!taken.ok() && !absl::IsUnavailable(taken.status())) return taken;
    lost = taken.status();
    if (!taken.ok()) continue;  // waits for the servers
    MU_ASSIGN_OR_RETURN(const pb::CheckpointProto manifest, ReadManifest(*taken));
    if (manifest.position().functions().empty()) return taken;
    lost = absl::UnavailableError("servers are lost again and again");
  }
  return lost;
}

absl::StatusOr<std::string> Checkpointer::Take() {
  pb::CheckpointProto manifest;
  if (options_.describe) options_.describe(&manifest);
  const absl::Time begin = SteadyNow();
  const uint64_t steps = coordinator_->Stats().steps;
  const uint64_t requests = Requests();
  std::string directory;
  const absl::Status status = coordinator_->Checkpoint(std::move(manifest), &directory).status();
  MutexLock lock(&mutex_);
  // Also after a failure: a full disk is not asked again at once.
  last_time_ = SteadyNow();
  last_steps_ = steps;
  answered_ = requests;
  if (!status.ok()) {
    ++failed_;
    return status;
  }
  again_ = absl::InfiniteFuture();
  pause_ = kFirstPause;
  ++taken_;
  MU_LOG(INFO, "checkpoint {} after {} steps, {}", directory, steps, SteadyNow() - begin);
  if (const absl::Status pruned = coordinator_->PruneCheckpoints(options_.keep); !pruned.ok())
    MU_LOG(WARN, "old checkpoints: {}", pruned);
  return directory;
}

uint64_t Checkpointer::taken() const {
  MutexLock lock(&mutex_);
  return taken_;
}

uint64_t Checkpointer::failed() const {
  MutexLock lock(&mutex_);
  return failed_;
}

}  // namespace mu
