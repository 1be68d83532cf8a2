// Preloaded (LD_PRELOAD) into a daemon: one call for a file never returns, as on a disk that does
// not answer. If the folder MUSTER_TEST_DISK has a file "write", "sync" or "read", the first such
// call takes that file away and hangs; other calls and threads go on. What is meant are files with
// MUSTER_TEST_DISK_FILES in their names; without it, those of checkpoints.
#include <dlfcn.h>
#include <limits.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

template <typename Function>
Function* Real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

void MayHang(const char* call, int fd) {
  static const char* const folder = getenv("MUSTER_TEST_DISK");
  static const char* const wanted = getenv("MUSTER_TEST_DISK_FILES");
  const char* const files = wanted != nullptr ? wanted : ".safetensors";
  char wish[PATH_MAX], link[64], path[PATH_MAX];
  if (folder == nullptr) return;
  std::snprintf(wish, sizeof(wish), "%s/%s", folder, call);
  if (access(wish, F_OK) != 0) return;
  std::snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof(path) - 1);
  if (length < 0) return;
  path[length] = '\0';
  if (std::strstr(path, files) == nullptr || unlink(wish) != 0) return;
  while (true) pause();
}

}  // namespace

extern "C" ssize_t write(int fd, const void* data, size_t size) {
  static auto* const real = Real<ssize_t(int, const void*, size_t)>("write");
  MayHang("write", fd);
  return real(fd, data, size);
}

extern "C" int fsync(int fd) {
  static auto* const real = Real<int(int)>("fsync");
  MayHang("sync", fd);
  return real(fd);
}

extern "C" ssize_t pread(int fd, void* data, size_t size, off_t offset) {
  static auto* const real = Real<ssize_t(int, void*, size_t, off_t)>("pread");
  MayHang("read", fd);
  return real(fd, data, size, offset);
}
