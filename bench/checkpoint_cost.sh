#!/usr/bin/env bash
# What checkpoints cost a whole job: the same job without them and with one every few seconds, in turns, 2 workers and 2
# servers on this machine. Prints the training time that one checkpoint takes, by its size, and what that is of five
# minutes, which is the interval by default. Usage: bench/checkpoint_cost.sh
#   PAIRS    how many times both (default 3)
#   ROWS, EPOCHS   size of the job (default 1,000,000 rows, 1 epoch: 0.6 GB in the end)
#   EVERY    of the job with checkpoints (default 5s)
set -euo pipefail
cd "$(dirname "$0")/.."
pairs=${PAIRS:-3} rows=${ROWS:-1000000} epochs=${EPOCHS:-1} every=${EVERY:-5s}
bin=${MUSTER_BUILD:-build}/bin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$bin/coordinator" make-data criteo --rows="$rows" --seed=1 --out="$work/data" >/dev/null
# Wide rows: a store as large as this data can fill.
cat >"$work/job.yaml" <<YAML
name: checkpoint-cost
seed: 1
data:
  train: {format: criteo_tsv, files: ["$work/data/*"], shuffle: {records: 100000}}
model:
  dlrm: {embedding_dim: 512, hash_buckets: 1000000, bottom_mlp: [512], top_mlp: [16, 1]}
optimizer:
  adagrad: {learning_rate: 0.02}
training: {epochs: $epochs, batch_size: 2048, steps_per_function: auto}
checkpoint: {every: never, keep: 1}
YAML
for ((i = 1; i <= pairs; ++i)); do
  for interval in never "$every"; do
    "$bin/coordinator" train "$work/job.yaml" --local --workers=2 --ps=2 --set checkpoint.every="$interval" \
      --job_dir="$work/run" --report="$work/$i-$interval.json" >"$work/out" 2>&1 || { tail -20 "$work/out" >&2; exit 1; }
    du -sb "$work/run/checkpoints" | cut -f1 >"$work/bytes"
    rm -rf "$work/run"
  done
done
python3 - "$work" "$pairs" "$every" <<'PYTHON'
import json, re, sys
work, pairs, every = sys.argv[1], int(sys.argv[2]), sys.argv[3]
gigabytes = int(open(f"{work}/bytes").read()) / 1e9
costs = []
for i in range(1, pairs + 1):
    calm, saving = (json.load(open(f"{work}/{i}-{name}.json")) for name in ("never", every))
    taken = int(re.search(r"(\d+)$", saving["checkpoint"]).group(1)) - 1  # the last one is after the training
    slower = saving["train_seconds"] - calm["train_seconds"]
    costs.append(slower / taken)
    print(f"without {calm['train_seconds']:6.1f} s, with {taken} checkpoints {saving['train_seconds']:6.1f} s: "
          f"{slower / taken:.2f} s each")
mean = sum(costs) / len(costs)
print(f"a checkpoint of {gigabytes:.2f} GB (at the end) takes {mean:.2f} s of training; one every 5 minutes {mean / 3:.2f}%")
PYTHON
