// Notices a loss that grows a thousandfold, or begins far above what it can be, although every
// value of it is finite. Pure; not synchronised.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/str_format.h"

namespace mu {

class LossWatch {
 public:
  // `entropy`: the losses are cross entropies, which are a few units in any model that has not gone
  // astray.
  explicit LossWatch(bool entropy = false) : entropy_(entropy) {}

  // `loss`: the mean over a function's steps, which ended at `step` of the job. What to say of it,
  // once; else nothing.
  std::string Observe(uint64_t step, double loss) {
    if (warned_ || !std::isfinite(loss)) return "";
    if (first_ == 0) first_ = loss;
    // A loss that was almost 0 for a while is noise; what it began with is a measure, too.
    const double normal = std::max(lowest_, first_ / kGrowth);
    if (first_ > 0 && normal > 0 && loss > kGrowth * normal) {
      warned_ = true;
      return absl::StrFormat(
          "the loss has grown from %.4g to %.4g by step %d: the training diverges; a lower "
          "learning "
          "rate, or clipped gradients, may help",
          normal, loss, step);
    }
    if (entropy_ && loss > kMostEntropy) {
      warned_ = true;
      return absl::StrFormat(
          "the loss is %.4g by step %d, but a cross entropy is a few units: numbers of the data "
          "are "
          "probably far from 1; `coordinator stats` shows them, and what to write as mean and "
          "stddev of their columns",
          loss, step);
    }
    smoothed_ = smoothed_ == 0 ? loss : smoothed_ + kSmoothing * (loss - smoothed_);
    lowest_ = std::min(lowest_, smoothed_);
    return "";
  }

 private:
  static constexpr double kGrowth = 1000;
  static constexpr double kSmoothing = 0.2;
  // Of a million classes that are equally probable it is 14; the penalties of a model add to it.
  static constexpr double kMostEntropy = 1000;

  const bool entropy_;

  double first_ = 0;  // 0: none yet
  double smoothed_ = 0;
  double lowest_ = std::numeric_limits<double>::infinity();  // of the smoothed ones
  bool warned_ = false;
};

}  // namespace mu
