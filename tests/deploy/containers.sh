#!/usr/bin/env bash
# Trains in containers of the image, each with an address of its own, under mutual TLS: coordinator, 3 workers, 2 servers.
# Meanwhile a worker's and a server's container are killed and started again with other addresses, a server is asked to
# end (SIGTERM), a worker is added, and the coordinator's container is killed and started again. Then the job must be done
# with an RMSE of at most 0.872 on MovieLens, and every daemon must have ended well.
#
#   tests/deploy/containers.sh [IMAGE]       (default: builds one from build/bin on a base made by debootstrap)
#
# Needs podman, root, and the MovieLens data below MUSTER_DATA; without them it ends with 77: skipped.
set -euo pipefail
cd "$(dirname "$0")/../.."

skip() { echo "containers.sh: SKIPPED: $*"; exit 77; }
command -v podman >/dev/null || skip "there is no podman"
((EUID == 0)) || skip "it needs root for containers with addresses of their own"
data=${MUSTER_DATA:-$PWD/data}
[[ -e $data/movielens/ratings.csv.gz ]] || skip "there is no $data/movielens (deploy/fetch_data.sh)"

slow=60  # times: so that there is something left to do after each failure
work=$(mktemp -d)
network=muster-test-$$
names=()
finish() {
  local code=$?
  if ((code != 0)); then
    for name in "${names[@]}"; do echo "---- $name"; podman logs "$name" 2>&1 | tail -n 20; done
    echo "---- the coordinator's log"
    tail -n 40 "$work/checkpoints/job/logs/coordinator.log"
  fi
  podman rm -f -t 0 "${names[@]}" >/dev/null 2>&1 || true
  podman network rm -f "$network" >/dev/null 2>&1 || true
  rm -rf "$work"
  exit "$code"
}

source tests/deploy/podman_settings.sh
image=${1:-}
if [[ -z $image ]]; then
  image=muster:test
  deploy/image.sh --debootstrap --prebuilt --tag=$image || skip "the image cannot be built here"
fi
podman run --rm --no-healthcheck "$image" coordinator --version || skip "containers cannot run here"
trap finish EXIT
podman network create "$network" >/dev/null

# Nobody's files, as in the pods.
deploy/make_certs.sh "$work/certs"
mkdir "$work/checkpoints" "$work/job"
sed -e 's#\${MUSTER_DATA:-../../data}#/data#' deploy/jobs/movielens_mf.yaml >"$work/job/job.yaml"
chown -R 65532:65532 "$work/certs" "$work/checkpoints"
chmod 755 "$work" "$work/job"

# start NAME ROLE ARGS...
start() {
  local name=$network-$1 role=$2 upper
  upper=${role^^}
  shift 2
  podman rm -f -t 0 "$name" >/dev/null 2>&1 || true
  podman run --detach --no-healthcheck --name "$name" --hostname "$name" --network "$network" --read-only --cap-drop=all \
    --security-opt=no-new-privileges --tmpfs /tmp \
    --volume "$work/certs:/certs:ro" --volume "$work/checkpoints:/checkpoints" --volume "$work/job:/job:ro" \
    --volume "$data:/data:ro" \
    --env "MUSTER_${upper}_TLS_CERT=/certs/$role.crt" --env "MUSTER_${upper}_TLS_KEY=/certs/$role.key" \
    --env "MUSTER_${upper}_TLS_CA=/certs/ca.crt" --env "MUSTER_${upper}_LISTEN=0.0.0.0:7000" \
    "$image" "$role" "$@" >/dev/null
  [[ " ${names[*]} " == *" $name "* ]] || names+=("$name")
}
coordinator() {
  start coordinator coordinator train /job/job.yaml --workers=3 --ps=2 --job_dir=/checkpoints/job --take_over \
    --set checkpoint.every=1s --report=/checkpoints/report.json
}
daemon() { start "$1-$2" "$1" --coordinator="$network-coordinator:7000" --advertise="$network-$1-$2" --orphan_timeout=120 "${@:3}"; }
# until_true SECONDS WHAT COMMAND...
until_true() {
  local end=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < end)) || { echo "containers.sh: FAILED: $what" >&2; exit 1; }
    read -rt 0.2 <> <(:) || true
  done
}
healthy() { podman exec "$network-$1" "$2" health 127.0.0.1:7000; }
steps() {
  podman exec "$network-coordinator" coordinator status 127.0.0.1:7000 2>/dev/null | sed -n 's/^steps: \([0-9,]*[0-9]\).*/\1/p' | tr -d ,
}
further() { # by so many steps
  local from now
  from=$(steps); from=${from:-0}
  until_true 120 "$1 more steps" eval '(( $(steps) >= '"$from + $1"' ))'
}

coordinator
for i in 0 1; do daemon psserver $i --index=$i; done
for i in 0 1 2; do daemon worker $i --slow_down=$slow; done
until_true 60 "the coordinator is healthy" healthy coordinator coordinator
until_true 60 "a server is healthy" healthy psserver-0 psserver
until_true 60 "a worker is healthy" healthy worker-0 worker
echo "containers.sh: six containers train; worker 1 and server 1 are killed"
further 40
podman kill "$network-worker-1" "$network-psserver-1" >/dev/null
daemon psserver 1 --index=1
daemon worker 1 --slow_down=$slow
further 40
echo "containers.sh: server 0 is asked to end and started again; worker 3 is added"
podman stop -t 60 "$network-psserver-0" >/dev/null
[[ $(podman inspect -f '{{.State.ExitCode}}' "$network-psserver-0") == 0 ]]
daemon psserver 0 --index=0
daemon worker 3 --slow_down=$slow
further 40
echo "containers.sh: the coordinator is killed and started again"
podman kill "$network-coordinator" >/dev/null
coordinator
code=$(timeout 600 podman wait "$network-coordinator")
[[ $code == 0 ]] || { echo "containers.sh: FAILED: the coordinator ended with $code" >&2; exit 1; }
for name in "${names[@]}"; do
  code=$(timeout 60 podman wait "$name")
  [[ $code == 0 ]] || { echo "containers.sh: FAILED: $name ended with $code" >&2; exit 1; }
done
python3 - "$work/checkpoints/report.json" <<'PY'
import json, sys
report = json.load(open(sys.argv[1]))
rmse = report["eval"]["rmse"]
print(f"containers.sh: done after {report['steps']} steps, RMSE {rmse:.4f}")
sys.exit(0 if report["status"] == "done" and rmse <= 0.872 else 1)
PY
