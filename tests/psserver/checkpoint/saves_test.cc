#include "psserver/saves.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "common/base/status.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::HasCode;

Saves::Result Reply(uint64_t updates) {
  pb::SaveReply reply;
  reply.set_updates(updates);
  return reply;
}

TEST(SavesTest, RepeatsOfAnAttemptShareItsResult) {
  Saves saves;
  std::atomic<int> ran{0};
  Notification inside, go;
  const auto save = [&](Saves::Job*) {
    inside.Notify();
    go.Wait();
    return Reply(static_cast<uint64_t>(++ran));
  };
  std::vector<std::thread> threads;
  std::atomic<uint64_t> sum{0};
  threads.emplace_back([&] { sum += saves.Run(5, 1, save)->updates(); });
  inside.Wait();
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] { sum += saves.Run(5, 1, save)->updates(); });
  go.Notify();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(sum, 4u);
  EXPECT_EQ(saves.Run(5, 1, save)->updates(), 1u) << "after it has ended as well";
  EXPECT_EQ(saves.Run(6, 1, [&](Saves::Job*) { return Reply(9); })->updates(), 9u);
  EXPECT_EQ(saves.Run(5, 1, save)->updates(), 1u) << "and when others have been made since";
  EXPECT_EQ(saves.Run(0, 1, [&](Saves::Job*) { return Reply(10); })->updates(), 10u);
  EXPECT_EQ(saves.Run(0, 1, [&](Saves::Job*) { return Reply(11); })->updates(), 11u)
      << "0 is no attempt";
}

TEST(SavesTest, AFailedAttemptMayBeRepeated) {
  Saves saves;
  EXPECT_FALSE(
      saves.Run(5, 1, [](Saves::Job*) { return absl::ResourceExhaustedError("disk full"); }).ok());
  MU_EXPECT_OK(saves.Run(5, 1, [](Saves::Job*) { return Reply(1); }));
}

TEST(SavesTest, OneAtATime) {
  Saves saves;
  std::atomic<int> inside{0}, ran{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      MU_EXPECT_OK(saves.Run(100 + t, 1, [&](Saves::Job*) {
        EXPECT_EQ(++inside, 1);
        ++ran;
        --inside;
        return Reply(t);
      }));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ran, 6);
}

TEST(SavesTest, CancelEndsTheSaveAndWaitsForItsReading) {
  Saves saves;
  saves.CancelAndWait("nobody is there");
  Notification inside;
  std::atomic<bool> reading{false};
  std::atomic<int> ended{0};
  std::thread save([&] {
    EXPECT_THAT(saves.Run(1, 1,
                          [&](Saves::Job* job) -> Saves::Result {
                            job->OnEndOfReading([&] {
                              EXPECT_FALSE(reading);
                              ++ended;
                            });
                            const absl::Status cancelled = job->Read([&] {
                              reading = true;
                              inside.Notify();
                              while (job->GoOn().ok()) std::this_thread::yield();
                              reading = false;
                            });
                            MU_EXPECT_OK(cancelled);
                            EXPECT_THAT(job->Read([] { ADD_FAILURE(); }),
                                        HasCode(absl::StatusCode::kAborted));
                            job->EndReading();
                            return job->GoOn();
                          }),
                HasCode(absl::StatusCode::kAborted));
  });
  inside.Wait();
  saves.CancelAndWait("a restore");
  EXPECT_FALSE(reading);
  EXPECT_EQ(ended, 1);
  save.join();
  EXPECT_EQ(ended, 1) << "once";
  MU_EXPECT_OK(saves.Run(2, 1, [](Saves::Job* job) -> Saves::Result {
    MU_EXPECT_OK(job->GoOn());
    return Reply(1);
  }));
}

// As a write or fsync to a dead network disk does.
TEST(SavesTest, CancelDoesNotWaitForAWriterThatHangsInTheDisk) {
  Saves saves;
  Notification hangs, disk_is_back;
  std::atomic<int> ended{0};
  std::thread save([&] {
    EXPECT_THAT(saves.Run(1, 1,
                          [&](Saves::Job* job) -> Saves::Result {
                            job->OnEndOfReading([&] { ++ended; });
                            MU_EXPECT_OK(job->Read([] {}));
                            hangs.Notify();
                            disk_is_back.Wait();
                            EXPECT_THAT(job->Read([] { ADD_FAILURE(); }),
                                        HasCode(absl::StatusCode::kAborted));
                            job->EndReading();
                            return job->GoOn();
                          }),
                HasCode(absl::StatusCode::kAborted));
  });
  hangs.Wait();
  saves.CancelAndWait("a restore");
  EXPECT_EQ(ended, 1) << "the store is let go all the same";
  disk_is_back.Notify();
  save.join();
  EXPECT_EQ(ended, 1);
}

TEST(SavesTest, ASaveThatIsCancelledBeforeItReadsLetsTheStoreGoAtOnce) {
  Saves saves;
  Notification inside, cancelled;
  bool ended = false;
  std::thread save([&] {
    EXPECT_FALSE(saves
                     .Run(1, 1,
                          [&](Saves::Job* job) -> Saves::Result {
                            inside.Notify();
                            cancelled.Wait();
                            job->OnEndOfReading([&] { ended = true; });
                            EXPECT_TRUE(ended);
                            job->EndReading();
                            return job->GoOn();
                          })
                     .ok());
  });
  inside.Wait();
  saves.CancelAndWait("a restore");
  cancelled.Notify();
  save.join();
}

TEST(SavesTest, ANewerCoordinatorsSaveEndsTheOlderOnes) {
  Saves saves;
  Notification inside;
  std::thread old([&] {
    EXPECT_THAT(saves.Run(1, 1,
                          [&](Saves::Job* job) -> Saves::Result {
                            inside.Notify();
                            while (job->GoOn().ok()) std::this_thread::yield();
                            return job->GoOn();
                          }),
                HasCode(absl::StatusCode::kAborted));
  });
  inside.Wait();
  MU_EXPECT_OK(saves.Run(2, 2, [](Saves::Job*) { return Reply(2); }));
  old.join();
}

}  // namespace
}  // namespace mu
