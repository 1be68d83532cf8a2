"""The alert rules, the dashboard and docs/metrics.md fit together; promtool agrees with the rules."""
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
RULES = os.path.join(ROOT, "deploy/prometheus/muster.rules.yml")


def read(*parts):
    with open(os.path.join(ROOT, *parts)) as file:
        return file.read()


def documented():
    """Names of samples: a histogram has three for each."""
    names = set()
    for name, kind in re.findall(r"^\| `(\w+)` \| (counter|gauge|histogram) \|", read("docs/metrics.md"), re.MULTILINE):
        names |= {name + "_bucket", name + "_sum", name + "_count"} if kind == "histogram" else {name}
    return names


def metrics_in(text):
    return set(re.findall(r"\b(?:muster|process)_\w+", text)) - {"muster_job", "muster_role", "muster_index"}


class RulesTest(unittest.TestCase):
    def setUp(self):
        self.alerts = re.findall(r"- alert: (\w+)", read("deploy/prometheus/muster.rules.yml"))

    def test_rules_use_documented_metrics(self):
        expressions = re.sub(r"(summary|runbook):.*|# .*", "", read("deploy/prometheus/muster.rules.yml"))
        self.assertEqual(metrics_in(expressions) - documented(), set())

    def test_each_alert_has_a_remedy_and_a_test(self):
        headings = re.findall(r"^### (\w+)$", read("docs/metrics.md"), re.MULTILINE)
        self.assertEqual(headings, self.alerts)
        tests = read("tests/observe/alerts.yml")
        for alert in self.alerts:
            self.assertIn(f"#{alert.lower()}\"", read("deploy/prometheus/muster.rules.yml"))
            self.assertRegex(tests, rf"alertname: {alert}\n\s+exp_alerts")  # it fires
            self.assertRegex(tests, rf"alertname: {alert}}}")  # and once it does not

    def test_the_dashboard_uses_documented_metrics(self):
        dashboard = json.loads(read("deploy/grafana/muster.json"))
        panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
        self.assertGreater(len(panels), 10)
        used = set()
        for panel in panels:
            self.assertTrue(panel["targets"], panel["title"])
            self.assertTrue(panel.get("description"), panel["title"])
            for target in panel["targets"]:
                self.assertIn("$job", target["expr"], panel["title"])
                self.assertEqual(target["datasource"], {"type": "prometheus", "uid": "${source}"})
                used |= metrics_in(target["expr"])
        self.assertEqual(used - documented(), set())
        self.assertEqual({variable["name"] for variable in dashboard["templating"]["list"]}, {"source", "job"})
        self.assertEqual(len({panel["id"] for panel in dashboard["panels"]}), len(dashboard["panels"]))

    @unittest.skipIf(shutil.which("promtool") is None, "promtool is not installed (Debian: prometheus)")
    def test_promtool(self):
        with tempfile.TemporaryDirectory() as folder:
            for file in (RULES, os.path.join(ROOT, "deploy/prometheus/prometheus.yml"),
                         os.path.join(ROOT, "tests/observe/alerts.yml")):
                shutil.copy(file, folder)
            for command in (["check", "config", "prometheus.yml"], ["test", "rules", "alerts.yml"]):
                result = subprocess.run(["promtool", *command], cwd=folder, capture_output=True, text=True)
                self.assertEqual(result.returncode, 0, result.stdout + result.stderr)


if __name__ == "__main__":
    unittest.main()
