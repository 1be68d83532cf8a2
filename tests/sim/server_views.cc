// Views of a simulated server.
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/sim/cluster.h"
#include "tests/sim/server.h"

namespace mu::sim {

void Server::LoadView(const Message& request) {
  ViewTurn turn =
      core_.BeginLoadView(Context(request), request.view, absl::StrCat(request.checkpoint));
  switch (turn.step) {
    case ViewTurn::Step::kRefuse:
      return cluster_->Reply(request, {.status = turn.status});
    case ViewTurn::Step::kWait:
      return waiting_views_.push_back(request);
    case ViewTurn::Step::kAnswer:
      return cluster_->Reply(request, {});
    case ViewTurn::Step::kLoad:
      return AfterFiles(cluster_->Between(0, 15 * kMillisecond), "view loaded",
                        [this, request, load = turn.load] { ViewLoaded(request, load); });
  }
}

void Server::ViewLoaded(const Message& request, const ViewTable::Load& load) {
  absl::Status status = CheckFiles(request);
  if (status.ok()) status = core_.ReserveView(load, 1, 0, 0);
  status = core_.EndLoadView(load, status);
  if (status.ok()) {
    Partitions& view = views_[request.view] = {};
    const Checkpoint& checkpoint = cluster_->disk().checkpoints.at(request.checkpoint);
    for (uint8_t f = 0; f < checkpoint.servers; ++f) {
      ForEachHeld([&](uint32_t p, const Partition&) {
        if (checkpoint.files[f]->partitions[p].held) view[p] = checkpoint.files[f]->partitions[p];
      });
    }
  }
  AskForViewsAgain();
  if (!status.ok()) return cluster_->Reply(request, {.status = status});
  LoadView(request);
}

void Server::DropView(const Message& request) {
  const absl::Status status = core_.DropView(Context(request), request.view);
  if (status.ok()) views_.erase(request.view);
  AskForViewsAgain();
  cluster_->Reply(request, {.status = status});
}

void Server::AskForViewsAgain() {
  for (const Message& waiting : std::exchange(waiting_views_, {})) LoadView(waiting);
}

void Server::PullView(const Message& request) {
  Message reply{.status = core_.AdmitViewPull(Context(request), request.view)};
  if (reply.status.ok()) {
    for (const Partition& partition : views_.at(request.view))
      reply.updates += partition.held ? partition.counter : 0;
  }
  cluster_->Reply(request, reply);
}

bool Server::HasView(uint64_t view) const { return core_.views().has(view); }

}  // namespace mu::sim
