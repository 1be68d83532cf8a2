#!/usr/bin/env bash
# Builds this project and trains with it: run.sh BINARY_DIR [cmake option...]; BINARY_DIR has Muster's programs. Writes to
# the current folder. Ends with 0 if the model has learned its line, and the program without the command line its minimum.
set -euo pipefail
binaries=$1
shift
source=$(cd "$(dirname "$0")" && pwd)

cmake -S "$source" -B build -DCMAKE_BUILD_TYPE=Release "$@" >configure.log 2>&1 || { cat configure.log >&2; exit 1; }
cmake --build build -j "$(nproc)" --target outside minimum >build.log 2>&1 || { tail -n 60 build.log >&2; exit 1; }
python3 "$source/make_line.py" line.csv
export LINE_DATA=$PWD/line.csv
build/outside train "$source/line.yaml" --local --workers=2 --ps=2 --binary_dir="$binaries" --job_dir=run --report=report.json
python3 - <<'PYTHON'
import json
report = json.load(open("report.json"))
assert (report["status"], report["workers"], report["ps"], report["samples"]) == ("done", 2, 2, 22500), report
assert report["eval"]["examples"] == 500 and report["eval"]["rmse"] < 0.01, report["eval"]
print(f"the line's RMSE is {report['eval']['rmse']:.6f} on {report['eval']['examples']} rows")
PYTHON
build/minimum 2>minimum.log || { cat minimum.log >&2; exit 1; }
