// A worker of the simulation: a shell around the product's core, as worker/core_shell.h is one. It
// brings messages to the core and carries out its actions; a step takes some time, pulls from all
// servers and pushes to them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "common/base/resumable_stream.h"
#include "tests/sim/daemon.h"
#include "tests/sim/message.h"
#include "worker/core/core.h"

namespace mu::sim {

class Worker final : public Daemon {
 public:
  Worker(Cluster* cluster, Slot slot, uint64_t incarnation);

  // The running step is the last, the rest is handed back; then it leaves.
  void Drain() override;
  // It has lost what was installed, or a part of it.
  void Forget();
  // Its next result makes no sense.
  void Garble() { garbles_ = true; }

 private:
  // A call that has not been answered: a run or a cancellation.
  struct Open {
    Message request;
    uint32_t next_step = 0;
  };

  absl::Time Now() const { return At(now()); }

  // Requests.
  void OnMember(const Message& reply, Time sent) override;
  void HandleRequest(const Message& message) override;
  void AfterAll() override;
  void Install(const Message& message);
  absl::Status Configure(const Routing& routing);
  void Installed(const Message& request, WorkerCore::InstallToken token);
  void LookThrough(const Message& scan);
  absl::Status CannotSee(uint32_t file) const;  // OK: it can
  void AddRun(const Message& message);
  void CancelRun(const Message& message);
  void CancelBelow(const Message& message);

  // Actions.
  void Do(const worker_action::RunStep& a);
  void Do(const worker_action::SendResults& a);
  void Do(const worker_action::EndRun& a);
  void Do(const worker_action::Cancelled& a);
  void Do(const worker_action::InterruptCall&);
  void Do(const worker_action::UseRouting&) { routing_ = offered_; }
  void Do(const worker_action::ForgetInstalled&) {}
  Message Take(CallId id) { return open_.extract(id).mapped().request; }
  void SendToCaller(const Message& request, Message message);

  // The coordinator's stream.
  struct Feed {
    Slot coordinator = kNowhere;
    uint64_t coordinator_incarnation = 0;
    uint32_t stream = 0, connection = 0;
    bool open = false;
    ResumableStream<Message> end;
  };
  void OpenFeed(const Message& message);
  void OnFeed(const Message& message);
  void WriteAll();

  // The running step.
  void CallServers(bool push);
  void OnServersDone(bool push, uint32_t generation, const absl::Status& status,
                     const Messages& answers);
  void Computed();
  void StepEnded(const absl::Status& status) { core_.StepEnded(Now(), status, &actions_); }
  absl::Status UserErrorOf(const Message& run) const;
  // What the checker wants of a run that begins, of a cancellation that is answered.
  void CheckBegin(const Open& run);
  void CheckCancelled(CallId id, const Message& cancel);

  WorkerCore core_;
  Feed feed_;
  WorkerActions actions_;  // that the core wants
  std::map<CallId, Open> open_;
  CallId last_call_;
  std::vector<std::pair<Time, Message>> waiting_;  // for the registration, since when
  Routing offered_, routing_;
  absl::Time alarm_ = absl::InfiniteFuture();  // that is set
  bool left_ = false, garbles_ = false;
  CallId running_;
  uint32_t step_ = 0;
  uint32_t server_calls_ = 0;  // of its pulls or pushes
  uint32_t pulled_ = 0;        // the generation of what the step has read
  Messages read_;              // by server: what it answered to the step's pull
  bool again_ = false;         // the step's gradients were too late
  std::vector<Message> held_;  // results
  // For the checker: by coordinator, runs that have come, and the newest that has begun; and of
  // which epoch functions are.
  std::set<std::pair<uint64_t, uint64_t>> arrived_;
  std::map<uint64_t, uint64_t> begun_;
  std::map<Fingerprint, uint32_t> compiled_in_;
};

}  // namespace mu::sim
