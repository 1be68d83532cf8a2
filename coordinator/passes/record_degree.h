// How the values of a function grow with the number of records that they are computed from: what is
// the mean over the slices of a batch for one of them, and the sum for another.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "common/graph/verifier.h"
#include "proto/graph.pb.h"

namespace mu {

struct RecordDegree {
  // Whether it depends on the records at all. If not, the rest means nothing.
  bool varies = false;
  // 0: it stays as it is if the records come twice, as a mean over them or what is of each record.
  // 1: it doubles, as a sum. nullopt: neither that is known.
  std::optional<int> degree = 0;
  // Depends on the largest or smallest over the records: those of a batch do not follow from those
  // of its slices.
  bool extreme = false;
  // Of degree 1: something that does not vary is part of it, so the sum over slices has that once
  // for each of them.
  bool offset = false;
  // Of degree 1: doubles with the records, but is not the sum of what slices give, such as the
  // absolute value of a sum, the larger one of two, a sum cast to an integer.
  bool nonlinear = false;
  // A number times a power of how many records there are (its degree): as a factor it leaves sums
  // sums. Also what is drawn for a slice.
  bool size = false;
  // Of no axis of records: what slices give is neither added up to it nor averaged, such as the
  // product of two means, the root of one. It follows from the sums and means that it is made of.
  bool composed = false;
  // Made of values of single records that have something of all records in them, such as their
  // distances from the mean: it does not follow from anything that slices give.
  bool entangled = false;
  // The power to which it has each count of what a slice may have none of, by the count's node. The
  // count is 1 there. One that only divides has a negative power, one divided by itself has 0.
  std::map<int, int> powers_of_counts;
  // Has an axis of unknown size that may be 0 in a slice: the values of a list column.
  bool may_be_empty = false;
  // All elements are whole numbers. Also said of what does not vary.
  bool whole = false;

  bool HasCounts() const {
    return std::any_of(powers_of_counts.begin(), powers_of_counts.end(),
                       [](const auto& count) { return count.second != 0; });
  }
  // Whether it grows with such a count, so that a slice that has none adds what is not there.
  bool CountsNoneAsOne() const {
    return std::any_of(powers_of_counts.begin(), powers_of_counts.end(),
                       [](const auto& count) { return count.second > 0; });
  }
};

// By node, of a traced function. What is of each record has an axis of unknown size, as columns of
// a batch have.
std::vector<RecordDegree> RecordDegreesOf(const muster::FunctionProto& function,
                                          const FunctionSpecs& specs);

}  // namespace mu
