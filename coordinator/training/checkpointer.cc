#include "coordinator/training/checkpointer.h"

#include <algorithm>

#include "common/base/status.h"
#include "common/base/steady_now.h"
#include "common/obs/log.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/training/join_with_looks.h"

namespace mu {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(100);
// Between two that are due for what has to be remembered: one that fails, on a full disk say, is
// not tried all the time.
constexpr absl::Duration kBetween = absl::Seconds(1);

}  // namespace

// Notes who takes a checkpoint, while it lives. Its thread holds taking_.
class Checkpointer::Taker {
 public:
  explicit Taker(Checkpointer* checkpointer) : checkpointer_(checkpointer) {
    Note(std::this_thread::get_id());
  }
  ~Taker() { Note(std::thread::id()); }
  Taker(const Taker&) = delete;
  Taker& operator=(const Taker&) = delete;

 private:
  void Note(std::thread::id taker) {
    MutexLock lock(&checkpointer_->mutex_);
    checkpointer_->taker_ = taker;
  }

  Checkpointer* const checkpointer_;
};

Checkpointer::Checkpointer(Coordinator* coordinator, CheckpointerOptions options)
    : coordinator_(coordinator),
      options_(std::move(options)),
      retry_(std::hash<std::string>()(options_.directory)),
      trouble_(SteadyNow()) {
  {
    MutexLock lock(&mutex_);
    last_time_ = SteadyNow();
    last_steps_ = Steps();
    answered_ = Requests();
  }
  coordinator_->EnableRecovery(options_.directory, options_.recovery);
  coordinator_->runtime().SetMostKept(4 * options_.most_uncovered_bytes);
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

uint64_t Checkpointer::Steps() const {
  return options_.steps ? options_.steps() : coordinator_->Counts().steps;
}

bool Checkpointer::Due() {
  if (!coordinator_->begun()) return false;  // there is nothing but initial values
  if (Requests() != answered_) return true;
  if (SteadyNow() - last_time_ >= options_.every) return true;
  const uint64_t steps = Steps();
  // Fewer than at the last one: the data has begun again.
  const uint64_t since = steps < last_steps_ ? steps : steps - last_steps_;
  if (options_.every_steps > 0 && since >= options_.every_steps) return true;
  if (retry_.Due(SteadyNow(), coordinator_->runtime().updates_paused())) return true;
  const Runtime& runtime = coordinator_->runtime();
  return SteadyNow() - last_time_ >= kBetween &&
         (runtime.uncovered_bytes() > options_.most_uncovered_bytes ||
          (options_.most_uncovered > 0 && runtime.uncovered_functions() > options_.most_uncovered));
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
  const Taker taker(this);
  const auto taken = Take(/*beside=*/true);
  const absl::Status& status = taken.status();
  // A job that has ended says itself why.
  const bool ended =
      !coordinator_->runtime().ended().ok() || coordinator_->runtime().IsSuperseded();
  std::string warning;
  {
    MutexLock lock(&mutex_);
    retry_.Ended(SteadyNow(), status);
    if (!ended) warning = trouble_.Failed(SteadyNow(), status);
  }
  if (warning.empty() && !status.ok() && !absl::IsCancelled(status))
    MU_LOG(ERROR, "a checkpoint failed, training goes on: {}", status);
  Warn(warning);
}

void Checkpointer::Warn(const std::string& warning) const {
  if (warning.empty()) return;
  MU_LOG(WARN, "{}", warning);
  if (options_.on_warning) options_.on_warning(warning);
}

absl::Status Checkpointer::CheckIsNoCallback() const {
  MutexLock lock(&mutex_);
  if (taker_ != std::this_thread::get_id()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "this is called by the checkpointer while it takes a checkpoint (on_checkpoint, on_taken or "
      "another callback), and the next one would wait for it for ever; take it when the callback "
      "has returned, or ask for it with CheckpointerOptions::requests");
}

absl::StatusOr<std::string> Checkpointer::TakeNow() {
  MU_RETURN_IF_ERROR(CheckIsNoCallback());
  MutexLock taking(&taking_);
  const Taker taker(this);
  return Take(/*beside=*/false);
}

absl::StatusOr<std::string> Checkpointer::TakeWhole(const std::function<bool()>& look) {
  MU_RETURN_IF_ERROR(CheckIsNoCallback());
  constexpr int kTries = 20;
  absl::Status lost;
  for (int i = 0; i < kTries; ++i) {
    bool waits = true;
    MU_RETURN_IF_ERROR(look == nullptr ? coordinator_->Join() : JoinWithLooks(*coordinator_, [&] {
      return waits = look();
    }));
    if (!waits) return absl::CancelledError("stopped while functions still ran");
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

absl::StatusOr<std::string> Checkpointer::Take(bool beside) {
  pb::CheckpointProto manifest;
  if (options_.describe) options_.describe(&manifest);
  const absl::Time begin = SteadyNow();
  const uint64_t steps = Steps();
  const uint64_t requests = Requests();
  std::string directory, warning;
  const auto saved = beside ? coordinator_->CheckpointBeside(std::move(manifest), &directory)
                            : coordinator_->Checkpoint(std::move(manifest), &directory);
  const absl::Status& status = saved.status();
  {
    MutexLock lock(&mutex_);
    // Also after a failure: a full disk is not asked again at once.
    last_time_ = SteadyNow();
    last_steps_ = steps;
    answered_ = requests;
    if (!status.ok()) {
      ++failed_;
      return status;
    }
    retry_.Ended(SteadyNow(), absl::OkStatus());
    ++taken_;
    warning = trouble_.Succeeded(SteadyNow(), directory);
  }
  MU_LOG(INFO, "checkpoint {} after {} steps, {}", directory, steps, SteadyNow() - begin);
  Warn(warning);
  if (options_.before_pruning) options_.before_pruning(*saved);
  if (const absl::Status pruned = coordinator_->PruneCheckpoints(options_.keep); !pruned.ok())
    MU_LOG(WARN, "old checkpoints: {}", pruned);
  if (options_.on_taken) options_.on_taken(directory);
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
