#!/usr/bin/env bash
# From nothing to a trained model: installs, builds, makes a click log, trains DLRM with 2 workers and 2 parameter
# servers, and prints what came out. Usage: deploy/quickstart.sh [--short]
#   --short   30,000 rows instead of 300,000, for a quick look (its accuracy says little)
# The rows are in data/criteo-like, where deploy/jobs/criteo_dlrm.yaml looks; those of --short in data/short/criteo-like.
set -euo pipefail
cd "$(dirname "$0")/.."

rows=300000 test_rows=50000 name=quickstart folder=$PWD/data
case ${1:-} in
  "") ;;
  --short) rows=30000 test_rows=10000 name=quickstart-short folder=$PWD/data/short ;;
  *) sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac

deploy/install_packages.sh
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
cmake --preset release >/dev/null
cmake --build build -j "$(nproc)" --target coordinator worker psserver

# Made once: .about.txt is written when everything else is there, and says what it is.
data=$folder/criteo-like
made="coordinator make-data criteo --rows=$rows --test_rows=$test_rows --seed=1"
if [[ $(head -n 1 "$data/.about.txt" 2>/dev/null) != "$made" ]]; then
  build/bin/coordinator make-data criteo --rows="$rows" --test_rows="$test_rows" --seed=1 --out="$data"
fi

report=$PWD/runs/$name/report.json
mkdir -p "runs/$name"
MUSTER_DATA=$folder build/bin/coordinator train deploy/jobs/criteo_dlrm.yaml --local --workers=2 --ps=2 \
  --job_dir="runs/$name" --train_again --report="$report"

python3 - "$report" "$(grep '^the oracle' "$data/.about.txt")" <<'PYTHON'
import json, sys
report = json.load(open(sys.argv[1]))
print(f"""
Trained on {report['samples']:,} samples in {report['train_seconds']:.1f} s: {report['samples_per_second']:,.0f} samples per second
AUC {report['eval']['auc']:.4f} on {report['eval']['examples']:,} held-out rows ({sys.argv[2]})
Report: {sys.argv[1]}""")
PYTHON
