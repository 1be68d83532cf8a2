#include "coordinator/cli/progress_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "coordinator/cli/report.h"
#include "coordinator/training/metric_text.h"

namespace mu {
namespace {

constexpr int kBarWidth = 20;

int TerminalWidth(std::FILE* out) {
  winsize size = {};
  if (::ioctl(::fileno(out), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

std::string Bar(double part) {
  const int full = static_cast<int>(std::lround(part * kBarWidth));
  return absl::StrCat("[", std::string(full, '='), std::string(kBarWidth - full, ' '), "]");
}

}  // namespace

std::string FormatSeconds(double seconds) {
  const int64_t whole = std::llround(std::max(0.0, seconds));
  if (whole < 60) return absl::StrCat(whole, "s");
  if (whole < 3600) return absl::StrFormat("%d:%02d", whole / 60, whole % 60);
  return absl::StrFormat("%d:%02d:%02d", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string FormatProgress(const Progress& progress, int width) {
  std::vector<std::string> parts = {progress.phase};
  if (progress.epochs > 1)
    parts.push_back(absl::StrCat("epoch ", progress.epoch, "/", progress.epochs));
  if (progress.total_steps > 0) {
    const double done = std::min(
        1.0, static_cast<double>(progress.steps) / static_cast<double>(progress.total_steps));
    parts.push_back(absl::StrFormat("%s %3.0f%%", Bar(done), std::floor(done * 100)));
    parts.push_back(absl::StrCat(WithCommas(static_cast<double>(progress.steps)), "/",
                                 WithCommas(static_cast<double>(progress.total_steps)), " steps"));
  } else if (progress.steps > 0) {
    parts.push_back(absl::StrCat(WithCommas(static_cast<double>(progress.steps)), " steps"));
  }
  if (progress.steps_to_repeat > 0) {
    parts.push_back(absl::StrCat(
        "repeating ", WithCommas(static_cast<double>(progress.steps_to_repeat)), " steps"));
  } else if (progress.steps > 0 && progress.samples_per_second >= 0) {
    parts.push_back(absl::StrCat(WithCommas(progress.samples_per_second), " samples/s"));
  }
  if (progress.steps > 0 && std::isfinite(progress.loss) && progress.phase == "training") {
    parts.push_back(absl::StrCat("loss ", MetricText(progress.loss)));
  }
  parts.push_back(absl::StrFormat("workers %d/%d", progress.workers_up, progress.workers));
  if (progress.ps_up < progress.ps)
    parts.push_back(absl::StrFormat("servers %d/%d", progress.ps_up, progress.ps));
  if (progress.steps > 0 && progress.eta_seconds >= 0 && progress.total_steps > progress.steps) {
    parts.push_back(absl::StrCat("ETA ", FormatSeconds(progress.eta_seconds)));
  } else {
    parts.push_back(FormatSeconds(progress.seconds));
  }
  std::string line;
  for (const std::string& part : parts) {
    const size_t longer = line.size() + part.size() + (line.empty() ? 0 : 2);
    if (longer > static_cast<size_t>(std::max(0, width))) break;
    absl::StrAppend(&line, line.empty() ? "" : "  ", part);
  }
  return line;
}

ProgressPrinter::Options ProgressPrinter::ForStdout() {
  Options options;
  options.terminal = ::isatty(STDOUT_FILENO) == 1;
  return options;
}

void ProgressPrinter::Show(const Progress& progress, absl::Time now) {
  MutexLock lock(&mutex_);
  if (options_.terminal) {
    // The last column stays free: some terminals wrap when it is written.
    absl::FPrintF(options_.out, "\r\x1b[K%s",
                  FormatProgress(progress, TerminalWidth(options_.out) - 1));
    line_open_ = true;
  } else {
    if (progress.phase == phase_ && now - last_ < options_.interval) return;
    absl::FPrintF(options_.out, "%s\n", FormatProgress(progress, 1000));
  }
  std::fflush(options_.out);
  phase_ = progress.phase;
  last_ = now;
}

void ProgressPrinter::Tell(const std::string& line) {
  MutexLock lock(&mutex_);
  absl::FPrintF(options_.out, "%s%s\n", options_.terminal ? "\r\x1b[K" : "", line);
  std::fflush(options_.out);
  line_open_ = false;
}

void ProgressPrinter::Finish() {
  MutexLock lock(&mutex_);
  if (line_open_) absl::FPrintF(options_.out, "\n");
  std::fflush(options_.out);
  line_open_ = false;
}

}  // namespace mu
