// `coordinator soak` with the daemons of a cluster: something else starts them, again whenever they
// have ended, and a command of the user's ends them.
#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/mutex.h"
#include "tests/integration/cli/restart.h"
#include "tests/integration/cli/soak_lines.h"

namespace mu {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::UnorderedElementsAre;

#ifdef __SANITIZE_ADDRESS__
constexpr int kSoakedEpochs = 4;  // ten times slower
#else
constexpr int kSoakedEpochs = 6;  // 3,000 steps: a command has time to end a daemon
#endif
constexpr int kOfARole = 2;  // daemons

// Ends one of the role's daemons, and writes down why. Before its run trains there is nothing to
// lose.
constexpr char kPreempt[] = R"sh(
cd "$(dirname "$0")" || exit 1
tries=0
until grep -qs '^training ' record/runs/*/output.txt; do
  tries=$((tries + 1))
  [ $tries -lt 400 ] || exit 1
  sleep 0.05
done
set -- pids/"$MUSTER_ROLE"-*
up=$#
shift $((MUSTER_CHOICE % up))
signal=KILL
[ "$MUSTER_ACTION" = drain ] && signal=TERM
kill -s $signal "$(cat "$1")" || exit 1
echo "$MUSTER_ROLE $MUSTER_ACTION $MUSTER_CHOICE" >> calls
)sh";

// Starts a daemon, and again whenever it has ended, as a Deployment or a systemd unit does.
class KeptDaemon {
 public:
  explicit KeptDaemon(SubprocessOptions options)
      : options_(std::move(options)), thread_([this] { Keep(); }) {}
  ~KeptDaemon() {
    stop_.Notify();
    thread_.join();
  }

 private:
  void Keep() {
    while (!stop_.HasBeenNotified()) {
      const auto daemon = Subprocess::Start(options_);
      if (!daemon.ok()) {
        ADD_FAILURE() << daemon.status();
        return;
      }
      while (!(*daemon)->WaitFor(absl::Milliseconds(20)).has_value()) {
        if (stop_.HasBeenNotified()) return;
      }
    }
  }

  const SubprocessOptions options_;
  Notification stop_;
  std::thread thread_;
};

class SoakClusterTest : public testing::RestartTest {
 protected:
  // Each writes its process into pids/NAME before it does anything else.
  void KeepDaemons(const std::string& address) {
    MU_ASSERT_OK(MakeDirectories(Path("pids")));
    for (const std::string role : {"worker", "psserver"}) {
      for (int index = 0; index < kOfARole; ++index) {
        const std::string name = absl::StrCat(role, "-", index);
        SubprocessOptions options;
        options.path = "sh";
        options.args = {"-c",
                        "echo $$ > \"$0\" && exec \"$@\"",
                        Path("pids/" + name),
                        absl::StrCat(MUSTER_BINARY_DIR, "/", role),
                        "--coordinator=" + address,
                        absl::StrCat("--index=", index)};
        if (role == "worker") options.args.push_back("--cache_dir=" + Path("cache-" + name));
        options.output_file = Path(name + ".log");
        options.parent_pipe = true;
        daemons_.push_back(std::make_unique<KeptDaemon>(std::move(options)));
      }
    }
  }

  // The exit code of a soak with such daemons. `after`: what the command does when it has ended
  // one.
  int Soak(std::vector<std::string> more, const std::string& after = "") {
    const std::string address = FreeAddress();
    KeepDaemons(address);
    WriteText("preempt.sh", kPreempt + after);
    const std::string job =
        Job({{"epochs: 1, batch_size: 32",
              absl::StrCat("epochs: ", kSoakedEpochs, ", batch_size: 4, steps_per_function: 10")}});
    std::vector<std::string> args = {"soak",
                                     job,
                                     "--listen=" + address,
                                     "--insecure",
                                     absl::StrCat("--workers=", kOfARole),
                                     absl::StrCat("--ps=", kOfARole),
                                     "--member_timeout=1.5",
                                     "--record=" + Path("record"),
                                     "--preempt_command=sh " + Path("preempt.sh")};
    args.insert(args.end(), more.begin(), more.end());
    const auto soak = Start(std::move(args));
    const int code = ExitOf(soak.get());
    if (!soak->TryWait().has_value()) {
      MU_EXPECT_OK(soak->Kill(SIGINT));  // the run that is under way would go on without it
      ExitOf(soak.get());
    }
    return code;
  }

  // What the command was called with, "ROLE ACTION CHOICE" each time.
  std::vector<std::string> Calls() const {
    const std::string text = ReadFile(Path("calls")).value_or("");
    return absl::StrSplit(text, '\n', absl::SkipEmpty());
  }

  // All runs, which came to their end with each record used once per epoch, on the same daemons.
  std::vector<nlohmann::json> ExpectWholeRuns(size_t count) {
    std::vector<nlohmann::json> runs = testing::SoakLines(Path("record"));
    EXPECT_EQ(runs.size(), count) << Output();
    for (const nlohmann::json& run : runs) {
      EXPECT_EQ(run["status"], "done") << run;
      EXPECT_EQ(run["samples"], kSoakedEpochs * testing::kRecords) << run;
      EXPECT_EQ(run["steps"], kSoakedEpochs * testing::kRecords / 4) << run;
    }
    // No run begins before all are there, and there are no others.
    for (int index = 0; index < kOfARole; ++index) {
      EXPECT_GE(TimesSaid(absl::StrCat("worker-", index), " serves at "), count);
      EXPECT_GE(TimesSaid(absl::StrCat("psserver-", index), "registered as parameter server"),
                count);
    }
    return runs;
  }

 private:
  size_t TimesSaid(const std::string& daemon, const std::string& text) const {
    const std::string log = ReadFile(Path(daemon + ".log")).value_or("");
    size_t times = 0;
    for (size_t at = log.find(text); at != std::string::npos; at = log.find(text, at + 1)) ++times;
    return times;
  }

  std::vector<std::unique_ptr<KeptDaemon>> daemons_;
};

uint64_t LostOf(const nlohmann::json& run, const std::string& role) {
  const nlohmann::json& losses = run["losses"];
  return losses.contains(role) ? losses[role]["count"].get<uint64_t>() : 0;
}

TEST_F(SoakClusterTest, ACommandKillsDaemonsOfBothRoles) {
  EXPECT_EQ(Soak({"--preempt=worker:kill:every=20ms:count=1,ps:kill:every=20ms:count=1"}), 0)
      << Output();
  EXPECT_THAT(Output(),
              AllOf(HasSubstr("small, with preemptions: done"), HasSubstr("2 runs, 0 flagged")));
  const auto runs = ExpectWholeRuns(2);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0]["preemption"], "");
  EXPECT_THAT(Calls(), UnorderedElementsAre(MatchesRegex("worker kill [0-9]{4,}"),
                                            MatchesRegex("psserver kill [0-9]{4,}")));
  EXPECT_GE(LostOf(runs[1], "worker"), 1u) << runs[1];
  ASSERT_GE(LostOf(runs[1], "psserver"), 1u) << runs[1];
  EXPECT_GT(runs[1]["losses"]["psserver"]["longest_recovery_seconds"].get<double>(), 0) << runs[1];
}

// Daemons that the command has ended serve the next run as well; one that fails ends no run.
TEST_F(SoakClusterTest, PreemptionsGoOnFromRunToRun) {
  EXPECT_EQ(Soak({"--preempt=worker:drain:every=20ms:count=1", "--rounds=2"}, "exit 3\n"), 0)
      << Output();
  EXPECT_THAT(Output(), AllOf(HasSubstr("ended with exit code 3"), HasSubstr("3 runs, 0 flagged")));
  const auto runs = ExpectWholeRuns(3);
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_GE(LostOf(runs[1], "worker"), 1u) << runs[1];
  EXPECT_GE(LostOf(runs[2], "worker"), 1u) << runs[2];
  const auto calls = Calls();
  ASSERT_THAT(calls, ::testing::Each(MatchesRegex("worker drain [0-9]{4,}")));
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_NE(calls[0], calls[1]) << "the second run had the first one's";
}

}  // namespace
}  // namespace mu
