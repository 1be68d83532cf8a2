// All values that a cluster of SmallModel holds.
#pragma once

#include <numeric>
#include <string>
#include <vector>

#include "tests/psserver/cluster.h"
#include "tests/testing/matchers.h"

namespace mu::testing {

// Of every variable and of the first 500 rows of both tables, as bytes to be compared.
inline std::string StateOf(PsCluster* cluster) {
  std::string state;
  for (const char* name : {"weights", "bias", "steps", "seen", "average", "dense/kernel"}) {
    auto value = cluster->admin().ReadVariable(cluster->context(), name);
    EXPECT_THAT(value, IsOk());
    if (value.ok()) state.append(static_cast<const char*>(value->raw()), value->bytes());
  }
  std::vector<int64_t> ids(500);
  std::iota(ids.begin(), ids.end(), 0);
  std::vector<float> items(500 * 16), users(500 * 4);
  const RowsRead rows[] = {{100, ids, items.data()}, {101, ids, users.data()}};
  PsSession session = cluster->Session(0, /*read_only=*/true);
  EXPECT_THAT(session.Pull({}, rows), IsOk());
  state.append(reinterpret_cast<const char*>(items.data()), items.size() * 4);
  state.append(reinterpret_cast<const char*>(users.data()), users.size() * 4);
  return state;
}

}  // namespace mu::testing
