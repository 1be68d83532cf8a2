#!/usr/bin/env python3
"""What share of their time workers spend between functions, by how steps are packed into functions: quick, middle and
slow steps with steps_per_function 1, and auto with max_gap 0.01 and 0.05.

Usage: bench/packing.py [--models=quick,middle,slow] [--rounds=3] [--scale=1] [--functions_in_flight=2] [--json=FILE]

Trains on data of `coordinator make-data` with processes of this machine and reads the trace of each run (--trace). The
time between functions is from the end of a function's last step until the next function begins with reading its records.
So it has the handing over of the last results, the wait for the next function if there is none yet, and its beginning.
"Without one" is only the worker's own worker.idle, from the end of a function until the next one is taken.
Only the middle of a run counts, from 20% to 80% of its time: the first functions have one step because nothing is known,
the last ones are small by design. Each run is within one epoch. Exits 1 if auto is above its max_gap.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
BIN = os.path.join(os.environ.get("MUSTER_BUILD", os.path.join(ROOT, "build")), "bin")
FEATURES = "features: [{column: dense, size: 13}, {column: ids, kind: id, size: 26, rows: 20000}], label_column: label"
# Model, batch size and steps of a run.
MODELS = {
    "quick": (f"{{logistic_regression: {{{FEATURES}}}}}", 32, 8000),
    "middle": (f"{{mlp: {{{FEATURES}, embedding_dim: 16, hidden: [128, 64]}}}}", 128, 2000),
    "slow": ("{dlrm: {embedding_dim: 16, hash_buckets: 20000, bottom_mlp: [512, 256, 64, 16], top_mlp: [512, 256, 1]}}",
             512, 400),
}
# Name, settings, and the share that is promised.
CASES = {
    "1": (["training.steps_per_function=1"], None),
    "auto, 0.01": (["training.steps_per_function=auto", "training.max_gap=0.01"], 0.01),
    "auto, 0.05": (["training.steps_per_function=auto", "training.max_gap=0.05"], 0.05),
}
JOB = """\
name: packing
seed: 1
data:
  train: {{format: criteo_tsv, files: ["{data}/train-*"], shuffle: {{records: 20000}}}}
model: {model}
optimizer: {{adagrad: {{learning_rate: 0.02}}}}
training: {{epochs: 1, batch_size: {batch}, max_steps: {steps}}}
"""
SPANS = ("worker.idle", "worker.data_wait", "worker.step")
MIDDLE = (0.2, 0.8)  # of a run's time


def percentile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(p * len(values)))] if values else None


class Function:
    """Steps as (begin, end), and the time without a function before them."""

    def __init__(self, idle):
        self.steps, self.idle = [], idle

    @property
    def begin(self):
        return self.steps[0][0]

    @property
    def end(self):
        return self.steps[-1][1]


def functions_of(spans):
    """The functions of one worker's spans (name, begin, end). A step begins with the wait for its records. The worker
    writes down a time without a function before each function but its first.

    The spans are in the order in which the worker's thread wrote them down, and must stay in it: the coordinator asks for
    spans each second and maps each answer to its own clock by another estimate, so times may go back from one answer to
    the next. Sorted, a step can come before the time without a function that was before it."""
    functions, begin = [Function(0)], None
    for name, start, end in spans:
        if name == "worker.idle":
            # One that had no step leaves its time to the next.
            before = 0 if functions[-1].steps else functions.pop().idle
            functions.append(Function(before + end - start))
            begin = None
        elif name == "worker.data_wait":
            begin = start if begin is None else begin
        elif name == "worker.step":
            functions[-1].steps.append((start if begin is None else begin, end))
            begin = None
    return [function for function in functions if function.steps]


def clock_error_of(spans):
    """By how much the times of a worker's thread go back at most: what a single time between functions may be wrong by."""
    return max([0, *(before[2] - after[1] for before, after in zip(spans, spans[1:]))])


def spans_of_workers(trace):
    """Each worker's spans of the thread that runs functions."""
    names = {event["pid"]: event["args"]["name"] for event in trace["traceEvents"]
             if event["ph"] == "M" and event["name"] == "process_name"}
    spans = {pid: [] for pid, name in names.items() if name.startswith("worker")}
    for pid in spans:
        if "spans lost" in names[pid]:
            sys.exit(f"packing.py: the trace is not complete: {names[pid]}")
    for event in trace["traceEvents"]:
        if event["ph"] == "X" and event["pid"] in spans and event["name"] in SPANS:
            spans[event["pid"]].append((event["name"], event["ts"], event["ts"] + event["dur"]))
    return list(spans.values())


