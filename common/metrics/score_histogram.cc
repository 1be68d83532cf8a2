#include "common/metrics/score_histogram.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <utility>

namespace mu {
namespace {

using Bucket = ScoreHistogram::Bucket;

// Records that wait to be sorted: as many as there are buckets, so that a record's share of joining
// them is constant, within these.
constexpr size_t kFewestPending = size_t{1} << 16;
constexpr size_t kMostPending = size_t{1} << 19;

// The bits of a float that is not negative are in the order of its value. From 0.5 on the key
// counts down with 1 - score, which is exact there: scores near 1 are told apart as those near 0.
uint32_t KeyOf(float score) {
  constexpr uint32_t kHalf = std::bit_cast<uint32_t>(0.5f);
  if (score < 0.5f) return score > 0 ? std::bit_cast<uint32_t>(score) : 0;  // -0 is 0
  return 2 * kHalf - std::bit_cast<uint32_t>(1 - score);
}

// Takes `bits` off the keys and makes one bucket of those with equal keys.
void Collapse(int bits, std::vector<Bucket>* buckets) {
  size_t kept = 0;
  for (const Bucket& bucket : *buckets) {
    const Bucket moved{bucket.key >> bits, bucket.positives, bucket.negatives};
    if (kept == 0 || (*buckets)[kept - 1].key != moved.key) {
      (*buckets)[kept++] = moved;
    } else {
      (*buckets)[kept - 1].positives += moved.positives;
      (*buckets)[kept - 1].negatives += moved.negatives;
    }
  }
  buckets->resize(kept);
}

}  // namespace

void ScoreHistogram::Add(float score, bool positive, float weight) {
  if (weight == 0) return;
  pending_.push_back({2 * KeyOf(score) + (positive ? 1u : 0u), weight});
  if (pending_.size() >= std::clamp(buckets_.size(), kFewestPending, kMostPending)) Compact();
}

void ScoreHistogram::Merge(const ScoreHistogram& other) {
  ScoreHistogram added = other;
  added.Compact();
  Compact();
  const int shift = std::max(shift_, added.shift_);
  added.CoarsenTo(shift);
  CoarsenTo(shift);
  Join(added.buckets_);
}

std::vector<Bucket> ScoreHistogram::Buckets() const {
  if (pending_.empty()) return buckets_;
  ScoreHistogram all = *this;
  all.Compact();
  return std::move(all.buckets_);
}

// A radix sort: three passes over 11 bits each.
void ScoreHistogram::SortByCode(std::vector<Pending>* records) {
  constexpr int kBits = 11;
  constexpr size_t kDigits = size_t{1} << kBits;
  std::vector<Pending> sorted(records->size());
  for (int shift = 0; shift < 32; shift += kBits) {
    const auto digit = [shift](const Pending& record) {
      return static_cast<size_t>(record.code >> shift) % kDigits;
    };
    std::array<size_t, kDigits + 1> place = {};  // of the next record with a digit
    for (const Pending& record : *records) ++place[digit(record) + 1];
    std::partial_sum(place.begin(), place.end(), place.begin());
    for (const Pending& record : *records) sorted[place[digit(record)]++] = record;
    records->swap(sorted);
  }
}

void ScoreHistogram::Compact() {
  if (pending_.empty()) return;
  SortByCode(&pending_);
  std::vector<Bucket> added;
  for (const Pending& record : pending_) {
    const uint32_t key = record.code >> 1 >> shift_;
    if (added.empty() || added.back().key != key) added.push_back({.key = key});
    const bool positive = (record.code & 1) != 0;
    (positive ? added.back().positives : added.back().negatives) += record.weight;
  }
  pending_.clear();
  Join(added);
}

void ScoreHistogram::Join(const std::vector<Bucket>& added) {
  std::vector<Bucket> joined(buckets_.size() + added.size());
  std::merge(buckets_.begin(), buckets_.end(), added.begin(), added.end(), joined.begin(),
             [](const Bucket& a, const Bucket& b) { return a.key < b.key; });
  Collapse(0, &joined);
  buckets_ = std::move(joined);
  // A set has at least as many different keys as each of its parts. So the shift of a part is never
  // above that of the whole, which is the least one that leaves few enough buckets.
  while (buckets_.size() > kMostBuckets) CoarsenTo(shift_ + 1);
  // What was joined had room for the scores that both had, and for those of finer buckets.
  buckets_.shrink_to_fit();
}

void ScoreHistogram::CoarsenTo(int shift) {
  if (shift == shift_) return;
  Collapse(shift - shift_, &buckets_);
  shift_ = shift;
}

}  // namespace mu
