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


def main():
    work, rows, epochs, worker_kills, ps_kills, recovery = sys.argv[1:7]
    short = "--short" in sys.argv
    rows, epochs = int(rows), int(epochs)
    calm = [json.load(open(path)) for path in sorted(glob.glob(work + "/calm-*.json"))]
    chaos = json.load(open(work + "/chaos.json"))
    out = open(work + "/chaos/logs/coordinator.log").read()
    killed = {role: len(re.findall(rf"chaos: kills {role}-", out)) for role in ("worker", "psserver")}
    wrong = []

    def expect(what, got, want):
        print(f"{what:44s} {got}" + ("" if got == want else f"   WRONG: {want}"))
        if got != want:
            wrong.append(what)

    print(f"killed: {killed['worker']} workers (asked {worker_kills}), {killed['psserver']} servers (asked {ps_kills})")
    if killed["worker"] == 0 or killed["psserver"] == 0:
        wrong.append("nothing was killed")
    expect("samples", chaos["samples"], rows * epochs)
    expect("steps", chaos["steps"], calm[0]["steps"])
    if recovery == "all":
        before, after = partition_updates(calm[0]["checkpoint"]), partition_updates(chaos["checkpoint"])
        expect("partitions with counts", len(after), len(before))
        expect("updates of all partitions", sum(after.values()), sum(before.values()))
        expect("partitions whose count differs", sum(after.get(p) != n for p, n in before.items()), 0)
    auc = sum(r["eval"]["auc"] for r in calm) / len(calm)
    difference = chaos["eval"]["auc"] - auc
    # One undisturbed run says little about the mean: runs of asynchronous training differ among themselves.
    limit = 0.02 if short else 0.002
    print(f"AUC {chaos['eval']['auc']:.4f}, undisturbed {auc:.4f} (mean of {len(calm)}), difference {difference:+.4f} "
          f"of {limit}")
    if abs(difference) > limit:
        wrong.append("AUC")
    seconds = sum(r["train_seconds"] for r in calm) / len(calm)
    print(f"seconds {chaos['train_seconds']:.1f}, undisturbed {seconds:.1f}: {chaos['train_seconds'] / seconds:.2f} times")
    kinds = {}
    for failure in chaos["failures"]:
        kinds.setdefault((failure["role"], failure["kind"]), []).append(failure)
    for (role, kind), failures in sorted(kinds.items()):
        took = [f["recovered_ms"] for f in failures if f.get("recovered_ms") is not None and f["recovered_ms"] >= 0]
        print(f"{role} {kind}: {len(failures)}, back after p50 {percentile(took, 0.5):.0f} ms, "
              f"p99 {percentile(took, 0.99):.0f} ms; steps repeated {sum(f.get('steps_repeated', 0) for f in failures)}, "
              f"updates rolled back {sum(f.get('updates_rolled_back', 0) for f in failures)}, "
              f"samples repeated {sum(f.get('samples_repeated', 0) for f in failures)}")
    if wrong:
        sys.exit("WRONG: " + ", ".join(wrong))
    print("nothing was lost and nothing was done twice")


if __name__ == "__main__":
    main()
