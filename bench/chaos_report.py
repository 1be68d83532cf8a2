#!/usr/bin/env python3
"""Compares the runs of bench/chaos.sh: what a disturbed run has to have in common with undisturbed ones, and its cost.

Every push of a step changes a known set of partitions, and each partition counts its changes in the checkpoint. So a
step that was lost, applied twice, or read other records shows in some partition's count.
"""
import glob
import json
import re
import struct
import sys


def partition_updates(directory):
    """{partition: number of updates} of all files of a checkpoint (docs/checkpoint_format.md)."""
    counts = {}
    for path in sorted(glob.glob(directory + "/*.safetensors")):
        with open(path, "rb") as file:
            (size,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(size))
            for name, entry in header.items():
                if not name.endswith("/updates"):
                    continue
                begin, end = entry["data_offsets"]
                file.seek(8 + size + begin)
                counts[name] = sum(struct.unpack(f"<{(end - begin) // 8}q", file.read(end - begin)))
    return counts


def percentile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(p * len(values)))] if values else float("nan")


class Findings:
    """Prints what was found and remembers what was wrong."""

    def __init__(self):
        self.wrong = []

    def expect(self, what, got, want):
        print(f"{what:44s} {got}" + ("" if got == want else f"   WRONG: {want}"))
        if got != want:
            self.wrong.append(what)


def compare_kills(log, worker_kills, ps_kills, findings):
    # Exactly: a run that ended before all kills had come, or that met nobody to kill, shows less than it was meant to.
    for role, asked in (("worker", worker_kills), ("psserver", ps_kills)):
        findings.expect(f"kills of {role} processes", len(re.findall(rf"chaos: kills {role}-", log)), asked)


def compare_state(calm, chaos, samples, recovery, findings):
    findings.expect("samples", chaos["samples"], samples)
    findings.expect("steps", chaos["steps"], calm[0]["steps"])
    if recovery == "all":
        before, after = partition_updates(calm[0]["checkpoint"]), partition_updates(chaos["checkpoint"])
        findings.expect("partitions with counts", len(after), len(before))
        findings.expect("updates of all partitions", sum(after.values()), sum(before.values()))
        findings.expect("partitions whose count differs", sum(after.get(p) != n for p, n in before.items()), 0)


def compare_auc(calm, chaos, limit, findings):
    auc = sum(r["eval"]["auc"] for r in calm) / len(calm)
    difference = chaos["eval"]["auc"] - auc
    print(f"AUC {chaos['eval']['auc']:.4f}, undisturbed {auc:.4f} (mean of {len(calm)}), difference {difference:+.4f} "
          f"of {limit}")
    if not abs(difference) <= limit:  # also if it is no number
        findings.wrong.append("AUC")


def print_cost(calm, chaos):
    seconds = sum(r["train_seconds"] for r in calm) / len(calm)
    print(f"seconds {chaos['train_seconds']:.1f}, undisturbed {seconds:.1f}: "
          f"{chaos['train_seconds'] / seconds:.2f} times")
    kinds = {}
    for failure in chaos["failures"]:
        kinds.setdefault((failure["role"], failure["kind"]), []).append(failure)
    for (role, kind), failures in sorted(kinds.items()):
        took = [f["recovered_ms"] for f in failures if f["recovered_ms"] is not None]  # null: work did not go on
        print(f"{role} {kind}: {len(failures)}, back after p50 {percentile(took, 0.5):.0f} ms, "
              f"p99 {percentile(took, 0.99):.0f} ms, never {len(failures) - len(took)}; "
              f"steps repeated {sum(f['steps_repeated'] for f in failures)}, "
              f"updates rolled back {sum(f['updates_rolled_back'] for f in failures)}, "
              f"samples repeated {sum(f['samples_repeated'] for f in failures)}")


def main():
    work, rows, epochs, worker_kills, ps_kills, recovery = sys.argv[1:7]
    calm = [json.load(open(path)) for path in sorted(glob.glob(work + "/calm-*.json"))]
    chaos = json.load(open(work + "/chaos.json"))
    findings = Findings()
    compare_kills(open(work + "/chaos/logs/coordinator.log").read(), int(worker_kills), int(ps_kills), findings)
    compare_state(calm, chaos, int(rows) * int(epochs), recovery, findings)
    # One undisturbed run says little about the mean: runs of asynchronous training differ among themselves.
    compare_auc(calm, chaos, 0.02 if "--short" in sys.argv else 0.002, findings)
    print_cost(calm, chaos)
    if findings.wrong:
        sys.exit("WRONG: " + ", ".join(findings.wrong))
    print("nothing was lost and nothing was done twice")


if __name__ == "__main__":
    main()
