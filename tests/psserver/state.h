// All values that a cluster of SmallModel holds, and steps that change them.
#pragma once

#include <numeric>
#include <string>
#include <vector>

#include "common/base/hash.h"
#include "tests/psserver/cluster.h"
#include "tests/testing/matchers.h"

namespace mu::testing {

// One step that touches everything; `ids` below 500. A further step depends on the slots, so it
// shows them.
inline void Step(PsCluster* cluster, uint64_t function, const std::vector<int64_t>& ids) {
  PsSession session = cluster->Session(function);
  session.BeginStep(0);
  SplitMix random(function);
  const auto numbers = [&](size_t n) {
    std::vector<float> values(n);
    for (float& v : values) v = static_cast<float>(random.Unit() - 0.5);
    return values;
  };
  const auto weights = numbers(30), kernel = numbers(300 * 700), items = numbers(ids.size() * 16),
             users = numbers(ids.size() * 4), bias = numbers(1), average = numbers(3);
  const int64_t one = 1;
  const int32_t seen[4] = {1, 2, 3, 4};
  const VariableWrite writes[] = {{0, VariableWrite::kGradient, weights.data()},
                                  {5, VariableWrite::kGradient, kernel.data()},
                                  {1, VariableWrite::kGradient, bias.data()},
                                  {2, VariableWrite::kAssignAdd, &one},
                                  {3, VariableWrite::kAssignAdd, seen},
                                  {4, VariableWrite::kAssignAdd, average.data()}};
  const RowsWrite rows[] = {{100, ids, items.data()}, {101, ids, users.data()}};
  MU_ASSERT_OK(session.Push(writes, rows));
}

// Of every variable and of the first 500 rows of both tables, as bytes to be compared.
// `view`: as it has them; 0: as they are.
inline std::string StateOf(PsCluster* cluster, uint64_t view = 0) {
  std::string state;
  std::vector<float> weights(30), bias(1), average(3), kernel(300 * 700);
  int64_t steps = 0;
  int32_t seen[4] = {};
  const VariableRead variables[] = {{0, weights.data()}, {1, bias.data()},    {2, &steps},
                                    {3, seen},           {4, average.data()}, {5, kernel.data()}};
  std::vector<int64_t> ids(500);
  std::iota(ids.begin(), ids.end(), 0);
  std::vector<float> items(500 * 16), users(500 * 4);
  const RowsRead rows[] = {{100, ids, items.data()}, {101, ids, users.data()}};
  PsSession session(&cluster->client(),
                    {.context = cluster->context(), .read_only = view == 0, .view = view});
  EXPECT_THAT(session.Pull(variables, rows), IsOk());
  for (const auto* values : {&weights, &bias, &average, &kernel})
    state.append(reinterpret_cast<const char*>(values->data()), values->size() * 4);
  state.append(reinterpret_cast<const char*>(&steps), sizeof(steps));
  state.append(reinterpret_cast<const char*>(seen), sizeof(seen));
  state.append(reinterpret_cast<const char*>(items.data()), items.size() * 4);
  state.append(reinterpret_cast<const char*>(users.data()), users.size() * 4);
  return state;
}

}  // namespace mu::testing
