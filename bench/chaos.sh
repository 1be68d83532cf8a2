#!/usr/bin/env bash
# What preemptions cost: the same job undisturbed and while its workers and servers are killed, 4 workers and 2 servers
# on this machine, compared by bench/chaos_report.py. Fails if anything was lost or done twice.
# Usage: bench/chaos.sh [--short]
#   ROWS, EPOCHS        size of the job (default 10,000,000 rows, 3 epochs: over ten minutes; --short: 200,000 rows, 4)
#   WORKER_KILLS, PS_KILLS   default 1000 and 100 (--short: 20 and 4)
#   RUNS                undisturbed runs whose mean AUC is compared (default 3; --short: 1)
#   CHECKPOINT_EVERY    default 20s (--short: 2s)
#   RECOVERY            all (default) or shard
#   KEEP                a folder that everything of the runs goes into and stays in (default: a temporary one)
set -euo pipefail
[[ -z ${KEEP:-} ]] || KEEP=$(realpath -m "$KEEP")  # relative to where the caller is; the job file names files in it
cd "$(dirname "$0")/.."
bottom='[512, 256, 64, 16]' top='[512, 256, 1]'
rows=10000000 epochs=3 worker_kills=1000 ps_kills=100 runs=3 every=20s short=
if [[ ${1:-} == --short ]]; then
  rows=200000 epochs=4 worker_kills=20 ps_kills=4 runs=1 every=2s short=--short
  bottom='[64, 16]' top='[64, 1]'
elif (($#)); then
  echo "chaos.sh: unknown option $1; there is --short" >&2
  exit 2
fi
rows=${ROWS:-$rows} epochs=${EPOCHS:-$epochs} worker_kills=${WORKER_KILLS:-$worker_kills} ps_kills=${PS_KILLS:-$ps_kills}
runs=${RUNS:-$runs} every=${CHECKPOINT_EVERY:-$every} recovery=${RECOVERY:-all}
bin=${MUSTER_BUILD:-build}/bin
if [[ -n ${KEEP:-} ]]; then
  work=$KEEP
  mkdir -p "$work"
else
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
fi

"$bin/coordinator" make-data criteo --rows="$rows" --test_rows=50000 --seed=1 --out="$work/data" >/dev/null
cat >"$work/job.yaml" <<YAML
name: chaos
seed: 1
data:
  train: {format: criteo_tsv, files: ["$work/data/train-*"], shuffle: {records: 100000}}
  eval: {format: criteo_tsv, files: ["$work/data/test*"]}
model:
  dlrm: {embedding_dim: 16, hash_buckets: 100000, bottom_mlp: $bottom, top_mlp: $top}
optimizer:
  adagrad: {learning_rate: 0.02}
training: {epochs: $epochs, batch_size: 512, steps_per_function: auto}
checkpoint: {every: $every}
recovery: $recovery
YAML

train() {
  local name=$1
  shift
  echo "--- $name: ${*:-undisturbed}" >&2
  "$bin/coordinator" train "$work/job.yaml" --local --workers=4 --ps=2 --job_dir="$work/$name" \
    --report="$work/$name.json" "$@" >"$work/$name.out" 2>&1 || { tail -30 "$work/$name.out" >&2; exit 1; }
  tail -1 "$work/$name.out" >&2
}

for ((i = 1; i <= runs; ++i)); do train "calm-$i"; done
# The kills are spread over what the job takes undisturbed, so all fall into the disturbed run, which takes longer.
interval() {
  python3 -c "import json, sys; print(f'{0.85 * json.load(open(sys.argv[1]))[\"train_seconds\"] / int(sys.argv[2]):.3f}s')" \
    "$work/calm-1.json" "$1"
}
train chaos --chaos="worker:kill:every=$(interval "$worker_kills"):count=$worker_kills,ps:kill:every=$(interval "$ps_kills"):count=$ps_kills,seed=7"
python3 bench/chaos_report.py "$work" "$rows" "$epochs" "$worker_kills" "$ps_kills" "$recovery" $short
