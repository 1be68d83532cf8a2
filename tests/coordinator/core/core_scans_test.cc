// Files of data that workers look through for the coordinator.
#include "common/base/error_kind.h"
#include "tests/coordinator/core/core_driver.h"

namespace mu {
namespace {

using testing::CoreDriver;
using testing::MachineFault;
using testing::Typed;

absl::Status NoFile(uint32_t file) {
  return WithInputFault(absl::NotFoundError("no such file"), pb::InputFault::MISSING, file);
}
absl::Status CacheTooSmall() {
  return WithInputFault(absl::ResourceExhaustedError("larger than its cache"),
                        pb::InputFault::DEVICE, 0);
}
absl::Status Full() {
  return WithKind(absl::ResourceExhaustedError("its disk is full"), pb::ERROR_MACHINE,
                  pb::ROLE_WORKER);
}

class CoreScansTest : public ::testing::Test {
 protected:
  std::string Want(uint32_t files, uint64_t scan = 1) {
    auto dataset = std::make_shared<pb::DatasetProto>();
    dataset->set_id(3);
    std::vector<uint32_t> indices;
    for (uint32_t file = 0; file < files; ++file) {
      dataset->add_files(absl::StrCat("/data/", file));
      indices.push_back(file);
    }
    return d_.Step(event::ScanWanted{ScanId(scan), std::move(dataset), std::move(indices)});
  }
  std::string Scanned(uint32_t worker, std::vector<uint32_t> files,
                      absl::Status status = absl::OkStatus(), bool installed = true,
                      uint64_t scan = 1) {
    return d_.Step(event::Scanned{ScanId(scan), WorkerId(worker), Incarnation(10 + worker),
                                  std::move(files), installed, CallError::Of(std::move(status))});
  }
  void BeatAll(uint32_t workers) {
    for (uint32_t worker = 0; worker < workers; ++worker)
      d_.Beat(pb::ROLE_WORKER, 10 + worker, worker);
    d_.Beat(pb::ROLE_PSSERVER, 100, 0);
  }
  std::string Notes() const {
    std::string notes;
    for (const Action& action : d_.last) {
      if (const auto* note = std::get_if<action::Note>(&action))
        absl::StrAppend(&notes, note->text);
    }
    return notes;
  }

