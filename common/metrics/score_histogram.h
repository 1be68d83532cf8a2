// How much weight positives and negatives of each score have: areas under curves follow from that.
// Pure; not synchronised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mu {

// Of up to kMostBuckets different scores each has a bucket of its own. If there are more, all keys
// lose as many low bits as are needed for so many buckets. Scores in one bucket then differ by at
// most 2^-12 (1 / 4096) of themselves, from 0.5 on of 1 - score, or are below 1e-38.
//
// The buckets follow from the set of scores alone, whatever the order of additions and merges. So
// do their sums as long as they fit the 53 bits of a double, as counts of records do. Takes up to
// 30 MB; twice to four times as much for a moment when scores are joined or asked for.
class ScoreHistogram {
 public:
  struct Bucket {
    uint32_t key = 0;  // ascends with the score
    double positives = 0;
    double negatives = 0;
  };
  static constexpr size_t kMostBuckets = size_t{1} << 20;

  // `score` in [0, 1], `weight` finite and not negative. A weight of 0 leaves no bucket.
  void Add(float score, bool positive, float weight);
  void Merge(const ScoreHistogram& other);
  // By ascending score; at most kMostBuckets.
  std::vector<Bucket> Buckets() const;

 private:
  // A record that is in no bucket yet.
  struct Pending {
    uint32_t code;  // 2 * key of the score, + 1 for a positive
    float weight;
  };

  static void SortByCode(std::vector<Pending>* records);  // stable
  void Compact();
  // `added` is sorted, its keys have lost shift_ bits.
  void Join(const std::vector<Bucket>& added);
  void CoarsenTo(int shift);

  std::vector<Bucket> buckets_;  // sorted
  std::vector<Pending> pending_;
  int shift_ = 0;  // bits that the buckets' keys have lost
};

}  // namespace mu
