// Brings up a cluster and hands out its coordinator; the same program runs on any of them.
//
//   MU_ASSIGN_OR_RETURN(auto c, mu::Local({.workers = 2, .ps = 2}));
//
// Destroying the coordinator ends what was started for it.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "coordinator/cluster/coordinator.h"

namespace mu {

struct ClusterOptions {
  int workers = 1;
  int ps = 1;
  std::string name = "job";
  std::string job_dir = "";  // logs, checkpoints, epochs; Local: default ./runs/NAME-TIME
  // Whether this is the one coordinator of the job in job_dir, which fences older ones. False for
  // who only looks at its checkpoints, while it trains perhaps.
  bool owns_job = true;
  // Whether lines of this process's log (JSON) name this job and its coordinator's epoch.
  bool names_log = true;
  uint64_t job_fingerprint = 0;  // of what the job is, for its checkpoints; 0: not known
  uint64_t seed = 1;
  std::optional<Optimizer> default_optimizer = std::nullopt;  // of what is created without one
  // How variables are cut that name no partitioner of their own (of tables: `partitions`). A job
  // that goes on from its checkpoint needs the one that it began with.
  Partitioner default_partitioner = AutomaticPartitioner{};
  // Which server gets which partition of what is created: PlaceByBytes, PlaceRoundRobin,
  // PlaceByLoad or a function of your own (common/sharding/placement.h).
  Placement placement = PlaceByBytes{};
  int functions_in_flight = 2;  // per worker
  size_t queue_bound = 1000;    // functions that may wait
  // Connect: host:port at which daemons register; Local: default any port of loopback
  std::string listen = "";
  TlsFiles tls = {};      // Connect: of calls; all: of `http` off loopback, else refused
  bool insecure = false;  // listen off loopback without TLS; Local and InProcess never have it
  // Where this process serves metrics and health: a port of loopback, or host:port; empty: nowhere.
  // Local: its daemons then do so, too, each at a free port of loopback.
  std::string http = "";
  // Local: where `worker` and `psserver` are; default: beside this program
  std::string binary_dir = "";
  std::string cache_dir = "";  // InProcess: where its workers unpack files; default below $TMPDIR
  std::string log_format = "text";  // Local: of its daemons, or "json"
  bool restart_workers = true;      // Local: a worker that ends is started again
  std::string chaos = "";           // Local: faults on demand, see chaos_plan.h
  absl::Duration start_timeout = absl::Seconds(60);
  absl::Duration heartbeat = absl::Milliseconds(250);
  absl::Duration member_timeout = absl::Seconds(10);  // silence after which a daemon counts as lost
  // A function without a result for so long, and for ten times as long as its steps take, runs on
  // another worker, too.
  absl::Duration backup_after = absl::Seconds(30);
  // > 0: Local and Connect wait no longer and return CANCELLED
  const std::atomic<int>* stop = nullptr;
};

// The whole cluster in this process, over real gRPC on loopback. For tests and first steps.
absl::StatusOr<std::unique_ptr<Coordinator>> InProcess(ClusterOptions options);

// Real processes on this machine, supervised. NOT_FOUND if the daemons' programs are missing;
// UNAVAILABLE with its last lines if one cannot start.
absl::StatusOr<std::unique_ptr<Coordinator>> Local(ClusterOptions options);

// Waits for `workers` and `ps` daemons that were started with --coordinator=`listen`.
absl::StatusOr<std::unique_ptr<Coordinator>> Connect(ClusterOptions options);

}  // namespace mu
