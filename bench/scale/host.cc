#include "bench/scale/host.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <limits>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "bench/scale/direct_workers.h"
#include "common/base/mutex.h"
#include "common/env/file.h"
#include "common/env/subprocess.h"
#include "common/obs/log.h"
#include "common/obs/telemetry.h"
#include "common/rpc/typed.h"
#include "proto/coordinator.pb.h"
#include "proto/worker.pb.h"
#include "psserver/node.h"
#include "worker/node.h"

namespace mu::scale {
namespace {

constexpr int kThreads = 32;  // that register workers at the same time
// Of prctl, in kernels since 6.16: so many slots for the futexes of this process. By default there
// are few, and a wake-up looks at all threads that wait in its slot: with hundreds of services,
// each of which is a process elsewhere, that was a quarter of this process's time.
constexpr int kFutexHash = 78, kSetSlots = 1, kSlots = 4096;

// What one worker saw. It outlives the worker.
struct Seen {
  Mutex mutex;
  std::vector<HostLog::Interval> gaps ABSL_GUARDED_BY(mutex);
  HostLog::Interval up ABSL_GUARDED_BY(mutex) = {0, std::numeric_limits<uint64_t>::max()};
};

struct Host {
  explicit Host(const HostOptions& o) : options(o) {}

  WorkerOptions OptionsOf(const std::shared_ptr<Seen>& seen) {
    WorkerOptions worker;
    worker.cache_dir = options.log + ".cache";
    worker.telemetry = &telemetry;
    worker.step_wait = absl::Microseconds(1000 * options.step_ms);
    worker.on_idle = [seen](uint64_t from_ns, uint64_t until_ns) {
      MutexLock lock(&seen->mutex);
      seen->gaps.push_back({from_ns, until_ns});
    };
    return worker;
  }
  std::shared_ptr<Seen> NewSeen() {
    MutexLock lock(&mutex);
    seen.push_back(std::make_shared<Seen>());
    return seen.back();
  }

