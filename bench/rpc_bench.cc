// What a call costs: unary round trips over the gRPC transport (loopback TCP), beside the machine's
// own limits in the same run: memcpy of the bytes, a round trip over a pipe, and an echo over a TCP
// socket.
//
// bytes_per_second counts the request and the reply. Sizes: a control message, a small push, a push
// of DLRM's size.
#include <arpa/inet.h>
#include <benchmark/benchmark.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <thread>
#include <vector>

#include "common/base/check.h"
#include "common/base/mutex.h"
#include "common/env/unique_fd.h"
#include "common/rpc/transport.h"

namespace mu {
namespace {

void Sizes(benchmark::internal::Benchmark* benchmark) {
  for (const int64_t bytes : {64, 32 << 10, 1'700'000}) benchmark->Arg(bytes);
  benchmark->UseRealTime();
}

void CountBytes(benchmark::State& state, int64_t per_iteration) {
  state.SetBytesProcessed(state.iterations() * per_iteration);
}

struct EchoServer {
  explicit EchoServer(std::unique_ptr<Transport> with) : transport(std::move(with)) {
    MethodTable methods;
    methods.AddUnary("/bench/Echo", RunOn::kTransportThread,
                     [](std::shared_ptr<ServerCall> call, Buffer request) {
                       call->Finish(absl::OkStatus(), std::move(request));
                     });
    auto listening = transport->Listen("127.0.0.1:0", std::move(methods));
    MU_CHECK(listening.ok());
    server = *std::move(listening);
    channel = transport->Connect(server->address(), pb::ROLE_PSSERVER);
  }
  const std::unique_ptr<Transport> transport;
  std::unique_ptr<RpcServer> server;
  std::shared_ptr<Channel> channel;
};

Buffer Request(int64_t bytes) {
  MutableBuffer buffer(static_cast<size_t>(bytes));
  std::memset(buffer.data(), 1, buffer.size());
  return std::move(buffer).Finish();
}

// `in_flight` calls are kept under way; an iteration is the end of one.
void RoundTrips(benchmark::State& state, EchoServer& echo, int in_flight) {
  const Buffer request = Request(state.range(0));
  Mutex mutex;
  CondVar changed;
  int free = in_flight;
  auto done = [&](absl::Status status, Buffer) {
    MU_CHECK(status.ok());
    MutexLock lock(&mutex);
    ++free;
    changed.Signal();
  };
  for (auto _ : state) {
    {
      MutexLock lock(&mutex);
      while (free == 0) changed.Wait(&mutex);
      --free;
    }
    echo.channel->Unary("/bench/Echo", request, {}, done);
    if (in_flight > 1) continue;
    MutexLock lock(&mutex);
    while (free == 0) changed.Wait(&mutex);
  }
  {
    MutexLock lock(&mutex);
    while (free < in_flight) changed.Wait(&mutex);
  }
  CountBytes(state, 2 * state.range(0));
}

void BM_GrpcUnary(benchmark::State& state) {
  EchoServer echo(NewGrpcTransport());
  RoundTrips(state, echo, 1);
}
BENCHMARK(BM_GrpcUnary)->Apply(Sizes);

void BM_GrpcUnary8InFlight(benchmark::State& state) {
  EchoServer echo(NewGrpcTransport());
  RoundTrips(state, echo, 8);
}
BENCHMARK(BM_GrpcUnary8InFlight)->Apply(Sizes);

void BM_MemoryUnary(benchmark::State& state) {
  EchoServer echo(NewMemoryTransport());
  RoundTrips(state, echo, 1);
}
BENCHMARK(BM_MemoryUnary)->Apply(Sizes);

void BM_Memcpy(benchmark::State& state) {
  std::vector<char> from(static_cast<size_t>(state.range(0)), 1), to(from.size());
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), from.size());
    benchmark::DoNotOptimize(to.data());
    benchmark::ClobberMemory();
  }
  CountBytes(state, state.range(0));
}
BENCHMARK(BM_Memcpy)->Apply(Sizes);

bool ReadAll(int fd, char* to, size_t size) {
  while (size > 0) {
    const ssize_t count = read(fd, to, size);
    if (count <= 0) return false;
    to += count;
    size -= static_cast<size_t>(count);
  }
  return true;
}
void WriteAll(int fd, const char* from, size_t size) {
  while (size > 0) {
    const ssize_t count = write(fd, from, size);
    MU_CHECK(count > 0);
    from += count;
    size -= static_cast<size_t>(count);
  }
}

// Whole messages there and back over a pair of descriptors, each way written while the other side
// reads.
void EchoOver(benchmark::State& state, int client_read, int client_write, UniqueFd server_read,
              UniqueFd server_write, UniqueFd* client_end) {
  const size_t bytes = static_cast<size_t>(state.range(0));
  std::thread server([bytes, in = std::move(server_read), out = std::move(server_write)] {
    std::vector<char> message(bytes);
    const int write_to = out.valid() ? out.get() : in.get();
    while (ReadAll(in.get(), message.data(), bytes)) WriteAll(write_to, message.data(), bytes);
  });
  std::vector<char> message(bytes, 1);
  for (auto _ : state) {
    WriteAll(client_write, message.data(), bytes);
    MU_CHECK(ReadAll(client_read, message.data(), bytes));
  }
  client_end->Reset();
  server.join();
  CountBytes(state, 2 * state.range(0));
}

void BM_PipeEcho(benchmark::State& state) {
  int there[2], back[2];
  MU_CHECK(pipe(there) == 0 && pipe(back) == 0);
  UniqueFd client_read(back[0]), client_write(there[1]);
  EchoOver(state, client_read.get(), client_write.get(), UniqueFd(there[0]), UniqueFd(back[1]),
           &client_write);
}
BENCHMARK(BM_PipeEcho)->Apply(Sizes);

void BM_TcpEcho(benchmark::State& state) {
  UniqueFd listening(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  MU_CHECK(bind(listening.get(), raw, size) == 0 && listen(listening.get(), 1) == 0);
  MU_CHECK(getsockname(listening.get(), raw, &size) == 0);
  UniqueFd client(socket(AF_INET, SOCK_STREAM, 0));
  MU_CHECK(connect(client.get(), raw, size) == 0);
  UniqueFd server(accept(listening.get(), nullptr, nullptr));
  const int on = 1;
  for (const int fd : {client.get(), server.get()})
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  EchoOver(state, client.get(), client.get(), std::move(server), UniqueFd(), &client);
}
BENCHMARK(BM_TcpEcho)->Apply(Sizes);

}  // namespace
}  // namespace mu

BENCHMARK_MAIN();
