#include "common/base/resumable_stream.h"

#include <vector>

#include "common/base/hash.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using Stream = ResumableStream<int>;
using Arrival = Stream::Arrival;

std::vector<int> WriteAll(Stream* stream) {
  std::vector<int> written;
  while (const Stream::Numbered* next = stream->Write()) written.push_back(next->message);
  return written;
}

TEST(ResumableStream, WritesInOrderAndAgainAfterABreak) {
  Stream stream;
  for (int i = 1; i <= 3; ++i) stream.Add(i, 10);
  EXPECT_THAT(WriteAll(&stream), ::testing::ElementsAre(1, 2, 3));
  stream.Add(4, 10);
  EXPECT_THAT(WriteAll(&stream), ::testing::ElementsAre(4));
  MU_EXPECT_OK(stream.Confirmed(2));
  EXPECT_EQ(stream.unconfirmed_bytes(), 20u);
  EXPECT_THAT(WriteAll(&stream), ::testing::IsEmpty());
  stream.Reconnect();
  EXPECT_EQ(stream.Write()->number, 3u);
  MU_EXPECT_OK(stream.Confirmed(3));
  EXPECT_THAT(WriteAll(&stream), ::testing::ElementsAre(4));
  MU_EXPECT_OK(stream.Confirmed(4));
  EXPECT_EQ(stream.unconfirmed(), 0u);
  MU_EXPECT_OK(stream.Confirmed(1)) << "late, and harmless";
}

TEST(ResumableStream, WhatWasNeverSentIsNotConfirmed) {
  Stream stream;
  stream.Add(1, 10);
  EXPECT_THAT(stream.Confirmed(2), testing::HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(stream.unconfirmed(), 1u);
}

TEST(ResumableStream, RepeatsAndGapsAreSeen) {
  Stream stream;
  EXPECT_EQ(stream.Receive(1, 1), Arrival::kNew);
  EXPECT_EQ(stream.Receive(1, 1), Arrival::kRepeat);
  EXPECT_EQ(stream.Receive(3, 1), Arrival::kGap);
  EXPECT_EQ(stream.received(), 1u);
  EXPECT_EQ(stream.Receive(2, 1), Arrival::kNew);
  EXPECT_EQ(stream.Receive(3, 1), Arrival::kNew);
  EXPECT_EQ(stream.Receive(2, 1), Arrival::kRepeat);
  EXPECT_EQ(stream.Confirm(), 3u);
}

TEST(ResumableStream, TheWindowIsBoundedInBytes) {
  Stream stream({.window_bytes = 100});
  stream.Add(1, 99);
  EXPECT_TRUE(stream.has_room());
  stream.Add(2, 1000);
  EXPECT_FALSE(stream.has_room());
  MU_EXPECT_OK(stream.Confirmed(1));
  EXPECT_FALSE(stream.has_room());
  MU_EXPECT_OK(stream.Confirmed(2));
  EXPECT_TRUE(stream.has_room());
}

TEST(ResumableStream, OwesAConfirmationAfterSoManyBytes) {
  Stream stream({.confirm_bytes = 10});
  stream.Receive(1, 9);
  EXPECT_FALSE(stream.owes_confirmation());
  stream.Receive(1, 9);
  EXPECT_FALSE(stream.owes_confirmation()) << "a repeat is nothing new";
  stream.Receive(2, 1);
  EXPECT_TRUE(stream.owes_confirmation());
  EXPECT_EQ(stream.Confirm(), 2u);
  EXPECT_FALSE(stream.owes_confirmation());
}

// Two ends and a connection that loses what is on its way when it breaks.
TEST(ResumableStream, NothingIsLostOrRepeatedHoweverConnectionsBreak) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SplitMix random(seed);
    struct Sent {
      uint64_t number, received;
      int message;
    };
    Stream ends[2] = {Stream({.window_bytes = 5}), Stream({.window_bytes = 5})};
    std::deque<Sent> on_way[2];  // to each end
    std::vector<int> heard[2];
    int said[2] = {0, 0};
    while (heard[0].size() < 50 || heard[1].size() < 50) {
      const size_t end = random.Below(2);
      switch (random.Below(8)) {
        case 0:  // breaks; each end tells the other on the next one what it has
          for (auto& way : on_way) way.clear();
          for (size_t e : {0, 1}) {
            MU_ASSERT_OK(ends[e].Confirmed(ends[1 - e].received()));
            ends[e].Reconnect();
          }
          break;
        case 1:
        case 2:
          if (said[end] < 50 && ends[end].has_room()) ends[end].Add(said[end]++, 1);
          break;
        case 3:
        case 4:
        case 5:
          if (const Stream::Numbered* next = ends[end].Write())
            on_way[1 - end].push_back({next->number, ends[end].Confirm(), next->message});
          break;
        default:
          if (on_way[end].empty()) break;
          MU_ASSERT_OK(ends[end].Confirmed(on_way[end].front().received));
          const Arrival arrival = ends[end].Receive(on_way[end].front().number, 1);
          ASSERT_NE(arrival, Arrival::kGap);
          if (arrival == Arrival::kNew) heard[end].push_back(on_way[end].front().message);
          on_way[end].pop_front();
      }
    }
    for (const auto& messages : heard) {
      ASSERT_EQ(messages.size(), 50u) << "seed " << seed;
      for (int i = 0; i < 50; ++i) ASSERT_EQ(messages[static_cast<size_t>(i)], i);
    }
  }
}

}  // namespace
}  // namespace mu
