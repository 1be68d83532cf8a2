"""A git worktree below build-mutants/, in which one mistake at a time is built and tested. It is kept for the next run:
ccache and the build folder make that quick."""
import contextlib
import fcntl
import json
import os
import re
import signal
import subprocess
import time

from mutant_list import ROOT

HOME = os.path.join(ROOT, "build-mutants")
TREE = os.path.join(HOME, "tree")
BUILD = os.path.join(TREE, "build")
LOG = os.path.join(HOME, "log")
SECONDS_OF_A_TEST = 300  # more than the TIMEOUT of any with these labels
# They read the sources, so they see mistakes that no user would.
TEXT_TESTS = {"structure", "format"}
STARTED = re.compile(r"^\s*Start\s+\d+: (\S+)", re.M)
ENDED = re.compile(r"Test\s+#\d+: (\S+)")
# Names with parameters go on: "  # GetParam() = ...". A crash is "Subprocess aborted***Exception".
FAILED = re.compile(r"Test\s+#\d+: (\S+)(?:  # .*)? \.*\s*[\w ]*\*\*\*(?!Skipped|Not Run \(Disabled\))", re.M)


class TimeIsOver(Exception):
    """Of one mistake."""


def git(*arguments, folder=ROOT):
    run = subprocess.run(["git", "-C", folder, *arguments], capture_output=True, text=True, check=True)
    return run.stdout.strip()


