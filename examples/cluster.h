// What the examples run on, by their first argument: in_process, local, or the HOST:PORT at which a
// cluster's daemons register (worker --coordinator=HOST:PORT, psserver --coordinator=HOST:PORT).
#pragma once

#include <memory>
#include <string>

#include "coordinator/muster.h"

inline absl::StatusOr<std::unique_ptr<mu::Coordinator>> Cluster(const std::string& where,
                                                                mu::ClusterOptions options = {}) {
  options.workers = options.ps = 2;
  options.name = "example";
  if (where == "in_process") return mu::InProcess(options);
  if (where == "local") return mu::Local(options);
  options.listen = where;
  return mu::Connect(options);
}