  const HostOptions options;
  Telemetry telemetry;
  const std::unique_ptr<Transport> transport = NewGrpcTransport();
  std::shared_ptr<Channel> driver;  // "serve" with churn
  Mutex mutex;
  std::vector<std::shared_ptr<Seen>> seen ABSL_GUARDED_BY(mutex);
};

void NoteUp(Seen& seen) {
  MutexLock lock(&seen.mutex);
  seen.up.from_ns = NowNs();
}
void NoteDown(Seen& seen) {
  MutexLock lock(&seen.mutex);
  seen.up.until_ns = std::min(seen.up.until_ns, NowNs());
}

// Of "join".
struct Joined {
  std::shared_ptr<Seen> seen;
  std::unique_ptr<WorkerNode> node;
};

absl::StatusOr<Joined> NewWorker(Host& host) {
  Joined joined{host.NewSeen(), nullptr};
  WorkerNodeOptions options;
  options.coordinator = host.options.coordinator;
  options.worker = host.OptionsOf(joined.seen);
  MU_ASSIGN_OR_RETURN(joined.node, WorkerNode::Listen(host.transport.get(), std::move(options)));
  return joined;
}

absl::Status Register(Joined& joined) {
  MU_RETURN_IF_ERROR(joined.node->Register());
  NoteUp(*joined.seen);
  return absl::OkStatus();
}

// A worker ends as if its process had died, and another one comes.
absl::Status Replace(Host& host, Joined& joined) {
  NoteDown(*joined.seen);
  joined.node = nullptr;
  MU_ASSIGN_OR_RETURN(joined, NewWorker(host));
  return Register(joined);
}

// Of "serve".
struct Served {
  std::shared_ptr<Seen> seen;
  std::unique_ptr<WorkerServer> worker;
  std::unique_ptr<RpcServer> server;
};

absl::StatusOr<Served> NewServed(Host& host) {
  Served served{host.NewSeen(), nullptr, nullptr};
  served.worker = std::make_unique<WorkerServer>(host.OptionsOf(served.seen), host.transport.get());
  MethodTable methods;
  served.worker->AddMethods(&methods);
  MU_ASSIGN_OR_RETURN(served.server, host.transport->Listen("127.0.0.1:0", std::move(methods)));
  return served;
}

// The same as above without a coordinator.
absl::Status Replace(Host& host, Served& served) {
  NoteDown(*served.seen);
  served.server = nullptr;
  served.worker = nullptr;
  MU_ASSIGN_OR_RETURN(served, NewServed(host));
  pb::RegisterRequest come;
  come.set_role(pb::ROLE_WORKER);
  come.set_address(served.server->address());
  MU_RETURN_IF_ERROR(Call<pb::RegisterReply>(*host.driver, kComeMethod, come).status());
  NoteUp(*served.seen);
  return absl::OkStatus();
}

void Complain(const absl::Status& status) {
  if (!status.ok()) std::fprintf(stderr, "scale: %s\n", std::string(status.message()).c_str());
}

// Replaces one after the other, `churn` of them a second. For ever.
template <typename Worker>
void Churn(Host& host, std::vector<Worker>& workers) {
  const int replacers =
      static_cast<int>(std::min(static_cast<double>(workers.size()), 2 * host.options.churn + 1));
  const absl::Duration every = absl::Seconds(replacers / host.options.churn);
  for (int t = 0; t < replacers; ++t) {
    std::thread([&host, &workers, every, t, replacers] {
      absl::Time next = absl::Now() + every * t / replacers;
      for (size_t i = static_cast<size_t>(t);; i += static_cast<size_t>(replacers)) {
        if (i >= workers.size()) i = static_cast<size_t>(t);
        absl::SleepFor(next - absl::Now());
        next += every;
        Complain(Replace(host, workers[i]));
      }
    }).detach();
  }
}

// Says what it hears; what is there together goes together, as on the streams of workers.
void Echo(std::shared_ptr<ServerCall> call, Buffer request) {
  struct Heard {
    Mutex mutex;
    std::string bytes ABSL_GUARDED_BY(mutex);
  };
  const auto heard = std::make_shared<Heard>();
  const std::weak_ptr<ServerCall> weak = call;
  const auto hear = [heard, weak](const Buffer& message) {
    {
      MutexLock lock(&heard->mutex);
      heard->bytes.append(message.data(), message.size());
    }
    if (const auto open = weak.lock()) open->Poke();
  };
  call->Converse({[heard](Buffer* message) {
                    MutexLock lock(&heard->mutex);
                    if (heard->bytes.empty()) return false;
                    *message = Buffer(std::exchange(heard->bytes, std::string()));
                    return true;
                  },
                  hear});
  // It is there until its caller is gone.
  call->OnCancel([call] { call->Finish(absl::OkStatus()); });
  hear(request);
}

void Write(Host& host) {
  std::ofstream out(host.options.log + ".part");
  MutexLock lock(&host.mutex);
  for (const auto& seen : host.seen) {
    MutexLock of_one(&seen->mutex);
    for (const auto& gap : seen->gaps) out << "gap " << gap.from_ns << " " << gap.until_ns << "\n";
    if (seen->up.from_ns > 0) out << "up " << seen->up.from_ns << " " << seen->up.until_ns << "\n";
  }
  out << "steps " << host.telemetry.counter("worker.steps")->value() << " 0\n";
  out.close();
  (void)std::rename((host.options.log + ".part").c_str(), host.options.log.c_str());
}

absl::Status Announce(const HostOptions& options, const std::vector<std::string>& addresses) {
  return AnnounceReady(options.ready_fd, absl::StrJoin(addresses, " "));
}

void WaitForSignal(int signal) {
  sigset_t wanted;
  sigemptyset(&wanted);
  sigaddset(&wanted, signal);
  int caught = 0;
  sigwait(&wanted, &caught);
}

absl::Status Join(Host& host) {
  static std::vector<Joined> workers;  // threads use them until the process ends
  std::vector<std::string> addresses;
  for (int i = 0; i < host.options.workers; ++i) {
    MU_ASSIGN_OR_RETURN(Joined joined, NewWorker(host));
    addresses.push_back(joined.node->address());
    workers.push_back(std::move(joined));
  }
  MU_RETURN_IF_ERROR(Announce(host.options, addresses));
  WaitForSignal(SIGUSR1);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([t] {
      for (size_t i = t; i < workers.size(); i += kThreads) Complain(Register(workers[i]));
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (host.options.churn > 0) Churn(host, workers);
  WaitForSignal(SIGTERM);
  return absl::OkStatus();
}

absl::Status Serve(Host& host) {
  static std::vector<Served> workers;  // threads use them until the process ends
  std::vector<std::string> addresses;
  for (int i = 0; i < host.options.workers; ++i) {
    MU_ASSIGN_OR_RETURN(Served served, NewServed(host));
    NoteUp(*served.seen);
    addresses.push_back(served.server->address());
    workers.push_back(std::move(served));
  }
  MU_RETURN_IF_ERROR(Announce(host.options, addresses));
  if (host.options.churn > 0) {
    host.driver = host.transport->Connect(host.options.coordinator, pb::ROLE_COORDINATOR);
    WaitForSignal(SIGUSR1);
    Churn(host, workers);
  }
  WaitForSignal(SIGTERM);
  return absl::OkStatus();
}

absl::Status ServeEcho(Host& host) {
  static std::vector<std::unique_ptr<RpcServer>> servers;
  std::vector<std::string> addresses;
  for (int i = 0; i < host.options.workers; ++i) {
    MethodTable methods;
    methods.AddConversation("/bench/Echo", RunOn::kTransportThread, Echo);
    MU_ASSIGN_OR_RETURN(auto server, host.transport->Listen("127.0.0.1:0", std::move(methods)));
    addresses.push_back(server->address());
    servers.push_back(std::move(server));
  }
  MU_RETURN_IF_ERROR(Announce(host.options, addresses));
  WaitForSignal(SIGTERM);
  return absl::OkStatus();
}

absl::Status ServeParameters(Host& host) {
  static std::vector<std::unique_ptr<PsNode>> servers;
  std::vector<std::string> addresses;
  for (int i = 0; i < host.options.workers; ++i) {
    PsNodeOptions options;
    options.coordinator = host.options.coordinator;
    options.telemetry = &host.telemetry;
    MU_ASSIGN_OR_RETURN(auto server, PsNode::Listen(host.transport.get(), std::move(options)));
    MU_RETURN_IF_ERROR(server->Register());
    addresses.push_back(server->address());
    servers.push_back(std::move(server));
  }
  MU_RETURN_IF_ERROR(Announce(host.options, addresses));
  WaitForSignal(SIGTERM);
  return absl::OkStatus();
}

}  // namespace

int RunHost(const HostOptions& options) {
  prctl(kFutexHash, kSetSlots, kSlots, 0, 0);  // earlier kernels have one table for all processes
  WatchParent(options.parent_fd, [] { _exit(1); });
  SetLogSeverity(LogSeverity::ERROR);
  static Host host(options);
  const absl::Status status = options.kind == "join"     ? Join(host)
                              : options.kind == "server" ? ServeParameters(host)
                              : options.kind == "echo"   ? ServeEcho(host)
                                                         : Serve(host);
  Complain(status);
  if (status.ok() && !options.log.empty()) Write(host);
  // Hundreds of services end with their process.
  std::fflush(nullptr);
  _exit(status.ok() ? 0 : 1);
}

absl::Status ReadHostLog(const std::string& file, HostLog* log) {
  std::ifstream in(file);
  if (!in) return absl::NotFoundError(file + " was not written");
  std::string kind;
  HostLog::Interval interval;
  while (in >> kind >> interval.from_ns >> interval.until_ns) {
    if (kind == "steps") {
      log->steps += interval.from_ns;
    } else {
      (kind == "gap" ? log->gaps : log->up).push_back(interval);
    }
  }
  return absl::OkStatus();
}

}  // namespace mu::scale
