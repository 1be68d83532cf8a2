#include "common/obs/stack_trace.h"

#include <execinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "absl/debugging/symbolize.h"

// The linker's: where the program is, and where its code ends.
extern "C" {
extern const char __executable_start;  // NOLINT(bugprone-reserved-identifier)
extern const char etext;
}

namespace mu {
namespace {

constexpr int kMostFrames = 64;

void Write(int fd, const char* text) {
  [[maybe_unused]] const ssize_t ignored = ::write(fd, text, std::strlen(text));
}

void WriteHex(int fd, uintptr_t value) {
  char text[2 + 2 * sizeof(value) + 1];
  char* begin = text + sizeof(text) - 1;
  *begin = '\0';
  do {
    *--begin = "0123456789abcdef"[value % 16];
    value /= 16;
  } while (value != 0);
  *--begin = 'x';
  *--begin = '0';
  Write(fd, begin);
}

// `frame`: where the call goes on when what it calls has returned, unless `exact`.
void WriteFrame(int fd, const void* frame, bool exact) {
  const auto address = reinterpret_cast<uintptr_t>(frame);
  const auto begin = reinterpret_cast<uintptr_t>(&__executable_start);
  Write(fd, "  @ ");
  const bool of_program = address >= begin && address < reinterpret_cast<uintptr_t>(&etext);
  if (of_program) Write(fd, "program+");
  WriteHex(fd, of_program ? address - begin : address);
  Write(fd, "  ");
  // A call that does not return may be the last of its function: what follows is another one.
  char name[512];
  const auto* const in_call = static_cast<const char*>(frame) - (exact ? 0 : 1);
  Write(fd, absl::Symbolize(in_call, name, sizeof(name)) ? name : "(unknown)");
  Write(fd, "\n");
}

}  // namespace

void PrepareStackTraces() {
  absl::InitializeSymbolizer(nullptr);
  void* frame = nullptr;
  ::backtrace(&frame, 1);  // the first call loads the unwinder
}

// By the tables of unwinding: libraries are compiled without frame pointers, which Abseil's stack
// traces need.
void WriteStackTrace(int fd, const void* at) {
  void* frames[kMostFrames];
  void** const end = frames + ::backtrace(frames, kMostFrames);
  void** const found = std::find(frames, end, at);
  if (found == end) WriteFrame(fd, at, /*exact=*/true);
  for (void** frame = found == end ? frames : found; frame != end; ++frame)
    WriteFrame(fd, *frame, *frame == at);
}

}  // namespace mu
