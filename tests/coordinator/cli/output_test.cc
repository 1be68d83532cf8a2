// What the command line shows and returns: progress, status, checkpoints, exit codes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <string>

#include "common/base/error_kind.h"
#include "coordinator/cli/checkpoint_table.h"
#include "coordinator/cli/progress_line.h"
#include "coordinator/cli/status_table.h"
#include "coordinator/training/exit_code.h"

namespace mu {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Progress SomeProgress() {
  Progress progress;
  progress.phase = "training";
  progress.steps = 293;
  progress.total_steps = 586;
  progress.samples_per_second = 25310.4;
  progress.loss = 0.4812;
  progress.seconds = 6;
  progress.eta_seconds = 72;
  progress.workers_up = 1;
  progress.workers = 2;
  progress.ps_up = progress.ps = 2;
  progress.epoch = 1;
  progress.epochs = 3;
  return progress;
}

TEST(ProgressLineTest, ShowsEveryPart) {
  EXPECT_EQ(FormatProgress(SomeProgress(), 200),
            "training  epoch 1/3  [==========          ]  50%  293/586 steps  25,310 samples/s  "
            "loss 0.4812  "
            "workers 1/2  ETA 1:12");
}

TEST(ProgressLineTest, KeepsToTheWidth) {
  for (int width = 0; width < 130; ++width)
    EXPECT_LE(FormatProgress(SomeProgress(), width).size(), width);
  EXPECT_EQ(FormatProgress(SomeProgress(), 20), "training  epoch 1/3");
}

TEST(ProgressLineTest, ARateThatIsNotKnownIsNotShown) {
  Progress progress = SomeProgress();
  progress.samples_per_second = -1;
  EXPECT_THAT(FormatProgress(progress, 200), Not(HasSubstr("samples/s")));
  progress.samples_per_second = 0;  // it stands still
  EXPECT_THAT(FormatProgress(progress, 200), HasSubstr("  0 samples/s  "));
}

TEST(ProgressLineTest, StepsThatRunAgain) {
  Progress progress = SomeProgress();
  progress.steps_to_repeat = 1193;
  EXPECT_THAT(FormatProgress(progress, 200),
              HasSubstr("  293/586 steps  repeating 1,193 steps  loss 0.4812  "));
}

TEST(ProgressLineTest, BeforeTheFirstStep) {
  Progress progress;
  progress.phase = "starting";
  progress.loss = NAN;
  progress.workers = progress.ps = 2;
  progress.ps_up = 1;
  progress.seconds = 1.2;
  EXPECT_EQ(FormatProgress(progress, 200), "starting  workers 0/2  servers 1/2  1s");
}

TEST(ProgressLineTest, Seconds) {
  EXPECT_EQ(FormatSeconds(-1), "0s");
  EXPECT_EQ(FormatSeconds(59.4), "59s");
  EXPECT_EQ(FormatSeconds(187), "3:07");
  EXPECT_EQ(FormatSeconds(3723), "1:02:03");
}

std::string Printed(bool terminal, const std::function<void(ProgressPrinter&)>& use) {
  std::FILE* file = std::tmpfile();
  {
    ProgressPrinter printer({.out = file, .terminal = terminal, .interval = absl::Seconds(5)});
    use(printer);
  }
  std::rewind(file);
  std::string text;
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file))
    text.push_back(static_cast<char>(c));
  std::fclose(file);
  return text;
}

TEST(ProgressPrinterTest, PlainLinesComeEveryFewSecondsAndAtANewPhase) {
  const absl::Time start = absl::UnixEpoch();
  const std::string text = Printed(false, [&](ProgressPrinter& printer) {
    Progress progress = SomeProgress();
    for (int i = 0; i < 60; ++i) printer.Show(progress, start + absl::Milliseconds(200) * i);
    progress.phase = "evaluating";
    printer.Show(progress, start + absl::Seconds(12.1));
    printer.Finish();
  });
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4) << text;  // at 0, 5, 10 and 12.1 seconds
  EXPECT_THAT(text, Not(HasSubstr("\r")));
}

