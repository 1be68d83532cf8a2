"""bench/chaos_report.py over hand-made reports: a good one passes, and each thing that may be wrong is found.

Run: python3 tests/conformance/chaos_report_test.py
"""
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPT = os.path.join(ROOT, "bench", "chaos_report.py")


def failure(role, recovered_ms):
    return {"role": role, "index": 0, "kind": "died", "at_seconds": 1.5, "detected_ms": 1500,
            "recovered_ms": recovered_ms, "steps_repeated": 3, "updates_rolled_back": 5, "samples_repeated": 7, "message": ""}


def write_checkpoint(directory, updates):
    os.makedirs(directory)
    header = {"__metadata__": {"format": "muster"}}
    for i, name in enumerate(updates):
        header[name] = {"dtype": "I64", "shape": [], "data_offsets": [8 * i, 8 * i + 8]}
    text = json.dumps(header).encode()
    with open(os.path.join(directory, "ps-0.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + struct.pack(f"<{len(updates)}q", *updates.values()))


class ChaosReportTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.work = self.folder.name
        self.updates = {"tables/t/0/updates": 40, "variables/w/0/updates": 10}
        self.calm = {"samples": 200, "steps": 10, "eval": {"auc": 0.75}, "train_seconds": 2.0, "failures": [],
                     "checkpoint": self.work + "/calm-1/ckpt"}
        self.chaos = dict(self.calm, train_seconds=3.0, checkpoint=self.work + "/chaos/ckpt",
                          failures=[failure("worker", 40), failure("worker", None), failure("psserver", 100)])
        self.log = ["chaos: kills worker-0 (pid 1)", "chaos: kills worker-1 (pid 2)", "chaos: kills psserver-0 (pid 3)"]

    def tearDown(self):
        self.folder.cleanup()

    def run_script(self, chaos_updates=None):
        write_checkpoint(self.calm["checkpoint"], self.updates)
        write_checkpoint(self.chaos["checkpoint"], chaos_updates or self.updates)
        os.makedirs(self.work + "/chaos/logs")
        for name, report in (("calm-1", self.calm), ("chaos", self.chaos)):
            with open(f"{self.work}/{name}.json", "w", encoding="utf-8") as file:
                json.dump(report, file)
        with open(self.work + "/chaos/logs/coordinator.log", "w", encoding="utf-8") as file:
            file.write("\n".join(self.log))
        return subprocess.run([sys.executable, SCRIPT, self.work, "100", "2", "2", "1", "all"],
                              capture_output=True, text=True, check=False)

    def expect_wrong(self, run, what):
        self.assertEqual(run.returncode, 1, run.stdout + run.stderr)
        self.assertIn(f"WRONG: {what}", run.stderr)

    def test_good_run(self):
        run = self.run_script()
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn("worker died: 2, back after p50 40 ms, p99 40 ms, never 1; steps repeated 6, "
                      "updates rolled back 10, samples repeated 14", run.stdout)
        self.assertIn("psserver died: 1, back after p50 100 ms, p99 100 ms, never 0;", run.stdout)

    def test_a_kill_too_few(self):
        self.log.pop(0)
        self.expect_wrong(self.run_script(), "kills of worker processes")

    def test_no_kill_of_a_server(self):
        self.log.pop()
        self.expect_wrong(self.run_script(), "kills of psserver processes")

    def test_a_kill_too_many(self):
        self.log.append("chaos: kills worker-3 (pid 9)")
        self.expect_wrong(self.run_script(), "kills of worker processes")

    def test_samples_and_steps(self):
        self.chaos.update(samples=199, steps=11)
        self.expect_wrong(self.run_script(), "samples, steps")

    def test_an_update_too_many(self):
        self.expect_wrong(self.run_script({"tables/t/0/updates": 41, "variables/w/0/updates": 9}),
                          "partitions whose count differs")

    def test_auc(self):
        self.chaos["eval"] = {"auc": 0.7475}
        self.expect_wrong(self.run_script(), "AUC")

    def test_a_ledger_without_a_key(self):
        del self.chaos["failures"][2]["steps_repeated"]
        run = self.run_script()
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("KeyError: 'steps_repeated'", run.stderr)


if __name__ == "__main__":
    unittest.main()
