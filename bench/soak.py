#!/usr/bin/env python3
"""Whether memory stays flat over hours with faults: one job on local processes with --chaos, stopped after MINUTES.

Samples RssAnon of the coordinator and of every daemon, and prints what each had after its warm-up and at the end. A
daemon that is killed starts anew, so daemons are judged by the longest lives. Exits 1 if a process grew by more than
the limit per hour. Usage: bench/soak.py MINUTES [--samples=FILE.csv] [--allocator=FILE.csv]
"""
import argparse
import json
import os
import pathlib
import signal
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
WARM_UP = 300  # seconds: caches, read-ahead and allocators are full by then
MB_PER_HOUR = 8
JUDGED = 3600  # seconds of a life: a worker's memory goes up and down by leases of 13 MB, 20 MB/h and more in shorter ones
# Ends are so rare that some daemons live for nearly half of the run: memory is judged by the longest lives. (A hang of
# 15 s ends in a kill of one worker, too.)
CHAOS = ("worker:kill:every={rare}m,worker:hang:every=13m:for=15s,worker:drain:every={rare}m,"
         "ps:kill:every={rare}m,ps:drain:every={rare}m,seed=11")
JOB = """\
name: soak
seed: 1
data:
  train: {{format: criteo_tsv, files: ["{work}/data/train-*"], shuffle: {{records: 50000}}}}
model:
  dlrm: {{embedding_dim: 16, hash_buckets: 20000, bottom_mlp: [64, 16], top_mlp: [64, 1]}}
optimizer:
  adagrad: {{learning_rate: 0.02}}
training: {{epochs: 1000000, batch_size: 256, steps_per_function: 4}}
checkpoint: {{every: 30s}}
"""


def anonymous_kb(pid):
    """RssAnon of a process, and when it started; None if it is gone."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        started = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
        return int(status.split("RssAnon:")[1].split()[0]), started
    except (OSError, IndexError):
        return None


def children(pid):
    try:
        tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
        found = [child for task in tasks for child in (task / "children").read_text().split()]
        return [(int(c), pathlib.Path(f"/proc/{c}/comm").read_text().strip()) for c in found]
    except OSError:
        return []


def mb_per_hour(samples):
    """The slope between the medians of the first and the last third, in MB/h; samples are (second, kB)."""
    third = max(1, len(samples) // 3)
    first, last = samples[:third], samples[-third:]
    hours = (statistics.mean(t for t, _ in last) - statistics.mean(t for t, _ in first)) / 3600
    growth = statistics.median(kb for _, kb in last) - statistics.median(kb for _, kb in first)
    return growth / 1024 / hours if hours > 0 else float("nan")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("minutes", type=float)
    parser.add_argument("--samples", help="every sample, as CSV: second, process, role, kB")
    parser.add_argument("--allocator", help="what the allocator of each process handed out (bench/allocator_log.cc)")
    options = parser.parse_args()
    build = pathlib.Path(os.environ.get("MUSTER_BUILD", ROOT / "build"))
    binary = build / "bin" / "coordinator"
    environment = dict(os.environ)
    if options.allocator:
        environment["LD_PRELOAD"] = str((build / "bench" / "liballocator_log.so").resolve(strict=True))
        environment["MUSTER_ALLOCATOR_LOG"] = str(pathlib.Path(options.allocator).resolve())
    chaos = CHAOS.format(rare=max(8, int(options.minutes // 2)))
    lives = {}  # (role, pid, start) -> [(second, kB)]
    with tempfile.TemporaryDirectory() as work:
        subprocess.run([binary, "make-data", "criteo", "--rows=200000", f"--out={work}/data"], check=True,
                       stdout=subprocess.DEVNULL)
        pathlib.Path(f"{work}/job.yaml").write_text(JOB.format(work=work))
        # As they come: a run of hours that is broken off has still measured something.
        with open(f"{work}/out", "w") as out, open(options.samples or os.devnull, "w", buffering=1) as table:
            run = subprocess.Popen([binary, "train", f"{work}/job.yaml", "--local", "--workers=3", "--ps=2",
                                    f"--job_dir={work}/run", f"--report={work}/report.json", f"--chaos={chaos}"],
                                   stdout=out, stderr=out, env=environment)
            begin = time.monotonic()
            while time.monotonic() - begin < 60 * options.minutes and run.poll() is None:
                for pid, role in [(run.pid, "coordinator")] + children(run.pid):
                    sample = anonymous_kb(pid)
                    if sample and role in ("coordinator", "worker", "psserver"):
                        second = time.monotonic() - begin
                        lives.setdefault((role, pid, sample[1]), []).append((second, sample[0]))
                        table.write(f"{second:.0f},{pid},{role},{sample[0]}\n")
                time.sleep(5)
            ended_early = run.poll() is not None
            run.send_signal(signal.SIGINT)
            run.wait(timeout=120)
        if ended_early or not os.path.exists(f"{work}/report.json"):
            raise SystemExit(pathlib.Path(f"{work}/out").read_text()[-3000:])
        report = json.loads(pathlib.Path(f"{work}/report.json").read_text())
    print(f"{options.minutes:.0f} minutes, {report['functions']:,} functions, {report['steps']:,} steps, "
          f"{report['failure_totals']['failures']} failures, {report['failure_totals']['left']} left")
    grew = False
    roles_judged = set()
    for role in ("coordinator", "worker", "psserver"):
        longest = sorted((v for k, v in lives.items() if k[0] == role), key=lambda v: v[0][0] - v[-1][0])[:3]
        for samples in longest:
            settled = [s for s in samples if s[0] - samples[0][0] >= WARM_UP]
            if len(settled) < 60:
                continue
            slope = mb_per_hour(settled)
            # A short life's slope is mostly noise; a leak shows in the long ones.
            judged = settled[-1][0] - settled[0][0] >= JUDGED
            roles_judged |= {role} if judged else set()
            grew = grew or (judged and slope > MB_PER_HOUR)
            print(f"{role:12s} lived {(samples[-1][0] - samples[0][0]) / 60:5.1f} min: "
                  f"{settled[0][1] / 1024:6.1f} MB after warm-up, {settled[-1][1] / 1024:6.1f} MB at its end, "
                  f"most {max(kb for _, kb in settled) / 1024:6.1f} MB, {slope:+.1f} MB/h"
                  + ("" if judged else " (too short to judge)"))
    if grew:
        raise SystemExit(f"memory grew by more than {MB_PER_HOUR} MB an hour")
    if len(roles_judged) < 3:
        raise SystemExit(f"no {', '.join(sorted({'coordinator', 'worker', 'psserver'} - roles_judged))} lived for an hour: "
                         "nothing is known of it; choose more MINUTES")


if __name__ == "__main__":
    main()
