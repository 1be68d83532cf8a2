"""Fifty evaluations of one checkpoint of a9a, while training goes on, a worker dies every second, servers die, and the
coordinator once: each gives what one without faults gives, to the last digit.

Usage: evaluate_one_checkpoint_test.py PROGRAM
"""
import contextlib
import os
import re
import subprocess
import sys
import tempfile

EVALUATIONS = 50
CHAOS = "worker:kill:every=1s,ps:kill:every=4s,seed=5"
SKIPPED = 77


class Run:
    """The program; it ends with this object."""

    def __init__(self, program, data, job_dir, chaos, count, *checkpoint):
        self.process = subprocess.Popen([program, data, job_dir, chaos, str(count), *checkpoint], stdout=subprocess.PIPE,
                                        text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def line(self, pattern):
        line = self.process.stdout.readline()
        found = re.fullmatch(pattern, line.rstrip("\n"))
        if not found:
            self.process.kill()
            sys.exit(f"'{line.strip()}' instead of {pattern}; exit code {self.process.wait()}")
        return found

    def evaluation(self):
        """Its metrics, and the steps, lost workers and lost servers."""
        self.line("begun")
        found = self.line(r"evaluated (.*) meanwhile steps=(\d+) lost_workers=(\d+) lost_servers=(\d+)")
        return found[1], [int(number) for number in found.groups()[1:]]

    def end(self):
        if self.process.stdout.read() or self.process.wait() != 0:
            sys.exit(f"exit code {self.process.wait()}")


def main():
    program = sys.argv[1]
    data = os.path.join(os.environ.get("MUSTER_DATA", ""), "a9a")
    if not os.path.exists(os.path.join(data, "a9a.t.gz")):
        print("MUSTER_DATA has no a9a (deploy/fetch_data.sh a9a)")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as runs:
        def start(name, *args):
            return runs.enter_context(Run(program, data, os.path.join(folder, name), *args))

        run = start("job", CHAOS, EVALUATIONS)
        checkpoint = run.line("checkpoint (.*)")[1]
        first = [run.evaluation() for _ in range(EVALUATIONS // 2)]
        run.line("begun")
        run.process.kill()
        run.process.wait()
        run = start("job", CHAOS, EVALUATIONS - len(first), checkpoint)
        second = [run.evaluation() for _ in range(EVALUATIONS - len(first))]
        run.end()
        run = start("calm", "", 1, checkpoint)
        calm = run.evaluation()[0]
        run.end()
    wrong = [metrics for metrics, _ in first + second if metrics != calm]
    if wrong or "records=16281 " not in calm:
        sys.exit(f"without faults: {calm}; {len(wrong)} differ: {wrong[:3]}")
    for part in (first, second):
        _, workers, servers = part[-1][1]
        if workers == 0 or servers == 0:
            sys.exit(f"only {workers} workers and {servers} servers were lost: nothing was shown")
        print(f"{len(part)} evaluations: {calm}; {sum(counts[0] for _, counts in part)} steps were trained meanwhile, "
              f"{workers} workers and {servers} servers lost")
        if sum(counts[0] for _, counts in part) == 0:
            sys.exit("training stood still")


if __name__ == "__main__":
    main()
