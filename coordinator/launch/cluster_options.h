// What the three ways of launching share.
#pragma once

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/process/observe_flags.h"
#include "common/process/tls_flags.h"
#include "common/rpc/metered_transport.h"
#include "coordinator/launch/launch.h"

namespace mu {

// Of `launcher` ("Local"), whose calls are in the clear. INVALID_ARGUMENT for a `listen` that
// others reach, unless `insecure` says so, and for certificates that would protect nothing.
inline absl::Status CheckCallsInTheClear(const ClusterOptions& options, const char* launcher) {
  MU_RETURN_IF_ERROR(CheckListening(options.listen, {}, options.insecure, pb::ROLE_COORDINATOR));
  if (!options.tls.any() || IsOffLoopback(options.http)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("ClusterOptions::tls would protect nothing: the calls of ", launcher,
                   " are on loopback, in the clear; leave it out, give `http` an address off "
                   "loopback, or use Connect"));
}

inline absl::StatusOr<std::unique_ptr<Coordinator>> CreateCoordinator(
    const ClusterOptions& options, std::unique_ptr<Transport> transport) {
  if (options.workers < 1 || options.ps < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a cluster needs at least 1 worker and 1 parameter server, not ",
                     options.workers, " and ", options.ps));
  }
  Coordinator::Options full;
  full.runtime.listen = options.listen;
  full.runtime.job_name = options.name;
  full.runtime.servers = static_cast<uint32_t>(options.ps);
  full.runtime.workers = static_cast<uint32_t>(options.workers);
  full.runtime.in_flight = options.functions_in_flight;
  full.runtime.queue_bound = options.queue_bound;
  // Several may be late before a daemon counts as lost.
  full.runtime.heartbeat = std::min(options.heartbeat, options.member_timeout / 4);
  full.runtime.timeout = options.member_timeout;
  full.runtime.backup.least_seconds = absl::ToDoubleSeconds(options.backup_after);
  if (options.owns_job) full.job_dir = options.job_dir;
  full.names_log = options.names_log;
  full.runtime.job_fingerprint = options.job_fingerprint;
  full.seed = options.seed;
  if (!options.http.empty()) {
    MU_ASSIGN_OR_RETURN(full.http, HttpAddress(options.http, options.tls, options.insecure));
    full.tls = options.tls;
  }
  full.default_optimizer = options.default_optimizer;
  full.default_partitioner = options.default_partitioner;
  full.runtime.start_timeout = options.start_timeout;
  full.runtime.placement = options.placement;
  return Coordinator::Create(std::move(full), NewMeteredTransport(std::move(transport)));
}

}  // namespace mu
