#include "tests/testing/slow_proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <list>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/hash.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/env/file.h"
#include "common/env/unique_fd.h"

namespace mu::testing {
namespace {

constexpr size_t kChunkBytes = 64 << 10;
constexpr size_t kMostQueuedBytes = 4 << 20;  // of one direction; then its sender has to wait

absl::StatusOr<sockaddr_in> ParseAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  sockaddr_in result = {};
  result.sin_family = AF_INET;
  int port = 0;
  if (colon == std::string::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port) ||
      inet_pton(AF_INET, address.substr(0, colon).c_str(), &result.sin_addr) != 1) {
    return absl::InvalidArgumentError(absl::StrCat(address, " is no address of numbers"));
  }
  result.sin_port = htons(static_cast<uint16_t>(port));
  return result;
}

struct Chunk {
  absl::Time due;
  std::string bytes;  // empty: the end of the stream
  size_t written = 0;
};

// One direction of a connection: from the socket of the same position to the other one.
struct Flow {
  std::deque<Chunk> chunks;
  size_t queued = 0;
  bool read_all = false;
  bool done = false;
};

struct Connection {
  std::array<UniqueFd, 2> sockets;  // who connected, and the target
  std::array<Flow, 2> flows;
  bool broken = false;
};

// The other side gets a reset, not an end.
void Reset(UniqueFd* socket) {
  const linger now = {.l_onoff = 1, .l_linger = 0};
  (void)setsockopt(socket->get(), SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  socket->Reset(-1);
}

void Prepare(int socket) {
  const int one = 1;
  (void)setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  (void)fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
}

}  // namespace

// Everything but counts() happens on one thread.
class SlowProxy::Loop {
 public:
  explicit Loop(SlowProxyOptions options)
      : options_(std::move(options)), random_(options_.seed), until_reset_(ChunksToNextReset()) {}
  ~Loop() {
    const uint64_t one = 1;
    if (wake_.valid()) (void)!write(wake_.get(), &one, sizeof(one));
    if (thread_.joinable()) thread_.join();
    for (Connection& connection : connections_) ResetBoth(&connection);
  }