def measure(trace, batch):
    """Of the middle of a run. Times of the trace are in microseconds. None where a run is too short to say."""
    spans = spans_of_workers(trace)
    workers = [functions for functions in map(functions_of, spans) if functions]
    if not workers:
        return None
    first = min(functions[0].begin for functions in workers)
    last = max(functions[-1].end for functions in workers)
    low, high = (first + share * (last - first) for share in MIDDLE)
    between, within, rates = [], [], []
    time = busy = idle = steps = functions = 0
    for of_worker in workers:
        middle = [f for f in of_worker if f.begin >= low and f.end <= high]
        if len(middle) < 2:
            return None
        # From the beginning of a function to the beginning of another: as many times between as functions.
        whole, span = middle[:-1], middle[-1].begin - middle[0].begin
        between += [following.begin - f.end for f, following in zip(middle, middle[1:])]
        within += [b[0] - a[1] for f in whole for a, b in zip(f.steps, f.steps[1:])]
        time += span
        busy += sum(end - begin for f in whole for begin, end in f.steps)
        idle += sum(f.idle for f in middle[1:])
        steps += sum(len(f.steps) for f in whole)
        functions += len(whole)
        rates.append((len(whole) / span * 1e6, sum(len(f.steps) for f in whole) / span * 1e6))
    return {"ms_a_step": busy / steps / 1e3, "steps_a_function": steps / functions, "functions": functions,
            "gap": sum(between) / time, "idle": idle / time, "gap_us_p50": percentile(between, 0.5),
            "gap_us_p99": percentile(between, 0.99), "between_steps_us_p50": percentile(within, 0.5),
            "clock_error_us": max(map(clock_error_of, spans)), "functions_per_second": sum(rate for rate, _ in rates),
            "samples_per_second": batch * sum(rate for _, rate in rates)}


def cores_busy():
    """Seconds of processor time that everything on this machine has taken so far, stolen time too, and that there were."""
    with open("/proc/stat", encoding="utf-8") as file:
        words = file.readline().split()[1:9]
    user, nice, system, idle, wait, *others = (int(word) / os.sysconf("SC_CLK_TCK") for word in words)
    busy = user + nice + system + sum(others)
    return busy, busy + idle + wait


