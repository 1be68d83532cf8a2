#!/usr/bin/env python3
"""Accuracy by epoch when gradients are late: MNIST cnn in each mode of training, with 1, 8 and 32 workers as processes of
this machine, means of three seeds.

Usage: bench/staleness.py RESULTS.json [--workers=1,8,32] [--seeds=1,2,3] [--epochs=5] [--svg=FILE] [--set=KEY=VALUE ...]

What RESULTS.json has is not run again, so a run that was stopped goes on; other settings need another file. Prints a
table for docs/consistency.md. Needs MNIST below MUSTER_DATA (deploy/fetch_data.sh mnist). Some 90 s for each run.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
BIN = os.path.join(os.environ.get("MUSTER_BUILD", os.path.join(ROOT, "build")), "bin")
# Of W workers. With one worker they are all alike.
MODES = {
    "async": lambda workers: ["training.staleness={}"],
    "async, inverse": lambda workers: ["training.staleness={discount: inverse}"],
    "async, exponential": lambda workers: ["training.staleness={discount: exponential}"],
    "bounded staleness": lambda workers: ["training.mode=bounded_staleness",
                                          f"training.bounded_staleness={{steps: {2 * workers}}}"],
}
COLORS = {"async": "#c62828", "async, inverse": "#1565c0", "async, exponential": "#6a1b9a", "bounded staleness": "#2e7d32"}


def train(mode, workers, seed, epochs, more):
    """Accuracy after each epoch, and how late gradients were (mean, in updates; None where it is not counted)."""
    settings = [f"seed={seed}", f"training.epochs={epochs}", "training.eval_every={epochs: 1}", *MODES[mode](workers), *more]
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        run = subprocess.run(
            [f"{BIN}/coordinator", "train", f"{ROOT}/deploy/jobs/mnist_cnn.yaml", "--local", f"--workers={workers}", "--ps=2",
             f"--job_dir={folder}/run", f"--report={report}", "--start_timeout=300",
             *(f"--set={setting}" for setting in settings)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if run.returncode != 0:
            sys.exit(f"{mode}, {workers} workers, seed {seed}: exit code {run.returncode}\n{run.stdout[-2000:]}")
        with open(report) as file:
            report = json.load(file)
    # What the last epoch ended with is evaluated as the job's result.
    by_epoch = {each["epoch"]: each["metrics"]["accuracy"] for each in report["evaluations"]}
    by_epoch[epochs] = report["eval"]["accuracy"]
    late = (report.get("staleness") or {}).get("mean")
    return {"accuracy": [by_epoch[epoch] for epoch in range(1, epochs + 1)], "late": late}


def table(results, epochs):
    print("| workers | mode | mean lateness | " + " | ".join(f"epoch {e}" for e in range(1, epochs + 1)) + " | seeds at the end |")
    print("|---|---|---|" + "---|" * epochs + "---|")
    for (workers, mode), runs in results.items():
        late = [run["late"] for run in runs if run["late"] is not None]
        means = [statistics.mean(run["accuracy"][e] for run in runs) for e in range(epochs)]
        ends = sorted(run["accuracy"][-1] for run in runs)
        print(f"| {workers} | {mode} | {statistics.mean(late):.1f} | " if late else f"| {workers} | {mode} | | ", end="")
        print(" | ".join(f"{mean:.4f}" for mean in means) + f" | {ends[0]:.4f} to {ends[-1]:.4f} |")


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
            out.append(f'<polyline points="{points}" fill="none" stroke="{COLORS[mode]}" stroke-width="2"/>')
    for i, (mode, color) in enumerate(COLORS.items()):
        out.append(f'<rect x="{left + i * 160}" y="{height}" width="14" height="4" fill="{color}"/>'
                   f'<text x="{left + i * 160 + 20}" y="{height + 6}">{mode}</text>')
    return "\n".join(out + ["</svg>"]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results")
    parser.add_argument("--workers", default="1,8,32")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--svg")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of the job, in all runs")
    asked = parser.parse_args()
    known = {}
    if os.path.exists(asked.results):
        with open(asked.results) as file:
            known = json.load(file)
    settings = {"epochs": asked.epochs, "set": asked.set}
    if known.setdefault("settings", settings) != settings:
        sys.exit(f"{asked.results} is of other settings ({known['settings']}); name another file")
    results = {}
    for workers in map(int, asked.workers.split(",")):
        for mode in MODES if workers > 1 else ["async"]:
            for seed in asked.seeds.split(","):
                key = f"{mode}/{workers}/{seed}"
                if key not in known:
                    known[key] = train(mode, workers, seed, asked.epochs, asked.set)
                    print(f"{key}: {known[key]}", file=sys.stderr, flush=True)
                    with open(asked.results + ".new", "w") as file:
                        json.dump(known, file, indent=1)
                    os.replace(asked.results + ".new", asked.results)
                results.setdefault((workers, mode), []).append(known[key])
    table(results, asked.epochs)
    if asked.svg:
        with open(asked.svg, "w") as file:
            file.write(svg(results, asked.epochs))


if __name__ == "__main__":
    main()
