#include "coordinator/training/job_holder.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/env/host_name.h"

namespace mu {

JobHolder ThisHolder(uint64_t job) {
  return {.job = job,
          .pid = ::getpid(),
          .host = HostName(),
          .since = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now(), absl::UTCTimeZone())};
}

std::string ToText(const JobHolder& holder) {
  return absl::StrCat("job: ", holder.job, "\npid: ", holder.pid, "\nhost: ", holder.host,
                      "\nsince: ", holder.since, "\n");
}

JobHolder ParseJobHolder(absl::string_view text) {
  JobHolder holder;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::pair<absl::string_view, absl::string_view> entry =
        absl::StrSplit(line, absl::MaxSplits(": ", 1));
    const auto& [key, value] = entry;
    if (key == "job" && !absl::SimpleAtoi(value, &holder.job)) holder.job = 0;
    if (key == "pid" && !absl::SimpleAtoi(value, &holder.pid)) holder.pid = 0;
    if (key == "host") holder.host = std::string(value);
    if (key == "since") holder.since = std::string(value);
  }
  return holder;
}

std::string HolderName(const JobHolder& holder) {
  std::string name = "a coordinator";
  if (holder.pid != 0) absl::StrAppend(&name, " (process ", holder.pid, " on ", holder.host, ")");
  return name;
}

absl::Status MayReplace(const JobHolder& holder, uint64_t job, bool take_over,
                        const std::string& job_dir) {
  const bool another = holder.job != 0 && holder.job != job;
  if (take_over && !another) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      HolderName(holder), " is training ", another ? "another" : "this", " job in ", job_dir,
      holder.since.empty() ? "" : absl::StrCat(" since ", holder.since), "; ",
      another ? "choose another job_dir"
              : "wait until it ends, stop it, or choose another job_dir (--take_over replaces it: "
                "it ends, and this run continues from its last checkpoint)"));
}

}  // namespace mu
