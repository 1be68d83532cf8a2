// One bucket for each score, and what is left of that if there are more scores than buckets.
#include "common/metrics/score_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "common/base/hash.h"
#include "common/metrics/binary_metrics.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using Bucket = ScoreHistogram::Bucket;

constexpr size_t kMost = ScoreHistogram::kMostBuckets;

// Over all of (0, 1) and too many for keys that lose ten bits: next to 1, where floats lie less
// densely than next to 0, several are equal.
std::vector<float> ScoresOfAllSizes() {
  std::vector<float> scores;
  for (uint32_t bits = 1024; bits < std::bit_cast<uint32_t>(0.5f); bits += 1024) {
    const float score = std::bit_cast<float>(bits);
    scores.push_back(score);
    if (score > 1e-8f) scores.push_back(1 - score);
  }
  return scores;
}

void ExpectEqual(const std::vector<Bucket>& a, const std::vector<Bucket>& b) {
  ASSERT_EQ(a.size(), b.size());
  size_t different = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    different +=
        a[i].key != b[i].key || a[i].positives != b[i].positives || a[i].negatives != b[i].negatives
            ? 1
            : 0;
  }
  EXPECT_EQ(different, 0u);
}

TEST(ScoreHistogram, EachScoreHasABucketInItsOrder) {
  const std::vector<float> ascending = {0,
                                        std::bit_cast<float>(uint32_t{1}),
                                        1e-30f,
                                        1e-9f,
                                        std::nextafter(0.5f, 0.0f),
                                        0.5f,
                                        std::nextafter(0.5f, 1.0f),
                                        0.75f,
                                        std::nextafter(1.0f, 0.0f),
                                        1};
  ScoreHistogram histogram;
  for (size_t i = ascending.size(); i-- > 0;) {
    histogram.Add(ascending[i], /*positive=*/true, static_cast<float>(i + 1));
    histogram.Add(ascending[i], /*positive=*/false, 0.25f);
    histogram.Add(ascending[i], /*positive=*/false, 0.5f);
  }
  const std::vector<Bucket> buckets = histogram.Buckets();
  ASSERT_EQ(buckets.size(), ascending.size());
  for (size_t i = 0; i < buckets.size(); ++i) {
    EXPECT_EQ(buckets[i].positives, static_cast<double>(i + 1)) << ascending[i];
    EXPECT_EQ(buckets[i].negatives, 0.75) << ascending[i];
    if (i > 0) EXPECT_GT(buckets[i].key, buckets[i - 1].key);
  }
}

TEST(ScoreHistogram, WhatHasNoWeightLeavesNoBucketAndZerosAreOne) {
  ScoreHistogram histogram;
  EXPECT_TRUE(histogram.Buckets().empty());
  histogram.Add(0.25f, true, 0);
  EXPECT_TRUE(histogram.Buckets().empty());
  histogram.Add(0.0f, true, 1);
  histogram.Add(-0.0f, false, 2);
  ASSERT_EQ(histogram.Buckets().size(), 1u);
  EXPECT_EQ(histogram.Buckets()[0].positives, 1);
  EXPECT_EQ(histogram.Buckets()[0].negatives, 2);
}

TEST(ScoreHistogram, NeighboursShareABucketOnlyIfThereAreTooManyScores) {
  const uint32_t first = std::bit_cast<uint32_t>(0.25f);
  ScoreHistogram histogram;
  for (size_t i = 0; i < kMost; ++i)
    histogram.Add(std::bit_cast<float>(first + static_cast<uint32_t>(i)), i % 2 == 1, 1);
  EXPECT_EQ(histogram.Buckets().size(), kMost);
  histogram.Add(0.25f, true, 1);  // one that is there
  EXPECT_EQ(histogram.Buckets().size(), kMost);
  histogram.Add(0.75f, false, 1);
  const std::vector<Bucket> buckets = histogram.Buckets();
  ASSERT_EQ(buckets.size(), kMost / 2 + 1);
  EXPECT_EQ(buckets.front().positives, 2);
  EXPECT_EQ(buckets.front().negatives, 1);
  for (size_t i = 1; i < kMost / 2; ++i)
    ASSERT_TRUE(buckets[i].positives == 1 && buckets[i].negatives == 1) << i;
  EXPECT_EQ(buckets.back().positives, 0);
  EXPECT_EQ(buckets.back().negatives, 1);
}

