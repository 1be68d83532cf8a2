#!/usr/bin/env python3
"""What mutual TLS costs: the DLRM job in pairs of runs on a cluster of this machine, with certificates and without.

Usage: bench/tls_cost.py [--pairs=5] [--rows=300000]. Prints the throughput of each run, the medians' difference in per
cent, and the processor time per GB of messages that TLS adds. The order within a pair alternates.
"""
import argparse
import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import urllib.request

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
BIN = os.path.join(os.environ.get("MUSTER_BUILD", os.path.join(ROOT, "build")), "bin")
ROLES = {"coordinator": 1, "worker": 2, "psserver": 2}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def bytes_per_sample(url):
    """Of messages, as the metrics of all processes count them at about one moment."""
    total = samples = 0
    for target in json.load(urllib.request.urlopen(url + "/targets", timeout=5)):
        page = urllib.request.urlopen(f"http://{target['targets'][0]}/metrics", timeout=5).read().decode()
        total += sum(float(line.rsplit(" ", 1)[1]) for line in page.splitlines()
                     if line.startswith(("muster_rpc_client_received_bytes_total", "muster_rpc_client_sent_bytes_total")))
        samples += sum(float(line.rsplit(" ", 1)[1]) for line in page.splitlines()
                       if line.startswith("muster_worker_samples_total "))
    return total / samples if samples > 20000 else 0


def run(folder, data, certificates):
    port, http = free_port(), free_port()

    def flags(role):
        return [f"--tls_cert={certificates}/{role}.crt", f"--tls_key={certificates}/{role}.key",
                f"--tls_ca={certificates}/ca.crt"] if certificates else []

    report = os.path.join(folder, "report.json")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    processes = [subprocess.Popen(
        [f"{BIN}/coordinator", "train", f"{ROOT}/deploy/jobs/criteo_dlrm.yaml", f"--listen=127.0.0.1:{port}",
         "--workers=2", "--ps=2", f"--job_dir={folder}/run", f"--report={report}", f"--http={http}", *flags("coordinator")],
        stdout=subprocess.DEVNULL, env={**os.environ, "MUSTER_DATA": data})]
    for role in ("worker", "psserver"):
        for i in range(ROLES[role]):
            cache = [f"--cache_dir={data}/cache-{i}"] if role == "worker" else []
            processes.append(subprocess.Popen(
                [f"{BIN}/{role}", f"--coordinator=127.0.0.1:{port}", "--http=0", f"--log_file={folder}/{role}-{i}.log",
                 *cache, *flags(role)]))
    each = 0
    while True:
        try:
            processes[0].wait(timeout=0.5)
            break
        except subprocess.TimeoutExpired:
            try:
                each = bytes_per_sample(f"http://127.0.0.1:{http}") or each
            except OSError:
                pass  # it starts or ends
    codes = [process.wait() for process in processes]
    if any(codes):
        sys.exit(f"tls_cost.py: processes ended with {codes}; see {folder}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    with open(report) as file:
        result = json.load(file)
    return result["samples_per_second"], cpu, each * result["samples"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--rows", type=int, default=300000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        subprocess.run([f"{BIN}/coordinator", "make-data", "criteo", f"--rows={options.rows}", "--test_rows=1000", "--seed=1",
                        f"--out={work}/criteo-like"], check=True, stdout=subprocess.DEVNULL)
        certificates = f"{work}/certificates"
        subprocess.run([f"{ROOT}/deploy/make_certs.sh", certificates], check=True, stdout=subprocess.DEVNULL)
        plain, secure = [], []
        for i in range(options.pairs + 1):
            kinds = [(plain, None), (secure, certificates)]
            for j, (results, files) in enumerate(kinds if i % 2 == 0 else kinds[::-1]):
                folder = f"{work}/{i}-{j}"
                os.mkdir(folder)
                result = run(folder, work, files)
                if i == 0:
                    continue  # fills the page cache and the workers' caches
                results.append(result)
                print(f"{'TLS  ' if files else 'plain'} {result[0]:9,.0f} samples/s, {result[1]:6.1f} s of processor time, "
                      f"{result[2] / 1e9:.2f} GB", flush=True)
    speed = [statistics.median(result[0] for result in results) for results in (plain, secure)]
    cpu = [statistics.median(result[1] for result in results) for results in (plain, secure)]
    moved = statistics.median(result[2] for result in plain + secure)
    pairs = sorted(100 * (1 - s[0] / p[0]) for p, s in zip(plain, secure))
    print(f"medians: {speed[0]:,.0f} samples/s without, {speed[1]:,.0f} with TLS: {100 * (1 - speed[1] / speed[0]):.1f}% less "
          f"(pairs {pairs[0]:.1f} to {pairs[-1]:.1f}%)\n"
          f"{(cpu[1] - cpu[0]) / (moved / 1e9):.2f} s of processor time per GB of messages, both ends together")


if __name__ == "__main__":
    main()
