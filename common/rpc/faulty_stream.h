// A stream in both directions with faults, see common/rpc/faults.h. A message that is lost is lost
// with the connection, as TCP does it; one that is late delays what follows it.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/rpc/faults.h"
#include "common/rpc/transport.h"

namespace mu {

class FaultyStream final : public ClientStream, public std::enable_shared_from_this<FaultyStream> {
 public:
  using Open = std::function<std::shared_ptr<ClientStream>(Conversation,
                                                           std::function<void(absl::Status)> done)>;

  // `ended` is called after `done`, when nothing of the stream is left.
  FaultyStream(std::string method, std::shared_ptr<FaultPlan> plan, Conversation conversation,
               std::function<void(absl::Status)> done,
               std::function<void(const std::shared_ptr<ClientCall>&)> ended);

  // Opens the stream by `open`, with the faults of its method.
  void Start(const Open& open);

  void Poke() override;
  void Cancel() override;

 private:
  struct Late {
    Buffer message;
    absl::Time due;
  };

  void OpenNow(const Open& open);
  // Says once more what the stream began with, and hears no answer.
  void OpenCopy(const Open& open, const Buffer& first);
  bool Next(Buffer* message);
  void Message(Buffer message);
  void InnerDone(absl::Status status);
  // The first rule that hits a message of this direction.
  bool Decide(const Buffer& message, bool request, FaultRule* rule);
  // The connection breaks, with this.
  void Break(const FaultRule& rule, const std::string& what);
  void After(absl::Duration delay, void (FaultyStream::*then)());
  // Hands over what has come and is due.
  void Deliver();

  const std::string method_;
  const std::shared_ptr<FaultPlan> plan_;

  Mutex mutex_;
  Conversation user_ ABSL_GUARDED_BY(mutex_);
  std::function<void(absl::Status)> done_ ABSL_GUARDED_BY(mutex_);
  std::function<void(const std::shared_ptr<ClientCall>&)> ended_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<ClientStream> inner_ ABSL_GUARDED_BY(mutex_);
  std::optional<Buffer> first_ ABSL_GUARDED_BY(mutex_);  // taken before the stream was opened
  std::deque<Late> out_ ABSL_GUARDED_BY(mutex_);         // to be written before anything else
  std::deque<Late> in_ ABSL_GUARDED_BY(mutex_);
  bool delivering_ ABSL_GUARDED_BY(mutex_) = false;
  bool lose_first_reply_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status broken_ ABSL_GUARDED_BY(mutex_);  // OK: not by a fault
  std::optional<absl::Status> over_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mu
