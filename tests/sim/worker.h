// A worker of the simulation: a shell around the product's core, as worker/core_shell.h is one. It
// brings messages to the core and carries out its actions; a step takes some time, pulls from all
// servers and pushes to them. CallRetries says which calls to servers are made again.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "common/client/call_retries.h"
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
    CallId id;
    Message request;
    uint32_t next_step = 0;
    Time arrived = 0;
  };
  // Calls of the running step to all servers.
  struct ServerCalls {
    std::optional<CallRetries> retries;  // of those that are under way
    bool push = false;
    bool interrupted = false;
    bool repeated = true;  // by all that have answered
    uint32_t id = 0;       // of all of them
    WorkerCore::CallContext context;
    Routing routing;
    std::array<uint32_t, kMaxServers> open{};  // 0: answered, or waits for its next try
    std::array<uint8_t, kMaxServers> updates{}, inherited{};
  };

  absl::Time Now() const { return At(now()); }

  // Requests.
  void OnMember(const Message& reply, Time sent) override;
  void HandleRequest(const Message& message) override;
  void AfterAll() override;
  void HoldBack(const Message& message);
  void Install(const Message& message);
  absl::Status Configure(const Routing& routing);
  void Installed(const Message& request, WorkerCore::InstallToken token);
  void AddRun(const Message& message);
  void CancelRun(const Message& message);
  void CancelBelow(const Message& message);
  void Refuse(const Message& request, const absl::Status& status);

  // Actions.
  void Do(const worker_action::RunStep& a);
  void Do(const worker_action::SendResults& a);
  void Do(const worker_action::EndRun& a);
  void Do(const worker_action::Cancelled& a);
  void Do(const worker_action::InterruptCall&);
  void Do(const worker_action::UseRouting&) { routing_ = offered_; }
  void Do(const worker_action::ForgetInstalled&) {}
  Open& Find(CallId id);
  Message Take(CallId id);
  void SendToCaller(const Message& request, Message message);

  // The running step.
  void CallServers(bool push);
  void CallServer(uint8_t server);
  void OnServerReply(const Message& reply);
  void Retry();
  void CallFailed(uint8_t server, const absl::Status& status);
  bool Calling(uint32_t id) const {
    return calls_.retries && !calls_.interrupted && calls_.id == id;
  }
  void ServersAnswered(const absl::Status& status);
  void StepEnded(const absl::Status& status);
  // What the checker wants of a run that begins, of a cancellation that is answered.
  void CheckBegin(const Open& run);
  void CheckCancelled(const Open& cancel);

  WorkerCore core_;
  WorkerActions actions_;  // that the core wants
  std::vector<Open> open_;
  CallId last_call_;
  std::vector<std::pair<Time, Message>> waiting_;  // for the registration, since when
  Routing offered_, routing_;
  absl::Time alarm_ = absl::InfiniteFuture();  // that is set
  bool left_ = false, garbles_ = false;
  CallId running_;
  uint32_t step_ = 0;
  uint32_t step_call_ = 0;     // of its timer
  uint32_t pulled_ = 0;        // the generation of what the step has read
  std::vector<Message> held_;  // results
  ServerCalls calls_;
  // For the checker: runs that have come, by coordinator; and of which epoch functions are.
  std::set<std::pair<uint64_t, uint64_t>> arrived_;
  std::map<Fingerprint, uint32_t> compiled_in_;
};

}  // namespace mu::sim
