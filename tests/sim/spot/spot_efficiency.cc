// What to expect of machines that are taken away: a table in Markdown, and a plot.
//   build/tests/spot_efficiency --svg=docs/spot_efficiency.svg
#include <cmath>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/sim/spot/spot_cluster.h"

ABSL_FLAG(uint32_t, workers, 64, "machines with workers");
ABSL_FLAG(uint32_t, servers, 8, "machines with servers");
ABSL_FLAG(absl::Duration, lasts, absl::Hours(8), "how long the job trains");
ABSL_FLAG(absl::Duration, save, absl::Seconds(20), "of a checkpoint, while training goes on");
ABSL_FLAG(absl::Duration, restore, absl::Seconds(20), "of a server");
ABSL_FLAG(absl::Duration, replacement, absl::Minutes(1), "until a lost machine has a successor");
ABSL_FLAG(int, seeds, 3, "jobs of which each figure is the mean");
ABSL_FLAG(std::string, svg, "", "the plot is written to this file");

namespace mu::sim {
namespace {

const std::vector<double> kLosses = {0.01, 0.05, 0.2, 1};  // per machine and hour
const std::vector<int> kMinutes = {1, 2, 5, 10, 30};       // between checkpoints

struct Line {
  RecoveryMode recovery;
  double losses = 0;
  std::vector<double> efficiencies;  // as kMinutes
};

double Efficiency(RecoveryMode recovery, double losses, int minutes) {
  double sum = 0;
  for (int seed = 1; seed <= absl::GetFlag(FLAGS_seeds); ++seed) {
    SpotScenario scenario;
    scenario.workers = absl::GetFlag(FLAGS_workers);
    scenario.servers = absl::GetFlag(FLAGS_servers);
    scenario.lasts = absl::GetFlag(FLAGS_lasts);
    scenario.save = absl::GetFlag(FLAGS_save);
    scenario.restore = absl::GetFlag(FLAGS_restore);
    scenario.replacement = absl::GetFlag(FLAGS_replacement);
    scenario.recovery = recovery;
    scenario.losses_per_hour = losses;
    scenario.checkpoint_every = absl::Minutes(minutes);
    scenario.seed = static_cast<uint64_t>(seed);
    sum += RunSpot(scenario).efficiency;
  }
  return sum / absl::GetFlag(FLAGS_seeds);
}

const char* NameOf(RecoveryMode recovery) {
  return recovery == RecoveryMode::kAll ? "all" : "shard";
}

void PrintTable(const std::vector<Line>& lines) {
  std::cout << "| losses per machine and hour | `recovery` |";
  for (const int minutes : kMinutes) std::cout << " " << minutes << " min |";
  std::cout << "\n|---|---|";
  for (size_t i = 0; i < kMinutes.size(); ++i) std::cout << "---|";
  std::cout << "\n";
  for (const Line& line : lines) {
    std::cout << absl::StreamFormat("| %g | `%s` |", line.losses, NameOf(line.recovery));
    for (const double efficiency : line.efficiencies)
      std::cout << absl::StreamFormat(" %.1f%% |", 100 * efficiency);
    std::cout << "\n";
  }
}

// Efficiency over the time between checkpoints, a line for each rate and recovery.
std::string Plot(const std::vector<Line>& lines) {
  constexpr double kLeft = 60, kTop = 30, kWidth = 460, kHeight = 300;
  const std::vector<const char*> colours = {"#1b6ca8", "#2e8b57", "#c77700", "#b22222"};
  const auto x = [&](double minutes) {
    return kLeft + kWidth * std::log(minutes / kMinutes.front()) /
                       std::log(1.0 * kMinutes.back() / kMinutes.front());
  };
  const auto y = [&](double efficiency) { return kTop + kHeight * (1 - efficiency); };
  std::string svg = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" height=\"400\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"720\" height=\"400\" "
      "fill=\"white\"/>\n");
  for (int percent = 0; percent <= 100; percent += 20) {
    absl::StrAppendFormat(&svg,
                          "<line x1=\"%g\" x2=\"%g\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#dddddd\"/>"
                          "<text x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%d%%</text>\n",
                          kLeft, kLeft + kWidth, y(percent / 100.0), y(percent / 100.0), kLeft - 6,
                          y(percent / 100.0) + 4, percent);
  }
  for (const int minutes : kMinutes) {
    absl::StrAppendFormat(&svg, "<text x=\"%.1f\" y=\"%g\" text-anchor=\"middle\">%d min</text>\n",
                          x(minutes), kTop + kHeight + 18, minutes);
  }
  absl::StrAppendFormat(&svg,
                        "<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">time between checkpoints"
                        "</text>\n<text x=\"%g\" y=\"18\">share of the workers' time in steps that "
                        "count</text>\n",
                        kLeft + kWidth / 2, kTop + kHeight + 40, kLeft);
  for (size_t i = 0; i < lines.size(); ++i) {
    const Line& line = lines[i];
    const bool all = line.recovery == RecoveryMode::kAll;
    const std::string style = absl::StrCat("stroke=\"", colours[i / 2], "\" stroke-width=\"2\"",
                                           all ? "" : " stroke-dasharray=\"6 4\"");
    std::string points;
    for (size_t m = 0; m < kMinutes.size(); ++m)
      absl::StrAppendFormat(&points, "%.1f,%.1f ", x(kMinutes[m]), y(line.efficiencies[m]));
    const double legend = kTop + 20 + 22 * static_cast<double>(i);
    absl::StrAppendFormat(&svg,
                          "<polyline points=\"%s\" fill=\"none\" %s/>\n<line x1=\"540\" x2=\"570\" "
                          "y1=\"%g\" y2=\"%g\" %s/><text x=\"578\" y=\"%g\">%g per hour, %s</text>"
                          "\n",
                          points, style, legend, legend, style, legend + 4, line.losses,
                          NameOf(line.recovery));
  }
  return svg + "</svg>\n";
}

int Main() {
  std::vector<Line> lines;
  for (const double losses : kLosses) {
    for (const RecoveryMode recovery : {RecoveryMode::kAll, RecoveryMode::kShard}) {
      lines.push_back({recovery, losses, {}});
      for (const int minutes : kMinutes)
        lines.back().efficiencies.push_back(Efficiency(recovery, losses, minutes));
    }
  }
  PrintTable(lines);
  const std::string path = absl::GetFlag(FLAGS_svg);
  if (path.empty()) return 0;
  std::ofstream file(path);
  file << Plot(lines);
  file.close();
  if (file) return 0;
  std::cerr << path << " cannot be written\n";
  return 2;
}

}  // namespace
}  // namespace mu::sim

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("efficiency to expect on machines that are taken away");
  absl::ParseCommandLine(argc, argv);
  return mu::sim::Main();
}
