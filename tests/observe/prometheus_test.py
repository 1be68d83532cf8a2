"""Debian's Prometheus watches real clusters, and each alert fires in the situation that it is for.

Usage: prometheus_test.py FOLDER_OF_BINARIES LOOPING_PROGRAM. The rules are those of deploy/prometheus with their times
and thresholds made smaller.
"""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

from observed_run import ObservedProgram, ObservedRun, get, total, wait_for

BINARIES = sys.argv.pop(1) if len(sys.argv) > 1 else "build/bin"
LOOP = sys.argv.pop(1) if len(sys.argv) > 1 else "build/tests/observe/looping_program"
RULES = "deploy/prometheus/muster.rules.yml"


def quick(rules):
    rules = re.sub(r"for: \d+m", "for: 0s", rules)
    rules = re.sub(r"\[\d+[mh]\]", "[8s]", rules)
    rules = rules.replace("> 20", "> 2").replace("> 300", "> 1").replace("> 0.1 *", "> 0.001 *")
    return rules


class Prometheus:
    def __init__(self, target):
        self.folder = tempfile.TemporaryDirectory()
        path = lambda name: os.path.join(self.folder.name, name)
        with open(RULES) as file, open(path("rules.yml"), "w") as out:
            out.write(quick(file.read()))
        with open(path("prometheus.yml"), "w") as out:
            out.write(f"""
global: {{scrape_interval: 500ms, evaluation_interval: 500ms, scrape_timeout: 400ms}}
rule_files: [rules.yml]
scrape_configs:
  - job_name: muster
    http_sd_configs: [{{url: "{target}/targets", refresh_interval: 1s}}]
""")
        with socket.socket() as probe:  # it cannot tell which port it took
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self.log = open(path("log"), "w")
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={path('prometheus.yml')}", f"--storage.tsdb.path={path('data')}",
             f"--web.listen-address=127.0.0.1:{port}"], stdout=self.log, stderr=self.log)

    def ask(self, what):
        try:
            return json.loads(get(self.url + "/api/v1/" + what)[1])["data"]
        except (OSError, ValueError):
            return None  # it starts

    def value(self, query):
        answer = self.ask("query?query=" + urllib.parse.quote(query))
        return float(answer["result"][0]["value"][1]) if answer and answer["result"] else None

    def firing(self):
        answer = self.ask("alerts")
        return {alert["labels"]["alertname"] for alert in answer["alerts"] if alert["state"] == "firing"} if answer else set()

    def end(self):
        self.process.kill()
        self.process.wait()
        self.log.close()
        self.folder.cleanup()


