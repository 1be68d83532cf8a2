#!/usr/bin/env bash
# Three models on this machine for an hour while daemons are killed: a convolutional and a residual network on MNIST,
# and DLRM on synthetic clicks; what it does to their time and quality, and what it costs (docs/soak.md).
# Usage: bench/soak_models.sh RECORD [option of coordinator soak ...]; MNIST: deploy/fetch_data.sh mnist
# An option that is given takes the place of the one that would be passed here.
# Exits as coordinator soak does. What RECORD has already is compared with.
set -euo pipefail
# Folders that the caller names are relative to where the caller is.
from=$PWD
record=$(realpath -m "${1:?usage: bench/soak_models.sh RECORD [option of coordinator soak ...]}")
shift
data=${MUSTER_DATA:+$(realpath -m "$MUSTER_DATA")}
build=${MUSTER_BUILD:+$(realpath -m "$MUSTER_BUILD")}
cd "$(dirname "$0")/.."
bin=$(realpath "${build:-build}/bin")
mnist=${data:-data}/mnist
[[ -e $mnist/train-images-idx3-ubyte.gz ]] ||
  { echo "there is no $mnist; run \`deploy/fetch_data.sh mnist\`, or say with MUSTER_DATA which folder has mnist" >&2; exit 1; }
mnist=$(realpath "$mnist")
mkdir -p "$record/jobs"
clicks=$record/clicks
[[ -e $clicks/test.tsv.gz ]] || "$bin/coordinator" make-data criteo --rows=5000000 --test_rows=50000 --seed=1 --out="$clicks"

# Each for some three minutes on two cores.
job() {
  local file=deploy/jobs/$1.yaml epochs='^  epochs: [0-9]+$'  # of `training`, and not of an eval_every
  [[ $(grep -cE "$epochs" "$file") == 1 ]] || { echo "$file: no line \`  epochs: N\`, or several" >&2; exit 1; }
  sed -E -e "s|\"[^\"]*/mnist/|\"$mnist/|g" -e "s|\"[^\"]*/criteo-like/|\"$clicks/|g" -e "s/$epochs/  epochs: $2/" "$file"
  echo "checkpoint: {every: 30s}"
}
job mnist_cnn 20 >"$record/jobs/mnist_cnn.yaml"
job mnist_resnet 14 >"$record/jobs/mnist_resnet.yaml"
job criteo_dlrm 1 >"$record/jobs/criteo_dlrm.yaml"
# Prices of an hour as clouds have them: a preemptible machine costs some third of one on demand.
cat >"$record/prices.yaml" <<'YAML'
currency: USD
coordinator: {on_demand: 0.10}
worker: {on_demand: 0.40, preemptible: 0.12}
ps: {on_demand: 0.60, preemptible: 0.20}
YAML
# The command line takes each option once.
defaults=()
default() {
  local given
  for given in "${options[@]}"; do [[ $given == "$1" || $given == "$1="* ]] && return; done
  defaults+=("$1${2:+=$2}")
}
options=("$@")
default --local
default --workers 3
default --ps 2
default --preempt worker:kill:every=20s,ps:kill:every=3m
default --for 1h
default --record "$record"
default --prices "$record/prices.yaml"
cd "$from"
exec "$bin/coordinator" soak "$record"/jobs/{mnist_cnn,mnist_resnet,criteo_dlrm}.yaml "${defaults[@]}" "$@"
