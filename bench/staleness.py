#!/usr/bin/env python3
"""Accuracy by epoch in each mode of training: MNIST cnn with 1, 8 and 32 workers as processes of this machine, means of
three seeds.

Usage: bench/staleness.py RESULTS.json [--workers=1,8,32] [--seeds=1,2,3] [--modes=async,inverse,bounded,sync,backups]
                          [--epochs=5] [--records=N] [--svg=FILE] [--set=KEY=VALUE ...]

What RESULTS.json has is not run again, so a run that was stopped goes on; other settings need another file. Prints a
table for docs/consistency.md. Needs MNIST below MUSTER_DATA, or this repository's data (deploy/fetch_data.sh mnist).
Some 90 s for each run on two cores, less with --records, which trains on the first N records only. --print shows the
table of what there is.
"""
import argparse
import gzip
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
BIN = os.path.join(os.environ.get("MUSTER_BUILD", os.path.join(ROOT, "build")), "bin")
DATA = os.environ.get("MUSTER_DATA") or os.path.join(ROOT, "data")  # as deploy/fetch_data.sh
TRAIN_FILES = ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz")
TEST_FILES = ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz")
RATE = 0.001  # of the job, for one batch


def rounds(replicas, backups):
    """The batch is as many times larger, and Adam's rate grows with its square root."""
    return ["training.mode=sync", f"training.sync={{replicas: {replicas}, backup_workers: {backups}}}",
            f"optimizer={{adam: {{learning_rate: {RATE * replicas ** 0.5:.6f}}}}}"]


