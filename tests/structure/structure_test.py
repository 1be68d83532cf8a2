"""The tree's rules, checked over its text: which folder may include which, where gRPC and Eigen may appear, what stands
at the top level, how long a file may be, no registration by static initialisers, no sleeps, that exit codes of tests
count.

Run: python3 tests/structure/structure_test.py [-v]
"""
import os
import re
import subprocess
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

TOP_LEVEL = {
    "CMakeLists.txt", "CMakePresets.json", "README.md", ".clang-format", ".gitignore", ".ci", "proto",
    "common", "coordinator", "worker", "psserver", "deploy", "tests", "bench", "examples", "docs",
}
ROLES = {"coordinator", "worker", "psserver"}
# A folder of common may include itself and those of lower levels.
COMMON_LEVEL = {
    "base": 0, "env": 1, "process": 2, "tensor": 2, "obs": 2, "optimizer": 2, "rpc": 3, "graph": 3, "sharding": 3,
    "http": 3, "checkpoint": 3, "exec": 4, "client": 4, "records": 4, "metrics": 4,
}
# It puts a whole cluster into one process, so it needs all roles.
MAY_INCLUDE_ROLES = re.compile(r"coordinator/launch/in_process[^/]*$")
MAY_USE_GRPC = re.compile(r"common/(rpc|client)/|.*_service\.(h|cc)$|.*/main\.cc$|(tests|bench|examples)/")
MAY_USE_EIGEN = re.compile(r"(common/(tensor|exec)|tests|bench)/")
# What each role decides is pure: no threads, locks, clocks, sockets or files.
PURE = ("coordinator/core/", "psserver/core/", "worker/core/")
PURE_MAY_INCLUDE = re.compile(
    r"(coordinator|psserver|worker)/core/|proto/"
    r"|common/base/(backoff|caller_gone|cannot_read|check|error_kind|hash|ids|status|status_text|version)\.h$"
    r"|common/client/(applied_full|too_late)\.h$"
    r"|absl/(base/attributes|container|functional|hash|status|strings|types)[/.]|absl/time/time\.h$")
IMPURE = re.compile(r"(thread|mutex|shared_mutex|condition_variable|atomic|future|semaphore|latch|barrier|chrono|ctime|"
                    r"fstream|filesystem|iostream|cstdio|csignal|unistd\.h|fcntl\.h|time\.h|pthread\.h|sys/.*)$")
SOURCE = re.compile(r".*\.(h|cc|py|sh|proto)$")
MAX_LINES = 450

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
STATIC_REGISTRATION = re.compile(
    r"^(static\s+|const\s+|inline\s+|\[\[maybe_unused\]\]\s*)*(bool|int|auto|Registrar\w*|\w*Registration)\s+\w+\s*"
    r"(=\s*(\w+::)*Register\w*\(|=\s*\[|[({].*\bRegister\w*\()|^\s*REGISTER_\w+\(|__attribute__\s*\(\(constructor")
# They register nothing: one looks at the processor before anything runs that is compiled for a newer one, the other is
# for LD_PRELOAD.
MAY_RUN_BEFORE_MAIN = {"common/base/processor.cc", "bench/allocator_log.cc"}
SLEEP = re.compile(r"\b(sleep_for|sleep_until|SleepFor|usleep|nanosleep|time\.sleep)\b|(?<![\w.\"])sleep\s*\("
                   r"|\b(Eventually|WaitWhile)\(.*Now\(\)")  # a clock is no condition
# Who waits, waits for a condition. These files may sleep, each because nothing announces what it waits for.
MAY_SLEEP = {
    "tests/testing/wait.h": "the pause between two looks at a condition, bounded",
    "tests/observe/observed_run.py": "the same",
    "common/client/membership.h": "its SleepFor waits for the client's end, with a timeout",
    "common/client/membership.cc": "the same",
    "coordinator/training/followed_run.cc":
        "the pause between two looks: that another process completed a checkpoint is announced by nobody",
    "coordinator/training/join_with_looks.h": "the pause between two looks: that no worker comes is announced by nobody",
}


def include_problem(path, target):
    """Why the file at `path` may not include `target` (both relative to the root), or None."""
    own, other = path.split("/"), target.split("/")
    if own[0] in ("tests", "bench", "examples"):
        return None
    if other[0] in ("tests", "bench", "examples"):
        return "product code includes test, bench or example code"
    if own[0] == "common":
        if other[0] in ROLES:
            return "common includes a role"
        if other[0] == "common" and own[1] != other[1]:
            if own[1] not in COMMON_LEVEL or other[1] not in COMMON_LEVEL:
                return "unknown folder of common: give it a level in docs/design.md and here"
            if COMMON_LEVEL[other[1]] >= COMMON_LEVEL[own[1]]:
                return f"common/{own[1]} includes common/{other[1]}, which is not below it"
    if path.startswith(PURE) and not PURE_MAY_INCLUDE.match(target):
        return "a core is pure: events in, actions out; this belongs into the shell around it"
    if own[0] in ROLES and other[0] in ROLES and own[0] != other[0] and not MAY_INCLUDE_ROLES.match(path):
        return f"{own[0]} includes {other[0]}"
    return None


