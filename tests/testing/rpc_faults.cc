#include "tests/testing/rpc_faults.h"

#include <cstdio>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/check.h"

namespace mu::testing {
namespace {

constexpr char kVariable[] = "MUSTER_RPC_FAULTS";

// SEED,METHOD:FAULT:PROBABILITY,...
std::shared_ptr<FaultPlan> PlanOf(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  uint64_t seed = 0;
  MU_CHECK(absl::SimpleAtoi(parts[0], &seed));
  auto plan = std::make_shared<FaultPlan>(seed);
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::vector<std::string> fields = absl::StrSplit(parts[i], ':');
    FaultRule rule;
    int fault = 0;
    MU_CHECK(fields.size() == 3 && absl::SimpleAtoi(fields[1], &fault) &&
             absl::SimpleAtod(fields[2], &rule.probability));
    rule.method = fields[0];
    rule.fault = static_cast<Fault>(fault);
    plan->Add(rule);
  }
  return plan;
}

}  // namespace

std::string FaultyDaemon(const std::string& role) {
  return absl::StrCat(MUSTER_TEST_DAEMONS, "/faulty_", role);
}

std::string RpcFaultsFor(uint64_t seed, const std::vector<FaultRule>& rules) {
  std::string text = absl::StrCat(kVariable, "=", seed);
  for (const FaultRule& rule : rules) {
    absl::StrAppend(&text, ",", rule.method, ":", static_cast<int>(rule.fault), ":",
                    rule.probability);
  }
  return text;
}

std::unique_ptr<Transport> NewFaultyGrpcTransport(const TransportOptions& options) {
  const char* const text = std::getenv(kVariable);
  MU_CHECK(text != nullptr);
  static const std::shared_ptr<FaultPlan>& plan = *new std::shared_ptr<FaultPlan>(PlanOf(text));
  std::atexit([] { std::fprintf(stderr, "faults in %d calls\n", plan->hits()); });
  return NewFaultyTransport(NewGrpcTransport(options), plan);
}

}  // namespace mu::testing