class Trial:
    def __init__(self, jobs, minutes):
        self.jobs = str(jobs)
        self.seconds = 60 * minutes
        self.until = 0  # of the mistake under test
        self.left_out = set(TEXT_TESTS)
        self.doubtful = []  # tests that failed once with this mistake, and then passed
        os.makedirs(HOME, exist_ok=True)
        self.lock = open(os.path.join(HOME, "lock"), "w", encoding="utf-8")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SystemExit(f"another run uses {HOME}") from None
        self.commit = git("rev-parse", "HEAD")
        self.check_out()
        self.environment = self.make_environment()
        self.begin()
        if self.run(["cmake", "--preset", "release"]) != 0:
            raise SystemExit(f"cmake fails at HEAD, see {LOG}")

    def check_out(self):
        if os.path.exists(os.path.join(TREE, ".git")):
            git("checkout", "--quiet", "--force", "--detach", self.commit, folder=TREE)
        else:
            git("worktree", "prune")
            git("worktree", "add", "--quiet", "--detach", TREE, self.commit)

    def make_environment(self):
        """As tests/run.sh does."""
        environment = dict(os.environ, CCACHE_BASEDIR=TREE, CCACHE_NOHASHDIR="1")
        data = os.path.join(os.path.dirname(ROOT), "shared", "data")
        environment.setdefault("MUSTER_DATA", data if os.path.isdir(data) else "")
        environment.setdefault("MUSTER_SIM_FIRST_SEED", str(int(self.commit[:10], 16)))
        return environment

    def begin(self):
        self.until = time.monotonic() + self.seconds
        self.doubtful = []

    def run(self, command):
        """Its exit code; its output is in LOG. Nothing of it lives on, whatever happens."""
        left = self.until - time.monotonic()
        if left <= 0:
            raise TimeIsOver
        with open(LOG, "w", encoding="utf-8") as log:
            process = subprocess.Popen(command, cwd=TREE, env=self.environment, stdin=subprocess.DEVNULL, stdout=log,
                                       stderr=subprocess.STDOUT, start_new_session=True)
            try:
                return process.wait(left)
            except subprocess.TimeoutExpired:
                raise TimeIsOver from None
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def output(self):
        with open(LOG, encoding="utf-8", errors="replace") as log:
            return log.read()

    def build(self, label):
        """What does not compile, or nothing. Of unit and sim alone nothing else is built, as in tests/run.sh."""
        target = ["--target", f"tests_{label}"] if label in ("unit", "sim") else []
        if self.run(["cmake", "--build", BUILD, "-j", self.jobs, *target]) == 0:
            return ""
        return self.error_of_build()

    def error_of_build(self):
        lines = [line for line in self.output().splitlines() if "error" in line.lower()]
        return (lines or ["the build fails"])[0]

    def build_near(self, file):
        """The unit tests of the file's folder alone, which notice most mistakes: (their folder or "", the problem)."""
        near = os.path.join("tests", os.path.dirname(file))
        while near != "tests" and not os.path.exists(os.path.join(BUILD, near, "CTestTestfile.cmake")):
            near = os.path.dirname(near)
        if near == "tests":
            return "", ""
        if self.run(["cmake", "--build", BUILD, "-j", self.jobs, "--target", f"{near}/all"]) == 0:
            return near, ""
        return near, self.error_of_build()

    def ctest(self, *arguments, near=""):
        """A folder `near` may have no tests of the label; the whole tree has."""
        folder = os.path.join(BUILD, near)
        none = [] if near else ["--no-tests=error"]
        return self.run(["ctest", "--test-dir", folder, "-j", self.jobs, *none, *arguments])

    def failing(self, label, stop, near=""):
        """Tests that fail, with `stop` the first; and whether time was over: then also those that ran at the end."""
        names = "|".join(sorted(map(re.escape, self.left_out)))
        is_over = False
        try:
            code = self.ctest("-L", f"^{label}$", "-E", f"^({names})( |$)", *(["--stop-on-failure"] if stop else []),
                              near=near)
        except TimeIsOver:
            is_over, code = True, 0
        output = self.output()
        failed = FAILED.findall(output)
        if code != 0 and not failed:
            raise SystemExit(f"ctest -L {label} fails, but no test does; see {LOG}")
        if is_over:
            ended = set(ENDED.findall(output))
            failed += [name for name in STARTED.findall(output) if name not in ended]
        return failed, is_over

    def fails_again(self, name):
        """Alone, so it has time until its own TIMEOUT, which tells a hang from a slow machine."""
        self.until = max(self.until, time.monotonic() + SECONDS_OF_A_TEST)
        try:
            code = self.ctest("-R", f"^{re.escape(name)}( |$)")
        except TimeIsOver:
            return True
        if code != 0 and name not in FAILED.findall(self.output()):
            raise SystemExit(f"ctest does not find {name} again; see {LOG}")
        return code != 0

    def noticed_by(self, label, near=""):
        """The first test of the label (of the folder `near`) that fails or hangs, and does so again; or None."""
        while True:
            failing, is_over = self.failing(label, stop=True, near=near)
            for name in failing:
                if self.fails_again(name):
                    return name
                self.doubtful.append(name)
            if is_over:
                raise TimeIsOver
            if not failing:
                return None
            self.left_out.update(failing)

    @contextlib.contextmanager
    def with_mistake(self, mutant):
        path = os.path.join(TREE, mutant.file)
        with open(path, encoding="utf-8") as file:
            good = file.read()
        bad = mutant.apply(good)
        before = set(self.left_out)
        self.begin()
        try:
            with open(path, "w", encoding="utf-8") as file:
                file.write(bad)
            yield
        finally:
            self.left_out = before
            with open(path, "w", encoding="utf-8") as file:
                file.write(good)

    def look_at_head(self, labels):
        """Leaves out what fails without any mistake. Done once for each commit."""
        path = os.path.join(HOME, "at_head.json")
        known = {}
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                known = json.load(file)
        if known.get("commit") != self.commit:
            known = {"commit": self.commit, "failing": {}}
        for label in labels:
            if label not in known["failing"]:
                self.begin()
                if problem := self.build(label):
                    raise SystemExit(f"HEAD does not build: {problem}")
                self.begin()
                failing, is_over = self.failing(label, stop=False)
                if is_over:
                    raise SystemExit(f"{label} takes longer than --timeout at HEAD")
                known["failing"][label] = [name for name in failing if self.fails_again(name)]
                with open(path, "w", encoding="utf-8") as file:
                    json.dump(known, file)
            for name in known["failing"][label]:
                print(f"left out, it fails at HEAD: {name}", flush=True)
                self.left_out.add(name)