def problems_of_file(path, text):
    """All that is wrong with one file, as 'path:line: what'."""
    found = []
    lines = text.split("\n")
    if len(lines) - 1 > MAX_LINES:
        found.append(f"{path}:{MAX_LINES}: {len(lines) - 1} lines; split it by subject (limit {MAX_LINES})")
    code = re.match(r".*\.(h|cc)$", path)
    measures = path.startswith(("bench/", "examples/"))
    for number, line in enumerate(lines, 1):
        where = f"{path}:{number}: "
        include = INCLUDE.match(line) if code else None
        if include:
            quote, target = include.groups()
            if quote == '"' and "/" in target:
                why = include_problem(path, target)
                if why:
                    found.append(where + why)
            if path.startswith(PURE) and quote == "<" and IMPURE.match(target):
                found.append(where + "a core is pure: no threads, locks, clocks, sockets or files")
            if re.match(r"grpc|.*\.grpc\.pb\.h$", target) and not MAY_USE_GRPC.match(path):
                found.append(where + "gRPC headers belong into common/rpc, common/client, *_service.* and main.cc")
            if re.match(r"Eigen/|unsupported/Eigen", target) and not MAY_USE_EIGEN.match(path):
                found.append(where + "Eigen belongs into common/tensor and common/exec")
        if code and STATIC_REGISTRATION.search(line) and path not in MAY_RUN_BEFORE_MAIN:
            found.append(where + "registration by a static initialiser; call an explicit Register function")
        if not measures and re.match(r".*\.(h|cc|py)$", path) and SLEEP.search(line) and path not in MAY_SLEEP:
            found.append(where + "a sleep; wait for the condition (tests: tests/testing/wait.h)")
    return found


def problems_of_tree(files):
    """`files`: path relative to the root -> text."""
    found = []
    for path in sorted(files):
        top = path.split("/")[0]
        if top not in TOP_LEVEL:
            found.append(f"{path}:1: `{top}` does not belong at the top level")
        if SOURCE.match(path) and not path.startswith("tests/structure/"):
            found.extend(problems_of_file(path, files[path]))
        if path.endswith("CMakeLists.txt"):
            why = "PASS_REGULAR_EXPRESSION ignores the exit code; use tests/testing/expect_output.sh"
            found.extend(f"{path}:{number}: {why}" for number, line in enumerate(files[path].split("\n"), 1)
                         if "PASS_REGULAR_EXPRESSION" in line)
    return found


def tracked_files():
    """What git tracks or would; without git, every file that is not in a build folder."""
    try:
        git = subprocess.run(["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard"],
                             capture_output=True, text=True, check=False)
        if git.returncode == 0 and git.stdout:
            return [path for path in git.stdout.splitlines() if os.path.isfile(os.path.join(ROOT, path))]
    except FileNotFoundError:
        pass  # there is no git
    paths = []
    for folder, folders, names in os.walk(ROOT):
        relative = os.path.relpath(folder, ROOT)
        if relative == ".":
            folders[:] = [f for f in folders if not f.startswith("build") and f not in (".git", "runs", "data")]
        folders[:] = [f for f in folders if f != "__pycache__"]
        # In a worktree .git is a file.
        paths.extend(os.path.normpath(os.path.join(relative, name)) for name in names if name != ".git")
    return paths


class StructureTest(unittest.TestCase):
    def test_tree_keeps_the_rules(self):
        files = {}
        for path in tracked_files():
            with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as file:
                files[path] = file.read()
        self.assertGreater(len(files), 100, "the tree was not found")
        self.assertEqual([], problems_of_tree(files))


class TrackedFilesTest(unittest.TestCase):
    def test_without_git_the_tree_is_found_as_well(self):
        with_git = set(tracked_files())
        path = os.environ["PATH"]
        os.environ["PATH"] = "/nowhere"
        try:
            without_git = set(tracked_files())
        finally:
            os.environ["PATH"] = path
        self.assertIn("README.md", without_git)
        self.assertIn("tests/structure/structure_test.py", without_git)
        self.assertFalse([path for path in with_git - without_git if not path.startswith(("build", "data/"))])


