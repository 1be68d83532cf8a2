// What a soak's runs show: each against the undisturbed ones of the same job, and against what the
// same job did before. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "coordinator/soak/soak_record.h"

namespace mu {

struct SoakLimits {
  double quality = 0.005;  // worse than undisturbed, or than before, in the metric's unit
  double time = 1.25;      // times what it took before
  double recovery = 1.5;   // times what a loss cost before,
  double cost = 0.05;      // if that makes, over all losses, so much of the run's time
  size_t least = 3;        // earlier runs of the same kind, without which time is not judged
  size_t window = 10;      // earlier runs whose median counts
};

// Medians of what the same job did undisturbed before this run, or, if it never had, after it.
struct SoakBaseline {
  double seconds = 0;
  double quality = 0;  // NaN: it has none
  uint64_t samples = 0;
};

struct SoakVerdict {
  const SoakRecord* run = nullptr;
  std::optional<SoakBaseline> calm;  // of a disturbed run; nothing: none was done
  double slowdown = 0;               // seconds / calm->seconds; 0: not known
  // Against calm; negative: it is better. Nothing: one of them has no quality, or which values of
  // the metric are better is not known.
  std::optional<double> quality_lost;
  std::vector<std::string> wrong;  // promises that were not kept
  std::vector<std::string> worse;  // than before, or than undisturbed
  bool flagged() const { return !wrong.empty() || !worse.empty(); }
};

// One for each record, in their order. The records must outlive the verdicts.
std::vector<SoakVerdict> Judge(const std::vector<SoakRecord>& records, const SoakLimits& limits);

// Of a non-empty list.
double Median(std::vector<double> values);

}  // namespace mu
