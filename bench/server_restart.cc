// How soon a server that held much is of use again. One worker and one server, real processes below
// mu::Local; the server holds a table with Adagrad of which all rows have been touched. It is
// killed while nothing runs, after a checkpoint, and the supervisor starts it again. Then one step
// is scheduled, which updates rows all over the table. Measured from the start of the new process
// to the result of that step, which comes after its update was applied; so it includes registering,
// being configured, reading the checkpoint, and the step itself. The goal: 5 s plus one read of the
// file.
//
//   build/bin/server_restart [--gb=1] [--kills=5]      the daemons are those of build/bin, or of
//   MUSTER_BIN_DIR
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "bench/process_times.h"
#include "common/base/mutex.h"
#include "common/env/file.h"
#include "common/env/unique_fd.h"
#include "common/rpc/frame.h"
#include "common/rpc/typed.h"
#include "coordinator/frontend/ops.h"
#include "coordinator/launch/launch.h"
#include "proto/psserver.pb.h"

namespace mu {
namespace {

constexpr int64_t kDim = 16;
constexpr int64_t kRowBytes = 2 * kDim * static_cast<int64_t>(sizeof(float));  // with its slot
constexpr int64_t kRowsOfAPull = 50'000;
constexpr int64_t kRowsOfTheStep = 4096;

// The rows of one partition exist from now on.
absl::Status Touch(Channel& channel, const pb::RequestContext& context, const pb::TableProto& table,
                   uint32_t partition) {
  const auto stride = static_cast<int64_t>(table.partitions());
  for (int64_t first = partition; first < static_cast<int64_t>(table.rows());
       first += kRowsOfAPull * stride) {
    std::vector<int64_t> ids;
    for (int64_t i = 0; i < kRowsOfAPull && first + i * stride < static_cast<int64_t>(table.rows());
         ++i)
      ids.push_back(first + i * stride);
    pb::PullRequest request;
    *request.mutable_context() = context;
    pb::TableKeys* const keys = request.add_tables();
    keys->set_table(table.id());
    keys->add_partitions(partition);
    keys->add_counts(static_cast<uint32_t>(ids.size()));
    FrameWriter writer(request, ids.size() * sizeof(int64_t));
    std::memcpy(writer.payload, ids.data(), ids.size() * sizeof(int64_t));
    absl::Status status;
    Notification done;
    channel.Unary("/muster.PsServer/Pull", std::move(writer.buffer).Finish(), {},
                  [&](absl::Status answer, Buffer) {
                    status = std::move(answer);
                    done.Notify();
                  });
    done.Wait();
    MU_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

pb::MemberStatus Server(Coordinator& c) {
  const pb::GetStatusReply status = c.runtime().Status();
  for (const auto& member : status.members()) {
    if (member.role() == pb::ROLE_PSSERVER) return member;
  }
  return {};
}

absl::StatusOr<pb::PsStatsReply> StatsOf(Coordinator& c) {
  pb::PsStatsRequest request;
  *request.mutable_context() = c.runtime().Context();
  return Call<pb::PsStatsReply>(*c.runtime().ChannelTo(Server(c).address()),
                                "/muster.PsServer/GetStats", request);
}

// Seconds that a plain read of the checkpoint's file takes.
double ReadOnce(const std::string& path) {
  const absl::Time begin = absl::Now();
  const UniqueFd fd(open(path.c_str(), O_RDONLY));
  std::vector<char> buffer(1 << 20);
  while (read(fd.get(), buffer.data(), buffer.size()) > 0) {
  }
  const double seconds = absl::ToDoubleSeconds(absl::Now() - begin);
  // The next server finds it as this one has, not in the system's cache.
  (void)posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  return seconds;
}

// Kills the server; seconds from the start of the next one to the result of `step`.
absl::StatusOr<double> KillOnce(Coordinator& c, const Function& step) {
  const int64_t before = Server(c).pid();
  kill(static_cast<pid_t>(before), SIGKILL);
  int64_t now = 0;
  while (now == 0 || now == before) {
    absl::SleepFor(absl::Microseconds(500));
    now = Server(c).pid();
  }
  const RemoteValue result = c.Schedule(step);
  MU_RETURN_IF_ERROR(result.Fetch().status());
  const double seconds = SecondsSinceStart(now);
  MU_RETURN_IF_ERROR(c.Join());
  if (Server(c).pid() != now) return absl::InternalError("another server has answered");
  MU_ASSIGN_OR_RETURN(const pb::PsStatsReply stats, StatsOf(c));
  if (stats.pushes() == 0) return absl::InternalError("the server has applied nothing");
  return seconds;
}

absl::Status Measure(double gb, int kills) {
  MU_ASSIGN_OR_RETURN(const TempDirectory directory, TempDirectory::Create("muster-restart"));
  ClusterOptions options;
  options.job_dir = directory.path() + "/job";
  options.default_optimizer = Adagrad{.learning_rate = 0.02f};
  const char* const binaries = std::getenv("MUSTER_BIN_DIR");
  options.binary_dir = binaries != nullptr ? binaries : MUSTER_BIN_DIR;
  MU_ASSIGN_OR_RETURN(const auto c, Local(options));
  const auto rows = static_cast<int64_t>(gb * 1e9 / kRowBytes);
  MU_ASSIGN_OR_RETURN(
      const EmbeddingTable items,
      c->CreateEmbeddingTable(
          {.name = "items", .rows = rows, .dim = kDim, .initializer = Normal{.stddev = 0.1f}}));
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < kRowsOfTheStep; ++i) ids.push_back(i * (rows / kRowsOfTheStep));
  const Tensor of_step = Tensor::Of<int64_t>(Shape({kRowsOfTheStep}), ids);
  MU_ASSIGN_OR_RETURN(const Function step, c->DefineFunction("step", [&](FunctionBuilder& f) {
    f.Minimize(ReduceMean(Square(EmbeddingLookup(items, ConstantTensor(of_step)) - 1.0f)));
  }));
  c->EnableRecovery(directory.path() + "/checkpoints");
  c->Schedule(step);
  MU_RETURN_IF_ERROR(c->Join());
  const auto channel = c->runtime().ChannelTo(Server(*c).address());
  for (uint32_t partition = 0; partition < items.proto().partitions(); ++partition)
    MU_RETURN_IF_ERROR(Touch(*channel, c->runtime().Context(), items.proto(), partition));
  std::vector<double> seconds;
  for (int i = 0; i < kills; ++i) {
    std::string checkpoint;
    MU_RETURN_IF_ERROR(c->Checkpoint({}, &checkpoint).status());
    MU_RETURN_IF_ERROR(c->PruneCheckpoints(1));
    MU_ASSIGN_OR_RETURN(const pb::PsStatsReply stats, StatsOf(*c));
    const double read = ReadOnce(checkpoint + "/ps-0.safetensors");
    MU_ASSIGN_OR_RETURN(const double took, KillOnce(*c, step));
    std::printf(
        "%.2f GB of values and slots: first update %.2f s after the start of the process; a plain "
        "read of the file: %.2f s\n",
        static_cast<double>(stats.value_bytes()) / 1e9, took, read);
    seconds.push_back(took);
  }
  std::sort(seconds.begin(), seconds.end());
  std::printf("p50 %.2f s, at most %.2f s of %zu (asked <= 5 s + the read)\n",
              seconds[seconds.size() / 2], seconds.back(), seconds.size());
  return absl::OkStatus();
}

}  // namespace
}  // namespace mu

int main(int argc, char** argv) {
  double gb = 1;
  int kills = 5;
  CLI::App app("How soon a server that held much is back");
  app.add_option("--gb", gb, "Values and slots that the server holds")->capture_default_str();
  app.add_option("--kills", kills, "How often it is killed")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = mu::Measure(gb, kills);
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