class RulesTest(unittest.TestCase):
    """The rules find what they are for: each planted breach is reported, each right file is not."""

    def assert_breach(self, path, line, word):
        found = problems_of_tree({path: line + "\n"})
        self.assertEqual(1, len(found), found)
        self.assertIn(word, found[0])
        self.assertTrue(found[0].startswith(path + ":1: "), found)

    def assert_fine(self, path, line):
        self.assertEqual([], problems_of_tree({path: line + "\n"}))

    def test_layers(self):
        self.assert_breach("common/base/a.h", '#include "common/env/file.h"', "not below it")
        self.assert_breach("common/rpc/a.cc", '#include "common/graph/op_def.h"', "not below it")
        self.assert_breach("common/exec/a.cc", '#include "worker/run.h"', "includes a role")
        self.assert_breach("worker/a.cc", '#include "psserver/store/store.h"', "worker includes psserver")
        self.assert_breach("coordinator/launch/local.cc", '#include "worker/run.h"', "coordinator includes worker")
        self.assert_breach("common/new/a.cc", '#include "common/base/status.h"', "unknown folder")
        self.assert_breach("worker/a.cc", '#include "tests/testing/matchers.h"', "test")
        self.assert_fine("common/exec/a.cc", '#include "common/graph/op_def.h"')
        self.assert_fine("coordinator/launch/in_process.cc", '#include "worker/run.h"')
        self.assert_fine("tests/worker/a_test.cc", '#include "psserver/store/store.h"')

    def test_core_is_pure(self):
        self.assert_breach("coordinator/core/a.h", "#include <thread>", "pure")
        self.assert_breach("coordinator/core/a.h", "#include <sys/socket.h>", "pure")
        self.assert_breach("coordinator/core/a.cc", '#include "common/base/mutex.h"', "pure")
        self.assert_breach("coordinator/core/a.cc", '#include "common/env/file.h"', "pure")
        self.assert_breach("coordinator/core/a.cc", '#include "coordinator/cluster/runtime.h"', "pure")
        self.assert_breach("coordinator/core/a.cc", '#include "absl/time/clock.h"', "pure")
        self.assert_fine("coordinator/core/a.cc", '#include "absl/time/time.h"')
        self.assert_fine("coordinator/core/a.cc", '#include "common/base/ids.h"')
        self.assert_fine("coordinator/cluster/a.cc", "#include <thread>")
        self.assert_breach("worker/core/a.cc", '#include "worker/core_shell.h"', "pure")
        self.assert_breach("worker/core/a.h", "#include <mutex>", "pure")
        self.assert_fine("worker/core/a.cc", '#include "worker/core/run.h"')
        self.assert_breach("psserver/core/a.h", "#include <atomic>", "pure")
        self.assert_breach("psserver/core/a.cc", '#include "common/env/clock.h"', "pure")
        self.assert_breach("psserver/core/a.cc", '#include "psserver/store/store.h"', "pure")
        self.assert_fine("psserver/core/a.cc", '#include "psserver/core/ledger.h"')

    def test_libraries(self):
        self.assert_breach("worker/a.cc", "#include <grpcpp/grpcpp.h>", "gRPC")
        self.assert_breach("worker/a.h", '#include "proto/worker.grpc.pb.h"', "gRPC")
        self.assert_fine("worker/worker_service.cc", "#include <grpcpp/grpcpp.h>")
        self.assert_fine("common/rpc/grpc_transport.cc", "#include <grpcpp/grpcpp.h>")
        self.assert_breach("common/graph/a.cc", "#include <Eigen/Core>", "Eigen")
        self.assert_fine("common/exec/a.cc", "#include <Eigen/Core>")

    def test_habits(self):
        self.assert_breach("notes.txt", "x", "top level")
        self.assert_breach("common/exec/a.cc", "static bool registered = RegisterKernel(1);", "static initialiser")
        self.assert_breach("common/exec/a.cc", "REGISTER_OP(Add);", "static initialiser")
        self.assert_fine("common/exec/a.cc", "  const bool added = RegisterKernel(1);")
        self.assert_breach("tests/a_test.cc", "std::this_thread::sleep_for(1s);", "sleep")
        self.assert_breach("tests/a_test.cc", "absl::SleepFor(delay);", "sleep")
        self.assert_breach("tests/a.py", "time.sleep(1)", "sleep")
        self.assert_fine("tests/a_test.cc", "// it does not sleep")
        self.assert_breach("tests/a_test.cc", "while (!Ready()) absl::SleepFor(kPause);", "sleep")
        self.assert_breach("tests/a_test.cc", "WaitWhile([&] { return absl::Now() < end; });", "sleep")
        self.assert_breach("tests/a_test.cc", "EXPECT_TRUE(Eventually([&] { return SteadyNow() > end; }));", "sleep")
        self.assert_fine("tests/a_test.cc", "const absl::Time begin = SteadyNow();")
        self.assert_breach("worker/a.cc", "absl::SleepFor(kPause);", "sleep")
        self.assert_fine("tests/testing/wait.h", "absl::SleepFor(kPause);")
        self.assert_fine("bench/a.cc", "absl::SleepFor(kWindow);")
        self.assert_breach("bench/CMakeLists.txt", 'PASS_REGULAR_EXPRESSION "loss"', "exit code")
        self.assert_fine("bench/CMakeLists.txt", 'FAIL_REGULAR_EXPRESSION "loss"')
        found = problems_of_tree({"worker/a.cc": "\n" * (MAX_LINES + 1)})
        self.assertIn("split it by subject", found[0])


if __name__ == "__main__":
    unittest.main()
