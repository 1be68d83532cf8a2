#include "psserver/push_staleness.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "common/base/status.h"

namespace mu {
namespace {

using Kind = PartitionKey::Kind;
using Ids = google::protobuf::RepeatedField<uint32_t>;
using Clocks = google::protobuf::RepeatedField<uint64_t>;

// Finds ids in a list that has most of them in the order in which they are asked for.
class ClockFinder {
 public:
  ClockFinder(const Ids& ids, const Clocks& clocks)
      : ids_(ids), clocks_(clocks), count_(std::min(ids.size(), clocks.size())) {}

  std::optional<uint64_t> Find(uint32_t id) {
    for (int looked = 0; looked < count_; ++looked) {
      if (next_ == count_) next_ = 0;
      const int at = next_++;
      if (ids_[at] == id) return clocks_[at];
    }
    return std::nullopt;
  }

 private:
  const Ids& ids_;
  const Clocks& clocks_;
  const int count_;
  int next_ = 0;
};

}  // namespace

PushStaleness StalenessOf(const pb::PushRequest& request) {
  PushStaleness staleness;
  if (!request.has_staleness()) return staleness;
  if (request.staleness().has_max()) staleness.max = request.staleness().max();
  std::vector<PushGradient>& gradients = staleness.gradients;
  const auto add = [&](const ClockKey& key, ClockFinder* clocks) {
    if (gradients.empty() || gradients.back().key != key)
      gradients.push_back({key, clocks->Find(key.id)});
  };
  ClockFinder variables(request.clocks().variables(), request.clocks().variable_clocks());
  for (const pb::VariableUpdate& update : request.variables()) {
    if (update.kind() == pb::VariableUpdate::GRADIENT ||
        update.kind() == pb::VariableUpdate::PRODUCT_GRADIENT)
      add({Kind::kVariable, update.variable()}, &variables);
  }
  ClockFinder tables(request.clocks().tables(), request.clocks().table_clocks());
  for (const pb::TableKeys& keys : request.tables()) add({Kind::kTable, keys.table()}, &tables);
  return staleness;
}

void FillClocks(const ServerCore& core, const pb::PullRequest& request, pb::ClocksProto* clocks) {
  const auto add = [&](uint32_t variable) {
    const int last = clocks->variables_size() - 1;
    if (last >= 0 && clocks->variables(last) == variable) return;
    clocks->add_variables(variable);
    clocks->add_variable_clocks(core.ReadClock({Kind::kVariable, variable}));
  };
  for (const pb::VariableKey& key : request.variables()) add(key.variable());
  for (const pb::ProductKey& key : request.products()) add(key.variable());
  for (const pb::TableKeys& keys : request.tables()) {
    clocks->add_tables(keys.table());
    clocks->add_table_clocks(core.ReadClock({Kind::kTable, keys.table()}));
  }
}

}  // namespace mu
