// What is sent to parameter servers that are played by the test: to whom, under which mark, and
// what is the same in every try.
#include "coordinator/cluster/server_calls.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/error_kind.h"
#include "common/rpc/typed.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using testing::HasCode;

constexpr uint64_t kGeneration = 7;

// Each method's requests in the order in which they came, and what it answers next; nothing: OK.
template <typename Request>
struct Heard {
  std::vector<Request> requests;
  std::vector<absl::Status> errors;  // the first one is the first answer
};

class PlayedServer {
 public:
  explicit PlayedServer(Transport* transport) {
    MethodTable methods;
    Add<pb::ConfigurePsReply>("Configure", &configure, &methods);
    Add<pb::RestoreReply>("Restore", &restore, &methods);
    Add<pb::SaveReply>("Save", &save, &methods);
    Add<pb::FenceReply>("Fence", &fence, &methods);
    Add<pb::LoadViewReply>("LoadView", &load_view, &methods);
    Add<pb::DropViewReply>("DropView", &drop_view, &methods);
    server_ = *transport->Listen("", std::move(methods));
  }
  std::string address() const { return server_->address(); }

  // Read when the calls have returned.
  Heard<pb::ConfigurePsRequest> configure;
  Heard<pb::RestoreRequest> restore;
  Heard<pb::SaveRequest> save;
  Heard<pb::FenceRequest> fence;
  Heard<pb::LoadViewRequest> load_view;
  Heard<pb::DropViewRequest> drop_view;
  std::vector<std::string> order;  // of methods

 private:
  template <typename Reply, typename Request>
  void Add(const std::string& method, Heard<Request>* heard, MethodTable* methods) {
    methods->AddUnary(
        "/muster.PsServer/" + method, RunOn::kTransportThread,
        TypedHandler<Request>([this, method, heard](const Request& r) -> absl::StatusOr<Reply> {
          heard->requests.push_back(r);
          order.push_back(method);
          if (heard->errors.empty()) return Reply();
          const absl::Status error = heard->errors.front();
          heard->errors.erase(heard->errors.begin());
          return error;
        }));
  }

  std::unique_ptr<RpcServer> server_;
};

// Notes how long calls may take. One to `silent` has no answer.
class NotingChannel final : public Channel {
 public:
  struct Notes {
    std::map<std::string, absl::Duration> timeouts;  // of the last call to each method
    std::string silent;
    std::function<void()> asked;  // of a call that has no answer
  };
  NotingChannel(std::shared_ptr<Channel> inner, Notes* notes)
      : inner_(std::move(inner)), notes_(notes) {}

  std::shared_ptr<ClientCall> Unary(const std::string& method, Buffer request, CallOptions options,
                                    std::function<void(absl::Status, Buffer)> done) override {
    notes_->timeouts[method] = options.timeout;
    if (method != notes_->silent)
      return inner_->Unary(method, std::move(request), options, std::move(done));
    notes_->asked();
    return std::make_shared<Unanswered>();
  }
  std::shared_ptr<ClientCall> ServerStream(const std::string& method, Buffer request,
                                           CallOptions options, std::function<void(Buffer)> message,
                                           std::function<void(absl::Status)> done) override {
    return inner_->ServerStream(method, std::move(request), options, std::move(message),
                                std::move(done));
  }
  std::shared_ptr<ClientStream> Converse(const std::string& method, Conversation conversation,
                                         std::function<void(absl::Status)> done) override {
    return inner_->Converse(method, std::move(conversation), std::move(done));
  }

 private:
  struct Unanswered final : ClientCall {
    void Cancel() override {}
  };
  const std::shared_ptr<Channel> inner_;
  Notes* const notes_;
};

class ServerCallsTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kServers = 2;

  ServerCallsTest() {
    for (uint32_t s = 0; s < kServers; ++s) {
      servers_.push_back(std::make_unique<PlayedServer>(transport_.get()));
      pb::ServerProto& server = *routing_.add_servers();
      server.set_index(s);
      server.set_address(servers_[s]->address());
      server.set_incarnation(100 + s);
    }
    routing_.set_version(1);
    routing_.set_generation(kGeneration);
  }
  ServerApi::Call NewCall() {
    ServerApi::Call call = {.context = {},
                            .routing = std::make_shared<const pb::RoutingProto>(routing_),
                            .group = std::make_shared<PsCallGroup>()};
    call.context.set_job(9);
    call.context.set_epoch(3);
    call.context.set_generation(kGeneration);
    call.context.set_low_water(5);
    return call;
  }

  const std::unique_ptr<Transport> transport_ = NewMemoryTransport();
  std::vector<std::unique_ptr<PlayedServer>> servers_;
  pb::RoutingProto routing_;
  NotingChannel::Notes notes_;
  ServerCalls calls_{[this](const std::string& address) {
    return std::make_shared<NotingChannel>(transport_->Connect(address, pb::ROLE_PSSERVER),
                                           &notes_);
  }};
};

// Servers know a late copy by its attempt: it must not write over the files of a later one.
TEST_F(ServerCallsTest, TriesOfASaveHaveOneAttemptAndEachSaveHasItsOwn) {
  MU_ASSERT_OK(calls_.Configure(NewCall()));
  servers_[1]->save.errors = {absl::UnavailableError("the answer is lost")};
  MU_ASSERT_OK(calls_.Save(NewCall(), "/d/ckpt-1"));
  MU_ASSERT_OK(calls_.Save(NewCall(), "/d/ckpt-1"));
  ASSERT_EQ(servers_[0]->save.requests.size(), 2u);
  ASSERT_EQ(servers_[1]->save.requests.size(), 3u);
  const uint64_t first = servers_[0]->save.requests[0].attempt();
  const uint64_t second = servers_[0]->save.requests[1].attempt();
  EXPECT_NE(first, 0u) << "0 is none";
  EXPECT_NE(second, 0u);
  EXPECT_NE(first, second);
  const auto attempt = [&](size_t i) { return servers_[1]->save.requests[i].attempt(); };
  EXPECT_THAT((std::vector<uint64_t>{attempt(0), attempt(1), attempt(2)}),
              ElementsAre(first, first, second));
  for (uint32_t s = 0; s < kServers; ++s) {
    for (const pb::SaveRequest& request : servers_[s]->save.requests) {
      EXPECT_EQ(request.directory(), "/d/ckpt-1");
      EXPECT_EQ(request.file(), absl::StrCat("ps-", s, ".safetensors"));
      EXPECT_EQ(request.context().epoch(), 3u);
      EXPECT_EQ(request.context().generation(), kGeneration);
    }
  }
}

// A view is loaded by the coordinator and by tools: what servers hear is the same.
TEST_F(ServerCallsTest, EveryServerIsAskedForTheViewOfAllFiles) {
  MU_ASSERT_OK(calls_.Configure(NewCall()));
  std::vector<pb::CheckpointFileProto> files(2);
  files[0].set_name("ps-0.safetensors");
  files[1].set_name("ps-1.safetensors");
  MU_ASSERT_OK(calls_.LoadView(NewCall(), ViewId(4), {"/d/ckpt-1", files, nullptr}));
  MU_ASSERT_OK(calls_.DropView(NewCall(), ViewId(4)));
  MU_ASSERT_OK(calls_.admin()->LoadView(NewCall().context, 4, "/d/ckpt-1", files));
  MU_ASSERT_OK(calls_.admin()->DropView(NewCall().context, 4));
  for (const auto& server : servers_) {
    ASSERT_EQ(server->load_view.requests.size(), 2u);
    const pb::LoadViewRequest& load = server->load_view.requests[0];
    EXPECT_EQ(load.view(), 4u);
    EXPECT_EQ(load.directory(), "/d/ckpt-1");
    ASSERT_EQ(load.files_size(), 2);
    EXPECT_EQ(load.files(1).name(), "ps-1.safetensors");
    EXPECT_EQ(load.context().epoch(), 3u);
    EXPECT_EQ(server->load_view.requests[1].SerializeAsString(), load.SerializeAsString());
    ASSERT_EQ(server->drop_view.requests.size(), 2u);
    const pb::DropViewRequest& drop = server->drop_view.requests[0];
    EXPECT_EQ(drop.view(), 4u);
    EXPECT_EQ(drop.context().epoch(), 3u);
    EXPECT_EQ(server->drop_view.requests[1].SerializeAsString(), drop.SerializeAsString());
  }
}

