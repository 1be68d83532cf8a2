"""Rendered objects of deploy/kubernetes, and what Kubernetes would make of them."""
import os
import re
import shutil
import subprocess
import tempfile

import yaml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(ROOT, "deploy", "kubernetes")
OVERLAYS = sorted(name for name in os.listdir(FOLDER)
                  if os.path.exists(os.path.join(FOLDER, name, "kustomization.yaml")))
CERTIFICATES = os.path.join(FOLDER, "cert-manager", "certificates")  # the component


def why_not():
    """Why nothing can be rendered here; empty: it can."""
    if shutil.which("kubectl") is None:
        return "there is no kubectl"
    version = subprocess.run(["kubectl", "version", "--client"], capture_output=True, text=True).stdout
    found = re.search(r"Kustomize Version: v(\d+)", version)
    return "" if found and int(found[1]) >= 5 else "this kubectl has no kustomize of version 5 or later"


def render(overlay):
    done = subprocess.run(["kubectl", "kustomize", os.path.join(FOLDER, overlay)], capture_output=True, text=True)
    if done.returncode != 0:
        raise ValueError(f"{overlay}: {done.stderr}")
    return [thing for thing in yaml.safe_load_all(done.stdout) if thing]


def render_own(text, files=None):
    """What a user's kustomization.yaml renders to, in which PATH is the tree; `files`: name -> text, beside it."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in {"kustomization.yaml": text, **(files or {})}.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(content.replace("PATH", os.path.relpath(ROOT, os.path.realpath(folder))))
        return render(folder)


def pod_templates(objects):
    """(kind, name, spec of the Job or StatefulSet, template of its pods) for all; of a JobSet for each of its Jobs."""
    for thing in objects:
        name, spec = thing["metadata"]["name"], thing.get("spec", {})
        if thing["kind"] in ("Job", "StatefulSet", "Deployment"):
            yield thing["kind"], name, spec, spec["template"]
        if thing["kind"] == "JobSet":
            for job in spec["replicatedJobs"]:
                inner = job["template"]["spec"]
                yield "Job", f"{name}-{job['name']}", inner, inner["template"]


def after_exit(kind, policy, exit_code, disrupted=False):
    """What happens when a pod has ended. A StatefulSet or a Deployment has it again: Restart. A Job does one of Complete,
    FailJob, Ignore (which makes a new pod as well) and Count, by the first rule that matches (see
    https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-failure-policy). Only 0 completes."""
    if kind != "Job":
        return "Restart"
    if exit_code == 0:
        return "Complete"
    for rule in (policy or {}).get("rules", []):
        codes = rule.get("onExitCodes")
        if codes and (exit_code in codes["values"]) == (codes["operator"] == "In"):
            return rule["action"]
        if disrupted and any(c["type"] == "DisruptionTarget" for c in rule.get("onPodConditions", [])):
            return rule["action"]
    return "Count"
