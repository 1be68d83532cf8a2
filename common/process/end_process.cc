#include "common/process/end_process.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "common/obs/log.h"

namespace mu {

void EndProcess(int exit_code) {
  FlushLog();
  std::fflush(nullptr);
#ifdef __SANITIZE_ADDRESS__
  std::exit(exit_code);  // leaks are looked for on the way
#else
  _exit(exit_code);
#endif
}

}  // namespace mu