# Name, color and settings of W workers.
MODES = {
    "async": ("async", "#c62828", lambda workers: ["training.staleness={}"]),
    "inverse": ("async, inverse", "#1565c0", lambda workers: ["training.staleness={discount: inverse}"]),
    "exponential": ("async, exponential", "#6a1b9a", lambda workers: ["training.staleness={discount: exponential}"]),
    "bounded": ("bounded staleness", "#2e7d32", lambda workers: ["training.mode=bounded_staleness",
                                                                 f"training.bounded_staleness={{steps: {2 * workers}}}"]),
    "sync": ("sync", "#ef6c00", lambda workers: rounds(workers, 0)),
    # One of eight is a backup.
    "backups": ("sync with backups", "#455a64", lambda workers: rounds(workers - max(1, workers // 8), max(1, workers // 8))),
}
DEFAULT_MODES = "async,inverse,bounded,sync,backups"


def need_data():
    for name in (*TRAIN_FILES, *TEST_FILES):
        path = os.path.normpath(os.path.join(DATA, "mnist", name))
        if not os.path.exists(path):
            sys.exit(f"there is no {path}; run `deploy/fetch_data.sh mnist`, or say with MUSTER_DATA which folder has mnist")


def first_records(folder, records):
    """A folder of data with the first records of the training set and the whole test set."""
    os.mkdir(os.path.join(folder, "mnist"))
    for name in TRAIN_FILES:
        with gzip.open(os.path.join(DATA, "mnist", name)) as file:
            data = file.read()
        axes = data[3]
        sizes = struct.unpack(f">{axes}I", data[4:4 + 4 * axes])
        begin = 4 + 4 * axes
        size = (len(data) - begin) // sizes[0]
        if records > sizes[0]:
            sys.exit(f"--records={records}: there are {sizes[0]}")
        with gzip.open(os.path.join(folder, "mnist", name), "wb") as file:
            file.write(data[:4] + struct.pack(f">{axes}I", records, *sizes[1:]) + data[begin:begin + records * size])
    for name in TEST_FILES:
        os.symlink(os.path.abspath(os.path.join(DATA, "mnist", name)), os.path.join(folder, "mnist", name))


def train(mode, workers, seed, asked):
    """Accuracy after each epoch, and how late gradients were (mean, in updates; None where it is not counted)."""
    need_data()
    settings = [f"seed={seed}", f"training.epochs={asked.epochs}", "training.eval_every={epochs: 1}",
                *MODES[mode][2](workers), *asked.set]
    with tempfile.TemporaryDirectory() as folder:
        data = DATA
        if asked.records is not None:
            data = os.path.join(folder, "data")
            os.mkdir(data)
            first_records(data, asked.records)
        report = os.path.join(folder, "report.json")
        run = subprocess.run(
            [f"{BIN}/coordinator", "train", f"{ROOT}/deploy/jobs/mnist_cnn.yaml", "--local", f"--workers={workers}", "--ps=2",
             f"--job_dir={folder}/run", f"--report={report}", "--start_timeout=300",
             *(f"--set={setting}" for setting in settings)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, "MUSTER_DATA": data})
        if run.returncode != 0:
            sys.exit(f"{mode}, {workers} workers, seed {seed}: exit code {run.returncode}\n{run.stdout[-2000:]}")
        with open(report) as file:
            report = json.load(file)
    # What the last epoch ended with is evaluated as the job's result.
    by_epoch = {each["epoch"]: each["metrics"]["accuracy"] for each in report["evaluations"]}
    by_epoch[asked.epochs] = report["eval"]["accuracy"]
    return {"accuracy": [by_epoch[epoch] for epoch in range(1, asked.epochs + 1)],
            "late": (report.get("staleness") or {}).get("mean"), "sync": report.get("sync"), "seconds": report["train_seconds"]}


def table(results, epochs):
    print("| workers | mode | mean lateness | " + " | ".join(f"epoch {e}" for e in range(1, epochs + 1)) +
          " | seeds at the end | seconds |")
    print("|---|---|---|" + "---|" * epochs + "---|---|")
    for (workers, mode), runs in results.items():
        late = [run["late"] for run in runs if run["late"] is not None]
        means = [statistics.mean(run["accuracy"][e] for run in runs) for e in range(epochs)]
        ends = sorted(run["accuracy"][-1] for run in runs)
        cells = [str(workers), MODES[mode][0], f"{statistics.mean(late):.1f}" if late else "",
                 *(f"{mean:.4f}" for mean in means), f"{len(runs)}: {ends[0]:.4f} to {ends[-1]:.4f}",
                 f"{statistics.mean(run['seconds'] for run in runs):.0f}"]
        print("| " + " | ".join(cells) + " |")


def svg(results, epochs):
    """Accuracy over epochs, a panel for each number of workers."""
    panels = sorted({workers for workers, _ in results})
    values = [sum(run["accuracy"][e] for run in runs) / len(runs) for runs in results.values() for e in range(epochs)]
    least, most = min(values), max(values)
    room = (most - least) * 0.05 or 0.01
    least, most = least - room, most + room
    width, height, left, top, bottom = 300, 260, 50, 30, 40

    def x(panel, epoch):
        return panel * width + left + (epoch + 0.5) / epochs * (width - left - 10)

    def y(value):
        return top + (most - value) / (most - least) * (height - top - bottom)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width * len(panels)}" height="{height + 24}" '
           'font-family="sans-serif" font-size="12">']
    for panel, workers in enumerate(panels):
        out.append(f'<text x="{panel * width + left}" y="18">{workers} worker{"s" if workers > 1 else ""}</text>')
        for value in (least, (least + most) / 2, most):
            out.append(f'<line x1="{panel * width + left}" x2="{(panel + 1) * width - 10}" y1="{y(value):.1f}" '
                       f'y2="{y(value):.1f}" stroke="#ddd"/>'
                       f'<text x="{panel * width + left - 4}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.3f}</text>')
        for epoch in range(epochs):
            out.append(f'<text x="{x(panel, epoch):.1f}" y="{height - bottom + 18}" text-anchor="middle">{epoch + 1}</text>')
        for (of, mode), runs in results.items():
            if of != workers:
                continue
            points = " ".join(f"{x(panel, e):.1f},{y(statistics.mean(run['accuracy'][e] for run in runs)):.1f}"
                              for e in range(epochs))
            out.append(f'<polyline points="{points}" fill="none" stroke="{MODES[mode][1]}" stroke-width="2"/>')
    shown = [mode for mode in MODES if any(of == mode for _, of in results)]
    for i, mode in enumerate(shown):
        name, color, _ = MODES[mode]
        out.append(f'<rect x="{left + i * 160}" y="{height}" width="14" height="4" fill="{color}"/>'
                   f'<text x="{left + i * 160 + 20}" y="{height + 6}">{name}</text>')
    return "\n".join(out + ["</svg>"]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results")
    parser.add_argument("--workers", default="1,8,32")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--modes", default=DEFAULT_MODES, help=f"of {', '.join(MODES)}; default: {DEFAULT_MODES}")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--records", type=int, help="of the training set, from its beginning; default: all")
    parser.add_argument("--svg")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of the job, in all runs")
    parser.add_argument("--print", action="store_true", help="run nothing: the table of the results that there are")
    asked = parser.parse_args()
    modes = asked.modes.split(",")
    for mode in modes:
        if mode not in MODES:
            parser.error(f"--modes: '{mode}' is none of {', '.join(MODES)}")
    known = {}
    if os.path.exists(asked.results):
        with open(asked.results) as file:
            known = json.load(file)
    settings = {"epochs": asked.epochs, "records": asked.records, "set": asked.set}
    if known.setdefault("settings", settings) != settings:
        sys.exit(f"{asked.results} is of other settings ({known['settings']}); name another file")
    rows = [(workers, mode) for workers in map(int, asked.workers.split(","))
            for mode in modes if workers > 1 or mode != "backups"]  # which needs another worker
    results = {row: [] for row in rows}
    # A run that is stopped has some seeds of all modes.
    for seed in asked.seeds.split(","):
        for workers, mode in rows:
            key = f"{mode}/{workers}/{seed}"
            if key not in known and not asked.print:
                known[key] = train(mode, workers, seed, asked)
                print(f"{key}: {known[key]}", file=sys.stderr, flush=True)
                with open(asked.results + ".new", "w") as file:
                    json.dump(known, file, indent=1)
                os.replace(asked.results + ".new", asked.results)
            if key in known:
                results[workers, mode].append(known[key])
    results = {row: runs for row, runs in results.items() if runs}
    if not results:
        sys.exit(f"{asked.results} has none of these runs")
    table(results, asked.epochs)
    if asked.svg:
        with open(asked.svg, "w") as file:
            file.write(svg(results, asked.epochs))


if __name__ == "__main__":
    main()
