#include "common/env/nobody_listens.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/env/host_port.h"
#include "common/env/unique_fd.h"

namespace mu {
namespace {

// 0: somebody listens; ETIMEDOUT.
int ErrorOfConnecting(const addrinfo& address, absl::Time until) {
  const UniqueFd fd(
      socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, address.ai_protocol));
  if (!fd.valid()) return errno;
  if (connect(fd.get(), address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd waiting = {fd.get(), POLLOUT, 0};
  int ready = -1;
  do {
    const absl::Duration left = std::max(until - absl::Now(), absl::ZeroDuration());
    ready = poll(&waiting, 1, static_cast<int>(absl::ToInt64Milliseconds(left)));
  } while (ready < 0 && errno == EINTR);
  if (ready <= 0) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof(error);
  if (getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  return error;
}

}  // namespace

bool NobodyListens(const std::string& address, absl::Duration timeout) {
  const absl::Time until = absl::Now() + timeout;
  const auto split = SplitHostPort(address);
  if (!split.ok()) return false;
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(split->host.c_str(), absl::StrCat(split->port).c_str(), &hints, &found) != 0)
    return false;
  bool refused = found != nullptr;
  for (const addrinfo* one = found; one != nullptr && refused; one = one->ai_next)
    refused = ErrorOfConnecting(*one, until) == ECONNREFUSED;
  freeaddrinfo(found);
  return refused;
}

}  // namespace mu
