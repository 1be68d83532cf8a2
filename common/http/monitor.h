// The HTTP port of a process (--http): /metrics for Prometheus and /healthz for whoever asks.
//
//   auto monitor = Monitor::Start({.listen = *address, .tls = tls});
//   monitor->Watch({.health = ..., .metrics = ...});   // until the object or StopWatching
//
// Off loopback it speaks HTTPS if there are certificates. Thread safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/http/http_server.h"
#include "common/obs/metrics.h"
#include "common/obs/telemetry.h"

namespace mu {

// What a process says of itself.
struct MonitorHealth {
  bool ready = false;
  bool live = true;
  std::string why;  // if it is not both
};

class Monitor {
 public:
  struct Options {
    std::string listen;  // host:port, port 0 for any
    TlsFiles tls;        // not used on loopback
    Telemetry* telemetry = &Telemetry::Process();
    absl::Duration patience = absl::Seconds(2);  // with a caller who says nothing
    std::map<std::string, HttpPage> pages;       // more of them, by path
  };
  struct Subject {
    std::function<MonitorHealth()> health;
    MetricSource metrics;  // may be null
  };
  // UNAVAILABLE if the address cannot be bound; what is wrong with the certificates.
  static absl::StatusOr<std::unique_ptr<Monitor>> Start(Options options);
  ~Monitor() { server_.reset(); }

  const std::string& address() const { return server_->address(); }
  bool secure() const { return server_->secure(); }
  std::string url() const { return server_->url(); }

  // Before it, the process is not ready. Neither is called any more once StopWatching has returned.
  void Watch(Subject subject);
  void StopWatching() { Watch({}); }

 private:
  explicit Monitor(Telemetry* telemetry) : telemetry_(telemetry) {}
  HttpReply Metrics();
  HttpReply Health();

  Telemetry* const telemetry_;
  Mutex mutex_;  // held while the subject is asked
  Subject subject_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<HttpServer> server_;
};

}  // namespace mu
