// What of the catalog workers are to be sent, in which order, and to how many of them at once. A
// pure state machine: Next says who is sent which part, each part is answered (Answered), or its
// worker is lost.
//
// A thousand workers may register at once, and a part may be large. So only `most` workers are sent
// a part at a time; the others wait in the order in which they came. A worker whose installation
// has begun goes on with its next part before others begin. One that has not answered for
// `patience` takes up no place any more: workers that hang keep nobody from theirs for longer, also
// when servers have moved and everybody waits for the new routing.
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"

namespace mu {

// In the order in which a worker is sent them: what comes later may refer to what came before.
struct InstallPart {
  enum class Kind { kRouting, kDataset, kFunction } kind = Kind::kRouting;
  uint64_t id = 0;  // of the dataset; the function's fingerprint
  auto operator<=>(const InstallPart&) const = default;
};
std::string Describe(const InstallPart& part);  // "routing", "dataset 1"

class Installations {
 public:
  struct Options {
    size_t most = 64;
    absl::Duration patience = absl::Seconds(1);
  };
  explicit Installations(Options options) : options_(options) {}

  // These were added or changed in this version of the catalog.
  void CatalogChanged(uint64_t version, const std::vector<InstallPart>& parts);
  // The worker is sent what it lacks, if anything, when its turn comes.
  void Want(WorkerId worker);
  // It has nothing any more of what it was sent.
  void Forgot(WorkerId worker);
  // It is wanted no more: after what is under way it is sent nothing.
  void Withdraw(WorkerId worker);
  void Lost(WorkerId worker);

  struct Given {
    WorkerId worker;
    InstallPart part;
  };
  // What is to be sent now; it is under way then.
  std::vector<Given> Next(absl::Time now);

  struct Sent {
    InstallPart part;
    absl::Time at;
  };
  // What is under way to the worker.
  std::optional<Sent> UnderWay(WorkerId worker) const;
  // The same; its answer has come. Followed by one of the next two.
  std::optional<Sent> Answered(WorkerId worker);
  // The worker needs this part no more, and is sent the next one. Returns whether this was the last
  // and the worker has all of installed().
  bool Took(WorkerId worker);
  // Its installation is over. `wrong`: it is so wherever it is sent, and is not sent again.
  void Failed(WorkerId worker, bool wrong);

  // The version of the catalog up to which the worker has everything; 0: it has nothing.
  uint64_t installed(WorkerId worker) const;
  // When Next has more to give than now, without an answer.
  absl::Time alarm(absl::Time now) const;

 private:
  struct Worker {
    uint64_t installed = 0;
    bool waits = false;  // in queue_
    // The installation that has begun: what is left of it, first what is under way or next.
    std::deque<InstallPart> left;
    uint64_t brings = 0;     // this version
    bool forgot = false;     // what it had, meanwhile
    bool withdrawn = false;  // while a part was under way: the last that it is sent
  };
  void Begin(Worker* worker) const;

  const Options options_;
  uint64_t version_ = 0;
  std::map<InstallPart, uint64_t> parts_;  // and the version in which each changed last
  std::map<WorkerId, Worker> workers_;
  std::deque<WorkerId> queue_;
  std::map<WorkerId, absl::Time> under_way_;  // since when
};

}  // namespace mu