  absl::Status Start() {
    MU_ASSIGN_OR_RETURN(target_, ParseAddress(options_.target));
    if (!options_.source.empty()) {
      MU_ASSIGN_OR_RETURN(source_, ParseAddress(options_.source + ":0"));
    }
    listener_.Reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    wake_.Reset(eventfd(0, EFD_CLOEXEC));
    sockaddr_in here = {};
    here.sin_family = AF_INET;
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(here);
    if (!listener_.valid() || !wake_.valid() ||
        bind(listener_.get(), reinterpret_cast<sockaddr*>(&here), sizeof(here)) != 0 ||
        listen(listener_.get(), 128) != 0 ||
        getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&here), &size) != 0) {
      return ErrnoToStatus(errno, "listen with", "a proxy");
    }
    address_ = absl::StrCat("127.0.0.1:", ntohs(here.sin_port));
    thread_ = std::thread([this] { Run(); });
    return absl::OkStatus();
  }

  const std::string& address() const { return address_; }
  Counts counts() const {
    MutexLock lock(&mutex_);
    return counts_;
  }

 private:
  void Run() {
    while (true) {
      std::vector<pollfd> fds = {{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
      absl::Time next = absl::InfiniteFuture();
      const absl::Time now = absl::Now();
      for (const Connection& connection : connections_) {
        for (int side = 0; side < 2; ++side) {
          const Flow& in = connection.flows[side];
          const Flow& out = connection.flows[1 - side];
          short events = 0;
          if (!in.read_all && in.queued < kMostQueuedBytes) events |= POLLIN;
          if (!out.chunks.empty()) {
            if (out.chunks.front().due <= now) {
              events |= POLLOUT;
            } else {
              next = std::min(next, out.chunks.front().due);
            }
          }
          // Without a wish not even an error is waited for: it would come again and again.
          fds.push_back({events != 0 ? connection.sockets[side].get() : -1, events, 0});
        }
      }
      const int wait = next == absl::InfiniteFuture()
                           ? -1
                           : static_cast<int>(absl::ToInt64Milliseconds(
                                 absl::Ceil(next - now, absl::Milliseconds(1))));
      if (poll(fds.data(), fds.size(), wait) < 0 && errno != EINTR) return;
      if (fds[0].revents != 0) return;
      size_t fd = 2;
      for (Connection& connection : connections_) {
        for (int side = 0; side < 2; ++side, ++fd) {
          if (fds[fd].revents & (POLLOUT | POLLERR)) Write(&connection, side);
          if (fds[fd].revents & (POLLIN | POLLHUP | POLLERR)) Read(&connection, side);
        }
      }
      for (auto it = connections_.begin(); it != connections_.end();) {
        if (it->broken) ResetBoth(&*it);
        it = it->broken || (it->flows[0].done && it->flows[1].done) ? connections_.erase(it)
                                                                    : std::next(it);
      }
      if (fds[1].revents != 0) Accept();
    }
  }

  void Accept() {
    while (true) {
      UniqueFd client(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!client.valid()) return;
      UniqueFd target(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      // On this machine: it is there at once or not at all.
      const bool bound =
          !source_.has_value() ||
          bind(target.get(), reinterpret_cast<const sockaddr*>(&*source_), sizeof(*source_)) == 0;
      if (!bound || connect(target.get(), reinterpret_cast<const sockaddr*>(&target_),
                            sizeof(target_)) != 0) {
        Reset(&client);
        continue;
      }
      Prepare(client.get());
      Prepare(target.get());
      connections_.emplace_back();
      connections_.back().sockets = {std::move(client), std::move(target)};
      MutexLock lock(&mutex_);
      ++counts_.connections;
    }
  }

  void Read(Connection* connection, int side) {
    Flow& flow = connection->flows[side];
    if (connection->broken || flow.read_all) return;
    std::string bytes(kChunkBytes, '\0');
    const ssize_t size = read(connection->sockets[side].get(), bytes.data(), bytes.size());
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (size < 0) {
      connection->broken = true;
      return;
    }
    bytes.resize(static_cast<size_t>(size));
    flow.read_all = bytes.empty();
    const bool stall = random_.Unit() < options_.stall_probability;
    const bool reset = until_reset_ > 0 && --until_reset_ == 0;
    if (reset) until_reset_ = ChunksToNextReset();
    {
      MutexLock lock(&mutex_);
      ++counts_.chunks;
      counts_.stalls += stall ? 1 : 0;
      counts_.resets += reset ? 1 : 0;
    }
    if (reset) {
      connection->broken = true;
      return;
    }
    absl::Time due = absl::Now() + options_.delay + (stall ? options_.stall : absl::ZeroDuration());
    if (!flow.chunks.empty()) due = std::max(due, flow.chunks.back().due);
    flow.queued += bytes.size();
    flow.chunks.push_back({due, std::move(bytes)});
  }

  uint64_t ChunksToNextReset() {
    const uint64_t mean = options_.chunks_between_resets;
    return mean == 0 ? 0 : mean / 2 + 1 + random_.Below(mean);
  }

  // What has come from the other side and is due.
  void Write(Connection* connection, int side) {
    Flow& flow = connection->flows[1 - side];
    const int socket = connection->sockets[side].get();
    while (!connection->broken && !flow.chunks.empty() && flow.chunks.front().due <= absl::Now()) {
      Chunk& chunk = flow.chunks.front();
      if (chunk.bytes.empty()) {
        (void)shutdown(socket, SHUT_WR);
        flow.done = true;
        flow.chunks.clear();
        return;
      }
      const ssize_t size = send(socket, chunk.bytes.data() + chunk.written,
                                chunk.bytes.size() - chunk.written, MSG_NOSIGNAL);
      if (size < 0) {
        connection->broken = errno != EAGAIN && errno != EINTR;
        return;
      }
      chunk.written += static_cast<size_t>(size);
      flow.queued -= static_cast<size_t>(size);
      if (chunk.written == chunk.bytes.size()) flow.chunks.pop_front();
    }
  }

  static void ResetBoth(Connection* connection) {
    for (UniqueFd& socket : connection->sockets) Reset(&socket);
  }

  const SlowProxyOptions options_;
  sockaddr_in target_ = {};
  std::optional<sockaddr_in> source_;
  std::string address_;
  UniqueFd listener_, wake_;
  SplitMix random_;
  uint64_t until_reset_;
  std::list<Connection> connections_;
  mutable Mutex mutex_;
  Counts counts_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

SlowProxy::SlowProxy(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}
SlowProxy::~SlowProxy() = default;

absl::StatusOr<std::unique_ptr<SlowProxy>> SlowProxy::Start(SlowProxyOptions options) {
  auto loop = std::make_unique<Loop>(std::move(options));
  MU_RETURN_IF_ERROR(loop->Start());
  return std::unique_ptr<SlowProxy>(new SlowProxy(std::move(loop)));
}

const std::string& SlowProxy::address() const { return loop_->address(); }
SlowProxy::Counts SlowProxy::counts() const { return loop_->counts(); }

}  // namespace mu::testing
