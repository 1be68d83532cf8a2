// The API without the command line, on daemons in this process: the minimum of (w - 3)^2.
#include <cmath>
#include <cstdio>

#include "coordinator/muster.h"

namespace {

absl::StatusOr<float> Minimum() {
  mu::ClusterOptions options;
  options.workers = options.ps = 2;
  MU_ASSIGN_OR_RETURN(std::unique_ptr<mu::Coordinator> c, mu::InProcess(options));
  MU_ASSIGN_OR_RETURN(
      mu::Variable w,
      c->CreateVariable({.name = "w", .optimizer = mu::Sgd{.learning_rate = 0.1f}}));
  MU_ASSIGN_OR_RETURN(mu::Function step, c->DefineFunction("step", [&](mu::FunctionBuilder& f) {
    const mu::Sym error = w - 3.0f;
    f.Minimize(error * error);
  }));
  c->Schedule(step, {.steps = 100});
  MU_RETURN_IF_ERROR(c->Join());
  MU_ASSIGN_OR_RETURN(const mu::Tensor value, c->Read(w));
  return value.data<float>()[0];
}

}  // namespace

int main() {
  const absl::StatusOr<float> w = Minimum();
  if (!w.ok()) {
    std::fprintf(stderr, "%s\n", std::string(w.status().message()).c_str());
    return 1;
  }
  std::printf("w = %.3f\n", *w);
  return std::abs(*w - 3) < 0.01 ? 0 : 1;
}
