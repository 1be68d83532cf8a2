"""A training run of real processes on this machine, with metrics over HTTP and logs as JSON, for tests."""
import glob
import gzip
import json
import os
import re
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request



def wait_for(what, condition, seconds=60):
    """The first true value of `condition`, which is asked again and again."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds} s for {what}")
        time.sleep(0.1)  # the pause between two looks


def get(url):
    """Status and text."""
    try:
        with urllib.request.urlopen(url, timeout=10) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def parse(text):
    """Metrics by name: a list of (labels, value); and types by family."""
    samples, types = {}, {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            types[name] = kind
        elif line and not line.startswith("#"):
            name, labels, value = SAMPLE.match(line).groups()
            samples.setdefault(name, []).append((dict(LABEL.findall(labels or "")), float(value)))
    return samples, types


def total(samples, name, **labels):
    """The sum of the samples with these labels; 0 if there is none."""
    return sum(value for own, value in samples.get(name, []) if labels.items() <= own.items())


class ObservedProgram:
    """A program that prints where its metrics are, and daemons that it has started."""

    def __init__(self, program, binaries, *arguments):
        self.directory = tempfile.TemporaryDirectory()
        self.output = open(os.path.join(self.directory.name, "output"), "w")
        self.process = subprocess.Popen([program, binaries, os.path.join(self.directory.name, "run"), *arguments],
                                        stdout=self.output, stderr=subprocess.STDOUT)
        try:
            self.url = wait_for("the program's address for metrics", self.find_url)
        except AssertionError:
            self.end()
            raise

    def find_url(self):
        if self.process.poll() is not None:
            raise AssertionError(f"the program ended with {self.process.returncode}: {self.text()}")
        found = re.search(r"metrics are at (\S+)/metrics\n", self.text())
        return found and found[1]

    def text(self):
        with open(self.output.name) as file:
            return file.read()

    def metrics(self):
        return parse(get(self.url + "/metrics")[1])[0]

    def daemon(self, name):
        """The process of a daemon that it started."""
        children = subprocess.run(["pgrep", "-P", str(self.process.pid), "-x", name], capture_output=True, text=True)
        return int(children.stdout.split()[0])

    def end(self):
        self.process.kill()
        self.process.wait()
        self.output.close()
        self.directory.cleanup()


class ObservedRun:
    def __init__(self, binaries, workers=2, ps=2, settings=(), flags=(), spoil=False, local=True):
        self.directory = tempfile.TemporaryDirectory()
        self.job_dir = os.path.join(self.directory.name, "run")
        data = os.path.join(self.directory.name, "criteo-like")
        subprocess.run([f"{binaries}/coordinator", "make-data", "criteo", "--rows=4000", "--seed=1", f"--out={data}",
                        "--test_rows=100"], check=True, stdout=subprocess.DEVNULL)
        if spoil:  # every tenth line is no record
            for name in glob.glob(f"{data}/train-*.tsv.gz"):
                with gzip.open(name) as file:
                    lines = file.read().splitlines(True)
                with gzip.open(name, "w") as file:
                    file.writelines(b"bad\n" if i % 10 == 0 else line for i, line in enumerate(lines))
        self.output = open(os.path.join(self.directory.name, "output"), "w")
        self.process = subprocess.Popen(
            [f"{binaries}/coordinator", "train", "deploy/jobs/criteo_dlrm.yaml", *(["--local"] if local else []),
             f"--workers={workers}", f"--ps={ps}", f"--job_dir={self.job_dir}", "--http=0", "--log_format=json",
             "--set", "training.epochs=100000", "--set", "training.batch_size=64", "--set", "model.dlrm.bottom_mlp=[32, 16]",
             "--set", "model.dlrm.top_mlp=[32, 1]", *[part for one in settings for part in ("--set", one)], *flags],
            stdout=self.output, stderr=subprocess.STDOUT, env={**os.environ, "MUSTER_DATA": self.directory.name})
        try:
            self.url = wait_for("the coordinator's address for metrics", self.find_url)
        except AssertionError:
            self.end()
            raise

    def find_url(self):
        if self.process.poll() is not None:
            raise AssertionError(f"the coordinator ended with {self.process.returncode}: {self.text()}")
        for line in self.log("coordinator.log"):
            found = re.match(r"metrics are at (\S+)/metrics", line["message"])
            if found:
                return found[1]
        return None

    def listens_at(self):
        """HOST:PORT for calls; None: not yet."""
        found = [re.search(r" listens at (\S+)$", line["message"]) for line in self.log("coordinator.log")]
        return next((one[1] for one in found if one), None)

    def text(self):
        with open(self.output.name) as file:
            return file.read()

    def log(self, name):
        path = os.path.join(self.job_dir, "logs", name)
        if not os.path.exists(path):
            return []
        with open(path) as file:
            return [json.loads(line) for line in file if line.endswith("\n")]

    def targets(self):
        return json.loads(get(self.url + "/targets")[1])

    def metrics(self, url=None):
        status, text = get((url or self.url) + "/metrics")
        assert status == 200, (status, text)
        return parse(text)[0]

    def of(self, role):
        """The metrics of each process of this role."""
        return [self.metrics("http://" + target["targets"][0]) for target in self.targets()
                if target["labels"]["muster_role"] == role]

    def training(self, steps=20):
        wait_for("training", lambda: total(self.metrics(), "muster_coordinator_steps_total") >= steps)

    def pid(self, name):
        """Of the daemon that was started last under this name, "worker-0" say."""
        pids = [re.search(r"pid (\d+)", line["message"]) for line in self.log("coordinator.log")
                if re.match(rf"started {name} |{name} started again ", line["message"])]
        return int(pids[-1][1])

    def end(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.output.close()
        self.directory.cleanup()
