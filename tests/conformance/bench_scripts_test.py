"""bench/soak_models.sh and bench/chaos.sh with a coordinator that only says how it was called: which options it gets, and
whose folder a relative path is below.

Run: python3 tests/conformance/bench_scripts_test.py
"""
import json
import os
import stat
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Writes its arguments down, one call a line. Trains nothing.
COORDINATOR = """#!{python}
import json, os, sys
with open({calls!r}, "a") as calls:
    calls.write(json.dumps([os.getcwd()] + sys.argv[1:]) + "\\n")
sys.exit(1 if sys.argv[1] == "train" else 0)
"""


class ScriptTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = os.path.realpath(holder.name)
        self.calls = os.path.join(self.folder, "calls")
        os.makedirs(self.path("build/bin"))
        with open(self.path("build/bin/coordinator"), "w", encoding="utf-8") as file:
            file.write(COORDINATOR.format(python=sys.executable, calls=self.calls))
        os.chmod(self.path("build/bin/coordinator"), stat.S_IRWXU)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_script(self, name, *args, **environment):
        """In the folder of this test; returns the calls of the coordinator, each with the folder that it was made in."""
        run = subprocess.run(["bash", os.path.join(ROOT, "bench", name), *args], cwd=self.folder, capture_output=True,
                             text=True, check=False,
                             env={**os.environ, "MUSTER_BUILD": self.path("build"), **environment})
        self.assertTrue(os.path.exists(self.calls), run.stderr)
        with open(self.calls, encoding="utf-8") as file:
            return [json.loads(line) for line in file]


class SoakModelsTest(ScriptTest):
    def soak(self, *args):
        os.makedirs(self.path("data/mnist"), exist_ok=True)
        with open(self.path("data/mnist/train-images-idx3-ubyte.gz"), "w", encoding="utf-8"):
            pass
        calls = self.run_script("soak_models.sh", "record", *args, MUSTER_DATA="data")
        self.assertEqual("soak", calls[-1][1])
        return calls[-1]

    def test_paths_are_the_callers(self):
        call = self.soak()
        self.assertEqual(self.folder, call[0])
        self.assertIn("--record=" + self.path("record"), call)
        self.assertIn("--prices=" + self.path("record/prices.yaml"), call)
        with open(self.path("record/jobs/mnist_cnn.yaml"), encoding="utf-8") as file:
            self.assertIn(self.path("data/mnist/"), file.read())

    def test_what_is_given_takes_the_place_of_a_default(self):
        given = ["--local", "--workers=1", "--ps", "1", "--preempt=worker:kill:every=5s", "--for=1m", "--record=other",
                 "--prices=mine.yaml"]
        call = self.soak(*given)
        self.assertEqual(given, call[-len(given):])
        names = [word.split("=")[0] for word in call if word.startswith("--")]
        self.assertCountEqual(set(names), names)

    def test_another_option_replaces_none(self):
        call = self.soak("--preempt_command=true")
        self.assertIn("--preempt=worker:kill:every=20s,ps:kill:every=3m", call)
        self.assertIn("--workers=3", call)


class ChaosTest(ScriptTest):
    def test_a_folder_that_is_kept_is_the_callers(self):
        calls = self.run_script("chaos.sh", "--short", KEEP="kept")
        self.assertIn("--out=" + self.path("kept/data"), calls[0])
        self.assertEqual(["train", self.path("kept/job.yaml")], calls[1][1:3])
        with open(self.path("kept/job.yaml"), encoding="utf-8") as file:
            self.assertIn('"' + self.path("kept/data/train-*") + '"', file.read())


if __name__ == "__main__":
    unittest.main()