  CoreDriver d_;
};

TEST_F(CoreScansTest, WorkersShareTheFilesAndEachCountsOnce) {
  d_.Serve(2);
  EXPECT_EQ(Want(3), "scan 0 2 on 0; scan 1 on 1");
  EXPECT_EQ(Scanned(0, {0}), "file 0");
  EXPECT_EQ(Scanned(0, {0}), "") << "its answer again";
  EXPECT_EQ(Scanned(1, {1}), "file 1");
  EXPECT_EQ(Scanned(0, {2}), "file 2; scanned OK");
  EXPECT_EQ(Scanned(0, {2}), "") << "that is over";
}

TEST_F(CoreScansTest, WithoutAWorkerAScanWaitsForOne) {
  d_.Serve(0);
  EXPECT_EQ(Want(1), "");
  EXPECT_EQ(d_.Join(pb::ROLE_WORKER, 10, 0), "worker 0 joins; install routing on 0; scan 0 on 0");
}

TEST_F(CoreScansTest, WithoutFilesThereIsNothingToDo) {
  d_.Serve(1);
  EXPECT_EQ(Want(0), "scanned OK");
}

TEST_F(CoreScansTest, TheFilesOfALostWorkerAreOthers) {
  d_.Serve(2);
  EXPECT_EQ(Want(2), "scan 0 on 0; scan 1 on 1");
  EXPECT_EQ(d_.Step(event::DaemonDied{10}), "worker 0 died");
  EXPECT_EQ(Scanned(0, {0}, MachineFault()), "") << "of the lost one";
  EXPECT_GE(d_.core.alarm(), d_.now + absl::Milliseconds(50));
  EXPECT_LE(d_.core.alarm(), d_.now + absl::Milliseconds(100));
  EXPECT_EQ(d_.TickAfter(absl::Milliseconds(100)), "scan 0 on 1");
}

TEST_F(CoreScansTest, AFailureOfAMachineIsTriedElsewhere) {
  d_.Serve(2);
  Want(1);
  EXPECT_EQ(Scanned(0, {0}, Full()), "");
  EXPECT_EQ(d_.TickAfter(absl::Milliseconds(49)), "");
  EXPECT_EQ(d_.TickAfter(absl::Milliseconds(51)), "scan 0 on 1");
}

TEST_F(CoreScansTest, WhatIsWrongWithAFileEndsTheScan) {
  d_.Serve(2);
  Want(2);
  EXPECT_EQ(Scanned(0, {0}, Typed(pb::ERROR_USER)), "scanned FAILED_PRECONDITION");
  EXPECT_EQ(Scanned(1, {1}), "");
}

TEST_F(CoreScansTest, OneWorkerWithoutTheDataIsSetAside) {
  d_.Serve(3);
  EXPECT_EQ(Want(6), "scan 0 3 on 0; scan 1 4 on 1; scan 2 5 on 2");
  EXPECT_EQ(Scanned(1, {1}), "file 1");
  EXPECT_EQ(Scanned(0, {0}, NoFile(0)), "");
  EXPECT_TRUE(d_.core.IsAside(WorkerId(0)));
  EXPECT_FALSE(d_.core.IsAside(WorkerId(1)));
  EXPECT_EQ(d_.TickAfter(absl::Milliseconds(100)), "scan 0 on 1; scan 3 on 2")
      << "also what it has not answered";
}

TEST_F(CoreScansTest, AWorkerThatIsSetAsideBeforeItIsReadyGetsNoFunction) {
  d_.Serve(1);
  EXPECT_EQ(d_.Join(pb::ROLE_WORKER, 11, 1), "worker 1 joins; install routing on 1");
  EXPECT_EQ(Want(2), "scan 0 on 0; scan 1 on 1");
  EXPECT_EQ(Scanned(1, {1}, Full(), /*installed=*/false), "");
  EXPECT_TRUE(d_.core.IsAside(WorkerId(1)));
  EXPECT_EQ(d_.Installed(1, 11), "");
  EXPECT_EQ(d_.Schedule(), "scheduled 1; start 1 on 0 from 0");
  EXPECT_EQ(d_.Schedule(), "scheduled 2; start 2 on 0 from 0");
  EXPECT_EQ(d_.Schedule(), "scheduled 3") << "one more would be the other's";
}

TEST_F(CoreScansTest, AWorkerThatIsSetAsideBeforeItsTurnIsSentNothing) {
  d_.Serve(0);
  const auto most = static_cast<uint32_t>(Installations::Options().most);
  for (uint32_t worker = 0; worker < most + 2; ++worker)
    d_.Join(pb::ROLE_WORKER, 10 + worker, static_cast<int>(worker));
  EXPECT_THAT(Want(most + 1), ::testing::EndsWith(absl::StrCat("scan ", most, " on ", most)));
  EXPECT_EQ(Scanned(most, {most}, Full(), /*installed=*/false), "");
  EXPECT_TRUE(d_.core.IsAside(WorkerId(most)));
  EXPECT_EQ(d_.Installed(0, 10), absl::StrCat("install routing on ", most + 1));
}

TEST_F(CoreScansTest, AWorkerThatIsSetAsideWithinItsInstallationIsNotSentTheRest) {
  d_.Serve(1);
  EXPECT_EQ(d_.Define(5), "install function 5 on 0");
  EXPECT_EQ(d_.Join(pb::ROLE_WORKER, 11, 1), "worker 1 joins; install routing on 1");
  EXPECT_EQ(Want(2), "scan 0 on 0; scan 1 on 1");
  EXPECT_EQ(Scanned(1, {1}, Full(), /*installed=*/false), "");
  EXPECT_EQ(d_.Installed(1, 11), "");
}

TEST_F(CoreScansTest, AFileThatNobodySeesMakesTheInputWrong) {
  d_.Serve(2);
  EXPECT_EQ(Want(1), "scan 0 on 0");
  EXPECT_EQ(Scanned(0, {0}, NoFile(0)), "");
  EXPECT_TRUE(d_.core.IsAside(WorkerId(0)));
  EXPECT_EQ(d_.TickAfter(absl::Milliseconds(100)), "scan 0 on 1");
  EXPECT_EQ(Scanned(1, {0}, NoFile(0)), "scanned NOT_FOUND");
  const absl::Status status = d_.Last<action::ScanDone>().status;
  EXPECT_EQ(KindOf(status), pb::ERROR_USER);
  EXPECT_EQ(InputFaultOf(status).kind(), pb::InputFault::MISSING);
  EXPECT_EQ(status.message(), "no such file; check the path");
  EXPECT_FALSE(d_.core.IsAside(WorkerId(0))) << "it was not to blame";
}

TEST_F(CoreScansTest, AFileThatSomebodyHasReadIsThere) {
  d_.Serve(2);
  EXPECT_EQ(Want(2), "scan 0 on 0; scan 1 on 1");
  EXPECT_EQ(Scanned(0, {0}), "file 0");
  EXPECT_EQ(Scanned(1, {1}, NoFile(1)), "");
  EXPECT_EQ(d_.TickAfter(absl::Milliseconds(100)), "scan 1 on 0");
  EXPECT_EQ(Scanned(0, {1}), "file 1; scanned OK");
  EXPECT_TRUE(d_.core.IsAside(WorkerId(1)));
  EXPECT_EQ(Want(1, 2), "scan 0 on 0") << "not on the other one";
}

// A later scan of the same data: the disk has gone meanwhile.
TEST_F(CoreScansTest, AFileThatWasReadOnceIsMissedByMachines) {
  d_.Serve(2);
  Want(1);
  EXPECT_EQ(Scanned(0, {0}), "file 0; scanned OK");
  EXPECT_EQ(Want(1, 2), "scan 0 on 0");
  EXPECT_EQ(Scanned(0, {0}, NoFile(0), true, 2), "");
  EXPECT_EQ(d_.TickAfter(absl::Milliseconds(100)), "scan 0 on 1");
  EXPECT_EQ(Scanned(1, {0}, NoFile(0), true, 2), "interrupt; scanned NOT_FOUND; end NOT_FOUND");
  EXPECT_EQ(KindOf(d_.core.ended()), pb::ERROR_MACHINE) << "not the input";
}

TEST_F(CoreScansTest, AWorkerThatCannotInstallTheDatasetIsSetAsideAtOnce) {
  d_.Serve(2);
  EXPECT_EQ(Want(4), "scan 0 2 on 0; scan 1 3 on 1");
  EXPECT_EQ(Scanned(0, {0, 2}, Full(), /*installed=*/false), "");
  EXPECT_TRUE(d_.core.IsAside(WorkerId(0)));
  EXPECT_EQ(d_.TickAfter(absl::Milliseconds(100)), "scan 0 2 on 1");
  EXPECT_EQ(Scanned(1, {0}, Full()), "") << "looking through a file may fail";
  EXPECT_FALSE(d_.core.IsAside(WorkerId(1)));
}

TEST_F(CoreScansTest, WithNobodyLeftEverythingEnds) {
  d_.Serve(1);
  Want(1);
  EXPECT_EQ(Scanned(0, {0}, Full(), /*installed=*/false),
            "interrupt; scanned RESOURCE_EXHAUSTED; end RESOURCE_EXHAUSTED");
  EXPECT_EQ(Want(1, 2), "scanned RESOURCE_EXHAUSTED");
}

// More workers than tries that a file has.
TEST_F(CoreScansTest, AFileThatNoneOfManyWorkersCanHoldEndsEverything) {
  constexpr uint32_t kWorkers = 12;
  d_.Serve(kWorkers);
  EXPECT_EQ(Want(1), "scan 0 on 0");
  for (uint32_t aside = 1; aside < kWorkers; ++aside) {
    const WorkerId worker = d_.Last<action::ScanFiles>().worker;
    ASSERT_FALSE(d_.core.IsAside(worker)) << aside;
    EXPECT_EQ(Scanned(worker.value(), {0}, CacheTooSmall()), "") << aside;
    EXPECT_TRUE(d_.core.IsAside(worker)) << aside;
    BeatAll(kWorkers);
    ASSERT_THAT(d_.TickAfter(absl::Seconds(5)), ::testing::StartsWith("scan 0 on ")) << aside;
  }
  const uint32_t last = d_.Last<action::ScanFiles>().worker.value();
  EXPECT_EQ(Scanned(last, {0}, Full()), "") << "the first try that says something of the file";
  BeatAll(kWorkers);
  EXPECT_EQ(d_.TickAfter(absl::Seconds(5)), absl::StrCat("scan 0 on ", last));
  EXPECT_EQ(Scanned(last, {0}, CacheTooSmall()),
            "interrupt; scanned RESOURCE_EXHAUSTED; end RESOURCE_EXHAUSTED");
  EXPECT_EQ(KindOf(d_.core.ended()), pb::ERROR_MACHINE);
}

TEST_F(CoreScansTest, AnErrorOfAnEarlierIncarnationSaysNothingOfTheNext) {
  d_.Serve(1);
  Want(1);
  EXPECT_EQ(d_.Join(pb::ROLE_WORKER, 20, 0),
            "worker 0 replaced; worker 0 joins; install routing on 0");
  Scanned(0, {0}, Full(), /*installed=*/false);
  EXPECT_FALSE(d_.core.IsAside(WorkerId(0)));
  EXPECT_EQ(d_.TickAfter(absl::Milliseconds(100)), "scan 0 on 0");
}

TEST_F(CoreScansTest, AWorkerThatLeavesIsGivenNothing) {
  d_.Serve(2);
  d_.Schedule();  // on worker 0, which has something to finish
  d_.Leave(pb::ROLE_WORKER, 10, 0, 1);
  EXPECT_EQ(Want(2), "scan 0 1 on 1");
}

TEST_F(CoreScansTest, AWorkerThatHangsIsHelpedAndNamed) {
  d_.Serve(2);
  EXPECT_EQ(Want(2), "scan 0 on 0; scan 1 on 1");
  EXPECT_EQ(Scanned(1, {1}), "file 1");
  for (int i = 1; i < 30; ++i) {
    for (const uint32_t worker : {0, 1}) d_.Beat(pb::ROLE_WORKER, 10 + worker, worker);
    d_.Beat(pb::ROLE_PSSERVER, 100, 0);
    ASSERT_EQ(d_.TickAfter(absl::Seconds(1)), "") << i;
  }
  EXPECT_EQ(d_.TickAfter(absl::Seconds(1)), "scan 0 on 1");
  EXPECT_THAT(Notes(), ::testing::HasSubstr("worker 0 has not finished looking through /data/0"));
  EXPECT_THAT(Notes(), ::testing::HasSubstr("worker 1 looks through /data/0 too"));
}

TEST_F(CoreScansTest, TheEndEndsThem) {
  d_.Serve(1);
  Want(1);
  EXPECT_EQ(d_.Step(event::Close{}), "scanned CANCELLED; interrupt");
  EXPECT_EQ(Want(1, 2), "scanned CANCELLED");
}

TEST_F(CoreScansTest, AWorkerOfANewerCoordinatorEndsThisOne) {
  d_.Serve(1);
  Want(1);
  pb::ErrorDetail detail;
  detail.set_kind(pb::ERROR_STALE);
  detail.set_epoch(2);
  EXPECT_EQ(Scanned(0, {0}, WithDetail(absl::AbortedError("newer"), detail)),
            "interrupt; scanned ABORTED; end ABORTED");
  EXPECT_TRUE(d_.core.superseded());
}

}  // namespace
}  // namespace mu