TEST(ScoreHistogram, TellsScoresApartThatDifferByMoreThanAFourThousandth) {
  ScoreHistogram filled;
  for (const float score : ScoresOfAllSizes()) filled.Add(score, true, 1e-12f);
  EXPECT_LE(filled.Buckets().size(), kMost);
  // Whether a negative and a positive are in one bucket.
  const auto share = [&filled](float negative, float positive) {
    ScoreHistogram histogram = filled;
    histogram.Add(negative, false, 1);
    histogram.Add(positive, true, 1);
    const std::vector<Bucket> buckets = histogram.Buckets();
    EXPECT_LE(buckets.size(), kMost);
    return std::any_of(buckets.begin(), buckets.end(), [](const Bucket& bucket) {
      return bucket.positives >= 1 && bucket.negatives >= 1;
    });
  };
  EXPECT_TRUE(share(0.25f, std::nextafter(0.25f, 1.0f))) << "the keys have all their bits";
  constexpr float kApart = 1 + 1.0f / 2048;
  for (const float score : {1e-30f, 1e-9f, 1e-3f, 0.2f, 0.3f, 0.49f}) {
    EXPECT_FALSE(share(score, score * kApart)) << score;
    if (score > 1e-4f) EXPECT_FALSE(share(1 - score * kApart, 1 - score)) << 1 - score;
  }
}

TEST(ScoreHistogram, BucketsDoNotDependOnTheOrderOrOnWhatIsMerged) {
  struct Record {
    float score;
    bool positive;
    float weight;
  };
  SplitMix random(5);
  std::vector<Record> records;
  for (const float score : ScoresOfAllSizes()) {
    records.push_back({score, random.Below(2) == 1, static_cast<float>(1 + random.Below(15)) / 4});
  }
  const auto whole = [&records] {
    ScoreHistogram histogram;
    for (const Record& record : records)
      histogram.Add(record.score, record.positive, record.weight);
    return histogram.Buckets();
  };
  const std::vector<Bucket> expected = whole();
  EXPECT_GT(expected.size(), kMost / 4);
  EXPECT_LE(expected.size(), kMost);
  for (size_t i = records.size(); i > 1; --i) std::swap(records[i - 1], records[random.Below(i)]);
  ExpectEqual(whole(), expected);
  // Parts of all sizes; those of the first half need no coarser keys alone.
  ScoreHistogram merged, second;
  for (size_t begin = 0; begin < records.size();) {
    ScoreHistogram part;
    const size_t end = std::min<size_t>(records.size(), begin + 1 + random.Below(400'000));
    for (size_t i = begin; i < end; ++i)
      part.Add(records[i].score, records[i].positive, records[i].weight);
    (begin < records.size() / 2 ? merged : second).Merge(part);
    begin = end;
  }
  second.Merge(merged);
  ExpectEqual(second.Buckets(), expected);
}

// More different scores than buckets: the area from the buckets against the exact one.
TEST(ScoreHistogram, AreasOfMoreScoresThanBucketsAreNearTheExactOnes) {
  constexpr size_t kRecords = 2'000'000;
  SplitMix random(7);
  std::vector<float> scores, labels;
  std::vector<std::pair<float, bool>> sorted;
  for (size_t i = 0; i < kRecords; ++i) {
    const double p = 1 / (1 + std::exp(8 - 16 * random.Unit()));
    scores.push_back(static_cast<float>(p));
    labels.push_back(random.Unit() < 0.3 + 0.4 * p ? 1.0f : 0.0f);
    sorted.emplace_back(scores.back(), labels.back() == 1);
  }
  std::sort(sorted.begin(), sorted.end());
  double pairs = 0, below = 0, positives = 0;
  size_t different = 0;
  for (size_t i = 0; i < kRecords;) {
    double own_positives = 0, own_negatives = 0;
    const float score = sorted[i].first;
    for (; i < kRecords && sorted[i].first == score; ++i)
      (sorted[i].second ? own_positives : own_negatives) += 1;
    pairs += own_positives * (below + 0.5 * own_negatives);
    below += own_negatives;
    positives += own_positives;
    ++different;
  }
  ASSERT_GT(different, kMost);
  BinaryMetrics metrics;
  MU_ASSERT_OK(metrics.Add(scores, labels));
  EXPECT_NEAR(metrics.auc(), pairs / positives / below, 1e-6);
  EXPECT_GT(metrics.auc(), 0.6) << "the scores say nothing";
}

}  // namespace
}  // namespace mu
