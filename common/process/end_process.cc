#include "common/process/end_process.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace mu {

void EndProcess(int exit_code) {
  std::fflush(nullptr);
#ifdef __SANITIZE_ADDRESS__
  std::exit(exit_code);  // leaks are looked for on the way
#else
  _exit(exit_code);
#endif
}

}  // namespace mu