TEST_F(ServerCallsTest, ServersAreToldOfARestoreBeforeItComes) {
  std::vector<pb::CheckpointFileProto> files(1);
  files[0].set_name("ps-0.safetensors");
  MU_ASSERT_OK_AND_ASSIGN(const auto replies,
                          calls_.Restore(NewCall(), {"/d/ckpt-1", files, nullptr}, {false, true}));
  EXPECT_EQ(replies.size(), kServers);
  for (const auto& server : servers_) {
    EXPECT_THAT(server->order, ElementsAre("Configure", "Restore"));
    EXPECT_TRUE(server->configure.requests[0].restore_follows());
    EXPECT_EQ(server->configure.requests[0].context().generation(), kGeneration);
    EXPECT_EQ(server->restore.requests[0].context().generation(), kGeneration);
  }
  const pb::RestoreRequest &loads = servers_[0]->restore.requests[0],
                           &keeps = servers_[1]->restore.requests[0];
  EXPECT_FALSE(loads.keep_state());
  EXPECT_EQ(loads.directory(), "/d/ckpt-1");
  EXPECT_EQ(loads.files_size(), 1);
  EXPECT_TRUE(keeps.keep_state());
  EXPECT_EQ(keeps.directory(), "");
  EXPECT_EQ(keeps.files_size(), 0);
}

TEST_F(ServerCallsTest, EachServerIsConfiguredUnderItsIndex) {
  MU_ASSERT_OK(calls_.Configure(NewCall()));
  for (uint32_t s = 0; s < kServers; ++s) {
    ASSERT_EQ(servers_[s]->configure.requests.size(), 1u);
    const pb::ConfigurePsRequest& request = servers_[s]->configure.requests[0];
    EXPECT_EQ(request.index(), s);
    EXPECT_FALSE(request.restore_follows());
    EXPECT_EQ(request.context().generation(), kGeneration);
    EXPECT_EQ(request.routing().servers_size(), static_cast<int>(kServers));
  }
}

TEST_F(ServerCallsTest, AFenceNamesTheServersThatHaveNotConfirmedIt) {
  EXPECT_TRUE(calls_.Fence(NewCall().context, {0, 1}).empty())
      << "no server has been given anything";
  MU_ASSERT_OK(calls_.Configure(NewCall()));
  EXPECT_TRUE(calls_.Fence(NewCall().context, {0, 1}).empty());
  const absl::Status stale =
      WithKind(absl::FailedPreconditionError("newer"), pb::ERROR_STALE, pb::ROLE_PSSERVER);
  servers_[1]->fence.errors = {stale, stale};
  const auto failed = calls_.Fence(NewCall().context, {0, 1});
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(KindOf(failed.at(1)), pb::ERROR_STALE);
  for (const auto& server : servers_) {
    for (const pb::FenceRequest& request : server->fence.requests) {
      EXPECT_EQ(request.context().low_water(), 5u);
      EXPECT_EQ(request.context().generation(), kGeneration);
    }
  }
}

