// A step's access to the parameter servers. The core decides in which generation it reads and
// writes, whether it stops with its run, and whether a call is made again since servers have moved.
//
// Of one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/client/ps_client.h"
#include "common/sharding/parameter_access.h"
#include "worker/core_shell.h"
#include "worker/function_run.h"
#include "worker/step_watch.h"

namespace mu {

class StepAccess final : public ParameterAccess {
 public:
  StepAccess(CoreShell* shell, StepWatch* watch) : shell_(shell), watch_(watch) {}

  // What follows is of this step. `run` must outlive it. `rate_scale` multiplies the learning
  // rates.
  // `staleness`: of PsSessionOptions.
  void Begin(const FunctionRun* run, uint32_t step, bool read_only, float rate_scale,
             const muster::StalenessProto* staleness);

  absl::Status Pull(absl::Span<const VariableRead> variables,
                    absl::Span<const RowsRead> rows) override;
  absl::Status Multiply(absl::Span<const ProductRead> products) override;
  absl::Status Push(absl::Span<const VariableWrite> variables,
                    absl::Span<const RowsWrite> rows) override;

  // Whether the servers had the step's push already.
  bool repeated() const { return pushed_ && session_->push_repeated(); }
  // Partitions that the step changed, by server; empty if it pushed nothing.
  absl::Span<const uint32_t> updates() const {
    return pushed_ ? absl::Span<const uint32_t>(session_->push_updates())
                   : absl::Span<const uint32_t>();
  }
  // Partitions that were left alone, by server; empty: none.
  absl::Span<const uint32_t> inherited() const {
    return pushed_ ? absl::Span<const uint32_t>(session_->push_inherited())
                   : absl::Span<const uint32_t>();
  }
  // By how many updates its latest gradient was; nullopt: not known.
  std::optional<uint32_t> late() const { return pushed_ ? session_->push_late() : std::nullopt; }

 private:
  absl::Status Call(bool push, const std::function<absl::Status()>& call);

  CoreShell* const shell_;
  StepWatch* const watch_;
  std::shared_ptr<PsClient> client_;    // of session_
  std::unique_ptr<PsSession> session_;  // kept from step to step for its buffers
  const FunctionRun* run_ = nullptr;
  uint32_t step_ = 0;
  bool read_only_ = false;
  bool pushed_ = false;
  float rate_scale_ = 1;
  const muster::StalenessProto* staleness_ = nullptr;
};

}  // namespace mu
