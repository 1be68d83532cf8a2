#include "common/http/http_server.h"

#include <httplib.h>

#include <deque>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/env/host_port.h"
#include "common/http/tls_context.h"

namespace mu {
namespace {

constexpr int kThreads = 8;
constexpr size_t kMostBytes = 4096;  // of a request's body: none is expected

std::string UrlOf(bool secure, const std::string& address) {
  return absl::StrCat(secure ? "https://" : "http://", address);
}

// httplib's pool works off its queue before it ends, and silent callers make that long.
class Pool final : public httplib::TaskQueue {
 public:
  Pool() {
    for (int i = 0; i < kThreads; ++i) threads_.emplace_back([this] { Run(); });
  }
  void enqueue(std::function<void()> task) override {
    MutexLock lock(&mutex_);
    tasks_.push_back(std::move(task));
    changed_.SignalAll();
  }
  void shutdown() override {
    {
      MutexLock lock(&mutex_);
      stopping_ = true;
      changed_.SignalAll();
    }
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  void Run() {
    while (true) {
      std::function<void()> task;
      {
        MutexLock lock(&mutex_);
        while (tasks_.empty() && !stopping_) changed_.Wait(&mutex_);
        if (stopping_) return;  // with what waits: its callers see the connection end
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      task();
    }
  }

  Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace

struct HttpServer::Impl {
  HttpServerOptions options;
  TlsContext tls;
  std::unique_ptr<httplib::Server> server;
  std::string address;
  Notification runs;  // from then on stop() stops it
  std::thread thread;

  explicit Impl(HttpServerOptions o) : options(std::move(o)), tls(options.tls) {}

  void AddPages() {
    for (const auto& [path, page] : options.pages) {
      // The map outlives the server, and does not change.
      server->Get(
          path, [this, make = &page](const httplib::Request& request, httplib::Response& response) {
            const std::string host = request.get_header_value("Host");
            HttpReply reply = (*make)({UrlOf(options.tls.any(), host.empty() ? address : host)});
            response.status = reply.status;
            response.set_content(std::move(reply.body), reply.content_type);
          });
    }
    // A connection serves one request: one that is kept open would keep one of few threads.
    server->set_keep_alive_max_count(1);
    server->set_keep_alive_timeout(1);  // for its first byte, in whole seconds
    server->set_read_timeout(absl::ToChronoMicroseconds(options.patience));
    server->set_write_timeout(absl::ToChronoMicroseconds(options.patience));
    server->set_payload_max_length(kMostBytes);
    // Two processes that share a port would answer in turns.
    server->set_socket_options([](int socket) {
      const int yes = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    });
    // Called once it runs.
    server->new_task_queue = [this] {
      runs.Notify();
      return new Pool;
    };
  }
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(HttpServerOptions options) {
  MU_ASSIGN_OR_RETURN(const HostPort at, SplitHostPort(options.listen));
  auto impl = std::make_unique<Impl>(std::move(options));
  if (impl->options.tls.any()) {
    MU_RETURN_IF_ERROR(impl->tls.Load());
    impl->server = std::make_unique<httplib::SSLServer>(
        [tls = &impl->tls](SSL_CTX& context) { return tls->SetUp(&context); });
    if (!impl->server->is_valid())
      return absl::UnavailableError("OpenSSL refuses the set-up of HTTPS");
  } else {
    impl->server = std::make_unique<httplib::Server>();
  }
  impl->AddPages();
  const int port = at.port == 0 ? impl->server->bind_to_any_port(at.host)
                   : impl->server->bind_to_port(at.host, at.port) ? at.port
                                                                  : -1;
  if (port < 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen for HTTP at ", impl->options.listen,
                     "; the port may be in use, or the address none of this machine's"));
  }
  impl->address = JoinHostPort(at.host, port);
  impl->thread = std::thread([i = impl.get()] { i->server->listen_after_bind(); });
  impl->runs.Wait();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::~HttpServer() {
  impl_->server->stop();
  impl_->thread.join();
}

const std::string& HttpServer::address() const { return impl_->address; }
std::string HttpServer::url() const { return UrlOf(secure(), address()); }
bool HttpServer::secure() const { return impl_->options.tls.any(); }

}  // namespace mu
