#include "common/http/monitor.h"

#include <gmock/gmock.h>
#include <httplib.h>
#include <sys/socket.h>

#include "absl/strings/str_cat.h"
#include "common/env/file.h"
#include "common/obs/tls_refusals.h"
#include "tests/testing/certificates.h"
#include "tests/testing/matchers.h"
#include "tests/testing/stranger.h"
#include "tests/testing/wait.h"

namespace mu {
namespace {

using ::mu::testing::Certificates;
using ::mu::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::Not;

std::unique_ptr<Monitor> StartAt(const std::string& listen, TlsFiles tls = {},
                                 Telemetry* telemetry = &Telemetry::Process()) {
  auto monitor = Monitor::Start({.listen = listen,
                                 .tls = std::move(tls),
                                 .telemetry = telemetry,
                                 .patience = absl::Milliseconds(50)});
  MU_EXPECT_OK(monitor.status());
  return monitor.ok() ? *std::move(monitor) : nullptr;
}

int PortOf(const Monitor& monitor) {
  return std::stoi(monitor.address().substr(monitor.address().rfind(':') + 1));
}

// The name in a certificate is its role's, which no HTTP client expects: curl and Prometheus have
// an option for that, this library has not, so it looks at the chain only.
bool Reaches(const Monitor& monitor, const TlsFiles& files) {
  httplib::SSLClient client("127.0.0.1", PortOf(monitor), files.cert, files.key);
  client.enable_server_certificate_verification(false);
  const auto reply = client.Get("/healthz");
  return reply && reply->status == 503;
}

TEST(Monitor, ServesMetricsAndHealth) {
  Telemetry telemetry;
  telemetry.counter("worker.steps", "Steps")->Add(3);
  const auto monitor = StartAt("127.0.0.1:0", {}, &telemetry);
  ASSERT_NE(monitor, nullptr);
  httplib::Client client(monitor->url());

  auto health = client.Get("/healthz");
  ASSERT_TRUE(health);
  EXPECT_EQ(health->status, 503);
  EXPECT_EQ(health->body, "not ready: it starts or ends\n");

  MonitorHealth now{.ready = true};
  monitor->Watch({.health = [&] { return now; },
                  .metrics = [](MetricList* list) { list->Gauge("muster_rows", "Rows", 5); }});
  health = client.Get("/healthz");
  ASSERT_TRUE(health);
  EXPECT_EQ(health->status, 200);
  EXPECT_EQ(health->body, "ok\n");
  now = {.ready = true, .live = false, .why = "its work stands still"};
  health = client.Get("/healthz");
  ASSERT_TRUE(health);
  EXPECT_EQ(health->status, 503);
  EXPECT_EQ(health->body, "not live: its work stands still\n");

  const auto metrics = client.Get("/metrics");
  ASSERT_TRUE(metrics);
  EXPECT_EQ(metrics->status, 200);
  EXPECT_EQ(metrics->get_header_value("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_THAT(metrics->body, HasSubstr("muster_worker_steps_total 3\n"));
  EXPECT_THAT(metrics->body, HasSubstr("muster_rows 5\n"));
  EXPECT_THAT(metrics->body, HasSubstr("process_cpu_seconds_total "));

  const auto other = client.Get("/etc/passwd");
  ASSERT_TRUE(other);
  EXPECT_EQ(other->status, 404);
  const auto body = client.Post("/metrics", std::string(100'000, 'x'), "text/plain");
  if (body) {
    EXPECT_GE(body->status, 400);
  }

  monitor->StopWatching();
  EXPECT_THAT(client.Get("/metrics")->body, Not(HasSubstr("muster_rows")));
  EXPECT_EQ(client.Get("/healthz")->status, 503);
}

TEST(Monitor, EndsWhileCallersComeAndGo) {
  for (int i = 0; i < 20; ++i) {
    auto monitor = StartAt("127.0.0.1:0");
    ASSERT_NE(monitor, nullptr);
    std::thread caller([url = monitor->url()] { httplib::Client(url).Get("/metrics"); });
    monitor.reset();
    caller.join();
  }
}

// Sends bytes and closes, as port scanners do.
void Send(const Monitor& monitor, const std::string& bytes) {
  const UniqueFd fd = testing::Dial(monitor.address());
  ASSERT_EQ(send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
}

TEST(Monitor, GarbageChangesNothing) {
  const Certificates certificates;
  const auto plain = StartAt("127.0.0.1:0");
  const auto secure = StartAt("0.0.0.0:0", certificates.Of(pb::ROLE_WORKER));
  ASSERT_TRUE(plain != nullptr && secure != nullptr);
  for (const std::string& bytes :
       {std::string(), std::string("\n\n\n"), std::string(100'000, '\0'), std::string("GET / HTT"),
        std::string("GET /metrics HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n"),
        std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), std::string("\x16\x03\x01\x02", 4)}) {
    Send(*plain, bytes);
    Send(*secure, bytes);
  }
  EXPECT_TRUE(httplib::Client(plain->url()).Get("/metrics"));
  EXPECT_TRUE(Reaches(*secure, certificates.Of(pb::ROLE_COORDINATOR)));
}

TEST(Monitor, APortInUseIsAnErrorThatNamesIt) {
  const auto first = StartAt("127.0.0.1:0");
  ASSERT_NE(first, nullptr);
  EXPECT_THAT(Monitor::Start({.listen = first->address()}).status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(first->address())));
  EXPECT_THAT(Monitor::Start({.listen = "192.0.2.1:0"}).status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("none of this machine's")));
  EXPECT_THAT(Monitor::Start({.listen = "9090"}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("HOST:PORT")));
}

TEST(Monitor, OffLoopbackItWantsACertificateOfTheSameAuthority) {
  const Certificates certificates;
  const auto monitor = StartAt("0.0.0.0:0", certificates.Of(pb::ROLE_WORKER));
  ASSERT_NE(monitor, nullptr);
  EXPECT_TRUE(monitor->secure());
  EXPECT_THAT(monitor->url(), ::testing::StartsWith("https://"));
  EXPECT_TRUE(Reaches(*monitor, certificates.Of(pb::ROLE_COORDINATOR)));
  const Counter& refused = *RefusedByTls("http");
  const int64_t before = refused.value();
  EXPECT_FALSE(Reaches(*monitor, {}));
  EXPECT_TRUE(testing::Eventually([&] { return refused.value() == before + 1; }));
  EXPECT_FALSE(Reaches(*monitor, Certificates().Of(pb::ROLE_COORDINATOR)));  // another authority
  EXPECT_TRUE(testing::Eventually([&] { return refused.value() == before + 2; }));
  EXPECT_TRUE(Reaches(*monitor, certificates.Of(pb::ROLE_COORDINATOR)));
  EXPECT_EQ(refused.value(), before + 2);
  // Plain HTTP is not answered.
  EXPECT_FALSE(httplib::Client("127.0.0.1", PortOf(*monitor)).Get("/healthz"));
}

TEST(Monitor, OnLoopbackItIsPlainHttpEvenWithCertificates) {
  const auto monitor = StartAt("127.0.0.1:0", Certificates().Of(pb::ROLE_WORKER));
  ASSERT_NE(monitor, nullptr);
  EXPECT_FALSE(monitor->secure());
  EXPECT_TRUE(httplib::Client(monitor->url()).Get("/healthz"));
}

TEST(Monitor, UsesRenewedCertificatesAndKeepsGoodOnes) {
  const Certificates old_ones, new_ones;
  const std::string folder = absl::StrCat(::testing::TempDir(), "/monitor_renewed");
  MU_ASSERT_OK(MakeDirectories(folder));
  const TlsFiles files{JoinPath(folder, "crt"), JoinPath(folder, "key"), JoinPath(folder, "ca"),
                       absl::ZeroDuration()};
  const auto copy = [&](const TlsFiles& from) {
    for (const auto& [source, target] :
         {std::pair(from.cert, files.cert), std::pair(from.key, files.key),
          std::pair(from.ca, files.ca)}) {
      MU_ASSERT_OK(WriteFileAtomic(target, ReadFile(source).value()));
    }
  };
  copy(old_ones.Of(pb::ROLE_WORKER));
  const auto monitor = StartAt("0.0.0.0:0", files);
  ASSERT_NE(monitor, nullptr);
  EXPECT_TRUE(Reaches(*monitor, old_ones.Of(pb::ROLE_COORDINATOR)));
  copy(new_ones.Of(pb::ROLE_WORKER));
  EXPECT_TRUE(Reaches(*monitor, new_ones.Of(pb::ROLE_COORDINATOR)));
  EXPECT_FALSE(Reaches(*monitor, old_ones.Of(pb::ROLE_COORDINATOR)));
  MU_ASSERT_OK(WriteFileAtomic(files.key, "half a key"));
  EXPECT_TRUE(Reaches(*monitor, new_ones.Of(pb::ROLE_COORDINATOR)));
}

// As an authority below another one issues them.
TEST(Monitor, ServesCertificatesWithOthersBetween) {
  const Certificates certificates;
  TlsFiles files = certificates.Of(pb::ROLE_WORKER);
  const std::string chain = absl::StrCat(::testing::TempDir(), "/monitor_chain.crt");
  MU_ASSERT_OK(WriteFileAtomic(
      chain, absl::StrCat(ReadFile(files.cert).value(), ReadFile(files.ca).value())));
  files.cert = chain;
  files.reload = absl::ZeroDuration();
  const auto monitor = StartAt("0.0.0.0:0", files);
  ASSERT_NE(monitor, nullptr);
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(Reaches(*monitor, certificates.Of(pb::ROLE_COORDINATOR))) << i;
}

TEST(Monitor, PagesHearHowTheirCallerNamesTheServer) {
  Monitor::Options options{.listen = "0.0.0.0:0"};
  options.pages["/where"] = [](const HttpRequest& request) {
    return HttpReply{.body = request.url};
  };
  MU_ASSERT_OK_AND_ASSIGN(const auto monitor, Monitor::Start(std::move(options)));
  const int port = PortOf(*monitor);
  const auto reply = httplib::Client("localhost", port).Get("/where");
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->body, absl::StrCat("http://localhost:", port));
}

// Whoever connects and says nothing keeps a thread for a while, and no end from coming: more of
// them than there are threads.
TEST(Monitor, SilentCallersDoNotKeepItFromEnding) {
  const Certificates certificates;
  auto monitor = StartAt("0.0.0.0:0", certificates.Of(pb::ROLE_WORKER));
  ASSERT_NE(monitor, nullptr);
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 12; ++i) silent.push_back(testing::Dial(monitor->address()));
  monitor.reset();  // ctest's time-out would notice
}

TEST(Monitor, BadCertificatesAreToldAtTheStart) {
  const Certificates certificates;
  TlsFiles files = certificates.Of(pb::ROLE_WORKER);
  files.key = "/no/such/key";
  EXPECT_THAT(Monitor::Start({.listen = "0.0.0.0:0", .tls = files}).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/no/such/key")));
}

}  // namespace
}  // namespace mu