def run(work, model, case, asked):
    config, batch, steps = MODELS[model]
    settings = [*CASES[case][0], f"training.functions_in_flight={asked.functions_in_flight}", *asked.set]
    with tempfile.TemporaryDirectory(dir=work) as folder:
        job, report, trace = (os.path.join(folder, name) for name in ("job.yaml", "report.json", "trace.json"))
        with open(job, "w", encoding="utf-8") as file:
            file.write(JOB.format(data=f"{work}/data", model=config, batch=batch, steps=max(1, int(steps * asked.scale))))
        before, machine_before = resource.getrusage(resource.RUSAGE_CHILDREN), cores_busy()
        ended = subprocess.run(
            [f"{BIN}/coordinator", "train", job, "--local", f"--workers={asked.workers}", f"--ps={asked.ps}",
             f"--job_dir={folder}/run", f"--report={report}", f"--trace={trace}",
             *(f"--set={setting}" for setting in settings)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        after, machine_after = resource.getrusage(resource.RUSAGE_CHILDREN), cores_busy()
        if ended.returncode != 0:
            sys.exit(f"packing.py: {model}, {case}: exit code {ended.returncode}\n{ended.stdout[-2000:]}")
        with open(report, encoding="utf-8") as file:
            report = json.load(file)
        with open(trace, encoding="utf-8") as file:
            found = measure(json.load(file), batch)
    if report["failures"]:
        sys.exit(f"packing.py: {model}, {case}: daemons were lost: {report['failures'][0]['message']}")
    if found is None:
        sys.exit(f"packing.py: {model}, {case}: too few functions in the middle of the run; raise --scale")
    idle = report["time_by_part"].get("worker.idle", {"seconds": 0})["seconds"]  # also of the beginning and the end
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    busy, all_cores = (after - before for before, after in zip(machine_before, machine_after))
    return {**found, "idle_of_all": idle / (asked.workers * report["train_seconds"]), "steps": report["steps"],
            "seconds": report["train_seconds"], "chosen": report["steps_per_function"], "cpu_seconds": cpu,
            "others": max(0, busy - cpu) / all_cores}


def summarize(rounds):
    """Of rounds, each {(model, case): run}: the medians by model and case, the range of the gap, and the speed as a
    multiple of the same round's run with one step a function."""
    results = {}
    for model, case in rounds[0]:
        runs = [each[model, case] for each in rounds]
        row = {key: statistics.median(one[key] for one in runs) for key in runs[0] if runs[0][key] is not None
               and all(one[key] is not None for one in runs)}
        row["gap_range"] = [min(one["gap"] for one in runs), max(one["gap"] for one in runs)]
        if (model, "1") in rounds[0]:
            row["speedup"] = statistics.median(each[model, case]["samples_per_second"] / each[model, "1"]["samples_per_second"]
                                               for each in rounds)
        row["max_gap"] = CASES[case][1]
        row["kept"] = row["max_gap"] is None or row["gap"] <= row["max_gap"]
        results[model, case] = row
    return results


def table(results):
    lines = ["| model | steps_per_function | ms a step | steps a function | between functions | without one "
             "| p50, p99 | functions/s | examples/s | of 1 | processor time |",
             "|---|---|---|---|---|---|---|---|---|---|---|"]
    for (model, case), row in results.items():
        least, most = row["gap_range"]
        gap = f"{row['gap']:.2%}" + (f" ({least:.2%} to {most:.2%})" if least != most else "")
        lines.append("| " + " | ".join([
            model, case, f"{row['ms_a_step']:.2f}", f"{row['steps_a_function']:.1f}", gap, f"{row['idle']:.2%}",
            f"{row['gap_us_p50']:.0f}, {row['gap_us_p99']:.0f} µs", f"{row['functions_per_second']:,.0f}",
            f"{row['samples_per_second']:,.0f}", f"{row['speedup']:.2f}" if "speedup" in row else "",
            f"{row['cpu_seconds']:.1f} s"]) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS), help=f"of {', '.join(MODELS)}; default: all")
    parser.add_argument("--rounds", type=int, default=3, help="each runs all; the order alternates (default 3)")
    parser.add_argument("--scale", type=float, default=1, help="times as many steps a run (default 1)")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--ps", type=int, default=1)
    parser.add_argument("--functions_in_flight", type=int, default=2, help="of the job; with 1 nothing hides the round trip")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of the job, in all runs")
    parser.add_argument("--json", help="write each run and the medians here")
    asked = parser.parse_args()
    models = asked.models.split(",")
    for model in models:
        if model not in MODELS:
            parser.error(f"--models: '{model}' is none of {', '.join(MODELS)}")
    if asked.rounds < 1:
        parser.error("--rounds must be at least 1")
    rounds, order = [], [(model, case) for model in models for case in CASES]
    with tempfile.TemporaryDirectory() as work:
        rows = max(MODELS[model][1] * max(1, int(MODELS[model][2] * asked.scale)) for model in models)
        # Beyond max_steps, so that no run comes to the end of the epoch.
        subprocess.run([f"{BIN}/coordinator", "make-data", "criteo", f"--rows={int(1.1 * rows) + 1000}", "--seed=1",
                        f"--out={work}/data"], check=True, stdout=subprocess.DEVNULL)
        for i in range(asked.rounds):
            done = {}
            for model, case in order if i % 2 == 0 else order[::-1]:
                done[model, case] = run(work, model, case, asked)
                print(f"round {i + 1}: {model}, {case}: {done[model, case]['gap']:.3%} between functions", file=sys.stderr,
                      flush=True)
            rounds.append({key: done[key] for key in order})
    results = summarize(rounds)
    print(table(results))
    others = [one["others"] for each in rounds for one in each.values()]
    wrong = max(one["clock_error_us"] for each in rounds for one in each.values())
    print(f"{os.cpu_count()} cores, of which other programs took {min(others):.0%} to {max(others):.0%} during a run; "
          f"times of a trace went back by {wrong:.0f} µs at most")
    if asked.json:
        with open(asked.json, "w", encoding="utf-8") as file:
            json.dump({"settings": vars(asked), "cores": os.cpu_count(),
                       "medians": [{"model": m, "case": c, **row} for (m, c), row in results.items()],
                       "rounds": [[{"model": m, "case": c, **one} for (m, c), one in each.items()] for each in rounds]},
                      file, indent=1)
    broken = [f"{model} with {case}" for (model, case), row in results.items() if not row["kept"]]
    if broken:
        sys.exit("more than max_gap between functions: " + "; ".join(broken))


if __name__ == "__main__":
    main()
