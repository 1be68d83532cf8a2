#include "coordinator/cli/status_table.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status.h"
#include "coordinator/cli/progress_line.h"
#include "coordinator/cli/report.h"

namespace mu {

std::string StatusTable(const pb::GetStatusReply& status) {
  std::string text = absl::StrFormat(
      "job %s, epoch %d, %s for %s\nfunctions: %d running, %d queued, %s finished\nsteps: %s, "
      "samples: %s, %s a second\n",
      status.job_name(), status.epoch(), status.phase(), FormatSeconds(status.seconds()),
      status.functions_running(), status.functions_queued(),
      WithCommas(static_cast<double>(status.functions_finished())),
      WithCommas(static_cast<double>(status.steps())),
      WithCommas(static_cast<double>(status.samples())), WithCommas(status.samples_per_second()));
  absl::StrAppendFormat(&text, "\n%-12s %-10s %-24s %8s %10s %10s %9s %10s\n", "member", "state",
                        "address", "pid", "functions", "steps", "in flight", "heard of");
  for (const pb::MemberStatus& member : status.members()) {
    const char* role = member.role() == pb::ROLE_WORKER ? "worker" : "psserver";
    absl::StrAppendFormat(&text, "%-12s %-10s %-24s %8d %10s %10s %9d %7.1f s\n",
                          absl::StrCat(role, " ", member.index()), member.state(), member.address(),
                          member.pid(), WithCommas(static_cast<double>(member.functions())),
                          WithCommas(static_cast<double>(member.steps())), member.in_flight(),
                          static_cast<double>(member.heartbeat_age_ms()) / 1000);
  }
  return text;
}

}  // namespace mu