// One whose place is taken by another process has another address, and nothing to refuse.
TEST_F(ServerCallsTest, OnlyTheServersThatAreNamedAreFenced) {
  MU_ASSERT_OK(calls_.Configure(NewCall()));
  const absl::Status down = absl::UnavailableError("gone");
  servers_[0]->fence.errors = {down, down};
  EXPECT_TRUE(calls_.Fence(NewCall().context, {1}).empty());
  EXPECT_TRUE(calls_.Fence(NewCall().context, {}).empty());
  EXPECT_TRUE(servers_[0]->fence.requests.empty());
  EXPECT_EQ(servers_[1]->fence.requests.size(), 1u);
}

// Nobody knows how long a disk takes. Heartbeats say whether a server moves.
TEST_F(ServerCallsTest, CallsThatMoveFilesHaveNoTimeOfTheirOwn) {
  MU_ASSERT_OK(calls_.Configure(NewCall()));
  MU_ASSERT_OK(calls_.Save(NewCall(), "/d/ckpt-1"));
  MU_ASSERT_OK(calls_.Restore(NewCall(), {"/d/ckpt-1", {}, nullptr}, {}));
  EXPECT_TRUE(calls_.Fence(NewCall().context, {0, 1}).empty());
  for (const char* method : {"Configure", "Save", "Restore"}) {
    EXPECT_EQ(notes_.timeouts.at(absl::StrCat("/muster.PsServer/", method)),
              absl::InfiniteDuration())
        << method;
  }
  EXPECT_LT(notes_.timeouts.at("/muster.PsServer/Fence"), absl::Minutes(1));
}

TEST_F(ServerCallsTest, ProgramsThatSaveByThemselvesChooseHowLongThatMayTake) {
  const auto timeout_of = [&](const char* method) {
    return notes_.timeouts.at(absl::StrCat("/muster.PsServer/", method));
  };
  PsAdmin& admin = *calls_.admin();
  MU_ASSERT_OK(calls_.Configure(NewCall()));
  MU_ASSERT_OK(admin.Save(NewCall().context, "/d"));
  MU_ASSERT_OK(admin.Restore(NewCall().context, "/d", {}));
  EXPECT_EQ(timeout_of("Save"), absl::InfiniteDuration());
  EXPECT_EQ(timeout_of("Restore"), absl::InfiniteDuration());
  admin.set_file_timeout(absl::Hours(2));
  MU_ASSERT_OK(admin.Save(NewCall().context, "/d"));
  MU_ASSERT_OK(admin.Restore(NewCall().context, "/d", {}));
  EXPECT_EQ(timeout_of("Save"), absl::Hours(2));
  EXPECT_EQ(timeout_of("Restore"), absl::Hours(2));
}

TEST_F(ServerCallsTest, ACallWithoutAnAnswerEndsWhenItIsCancelled) {
  MU_ASSERT_OK(calls_.Configure(NewCall()));
  for (const char* method : {"Save", "Restore"}) {
    const ServerApi::Call call = NewCall();
    notes_.silent = absl::StrCat("/muster.PsServer/", method);
    notes_.asked = [&] { call.group->Cancel(); };
    const absl::Status status = method == std::string("Save")
                                    ? calls_.Save(call, "/d").status()
                                    : calls_.Restore(call, {"/d", {}, nullptr}, {}).status();
    EXPECT_THAT(status, HasCode(absl::StatusCode::kCancelled)) << method;
  }
}

TEST_F(ServerCallsTest, ACallThatWasEndedBeforeItBeganSendsNothing) {
  MU_ASSERT_OK(calls_.Configure(NewCall()));
  const ServerApi::Call call = NewCall();
  call.group->Cancel();
  EXPECT_THAT(calls_.Save(call, "/d"), HasCode(absl::StatusCode::kCancelled));
  EXPECT_THAT(calls_.Restore(call, {"/d", {}, nullptr}, {}), HasCode(absl::StatusCode::kCancelled));
  EXPECT_THAT(servers_[0]->order, ElementsAre("Configure"));
}

}  // namespace
}  // namespace mu
