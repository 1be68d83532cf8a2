"""What a running cluster shows over HTTP and in its logs. Usage: metrics_test.py FOLDER_OF_BINARIES"""
import os
import re
import shutil
import signal
import subprocess
import sys
import unittest

from observed_run import ObservedRun, get, parse, total, wait_for

BINARIES = sys.argv.pop(1)
# In docs/metrics.md they are rows of tables: | `name` | type | ... |
DOCUMENTED = re.compile(r"^\| `(\w+)` \| (counter|gauge|histogram) \|", re.MULTILINE)


class MetricsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.run_ = ObservedRun(BINARIES, workers=3, settings=["checkpoint.every=1s"])
        cls.addClassCleanup(cls.run_.end)
        cls.run_.training()

    def test_one_address_leads_to_all_processes(self):
        targets = self.run_.targets()
        roles = sorted((target["labels"]["muster_role"], target["labels"].get("muster_index")) for target in targets)
        self.assertEqual(roles, [("coordinator", None), ("psserver", "0"), ("psserver", "1"), ("worker", "0"),
                                 ("worker", "1"), ("worker", "2")])
        self.assertIn([self.run_.url.removeprefix("http://")], [target["targets"] for target in targets])
        for target in targets:
            self.assertEqual(target["labels"]["muster_job"], "criteo-dlrm")
            self.assertEqual(target["labels"]["__scheme__"], "http")
            # Of the same name as a metric's own, Prometheus would rename the metric's.
            own = {label for samples in self.run_.metrics(f"http://{target['targets'][0]}").values()
                   for labels, _ in samples for label in labels}
            self.assertEqual(own & set(target["labels"]), set())
            self.assertEqual(get(f"http://{target['targets'][0]}/healthz"), (200, "ok\n"))

    def test_the_figures_belong_together(self):
        workers, servers = self.run_.of("worker"), self.run_.of("psserver")
        coordinator = self.run_.metrics()
        # Asked later: nothing is counted here that has not happened there.
        executed = sum(total(one, "muster_worker_steps_total") for one in workers)
        self.assertGreater(executed, 0)
        self.assertGreaterEqual(total(coordinator, "muster_coordinator_steps_total") + 1000, executed)
        self.assertEqual(total(coordinator, "muster_coordinator_members", role="worker", state="ready"), 3)
        self.assertEqual(total(coordinator, "muster_coordinator_members_wanted", role="psserver"), 2)
        self.assertEqual(total(coordinator, "muster_coordinator_members_wanted", role="worker"), 3)
        self.assertEqual(total(coordinator, "muster_job_info", phase="training"), 1)
        for worker in workers:
            self.assertGreater(total(worker, "muster_worker_samples_total"), 64)
            self.assertGreater(total(worker, "muster_worker_step_seconds_count"), 1)
            self.assertGreater(total(worker, "muster_worker_tensor_bytes"), 1000)
            pulls = total(worker, "muster_rpc_client_seconds_count", method="PsServer/Pull")
            self.assertGreater(pulls, 1)
            self.assertGreater(total(worker, "muster_rpc_client_received_bytes_total", method="PsServer/Pull"), pulls * 64)
        for server in servers:
            self.assertGreater(total(server, "muster_ps_rows"), 100)
            self.assertGreater(total(server, "muster_ps_value_bytes"), 100 * 64)
            self.assertGreater(total(server, "muster_ps_pushes_applied_total"), 1)
            self.assertGreater(total(server, "muster_ps_pull_seconds_count"), 1)
            self.assertGreater(total(server, "muster_rpc_server_received_bytes_total", method="PsServer/Push"), 1000)
            self.assertGreater(total(server, "muster_ps_applied_memory_limit_bytes"), 1 << 20)
            self.assertEqual(len(server["muster_ps_generation"]), 1)

    def test_rises_while_it_trains(self):
        before = self.run_.metrics()
        wait_for("more steps", lambda: total(self.run_.metrics(), "muster_coordinator_samples_total")
                 > total(before, "muster_coordinator_samples_total"))
        wait_for("a checkpoint", lambda: total(self.run_.metrics(), "muster_coordinator_checkpoint_seconds_count") > 0)
        after = self.run_.metrics()
        self.assertGreater(total(after, "muster_coordinator_last_checkpoint_timestamp_seconds"), 1.7e9)
        self.assertGreater(total(after, "muster_coordinator_last_checkpoint_bytes"), 1000)

    def test_z_a_lost_worker_is_counted(self):
        os.kill(self.run_.pid("worker-1"), signal.SIGKILL)
        lost = lambda: total(self.run_.metrics(), "muster_coordinator_members_lost_total", role="worker")
        wait_for("the loss", lambda: lost() == 1)
        wait_for("the worker that takes its place", lambda: len(self.run_.of("worker")) == 3)
        wait_for("it to work", lambda: all(total(one, "muster_worker_steps_total") > 0 for one in self.run_.of("worker")))
        os.kill(self.run_.pid("psserver-1"), signal.SIGKILL)
        wait_for("the recovery", lambda: total(self.run_.metrics(), "muster_coordinator_recovery_seconds_count") == 1)
        metrics = self.run_.metrics()
        self.assertEqual(total(metrics, "muster_coordinator_members_lost_total", role="psserver"), 1)
        self.assertEqual(total(metrics, "muster_coordinator_recovering"), 0)
        self.assertEqual([total(one, "muster_ps_generation") for one in self.run_.of("psserver")], [2, 2])
        self.assertGreater(total(metrics, "muster_coordinator_recovery_seconds_sum"), 0)

    def test_all_metrics_are_documented_and_no_others(self):
        self.run_.metrics()
        with open("docs/metrics.md") as file:
            documented = dict(DOCUMENTED.findall(file.read()))
        seen = {}
        for target in self.run_.targets():
            seen.update(parse(get(f"http://{target['targets'][0]}/metrics")[1])[1])
        self.assertEqual({name: kind for name, kind in seen.items() if documented.get(name) != kind}, {})
        # What this run has had no reason to show.
        rare = {"muster_rpc_client_failures_total", "muster_rpc_server_failures_total",
                "muster_coordinator_members_lost_total", "muster_coordinator_function_errors_total",
                "muster_coordinator_checkpoint_failures_total", "muster_coordinator_recovery_seconds",
                "muster_coordinator_checkpoint_seconds", "muster_coordinator_last_checkpoint_timestamp_seconds",
                "muster_coordinator_last_checkpoint_bytes", "muster_ps_value_limit_bytes",
                "muster_tls_refused_total", "muster_worker_tensor_limit_bytes"}
        self.assertEqual(set(documented) - set(seen) - rare, set())

    def test_promtool_accepts_every_page(self):
        if shutil.which("promtool") is None:
            self.skipTest("promtool is not installed (Debian: prometheus)")
        for target in self.run_.targets():
            page = get(f"http://{target['targets'][0]}/metrics")[1]
            checked = subprocess.run(["promtool", "check", "metrics"], input=page, text=True, capture_output=True)
            self.assertEqual((checked.returncode, checked.stdout + checked.stderr), (0, ""))

    def test_logs_are_objects_that_say_whose_they_are(self):
        files = os.listdir(os.path.join(self.run_.job_dir, "logs"))
        self.assertEqual(sorted(files), ["coordinator.log", "psserver-0.log", "psserver-1.log", "worker-0.log",
                                         "worker-1.log", "worker-2.log"])
        for name in files:
            lines = self.run_.log(name)
            self.assertTrue(lines, name)
            for line in lines:
                self.assertIn(line["level"], ("info", "warn", "error"))
                self.assertEqual(line["role"], name.split("-")[0].split(".")[0])
            self.assertEqual(lines[-1]["job"], "criteo-dlrm")
            self.assertEqual(lines[-1]["epoch"], 1)
            if name != "coordinator.log":
                self.assertEqual(lines[-1]["index"], int(name.split("-")[1].split(".")[0]))


if __name__ == "__main__":
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    unittest.main()
