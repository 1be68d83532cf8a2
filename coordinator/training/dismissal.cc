#include "coordinator/training/dismissal.h"

#include <unistd.h>

#include <utility>

#include "common/base/status.h"
#include "common/env/file.h"
#include "common/env/file_lock.h"
#include "common/env/host_name.h"
#include "common/obs/log.h"
#include "coordinator/launch/send_home.h"
#include "coordinator/training/job_holder.h"
#include "coordinator/training/job_session.h"

namespace mu {
namespace {

// Daemons look the coordinator's name up again, and try again every second.
constexpr absl::Duration kPatience = absl::Seconds(30);

}  // namespace

absl::Status DismissDaemons(const muster::JobProto& job, const RunOptions& options, bool owns_job) {
  if (options.local) return absl::OkStatus();
  ClusterOptions cluster = ClusterOptionsOf(job, options, owns_job);
  cluster.http.clear();  // its port may be what is wrong
  const absl::Status sent = SendHome(std::move(cluster), kPatience);
  if (sent.ok()) return sent;
  return Annotate(sent, "daemons that wait were not told that the job is over");
}

absl::Status DismissDaemonsIfFree(const muster::JobProto& job, const RunOptions& options) {
  if (options.local) return absl::OkStatus();
  // Nobody has served a job that has no identity yet.
  const bool has_job = FileExists(options.job_dir + "/epochs/job");
  FileLock lock;
  if (has_job) {
    const std::string self = ToText({.pid = getpid(), .host = HostName()});
    MU_RETURN_IF_ERROR(lock.Take(options.job_dir + "/lock", self));
    if (!lock.held()) {
      MU_LOG(INFO, "another coordinator is at work in {}: its daemons are not sent home",
             options.job_dir);
      return absl::OkStatus();
    }
  }
  return DismissDaemons(job, options, has_job);
}

}  // namespace mu
