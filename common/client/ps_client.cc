#include "common/client/ps_client.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace mu {

absl::Status PsClient::SetRouting(const pb::RoutingProto& proto) {
  {
    MutexLock lock(&mutex_);
    if (view_ != nullptr && proto.version() <= view_->routing->proto().version())
      return absl::OkStatus();
  }
  MU_ASSIGN_OR_RETURN(auto routing, Routing::Create(proto));
  SetRouting(std::move(routing));
  return absl::OkStatus();
}

void PsClient::SetRouting(std::shared_ptr<const Routing> routing) {
  auto view = std::make_shared<View>();
  view->routing = std::move(routing);
  MutexLock lock(&mutex_);
  const pb::RoutingProto& proto = view->routing->proto();
  if (view_ != nullptr && proto.version() <= view_->routing->proto().version()) return;
  absl::flat_hash_map<std::string, std::shared_ptr<Channel>> channels;
  for (const pb::ServerProto& server : proto.servers()) {
    // Another process at the same address may be on another machine, by the same name: what was
    // connected to the former one would find that out late.
    const std::string process = absl::StrCat(server.address(), " ", server.incarnation());
    std::shared_ptr<Channel>& channel = channels[process];
    if (const auto it = channels_.find(process); it != channels_.end()) channel = it->second;
    if (channel == nullptr) channel = connect_(server.address());
    view->channels.push_back(channel);
  }
  channels_ = std::move(channels);
  view_ = std::move(view);
}

std::shared_ptr<const PsClient::View> PsClient::view() const {
  MutexLock lock(&mutex_);
  return view_;
}

}  // namespace mu
