// Programs that end with the test that started them, also when that is killed: a coordinator of an
// endless job would go on alone.
#pragma once

#include <utility>

#include "common/env/subprocess.h"

namespace mu::testing {

// For programs that a test's main thread starts: it is the end of that thread that they notice.
// Daemons have --parent_pipe_fd for it. setpriv is a part of util-linux; a program that is not
// there is its exit code 127.
inline SubprocessOptions EndsWithThisTest(SubprocessOptions options) {
  options.args.insert(options.args.begin(), {"--pdeathsig", "KILL", options.path});
  options.path = "setpriv";
  return options;
}

}  // namespace mu::testing
