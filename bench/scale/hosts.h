// The processes of one kind that bench/scale starts (host.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/scale/host.h"
#include "bench/scale/options.h"
#include "common/env/subprocess.h"

namespace mu::scale {

// Not thread safe. The destructor kills those that were not stopped.
class Hosts {
 public:
  // `directory` for logs; `kind` as HostOptions has it.
  Hosts(std::string directory, std::string kind);

  // `services` of them in at most `hosts` processes. `coordinator`: whom they register with; may be
  // empty. Returns when all can be called.
  absl::Status Start(int services, const std::string& coordinator, const Options& options,
                     int hosts);
  // What waits for this begins: HostOptions says what.
  absl::Status Go();
  // Ends them. What they saw.
  absl::StatusOr<HostLog> Stop();
  const std::vector<std::string>& addresses() const { return addresses_; }

 private:
  const std::string directory_, kind_;
  std::vector<std::unique_ptr<Subprocess>> processes_;
  std::vector<std::string> logs_, addresses_;
};

}  // namespace mu::scale