TEST(ProgressPrinterTest, ATerminalHasOneLineThatEnds) {
  const std::string text = Printed(true, [&](ProgressPrinter& printer) {
    for (int i = 0; i < 3; ++i) printer.Show(SomeProgress(), absl::UnixEpoch());
    printer.Finish();
    printer.Finish();
  });
  EXPECT_EQ(std::count(text.begin(), text.end(), '\r'), 3);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_EQ(text.back(), '\n');
}

TEST(StatusTableTest, NamesEveryMember) {
  muster::GetStatusReply status;
  status.set_job_name("criteo");
  status.set_epoch(2);
  status.set_phase("training");
  status.set_steps(1200);
  status.set_samples_per_second(25000);
  auto* worker = status.add_members();
  worker->set_role(muster::ROLE_WORKER);
  worker->set_index(1);
  worker->set_state("up");
  worker->set_address("127.0.0.1:5001");
  worker->set_steps(600);
  status.add_members()->set_role(muster::ROLE_PSSERVER);
  const std::string text = StatusTable(status);
  EXPECT_THAT(text, HasSubstr("job criteo, epoch 2, training"));
  EXPECT_THAT(text, HasSubstr("steps: 1,200"));
  EXPECT_THAT(text, HasSubstr("worker 1     up         127.0.0.1:5001"));
  EXPECT_THAT(text, HasSubstr("psserver 0"));
}

