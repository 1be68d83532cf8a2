// The one table of optimizers: what each kind is called, which settings it has, which slots it
// keeps, and what the docs say of it. Checks, job keys, memory layouts, checkpoints and the page
// docs/reference/optimizers.md follow from it. The arithmetic is in psserver/optimizer.
//
// Immutable, hence thread safe.
#pragma once

#include <vector>

#include "common/optimizer/slot_layout.h"
#include "proto/optimizer.pb.h"

namespace mu {

// A setting: a field of the kind's message, and a key of the job file.
struct OptimizerKey {
  enum class Range {
    kAboveZero,
    kNotNegative,
    kBelowOne,  // from 0 to below 1
    kFlag,
    kChoice
  };
  const char* name;
  Range range;
  double fallback = 0;  // where it is not set; one that must be set has none: 0 is not above 0
  const char* meaning = "";
  std::vector<const char*> choices = {};  // the first is the fallback
  const char* usual = "";                 // what to try, of one without a fallback
};

struct OptimizerKind {
  muster::OptimizerProto::KindCase kind;
  const char* name;     // of the field of OptimizerProto
  const char* summary;  // what it is, and where it comes from
  // What one gradient g does to a value x; r is the learning rate.
  std::vector<const char*> formula;
  std::vector<OptimizerKey> keys;
  // Of rows of `width` values. Every key of `full` is set.
  SlotLayouts (*slots)(const muster::OptimizerProto& full, uint64_t width);
  // What is wrong with settings that are right one by one; empty: nothing.
  const char* (*problem)(const muster::OptimizerProto& full) = nullptr;
};

// In the order of the fields of OptimizerProto.
const std::vector<OptimizerKind>& AllOptimizers();

// nullptr for none.
const OptimizerKind* FindOptimizer(muster::OptimizerProto::KindCase kind);

}  // namespace mu
