// Data that functions read: plans of epochs, and how far they have been handed out.
#include <memory>
#include <utility>

#include "common/base/steady_now.h"
#include "coordinator/cluster/runtime.h"

namespace mu {
namespace {

// Between two looks at whether the user has asked to stop.
constexpr absl::Duration kStopLook = absl::Milliseconds(100);

}  // namespace

absl::StatusOr<DataLeases::Plan> Runtime::MakePlan(const DataLayout& data, uint64_t epoch) {
  MU_ASSIGN_OR_RETURN(EpochPlan plan, EpochPlan::Make(data, epoch));
  // Whoever lets go of it last, often the loop, does not wait until it is freed.
  return DataLeases::Plan(new EpochPlan(std::move(plan)), [this](const EpochPlan* old) {
    plans_.Add([old = std::shared_ptr<const EpochPlan>(old)] {});
  });
}

void Runtime::Do(action::MakePlan& a) {
  plans_.Add([this, a] {
    auto plan = MakePlan(a.data, a.epoch);
    if (!plan.ok()) return Fail(plan.status());
    PostStep(event::PlanMade{a.data.dataset.id(), *std::move(plan)});
  });
}

void Runtime::AddDataset(DataLayout data, DataLeases::Plan first) {
  PostStep(event::DatasetAdded{std::move(data), std::move(first)});
}

absl::Status Runtime::StartEpoch(uint64_t dataset, uint64_t epoch, DataLeases::Plan plan,
                                 const std::atomic<int>* stop) {
  absl::Status result;
  bool told = false;
  const auto attempt = [&] {
    loop_.AssertHeld();
    const Permission may = core_.MayStartEpoch(dataset);
    if (may.wait) {
      // Not while an error is dealt with: then training may read other data, and does not wait.
      if (!core_.cancelling() && !std::exchange(told, true)) NothingMore();
      return false;
    }
    result = may.refusal;
    if (result.ok()) Step(event::EpochStarted{dataset, epoch, plan});
    return true;
  };
  // A server that stalls is waited for until it counts as lost: a user may not want to.
  const absl::Duration look = stop == nullptr ? absl::InfiniteDuration() : kStopLook;
  while (!loop_.Await(attempt, SteadyNow() + look)) {
    if (stop == nullptr || stop->load() > 0) return absl::CancelledError("stopped");
  }
  return result;
}

Runtime::Handed Runtime::HandedOut(uint64_t dataset) const {
  return loop_.Ask([&]() -> Handed {
    loop_.AssertHeld();
    const uint64_t unbound = core_.queue().UnboundSteps(dataset);
    const DatasetLeases* const leases = core_.leases(dataset);
    if (leases == nullptr) return {.unbound = unbound};
    if (leases->shared() == nullptr) return {.unbound = unbound, .taken = leases->steps_taken()};
    const DataLeases& shared = *leases->shared();
    return {shared.epoch(), shared.left(), unbound, shared.plan(), 0};
  });
}

}  // namespace mu
