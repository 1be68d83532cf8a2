// Preloaded (LD_PRELOAD) into a program and what it starts: the machine's clock differs by what the
// file MUSTER_TEST_CLOCK says at that moment, seconds as an int64. The monotonic clock is as it is.
// Waits until a time of the machine's clock (futexes; Abseil has such) follow it, as the kernel
// would have them, also when it is set while they wait.
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace {

using Syscall = long (*)(long, ...);

Syscall RealSyscall() {
  static const auto real = reinterpret_cast<Syscall>(dlsym(RTLD_NEXT, "syscall"));
  return real;
}

int64_t Offset() {
  static const volatile int64_t* const offset = [] {
    const char* const name = getenv("MUSTER_TEST_CLOCK");
    const int fd = name == nullptr ? -1 : open(name, O_RDONLY | O_CLOEXEC);
    void* const page = mmap(nullptr, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED) abort();
    close(fd);
    return static_cast<const volatile int64_t*>(page);
  }();
  return *offset;
}

int64_t Nanoseconds(const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; }

// Waits in slices: until `until` of the clock that is set.
long WaitUntil(long word, long op, long value, const timespec* until, long word2, long mask) {
  constexpr int64_t kSlice = 20'000'000;
  while (true) {
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const int64_t left = Nanoseconds(*until) - Nanoseconds(now);
    RealSyscall()(SYS_clock_gettime, CLOCK_REALTIME, &now);
    const int64_t end = Nanoseconds(now) + std::min(left, kSlice);
    const timespec slice = {end / 1'000'000'000, end % 1'000'000'000};
    const long result = RealSyscall()(SYS_futex, word, op, value, &slice, word2, mask);
    if (result == 0 || errno != ETIMEDOUT || left <= kSlice) return result;
  }
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  if (RealSyscall()(SYS_clock_gettime, clock, now) != 0) return -1;
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) now->tv_sec += Offset();
  return 0;
}

extern "C" int gettimeofday(timeval* now, void*) noexcept {
  timespec exact;
  clock_gettime(CLOCK_REALTIME, &exact);
  now->tv_sec = exact.tv_sec;
  now->tv_usec = exact.tv_nsec / 1000;
  return 0;
}

extern "C" time_t time(time_t* result) noexcept {
  timespec exact;
  clock_gettime(CLOCK_REALTIME, &exact);
  if (result != nullptr) *result = exact.tv_sec;
  return exact.tv_sec;
}

extern "C" long syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  long args[6];
  for (long& arg : args) arg = va_arg(list, long);
  va_end(list);
  const auto* const until = reinterpret_cast<const timespec*>(args[3]);
  if (number == SYS_futex && (args[1] & FUTEX_CLOCK_REALTIME) != 0 && until != nullptr)
    return WaitUntil(args[0], args[1], args[2], until, args[4], args[5]);
  return RealSyscall()(number, args[0], args[1], args[2], args[3], args[4], args[5]);
}
