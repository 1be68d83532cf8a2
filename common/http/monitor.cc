#include "common/http/monitor.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/http/metrics_text.h"
#include "common/obs/log.h"
#include "common/process/daemon.h"

namespace mu {

absl::StatusOr<std::unique_ptr<Monitor>> Monitor::Start(Options options) {
  std::unique_ptr<Monitor> monitor(new Monitor(options.telemetry));
  HttpServerOptions server;
  server.listen = options.listen;
  server.patience = options.patience;
  if (!IsLoopback(options.listen)) server.tls = options.tls;
  server.pages = std::move(options.pages);
  server.pages["/metrics"] = [m = monitor.get()](const HttpRequest&) { return m->Metrics(); };
  server.pages["/healthz"] = [m = monitor.get()](const HttpRequest&) { return m->Health(); };
  MU_ASSIGN_OR_RETURN(monitor->server_, HttpServer::Start(std::move(server)));
  MU_LOG(INFO, "metrics are at {}/metrics", monitor->url());
  return monitor;
}

void Monitor::Watch(Subject subject) {
  MutexLock lock(&mutex_);
  subject_ = std::move(subject);
}

HttpReply Monitor::Metrics() {
  MetricList list;
  AddProcessMetrics(&list);
  telemetry_->AddMetrics(&list);
  {
    MutexLock lock(&mutex_);
    if (subject_.metrics) subject_.metrics(&list);
  }
  return {.content_type = kMetricsContentType, .body = MetricsText(list)};
}

HttpReply Monitor::Health() {
  MonitorHealth health{.why = "it starts or ends"};
  {
    MutexLock lock(&mutex_);
    if (subject_.health) health = subject_.health();
  }
  if (health.ready && health.live) return {.body = "ok\n"};
  return {.status = 503,
          .body = absl::StrCat(health.live ? "not ready" : "not live",
                               health.why.empty() ? "" : ": ", health.why, "\n")};
}

}  // namespace mu
