// A library for LD_PRELOAD: every 20 s each of our processes writes down what the C library's
// allocator has handed out and what it holds, so that memory that somebody keeps can be told from
// free pieces between used ones. bench/soak.py --allocator=FILE.csv uses it.
//
// Appends lines to the file of MUSTER_ALLOCATOR_LOG:
//   second, pid, program, RssAnon kB, handed out kB (mapped blocks included), free kB
#include <malloc.h>
#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <thread>

namespace {

constexpr int kEverySeconds = 20;

std::string FirstLine(const char* path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

long AnonymousKb() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    long kb = 0;
    if (word == "RssAnon:" && status >> kb) return kb;
  }
  return -1;
}

void Run(const std::string& program, const char* path) {
  while (true) {
    const struct mallinfo2 info = mallinfo2();
    // Opened each time: a line is one write, and many processes write.
    if (std::FILE* const file = std::fopen(path, "a"); file != nullptr) {
      std::fprintf(file, "%ld,%d,%s,%ld,%zu,%zu\n", static_cast<long>(std::time(nullptr)), getpid(),
                   program.c_str(), AnonymousKb(), (info.uordblks + info.hblkhd) / 1024,
                   info.fordblks / 1024);
      std::fclose(file);
    }
    sleep(kEverySeconds);
  }
}

__attribute__((constructor)) void Start() {
  const char* const path = std::getenv("MUSTER_ALLOCATOR_LOG");
  const std::string program = FirstLine("/proc/self/comm");
  if (path == nullptr || (program != "coordinator" && program != "worker" && program != "psserver"))
    return;
  // A daemon's signals are for the thread that waits for them: it blocks them before it starts any
  // other, but this one is there already.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  std::thread([program, path] { Run(program, path); }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace
