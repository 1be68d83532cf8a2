// What a checkpoint costs a parameter server that holds much: the stop of the cut, processor time
// of a save, pushes while it runs, and how fast a new server is back.
//
//   checkpoint_bench [--gb=1] [--dir=DIR] [--seconds=5] [--pace=500000]
//
// One server in this process, without network; 8 tables of 16 floats with Adagrad, all rows
// touched. Pushes come as fast as the server takes them, and at the pace (rows a second) of a
// server in a busy cluster; rows are drawn uniformly, which is the worst case for copies. Goal:
// cut < 50 ms; <= 0.6 core-seconds per GB. The restore is that of a new PsServer in this process; a
// process that is killed and started again: server_restart.cc.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/base/mutex.h"
#include "common/checkpoint/safetensors.h"
#include "common/env/clock.h"
#include "common/env/file.h"
#include "common/env/unique_fd.h"
#include "common/rpc/frame.h"
#include "common/sharding/placement.h"
#include "psserver/server.h"

namespace mu {
namespace {

constexpr uint32_t kTables = 8, kPartitions = 64, kDim = 16;
constexpr size_t kRowBytes = 2 * kDim * sizeof(float);
constexpr size_t kRowsOfAPush = 1024;  // of each table

double Now() { return static_cast<double>(Clock::Real()->Now()) / 1e9; }

double CpuSeconds(int who) {
  rusage usage;
  getrusage(who, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

pb::RoutingProto Model(uint64_t rows) {
  pb::RoutingProto routing;
  routing.set_version(1);
  routing.add_servers();
  for (uint32_t t = 0; t < kTables; ++t) {
    pb::TableProto* table = routing.add_tables();
    table->set_id(t);
    table->set_name("table_" + std::to_string(t));
    table->set_rows(rows);
    table->set_dim(kDim);
    table->set_partitions(kPartitions);
    table->mutable_initializer()->mutable_normal()->set_stddev(0.1f);
    table->mutable_optimizer()->mutable_adagrad()->set_learning_rate(0.01f);
  }
  MU_CHECK(PlaceAll(&routing).ok());
  return routing;
}

// A push of random rows, grouped by partition as clients do it.
Buffer RandomPush(const pb::RequestContext& context, uint64_t function, uint32_t step,
                  uint64_t rows, SplitMix* random) {
  pb::PushRequest request;
  *request.mutable_context() = context;
  request.set_function(function);
  request.set_step(step);
  std::vector<int64_t> ids;
  for (uint32_t t = 0; t < kTables; ++t) {
    std::vector<std::vector<int64_t>> by_partition(kPartitions);
    const uint64_t stride = rows / kRowsOfAPush;
    for (size_t i = 0; i < kRowsOfAPush; ++i) {
      const int64_t id = static_cast<int64_t>(i * stride + random->Below(stride));
      by_partition[static_cast<size_t>(id) % kPartitions].push_back(id);
    }
    pb::TableKeys* keys = request.add_tables();
    keys->set_table(t);
    for (uint32_t p = 0; p < kPartitions; ++p) {
      if (by_partition[p].empty()) continue;
      keys->add_partitions(p);
      keys->add_counts(static_cast<uint32_t>(by_partition[p].size()));
      ids.insert(ids.end(), by_partition[p].begin(), by_partition[p].end());
    }
  }
  const size_t gradients = ids.size() * kDim;
  FrameWriter writer(request, ids.size() * 8 + gradients * 4);
  std::memcpy(writer.payload, ids.data(), ids.size() * 8);
  float* const out = reinterpret_cast<float*>(writer.payload + ids.size() * 8);
  std::fill_n(out, gradients, 0.01f);
  return std::move(writer.buffer).Finish();
}

void Touch(PsServer* server, const pb::RequestContext& context, uint64_t rows) {
  for (uint32_t t = 0; t < kTables; ++t) {
    for (uint32_t p = 0; p < kPartitions; ++p) {
      std::vector<int64_t> ids;
      for (uint64_t id = p; id < rows; id += kPartitions) ids.push_back(static_cast<int64_t>(id));
      pb::PullRequest request;
      *request.mutable_context() = context;
      pb::TableKeys* keys = request.add_tables();
      keys->set_table(t);
      keys->add_partitions(p);
      keys->add_counts(static_cast<uint32_t>(ids.size()));
      FrameWriter writer(request, ids.size() * 8);
      std::memcpy(writer.payload, ids.data(), ids.size() * 8);
      MU_CHECK(server->Pull(std::move(writer.buffer).Finish()).ok());
    }
  }
}

struct Pace {
  double rows_per_second = 0;  // all time counted
  double mean_ms = 0;          // of a push
  double longest_ms = 0;
};

class Bench {
 public:
  Bench(double gb, std::string directory, double seconds, double pace)
      : rows_(static_cast<uint64_t>(gb * 1e9 / kRowBytes / kTables)),
        directory_(std::move(directory)),
        seconds_(seconds),
        pace_(pace) {
    context_.set_job(1);
    context_.set_epoch(1);
    context_.set_generation(1);
  }

  std::unique_ptr<PsServer> NewServer() {
    PsServerOptions options;
    options.telemetry = &telemetry_;
    auto server = std::make_unique<PsServer>(options);
    pb::ConfigurePsRequest configure;
    *configure.mutable_context() = context_;
    *configure.mutable_routing() = Model(rows_);
    MU_CHECK(server->Configure(configure).ok());
    return server;
  }

  // One thread that pushes until `stop`, `pace` rows a second; 0: as many as it can.
  Pace PushUntil(PsServer* server, double pace, const std::atomic<bool>& stop) {
    constexpr size_t kPushes = 64;  // made before, so that making them takes no time
    SplitMix random(function_);
    std::vector<Buffer> pushes;
    for (uint32_t step = 0; step < kPushes; ++step)
      pushes.push_back(RandomPush(context_, 0, 0, rows_, &random));
    Pace result;
    const double begin = Now();
    double busy = 0;
    uint64_t count = 0;
    for (; !stop; ++count) {
      Notification late;
      const double due =
          pace > 0 ? begin + static_cast<double>(count * kTables * kRowsOfAPush) / pace : 0;
      if (due > Now()) late.WaitFor(absl::Seconds(due - Now()));
      ++function_;
      pb::PushRequest header;
      const auto payload = ParseFrame(pushes[count % kPushes], &header);
      header.set_function(function_);
      header.mutable_context()->set_low_water(function_ - 1);
      FrameWriter writer(header, payload->size());
      std::memcpy(writer.payload, payload->data(), payload->size());
      const Buffer push = std::move(writer.buffer).Finish();
      const double sent = Now();
      Notification done;
      server->Push(push, [&](absl::StatusOr<pb::PushReply> reply) {
        MU_CHECK(reply.ok());
        done.Notify();
      });
      done.Wait();
      busy += Now() - sent;
      result.longest_ms = std::max(result.longest_ms, (Now() - sent) * 1e3);
    }
    result.rows_per_second = static_cast<double>(count * kTables * kRowsOfAPush) / (Now() - begin);
    result.mean_ms = count > 0 ? busy * 1e3 / static_cast<double>(count) : 0;
    return result;
  }

  pb::SaveReply Save(PsServer* server, const std::string& file) {
    pb::SaveRequest request;
    *request.mutable_context() = context_;
    request.set_directory(directory_);
    request.set_file(file);
    const auto reply = server->Save(request);
    MU_CHECK(reply.ok());
    return *reply;
  }

  void Run() {
    const auto server = NewServer();
    Touch(server.get(), context_, rows_);
    pb::PsStatsRequest stats;
    const double gb = static_cast<double>(server->GetStats(stats)->value_bytes()) / 1e9;
    std::printf("%.2f GB of values and slots, %llu rows\n", gb,
                static_cast<unsigned long long>(rows_ * kTables));
    Save(server.get(), "warm-up");

    const double cpu = CpuSeconds(RUSAGE_SELF), begin = Now();
    const pb::SaveReply saved = Save(server.get(), "idle");
    const double save_cpu = CpuSeconds(RUSAGE_SELF) - cpu, save_seconds = Now() - begin;
    const double plain = PlainCopy(saved.file().bytes());
    std::printf(
        "save, nothing else running: %.2f s, %.2f core-s per GB (asked <= 0.6), %.2f times what a "
        "copy of as much in memory and its writing through the system's cache takes (%.2f)\n",
        save_seconds, save_cpu / gb, save_cpu / plain, plain / gb);

    for (const double pace : {pace_, 0.0}) Push(server.get(), pace);
    for (const bool cold : {false, true}) Restore(saved.file(), cold);
  }

 private:
  template <typename Do>
  Pace WhilePushing(PsServer* server, double rows_per_second, Do something) {
    std::atomic<bool> stop{false};
    Pace pace;
    std::thread pusher([&] { pace = PushUntil(server, rows_per_second, stop); });
    something();
    stop = true;
    pusher.join();
    return pace;
  }

  void Push(PsServer* server, double pace) {
    const Pace without = WhilePushing(server, pace, [&] {
      Notification never;
      never.WaitFor(absl::Seconds(seconds_));
    });
    Timer* const cut = telemetry_.timer("ps.cut");
    std::vector<double> cuts_ms;  // one of each save
    const double begin = Now();
    const Pace with = WhilePushing(server, pace, [&] {
      while (Now() < begin + seconds_) {
        const uint64_t count = cut->count(), before_ns = cut->total_ns();
        Save(server, "busy");
        MU_CHECK(cut->count() == count + 1);
        cuts_ms.push_back(static_cast<double>(cut->total_ns() - before_ns) / 1e6);
      }
    });
    const auto saves = static_cast<double>(cuts_ms.size());
    std::printf(
        "pushes %s: stop of the cut %.2f ms mean, %.2f ms at most (of %zu; asked < 50); a save "
        "takes %.2f s\n",
        pace > 0 ? "at a pace" : "at full speed",
        std::accumulate(cuts_ms.begin(), cuts_ms.end(), 0.0) / saves,
        *std::max_element(cuts_ms.begin(), cuts_ms.end()), cuts_ms.size(), (Now() - begin) / saves);
    for (const bool saving : {false, true}) {
      const Pace& p = saving ? with : without;
      std::printf(
          "  %s: %.2f million rows/s; a push of 8,192 rows takes %.2f ms, at most %.1f ms\n",
          saving ? "saving all the time" : "without a save     ", p.rows_per_second / 1e6,
          p.mean_ms, p.longest_ms);
    }
  }

  // Core-seconds of what a simple program would do: bytes that lie in memory go into a buffer, and
  // from there with plain writes into a file, which is synced.
  double PlainCopy(size_t bytes) {
    const std::vector<char> store(256 << 20, 1);  // more than processors cache
    std::vector<char> buffer(SafetensorsWriter::kMostRoom);
    const UniqueFd fd(
        open(JoinPath(directory_, "plain").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644));
    const double cpu = CpuSeconds(RUSAGE_SELF);
    for (size_t done = 0; done < bytes;) {
      const size_t some = std::min(buffer.size(), bytes - done);
      std::memcpy(buffer.data(), store.data() + done % store.size(), some);
      MU_CHECK(write(fd.get(), buffer.data(), some) == static_cast<ssize_t>(some));
      done += some;
    }
    MU_CHECK(fsync(fd.get()) == 0);
    const double seconds = CpuSeconds(RUSAGE_SELF) - cpu;
    unlink(JoinPath(directory_, "plain").c_str());
    return seconds;
  }

  // Takes the file out of the system's cache, if `cold`, else brings it there.
  void Prepare(const std::string& path, bool cold) {
    const UniqueFd fd(open(path.c_str(), O_RDONLY));
    if (cold) {
      (void)posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
      return;
    }
    std::vector<char> buffer(1 << 20);
    while (read(fd.get(), buffer.data(), buffer.size()) > 0) {
    }
  }

  void Restore(const pb::CheckpointFileProto& file, bool cold) {
    const std::string path = JoinPath(directory_, file.name());
    Prepare(path, cold);
    double begin = Now();
    {
      const UniqueFd fd(open(path.c_str(), O_RDONLY));
      std::vector<char> buffer(1 << 20);
      while (read(fd.get(), buffer.data(), buffer.size()) > 0) {
      }
    }
    const double plain = Now() - begin;
    Prepare(path, cold);
    begin = Now();
    const auto server = NewServer();
    const double configured = Now() - begin;
    pb::RestoreRequest request;
    *request.mutable_context() = context_;
    request.set_directory(directory_);
    *request.add_files() = file;
    const double cpu = CpuSeconds(RUSAGE_SELF);
    const auto restored = server->Restore(request);
    MU_CHECK(restored.ok());
    const double restore_cpu = CpuSeconds(RUSAGE_SELF) - cpu;
    SplitMix random(1);
    Notification done;
    server->Push(RandomPush(context_, ++function_, 0, rows_, &random),
                 [&](absl::StatusOr<pb::PushReply> reply) {
                   MU_CHECK(reply.ok());
                   done.Notify();
                 });
    done.Wait();
    std::printf(
        "restore, file %s: first update after %.2f s (configure %.2f; %.2f core-s); a plain read "
        "of the file: "
        "%.2f s (asked <= 5 s + it)\n",
        cold ? "not in the cache" : "in the cache", Now() - begin, configured, restore_cpu, plain);
  }

  Telemetry telemetry_;
  pb::RequestContext context_;
  const uint64_t rows_;
  const std::string directory_;
  const double seconds_;
  const double pace_;
  uint64_t function_ = 1;
};

}  // namespace
}  // namespace mu

int main(int argc, char** argv) {
  double gb = 1, seconds = 5, pace = 500000;
  std::string directory;
  CLI::App app("Cost of checkpoints to a parameter server");
  app.add_option("--gb", gb, "Values and slots that the server holds")->capture_default_str();
  app.add_option("--dir", directory, "Where the files go (default: a temporary directory)");
  app.add_option("--seconds", seconds, "Of pushing without and with saves")->capture_default_str();
  app.add_option("--pace", pace, "Rows pushed in a second")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  auto temporary = mu::TempDirectory::Create("checkpoint_bench");
  MU_CHECK(temporary.ok());
  mu::Bench(gb, directory.empty() ? temporary->path() : directory, seconds, pace).Run();
  return 0;
}
