// Whoever ends a save waits for a piece that is being read, and never for the disk.
#include "psserver/save_reading.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::HasCode;

class SaveReadingTest : public ::testing::Test {
 protected:
  // As PsServer does for a restore.
  void CancelAndWait() {
    cancelled_ = true;
    reading_.End();
  }

  std::atomic<bool> cancelled_{false};
  SaveReading reading_{
      [this] { return cancelled_ ? absl::AbortedError("the save was ended") : absl::OkStatus(); }};
};

TEST_F(SaveReadingTest, WhoEndsItWaitsForItsReading) {
  Notification inside;
  std::atomic<bool> reading{false};
  std::atomic<int> ended{0};
  std::thread save([&] {
    reading_.OnEnd([&] {
      EXPECT_FALSE(reading);
      ++ended;
    });
    MU_EXPECT_OK(reading_.Read([&] {
      reading = true;
      inside.Notify();
      while (reading_.GoOn().ok()) std::this_thread::yield();
      reading = false;
    }));
    EXPECT_THAT(reading_.Read([] { ADD_FAILURE(); }), HasCode(absl::StatusCode::kAborted));
    reading_.End();
  });
  inside.Wait();
  CancelAndWait();
  EXPECT_FALSE(reading);
  EXPECT_EQ(ended, 1);
  save.join();
  EXPECT_EQ(ended, 1) << "once";
}

// As a write or fsync to a dead network disk does.
TEST_F(SaveReadingTest, WhoEndsItDoesNotWaitForAWriterThatHangsInTheDisk) {
  Notification hangs, disk_is_back;
  std::atomic<int> ended{0};
  std::thread save([&] {
    reading_.OnEnd([&] { ++ended; });
    MU_EXPECT_OK(reading_.Read([] {}));
    hangs.Notify();
    disk_is_back.Wait();
    EXPECT_THAT(reading_.Read([] { ADD_FAILURE(); }), HasCode(absl::StatusCode::kAborted));
    reading_.End();
  });
  hangs.Wait();
  CancelAndWait();
  EXPECT_EQ(ended, 1) << "the store is let go all the same";
  disk_is_back.Notify();
  save.join();
  EXPECT_EQ(ended, 1);
}

TEST_F(SaveReadingTest, OneThatEndsBeforeItReadsLetsTheStoreGoAtOnce) {
  CancelAndWait();
  bool ended = false;
  reading_.OnEnd([&] { ended = true; });
  EXPECT_TRUE(ended);
  reading_.End();
}

// Pieces of the store, while others end the save.
TEST_F(SaveReadingTest, NothingIsReadAfterItsEnd) {
  for (int i = 0; i < 200; ++i) {
    cancelled_ = false;
    SaveReading reading([this] { return cancelled_ ? absl::AbortedError("") : absl::OkStatus(); });
    std::atomic<bool> gone{false};
    reading.OnEnd([&] { gone = true; });
    std::thread save([&] {
      while (reading.Read([&] { EXPECT_FALSE(gone); }).ok()) {
      }
      reading.End();
    });
    cancelled_ = true;
    reading.End();
    EXPECT_TRUE(gone);
    save.join();
  }
}

}  // namespace
}  // namespace mu
