"""bench/staleness.py: where it looks for MNIST, and what it says if there is none.

Run: python3 tests/conformance/staleness_test.py
"""
import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BENCH = os.path.join(ROOT, "bench", "staleness.py")


class DataTest(unittest.TestCase):
    def folder(self, **environment):
        with mock.patch.dict(os.environ, environment):
            if not environment:
                os.environ.pop("MUSTER_DATA", None)
            spec = importlib.util.spec_from_file_location("staleness", BENCH)
            staleness = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(staleness)
        return os.path.normpath(staleness.DATA)

    def test_it_is_where_fetch_data_puts_it(self):
        self.assertEqual(os.path.join(ROOT, "data"), self.folder())
        self.assertEqual(os.path.join(ROOT, "data"), self.folder(MUSTER_DATA=""))
        self.assertEqual("/elsewhere", self.folder(MUSTER_DATA="/elsewhere"))

    def test_without_it_the_remedy_is_said_before_anything_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            results = os.path.join(folder, "results.json")
            run = subprocess.run([sys.executable, BENCH, results, "--workers=1", "--seeds=1"], capture_output=True, text=True,
                                 env={**os.environ, "MUSTER_DATA": folder, "MUSTER_BUILD": folder}, check=False)
            self.assertEqual(1, run.returncode)
            self.assertEqual(f"there is no {folder}/mnist/train-images-idx3-ubyte.gz; run `deploy/fetch_data.sh mnist`, or say "
                             "with MUSTER_DATA which folder has mnist\n", run.stderr)
            self.assertFalse(os.path.exists(results))


if __name__ == "__main__":
    unittest.main()
