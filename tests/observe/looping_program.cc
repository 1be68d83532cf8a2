// A program with a loop of its own, for tests of what is observed: it trains on local daemons for
// as long as it lives, and goes on after errors.
//
//   looping_program FOLDER_OF_DAEMONS JOB_DIR [errors]      errors: every other function fails
#include <cstdio>
#include <cstring>
#include <string>

#include "common/base/status.h"
#include "coordinator/frontend/ops.h"
#include "coordinator/launch/launch.h"

namespace mu {
namespace {

absl::Status Run(const std::string& daemons, const std::string& job_dir, bool errors) {
  MU_ASSIGN_OR_RETURN(const auto c, Local({.workers = 1,
                                           .ps = 1,
                                           .name = "loop",
                                           .job_dir = job_dir,
                                           .http = "0",
                                           .binary_dir = daemons}));
  MU_ASSIGN_OR_RETURN(const Variable w, c->CreateVariable({.name = "w", .shape = Shape({4})}));
  MU_ASSIGN_OR_RETURN(const Function good, c->DefineFunction("good", [&](FunctionBuilder& f) {
    f.Return("sum", ReduceSum(Square(w)));
  }));
  MU_ASSIGN_OR_RETURN(const Function bad, c->DefineFunction("bad", [&](FunctionBuilder& f) {
    f.Return("log", ReduceSum(Log(Square(w) - 1e6f)));  // of what is negative
  }));
  std::printf("metrics are at %s/metrics\n", c->http().c_str());
  std::fflush(stdout);
  while (true) {
    c->Schedule(good, {.steps = 10});
    MU_RETURN_IF_ERROR(c->Join());
    if (!errors) continue;
    c->Schedule(bad);
    if (c->Join().ok()) return absl::InternalError("the function that fails did not");
  }
}

}  // namespace
}  // namespace mu

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const bool errors = argc > 3 && std::strcmp(argv[3], "errors") == 0;
  const absl::Status status = mu::Run(argv[1], argv[2], errors);
  std::printf("%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
