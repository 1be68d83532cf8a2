// The arithmetic of one kind of optimizer, with its settings. A kind is a class of its own file;
// MakeUpdateRule knows them all.
//
// Immutable, hence thread safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "proto/optimizer.pb.h"

namespace mu {

// What a push says of its step.
struct PushStep {
  float rate_scale = 1;   // multiplies the learning rate (a schedule's)
  uint64_t job_step = 0;  // its place in the job, from 1; 0: not known
};

// What follows from that for all that the step updates.
struct StepRates {
  float rate = 0;            // the learning rate, scaled
  float corrected_rate = 0;  // and divided by the first moment's bias (Adam)
  float root_scale = 1;      // of the square root of the second moment, against its bias (Adam)
  float factor = 1;          // by which the rate was scaled (FTRL)

  // A part of this step, such as that of a late gradient.
  void Scale(float by) {
    rate *= by;
    factor *= by;
    corrected_rate *= by;
  }
};

// Where slot k of what is updated begins. Few registers: a server calls once a row.
struct Slots {
  float* base;
  const size_t* offsets;
  float* operator[](size_t k) const { return base + offsets[k]; }
};

class UpdateRule {
 public:
  explicit UpdateRule(float learning_rate) : learning_rate_(learning_rate) {}
  virtual ~UpdateRule() = default;

  // Whether it needs PushStep.job_step.
  virtual bool needs_job_step() const { return false; }
  // Whether Apply must get a row at a time: something is kept or computed once a row. The rules of
  // single values take any number of rows as one.
  virtual bool by_row() const { return false; }
  virtual StepRates RatesOf(const PushStep& step) const {
    return {.rate = learning_rate_ * step.rate_scale, .factor = step.rate_scale};
  }
  // Applies gradient [n] to value [n]. slots[k] is slot k (OptimizerKind::slots): [n], or one
  // number of the row. No overlaps.
  virtual void Apply(const StepRates& rates, float* value, Slots slots, const float* gradient,
                     size_t n) const = 0;
  // Value [n] was not made by Apply, but assigned, loaded without slots, or added to. A rule that
  // computes values from slots changes them so that these values follow from them, else the next
  // gradient would replace what was given. Slots that go with the values stay as they are, bit by
  // bit.
  virtual void Adopt(const float* /*value*/, Slots /*slots*/, size_t /*n*/) const {}

 private:
  const float learning_rate_;
};

// Every setting of `full` is set. nullptr for no optimizer.
std::unique_ptr<const UpdateRule> MakeUpdateRule(const muster::OptimizerProto& full);

// What MakeUpdateRule calls.
std::unique_ptr<const UpdateRule> MakeSgd(const muster::SgdProto& settings);
std::unique_ptr<const UpdateRule> MakeAdagrad(const muster::AdagradProto& settings);
std::unique_ptr<const UpdateRule> MakeAdam(const muster::AdamProto& settings);
std::unique_ptr<const UpdateRule> MakeAdamW(const muster::AdamWProto& settings);
std::unique_ptr<const UpdateRule> MakeRmsprop(const muster::RmspropProto& settings);
std::unique_ptr<const UpdateRule> MakeRowwiseAdagrad(const muster::RowwiseAdagradProto& settings);
std::unique_ptr<const UpdateRule> MakeFtrl(const muster::FtrlProto& settings);
std::unique_ptr<const UpdateRule> MakeLion(const muster::LionProto& settings);

}  // namespace mu
