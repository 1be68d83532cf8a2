#!/usr/bin/env python3
"""The figures of docs/deploy.md, "Sizing", measured on this machine by the metrics of a run of the DLRM job.

Usage: bench/sizing.py [--rows=200000]. Processor time of each role for a million samples, bytes moved for a sample, and how many
workers keep one server busy.
"""
import argparse
import json
import os
import re
import subprocess
import tempfile
import urllib.request

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
BIN = os.path.join(os.environ.get("MUSTER_BUILD", os.path.join(ROOT, "build")), "bin")


def get(url):
    return urllib.request.urlopen(url, timeout=5).read().decode()


def value(page, name, *labels):
    return sum(float(line.rsplit(" ", 1)[1]) for line in page.splitlines()
               if re.match(name + r"[{ ]", line) and all(label in line for label in labels))


def look(url):
    """What all processes say at about one moment, by role."""
    roles = {}
    for target in json.loads(get(url + "/targets")):
        page = get(f"http://{target['targets'][0]}/metrics")
        role = roles.setdefault(target["labels"]["muster_role"], {})
        for key, found in {
                "cpu": value(page, "process_cpu_seconds_total"), "rows": value(page, "muster_ps_rows"),
                "samples": value(page, "muster_coordinator_samples_total"),
                "pulled": value(page, "muster_rpc_client_received_bytes_total", "PsServer/Pull"),
                "pushed": value(page, "muster_rpc_client_sent_bytes_total", "PsServer/Push")}.items():
            role[key] = role.get(key, 0) + found
    return roles


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        subprocess.run([f"{BIN}/coordinator", "make-data", "criteo", f"--rows={options.rows}", "--test_rows=1000", "--seed=1",
                        f"--out={work}/criteo-like"], check=True, stdout=subprocess.DEVNULL)
        process = subprocess.Popen(
            [f"{BIN}/coordinator", "train", f"{ROOT}/deploy/jobs/criteo_dlrm.yaml", "--local", "--workers=2", "--ps=2",
             f"--job_dir={work}/run", "--http=0", "--set", "training.epochs=3"], stdout=subprocess.DEVNULL,
            env={**os.environ, "MUSTER_DATA": work})
        log, url, looks = f"{work}/run/logs/coordinator.log", None, []
        while process.poll() is None:
            try:
                process.wait(timeout=1)
            except subprocess.TimeoutExpired:
                pass
            if url is None and os.path.exists(log):
                with open(log) as file:
                    found = re.search(r"metrics are at (\S+)/metrics", file.read())
                url = found and found[1]
            try:
                if url and len(roles := look(url)) == 3:
                    looks.append(roles)
            except OSError:
                pass  # it ends
    full = [one for one in looks if one["coordinator"]["samples"] > 0.2 * 3 * options.rows]
    first, last = full[0], full[-1]
    millions = (last["coordinator"]["samples"] - first["coordinator"]["samples"]) / 1e6
    spent = {role: (last[role]["cpu"] - first[role]["cpu"]) / millions for role in last}
    server = last["psserver"]
    print(f"""{last['coordinator']['samples'] / 1e6:.2f} million samples, {server['rows'] / 1e6:.2f} million rows of 16 values with Adagrad
processor time for a million samples: workers {spent['worker']:.1f} s, servers {spent['psserver']:.1f} s, coordinator {spent['coordinator']:.1f} s
moved for a sample: {(last['worker']['pulled'] - first['worker']['pulled']) / millions / 1e6:.0f} bytes pulled, {(last['worker']['pushed'] - first['worker']['pushed']) / millions / 1e6:.0f} pushed
one server for {spent['worker'] / spent['psserver']:.1f} workers, with as many cores each""")


if __name__ == "__main__":
    main()
