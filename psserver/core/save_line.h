// One save at a time: who asks for another one waits in line, who asks for the same one (a repeat
// after a lost reply) gets the result of the first. A newer coordinator's save ends the one that
// runs and goes first; a restore ends it as well.
//
// Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/psserver.pb.h"
#include "psserver/core/push.h"

namespace mu {

class SaveLine {
 public:
  using Result = absl::StatusOr<muster::SaveReply>;
  struct Turn {
    enum class Step {
      kRun,   // save, then End; not said twice
      kWait,  // look again after the next End
      kDone,  // `result`
    };
    Step step = Step::kWait;
    Result result = absl::UnknownError("the save has not ended");
  };

  // A call asks for a save. `attempt`: the same in repeats; 0: has none.
  Turn Ask(PsCallId call, uint64_t attempt, uint64_t epoch);
  // What has become of a call that had to wait; after kRun and kDone it does not wait any more.
  Turn Look(PsCallId call);
  // How the save that runs has ended. The next one's turn has come.
  void End(const Result& result);
  // Ends the save that runs, if one does; `why` is what it reports.
  void Cancel(const std::string& why);
  // ABORTED once the save that runs has been cancelled.
  absl::Status GoOn() const;

  bool running() const { return running_.has_value(); }

 private:
  struct Save {
    PsCallId call;
    uint64_t attempt = 0;
    uint64_t epoch = 0;
    std::string cancelled;
    bool started = false;
  };
  // The result of that attempt, if it ended well.
  const Result* Remembered(uint64_t attempt) const;
  void StartNext();

  std::optional<Save> running_;
  std::deque<Save> waiting_;
  std::map<PsCallId, Result> done_;  // of calls that have not looked yet
  // The latest that ended well: a copy of a request that comes late must not write over the file of
  // an older checkpoint.
  std::deque<std::pair<uint64_t, Result>> ended_;
};

}  // namespace mu
