// What the worker's and the parameter server's main() share: flags, the signals, and the ties to
// the process that launched them.
//
//   DaemonFlags flags;
//   CLI::App app("..."); AddDaemonFlags(&app, &flags);   // then parse; exit 2 on errors
//   CheckDaemonFlags(flags, role)                        // exit 2
//   auto process = DaemonProcess::Start(flags);          // before any other thread
//   ... listen, AnnounceReady(address), register ...
//   process->WaitForStop();
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/env/tls_files.h"
#include "common/env/unique_fd.h"

namespace CLI {
class App;
}

namespace mu {

// Exit codes of all our processes (docs/design.md, "Errors").
inline constexpr int kExitOk = 0;
inline constexpr int kExitBadInput = 2;  // flags, job or input are wrong: no use in trying again
inline constexpr int kExitUserFunction = 3;    // the user's function failed
inline constexpr int kExitInfrastructure = 4;  // machines or network: try again

struct DaemonFlags {
  std::string coordinator;             // --coordinator=HOST:PORT
  std::string listen = "127.0.0.1:0";  // --listen
  // --advertise=HOST[:PORT]: how others call us; an IPv6 address needs brackets only with a port.
  // Empty: what was bound.
  std::string advertise;
  int index = -1;                   // --index
  int parent_pipe_fd = -1;          // --parent_pipe_fd: ends at once when this pipe closes
  int ready_fd = -1;                // --ready_fd: "ADDRESS\n" is written here when calls are taken
  bool die_with_parent = false;     // --die_with_parent: the kernel kills us when the parent ends
  std::string log_file;             // --log_file
  std::string log_format = "text";  // --log_format
  std::string http;                 // --http; empty: none
  TlsFiles tls;                     // --tls_cert, --tls_key, --tls_ca
  bool insecure = false;            // --insecure: needed off loopback without TLS
  double orphan_timeout_seconds = 600;  // --orphan_timeout
  double drain_timeout_seconds = 25;    // --drain_timeout
  int drained_exit_code = 0;            // --drained_exit_code

  absl::Duration orphan_timeout() const { return absl::Seconds(orphan_timeout_seconds); }
  absl::Duration drain_timeout() const { return absl::Seconds(drain_timeout_seconds); }
};

void AddDaemonFlags(CLI::App* app, DaemonFlags* flags);

// INVALID_ARGUMENT with a sentence that begins with the flag: this is not HOST:PORT, or not UTF-8.
absl::Status CheckAddress(const char* flag, const std::string& address);

// INVALID_ARGUMENT: an address that is none, or see CheckListening (tls_flags.h).
absl::Status CheckDaemonFlags(const DaemonFlags& flags, pb::Role role);

// True for "localhost", 127.x.y.z, [::1] and transports inside the process; `address` is
// "host:port".
bool IsLoopback(const std::string& address);

// Where others reach a daemon that bound `bound`: --advertise, else the host's name in place of a
// wildcard.
std::string AdvertisedAddress(const DaemonFlags& flags, const std::string& bound);

// "http://HOST:PORT" under which others reach what --http has bound at `bound`; empty if that is
// loopback and other machines call this daemon.
std::string AdvertisedHttp(const DaemonFlags& flags, const std::string& bound, bool secure);

// Ends the process with this code unless it has ended before: for an end that joins threads, of
// which one may hang in a disk or compute for long. Returns at once.
void EndWithin(absl::Duration time, int code);

class DaemonProcess {
 public:
  // Blocks SIGTERM and SIGINT in this thread and those it starts later and watches for them. When
  // there is a parent pipe SIGINT and SIGHUP are ignored: on Ctrl-C, and when the terminal is
  // closed, the launcher decides. A second one ends the process at once. Raises the limit of
  // descriptors (descriptor_limit.h) and disables the allocator's fast bins (fast_bins.h). Call
  // before any other thread is started; one per process.
  static absl::StatusOr<std::unique_ptr<DaemonProcess>> Start(const DaemonFlags& flags);
  ~DaemonProcess();

  // Tells the launcher (if it gave a ready_fd) where we listen.
  absl::Status AnnounceReady(const std::string& address);

  // `callback` runs on the watching thread when a stop is asked for, at once (on this thread) if it
  // was already. One; a nullptr takes it back, after which it does not run (any more). It must not
  // call OnStop.
  void OnStop(std::function<void()> callback);
  // Asks for a stop: with `status` OK as a signal does, otherwise because of an error that main()
  // reports.
  void RequestStop(absl::Status status);
  bool stopping() const { return stop_.HasBeenNotified(); }
  // Returns the status of the first RequestStop; OK for a signal.
  absl::Status WaitForStop();

 private:
  explicit DaemonProcess(const DaemonFlags& flags);
  void Watch();

  UniqueFd ready_fd_;
  UniqueFd signal_fd_;
  UniqueFd wake_fd_;
  Notification stop_;
  Mutex callback_mutex_;  // held while the callback runs
  Mutex mutex_ ABSL_ACQUIRED_AFTER(callback_mutex_);
  bool requested_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::function<void()> on_stop_ ABSL_GUARDED_BY(mutex_);
  std::thread watcher_;
};

}  // namespace mu
