#include "worker/parameter_route.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "worker/request_gate.h"

namespace mu {
namespace {

bool SameServers(const muster::RoutingProto& a, const muster::RoutingProto& b) {
  return std::equal(a.servers().begin(), a.servers().end(), b.servers().begin(), b.servers().end(),
                    [](const muster::ServerProto& x, const muster::ServerProto& y) {
                      return x.index() == y.index() && x.address() == y.address() &&
                             x.incarnation() == y.incarnation();
                    });
}

}  // namespace

ParameterRoute::ParameterRoute(Transport* transport, RetryPolicy policy)
    : connect_([transport](const std::string& address) { return transport->Connect(address); }),
      policy_(policy),
      routing_(std::make_shared<muster::RoutingProto>()) {
  MutexLock lock(&mutex_);
  current_.client = std::make_shared<PsClient>(connect_, policy_);
}

absl::Status ParameterRoute::Update(const muster::RoutingProto& routing) {
  MutexLock lock(&mutex_);
  if (current_.configured && routing.version() <= routing_->version()) return absl::OkStatus();
  MU_RETURN_IF_ERROR(current_.client->SetRouting(routing));
  const bool moved = current_.configured && !SameServers(*routing_, routing);
  routing_ = std::make_shared<muster::RoutingProto>(routing);
  current_.configured = true;
  current_.generation = routing.generation();
  if (moved) {
    ++current_.servers_version;
    if (interrupt_) interrupt_();
  }
  return absl::OkStatus();
}

void ParameterRoute::Clear() {
  MutexLock lock(&mutex_);
  routing_ = std::make_shared<muster::RoutingProto>();
  const uint64_t version = current_.servers_version + 1;
  current_ = {};
  current_.servers_version = version;
  current_.client = std::make_shared<PsClient>(connect_, policy_);
}

void ParameterRoute::SetLowWater(uint64_t low_water) {
  MutexLock lock(&mutex_);
  current_.low_water = low_water;
}

absl::Status ParameterRoute::CheckGeneration(uint64_t generation) const {
  MutexLock lock(&mutex_);
  if (generation == 0 || generation == current_.generation) return absl::OkStatus();
  const std::string numbers =
      absl::StrCat("the request is of generation ", generation,
                   " of the servers' state, this worker knows generation ", current_.generation);
  return generation < current_.generation
             ? WorkerRefusal(pb::ERROR_STALE, numbers)
             : WorkerRefusal(pb::ERROR_NOT_INSTALLED,
                             absl::StrCat(numbers, ": call Configure first"));
}

ParameterRoute::Snapshot ParameterRoute::snapshot() const {
  MutexLock lock(&mutex_);
  return current_;
}

std::shared_ptr<const muster::RoutingProto> ParameterRoute::routing() const {
  MutexLock lock(&mutex_);
  return routing_;
}

void ParameterRoute::SetInterrupt(std::function<void()> interrupt) {
  MutexLock lock(&mutex_);
  interrupt_ = std::move(interrupt);
}

}  // namespace mu
