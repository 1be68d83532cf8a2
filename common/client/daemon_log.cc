#include "common/client/daemon_log.h"

#include <cstdio>

#include "common/base/status.h"
#include "common/env/tls_files.h"
#include "common/obs/log.h"

namespace mu {
namespace {

LogFormat FormatOf(const DaemonFlags& flags) {
  return ParseLogFormat(flags.log_format).value_or(LogFormat::kText);
}

}  // namespace

absl::Status InitDaemonLog(const DaemonFlags& flags, const std::string& name) {
  LogOptions log;
  log.format = FormatOf(flags);
  log.role = name;
  log.file = flags.log_file;
  log.to_stderr = flags.log_file.empty();
  return InitLogging(log);
}

void TellEnd(const DaemonFlags& flags, pb::Role role, const absl::Status& status) {
  const bool json = flags.log_file.empty() && FormatOf(flags) == LogFormat::kJson;
  if (!json)
    std::fprintf(stderr, "%s: %s\n", NameOf(role).c_str(), std::string(status.message()).c_str());
  if (json || !flags.log_file.empty()) MU_LOG(ERROR, "{}", status);
}

}  // namespace mu