class PrometheusTest(unittest.TestCase):
    def watch(self, **options):
        run = ObservedRun(BINARIES, **options)
        self.addCleanup(run.end)
        prometheus = Prometheus(run.url)
        self.addCleanup(prometheus.end)
        return run, prometheus

    def watch_program(self, *arguments):
        run = ObservedProgram(LOOP, BINARIES, *arguments)
        self.addCleanup(run.end)
        prometheus = Prometheus(run.url)
        self.addCleanup(prometheus.end)
        return run, prometheus

    def expect(self, prometheus, *alerts):
        seen = set()

        def all_seen():
            seen.update(prometheus.firing())
            return seen >= set(alerts)

        try:
            wait_for("alerts", all_seen, 90)
        except AssertionError:
            self.fail(f"of {sorted(alerts)} these did not fire: {sorted(set(alerts) - seen)}")

    def test_it_finds_all_processes_and_nothing_fires_while_all_is_well(self):
        run, prometheus = self.watch(settings=["checkpoint.every=1s"])
        wait_for("all processes", lambda: prometheus.value("count(up == 1)") == 5)
        wait_for("rates of the workers", lambda: (prometheus.value(
            'sum(rate(muster_worker_steps_total{muster_job="criteo-dlrm"}[8s]))') or 0) > 0)
        wait_for("bytes of servers", lambda: (prometheus.value(
            'min(rate(muster_rpc_server_received_bytes_total{muster_role="psserver", method="PsServer/Push"}[8s]))') or 0) > 0)
        begun = prometheus.value("muster_coordinator_steps_total")
        wait_for("three checkpoints, watched",
                 lambda: (prometheus.value("muster_coordinator_checkpoint_seconds_count") or 0) >= 3)
        wait_for("more steps", lambda: prometheus.value("muster_coordinator_steps_total") > begun)
        # In a short window a job's first seconds look like a stand-still.
        self.assertEqual(prometheus.firing() - {"MusterNoProgress"}, set())

    def test_losses(self):
        run, prometheus = self.watch(settings=["checkpoint.every=1s"])
        run.training()
        wait_for("all processes", lambda: prometheus.value("count(up == 1)") == 5)
        wanted = {"MusterMembersLostOften", "MusterWorkRepeated", "MusterUpdatesLost", "MusterServersMissing",
                  "MusterWorkersMissing", "MusterProcessUnreachable"}
        # The more often one is killed, the longer its supervisor waits before it starts the next.
        os.kill(run.pid("worker-1"), signal.SIGSTOP)  # does not answer, then counts as lost and is replaced
        seen = set()

        def kill_until_seen():
            seen.update(prometheus.firing())
            for name in ("psserver-1", "worker-0"):
                try:
                    os.kill(run.pid(name), signal.SIGKILL)
                except ProcessLookupError:
                    pass  # the next one has not started yet
            seen.update(prometheus.firing())
            return seen >= wanted - {"MusterWorkRepeated", "MusterUpdatesLost"}

        try:
            wait_for("losses to be told", kill_until_seen, 90)
            run.training(1)
            wait_for("repeats to be told", lambda: seen.update(prometheus.firing()) or seen >= wanted, 60)
        except AssertionError:
            self.fail(f"these did not fire: {sorted(wanted - seen)}")

    def test_checkpoints_fail_and_memory_runs_out(self):
        os.environ["MUSTER_PSSERVER_APPLIED_MEMORY"] = "0.05"
        self.addCleanup(os.environ.pop, "MUSTER_PSSERVER_APPLIED_MEMORY")
        run, prometheus = self.watch(settings=["checkpoint.every=1s"])
        wait_for("a checkpoint", lambda: total(run.metrics(), "muster_coordinator_checkpoint_seconds_count") > 0)
        checkpoints = os.path.join(run.job_dir, "checkpoints")
        shutil.move(checkpoints, checkpoints + "-away")
        with open(checkpoints, "w") as file:
            file.write("no folder")
        self.expect(prometheus, "MusterCheckpointsFail", "MusterUpdatesPaused", "MusterServerMemoryForUpdates",
                    "MusterNoProgress")
        os.remove(checkpoints)
        shutil.move(checkpoints + "-away", checkpoints)
        paused = total(run.metrics(), "muster_coordinator_steps_total")
        wait_for("the training to go on", lambda: total(run.metrics(), "muster_coordinator_steps_total") > paused + 10)
        wait_for("the alerts to end", lambda: not prometheus.firing() & {"MusterUpdatesPaused", "MusterCheckpointsFail"})

    def test_slow_steps_and_bad_records(self):
        os.environ["MUSTER_WORKER_SLOW_DOWN"] = "3000"
        self.addCleanup(os.environ.pop, "MUSTER_WORKER_SLOW_DOWN")
        run, prometheus = self.watch(settings=["data.train.on_bad_record=skip"], spoil=True)
        self.expect(prometheus, "MusterWorkerStands", "MusterBadRecords")

    def test_a_program_with_a_loop_of_its_own_whose_functions_fail(self):
        run, prometheus = self.watch_program("errors")
        self.expect(prometheus, "MusterFunctionErrors")
        self.assertGreater(total(run.metrics(), "muster_coordinator_function_errors_total", kind="user"), 0)

    def test_a_program_with_a_loop_of_its_own_that_stands_still(self):
        run, prometheus = self.watch_program()
        wait_for("steps", lambda: (prometheus.value("increase(muster_coordinator_steps_total[8s])") or 0) > 0)
        self.assertEqual(prometheus.firing() - {"MusterNoProgress"}, set())
        wait_for("progress to be seen", lambda: not prometheus.firing())
        os.kill(run.daemon("worker"), signal.SIGSTOP)  # it counts as lost later than the alert fires
        self.expect(prometheus, "MusterNoProgress")
        run.process.kill()
        self.expect(prometheus, "MusterCoordinatorUnreachable")

    def test_callers_without_a_good_certificate(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["deploy/make_certs.sh", folder], check=True, stdout=subprocess.DEVNULL)
            tls = [f"--tls_cert={folder}/coordinator.crt", f"--tls_key={folder}/coordinator.key", f"--tls_ca={folder}/ca.crt"]
            run = ObservedRun(BINARIES, local=False, flags=["--listen=127.0.0.1:0", *tls])
            self.addCleanup(run.end)
            prometheus = Prometheus(run.url)
            self.addCleanup(prometheus.end)
            address = wait_for("its address for calls", run.listens_at)
            ask = lambda *flags: subprocess.run([f"{BINARIES}/coordinator", "health", address, "--service=live", *flags],
                                                capture_output=True).returncode
            self.assertEqual(ask(*tls), 0)
            wait_for("it to be watched", lambda: prometheus.value("muster_tls_refused_total") == 0)
            self.assertNotIn("MusterCallersRefused", prometheus.firing())
            self.assertEqual(ask(), 4)
            self.expect(prometheus, "MusterCallersRefused")


if __name__ == "__main__":
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    if shutil.which("prometheus") is None:
        print("skipped: Prometheus is not installed (Debian: prometheus)")
        sys.exit(77)
    unittest.main()