CheckpointRow SomeCheckpoint() {
  CheckpointRow row;
  row.path = "/runs/a/checkpoints/ckpt-00000007";
  row.manifest.set_format_version(1);
  row.manifest.set_epoch(2);
  row.manifest.set_steps(1200);
  row.manifest.set_samples(614400);
  for (const char* name : {"ps-0.safetensors", "ps-1.safetensors"}) {
    auto* file = row.manifest.add_files();
    file->set_name(name);
    file->set_bytes(750'000'000);
    file->set_crc32c(0xabc);
  }
  auto* table = row.manifest.add_tables();
  table->set_name("items");
  table->set_rows(100'000);
  table->set_dim(16);
  table->set_partitions(64);
  table->mutable_optimizer()->mutable_adagrad();
  auto* variable = row.manifest.add_variables();
  variable->set_name("bias");
  variable->set_dtype(muster::FLOAT32);
  variable->mutable_shape()->add_dims(512);
  auto* position = row.manifest.mutable_position();
  position->set_next_function(40);
  auto* function = position->add_functions();
  function->set_bound(true);
  function->set_steps(10);
  function->set_next_step(4);
  return row;
}

TEST(CheckpointTableTest, OneLineForEachWithWhatIsWrong) {
  CheckpointRow bad = SomeCheckpoint();
  bad.problem = "ps-1.safetensors is damaged";
  const std::string text = CheckpointTable({SomeCheckpoint(), bad});
  EXPECT_THAT(text, HasSubstr("ckpt-00000007    -                          1,200        614,400    "
                              " 1.5 GB      2      2  "
                              "complete\n"));
  EXPECT_THAT(text, HasSubstr("ps-1.safetensors is damaged\n"));
}

TEST(CheckpointTableTest, DescriptionSaysWhatIsInItAndWhereTheJobStood) {
  const std::string text = CheckpointDescription(SomeCheckpoint());
  EXPECT_THAT(text, HasSubstr("ps-0.safetensors           750.0 MB  crc32c 00000abc"));
  EXPECT_THAT(text,
              HasSubstr("bias                     float32 [512], 1 partitions, no optimizer"));
  EXPECT_THAT(text,
              HasSubstr("items                    100,000 rows of 16, 64 partitions, adagrad"));
  EXPECT_THAT(text, HasSubstr("next function 40; 1 unfinished (1 begun) with 6 steps left"));
}

TEST(CheckpointTableTest, DescriptionSaysThatTheBestValuesAreBack) {
  CheckpointRow row = SomeCheckpoint();
  row.manifest.mutable_position()->clear_functions();
  EXPECT_THAT(CheckpointDescription(row), HasSubstr("steps 1,200, samples 614,400\n"));
  row.manifest.set_user_state(R"(epoch=9 loss_sum=1 loss_weight=1 )"
                              R"({"brought_back": {"steps": 1000, "epoch": 7}})");
  EXPECT_THAT(CheckpointDescription(row),
              HasSubstr("steps 1,200, samples 614,400; the best values, after 1,000 steps\n"));
}

TEST(CheckpointTableTest, BytesInTheUnitThatFits) {
  EXPECT_EQ(FormatBytes(999), "999 B");
  EXPECT_EQ(FormatBytes(1000), "1.0 kB");
  EXPECT_EQ(FormatBytes(1'500'000'000), "1.5 GB");
}

TEST(ExitCodeTest, FollowsKindAndDetailNotText) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCodeOf(absl::InvalidArgumentError("x")), 2);
  EXPECT_EQ(ExitCodeOf(absl::NotFoundError("x")), 2);
  EXPECT_EQ(ExitCodeOf(absl::UnavailableError("x")), 4);
  EXPECT_EQ(ExitCodeOf(absl::DeadlineExceededError("x")), 4);
  EXPECT_EQ(ExitCodeOf(absl::ResourceExhaustedError("disk full")), 4);
  muster::ErrorDetail detail;
  detail.set_kind(muster::ERROR_USER);
  EXPECT_EQ(ExitCodeOf(WithDetail(absl::InvalidArgumentError("x"), detail)), 2);
  detail.set_function("train_step");
  EXPECT_EQ(ExitCodeOf(WithDetail(absl::InvalidArgumentError("x"), detail)), 3);
  const absl::Status blind =
      WithInputFault(absl::NotFoundError("x"), pb::InputFault::MISSING, /*file=*/0);
  EXPECT_EQ(ExitCodeOf(blind), 4) << "one worker's word";
  EXPECT_EQ(ExitCodeOf(WithDetail(blind, detail)), 2) << "all agree, also in a function";
  const absl::Status full =
      WithInputFault(absl::ResourceExhaustedError("no space left on a worker"),
                     pb::InputFault::DEVICE, /*file=*/0);
  EXPECT_EQ(ExitCodeOf(WithDetail(full, detail)), 4);
  EXPECT_EQ(ExitCodeOf(WithDetail(absl::InternalError("x"), detail)), 4);
  EXPECT_EQ(ExitCodeOf(WithDetail(absl::ResourceExhaustedError("--memory_limit"), detail)), 3);
  muster::ErrorDetail job;
  job.set_kind(muster::ERROR_USER);
  EXPECT_EQ(ExitCodeOf(WithDetail(absl::ResourceExhaustedError("--memory_limit"), job)), 2);
  detail.set_op("broadcast_like");
  EXPECT_EQ(ExitCodeOf(WithDetail(absl::ResourceExhaustedError("the tensor is too large"), detail)),
            3);
  detail.set_kind(muster::ERROR_MACHINE);
  EXPECT_EQ(ExitCodeOf(WithDetail(absl::InvalidArgumentError("x"), detail)), 4);
  muster::ErrorDetail stale;
  stale.set_kind(muster::ERROR_STALE);
  EXPECT_EQ(ExitCodeOf(WithDetail(absl::FailedPreconditionError("x"), stale)), 4);
  stale.set_epoch(7);
  EXPECT_EQ(ExitCodeOf(WithDetail(absl::AbortedError("taken over"), stale)), 5);
  EXPECT_EQ(ExitCodeOfSignal(2), 130);
}

}  // namespace
}  // namespace mu
