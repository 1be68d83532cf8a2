#!/usr/bin/env bash
# Runs the rendered manifests as containers: `podman play kube` of the pods that Kubernetes would make of them
# (kube_pods.py), each with an address of its own, under mutual TLS: coordinator, 3 workers, 2 servers. They train
# MovieLens while a worker's and a server's pod is removed and made again, another worker is added, each role gets SIGTERM
# with its grace, and the coordinator's pod is killed. Then four jobs that end otherwise: the rendered podFailurePolicy,
# applied to their exit codes, must have the outcomes that docs/deploy.md promises, and daemons of a job that is over for
# good must be sent home.
#
#   tests/deploy/kubernetes.sh [IMAGE]       (default: builds one from build/bin on a base made by debootstrap)
#
# Needs podman, root, kubectl and the MovieLens data below MUSTER_DATA; without them it ends with 77: skipped.
set -euo pipefail
cd "$(dirname "$0")/../.."

skip() { echo "kubernetes.sh: SKIPPED: $*"; exit 77; }
fail() { echo "kubernetes.sh: FAILED: $*" >&2; exit 1; }
say() { echo "kubernetes.sh: $*"; }
for program in podman kubectl; do command -v $program >/dev/null || skip "there is no $program"; done
python3 -c 'import yaml' 2>/dev/null || skip "there is no python3-yaml"
((EUID == 0)) || skip "it needs root for containers with addresses of their own"
data=${MUSTER_DATA:-$PWD/data}
[[ -e $data/movielens/ratings.csv.gz ]] || skip "there is no $data/movielens (deploy/fetch_data.sh)"

work=$(mktemp -d)
source tests/deploy/podman_settings.sh
wanted=muster:0.1.0  # as the manifests name it
if [[ -n ${1:-} ]]; then
  podman tag "$1" $wanted
else
  deploy/image.sh --debootstrap --prebuilt --tag=$wanted || skip "the image cannot be built here"
fi
podman run --rm --no-healthcheck $wanted coordinator --version || skip "containers cannot run here"

network=muster-kube-$$
pods=()
volumes=()
finish() {
  local code=$? name
  if ((code != 0)); then
    for name in "${pods[@]}"; do
      echo "---- $name"
      podman logs "$name-$(role "$name")" 2>&1 | tail -n 15
    done
    echo "---- the coordinator's log"
    tail -n 40 "$work/volumes/muster-checkpoints/job/logs/coordinator.log"
  fi
  podman pod rm -f -t 0 "${pods[@]}" >/dev/null 2>&1 || true
  podman volume rm -f "${volumes[@]}" muster-job >/dev/null 2>&1 || true
  podman network rm -f "$network" >/dev/null 2>&1 || true
  rm -rf "$work"
  exit "$code"
}
trap finish EXIT
podman network create "$network" >/dev/null

role() { [[ $1 =~ ^muster-([a-z]+) ]] && echo "${BASH_REMATCH[1]}"; }
# volume NAME: an empty folder of the pods' user, or the one given.
volume() {
  local device=${2:-$work/volumes/$1}
  mkdir -p "$device"
  [[ -n ${2:-} ]] || chown 65532:65532 "$device"
  podman volume rm -f "$1" >/dev/null 2>&1 || true
  podman volume create --opt type=none --opt o=bind --opt "device=$device" "$1" >/dev/null
  volumes+=("$1")
}
# Everything that a pod says to the kubelet comes through its container: `muster-worker-0` has `muster-worker-0-worker`.
container() { echo "$1-$(role "$1")"; }
play() {
  local name
  for name; do
    podman pod rm -f -t 0 "$name" >/dev/null 2>&1 || true
    [[ " ${pods[*]} " == *" $name "* ]] || pods+=("$name")
    # Health checks want timers of systemd, which is not everywhere: this script runs them by itself.
    podman play kube --network "$network" "$work/pods/$name.yaml" >"$work/play.log" 2>&1 ||
      { cat "$work/play.log" >&2; fail "podman does not play $name"; }
  done
}
exit_of() { timeout "$2" podman wait "$(container "$1")" || fail "$1 has not ended after $2 s"; }
# What Kubernetes does when a pod of this role ends with this code.
expect_after() { # ROLE EXIT_CODE OUTCOME
  local got
  got=$(python3 tests/deploy/kube_pods.py base --after "$1" "$2")
  [[ $got == "$3" ]] || fail "a $1 that ends with $2: $got, not $3"
}
expect_exit() { local code; code=$(exit_of "$1" "$3"); [[ $code == "$2" ]] || fail "$1 ended with $code, not $2"; }
# As the kubelet does: SIGTERM, the pod's grace, SIGKILL.
terminate() {
  local grace
  grace=$(sed -n 's/.*terminationGracePeriodSeconds: //p' "$work/pods/$1.yaml")
  podman stop -t "$grace" "$(container "$1")" >/dev/null
}
until_true() { # SECONDS WHAT COMMAND...
  local end=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < end)) || fail "$what"
    read -rt 0.2 <> <(:) || true
  done
}
# probe NAME liveness|readiness: the pod's own.
probe() {
  local command
  mapfile -t command < <(python3 - "$work/pods/$1.yaml" "$2Probe" <<'PY'
import sys, yaml
for thing in yaml.safe_load_all(open(sys.argv[1])):
    if thing["kind"] == "Pod":
        print("\n".join(thing["spec"]["containers"][0][sys.argv[2]]["exec"]["command"]))
PY
  )
  podman exec "$(container "$1")" "${command[@]}"
}
steps() {
  podman exec muster-coordinator-coordinator coordinator status 127.0.0.1:7000 2>/dev/null |
    sed -n 's/^steps: \([0-9,]*[0-9]\).*/\1/p' | tr -d ,
}
further() { # by so many steps
  local from
  from=$(steps)
  until_true 240 "$1 more steps" eval '(( $(steps) >= '"${from:-0} + $1"' ))'
}

deploy/make_certs.sh "$work/certificates" >/dev/null
for of in coordinator psserver worker; do
  volume muster-$of-tls
  cp "$work/certificates/$of.crt" "$work/volumes/muster-$of-tls/tls.crt"
  cp "$work/certificates/$of.key" "$work/volumes/muster-$of-tls/tls.key"
  cp "$work/certificates/ca.crt" "$work/volumes/muster-$of-tls/ca.crt"
  chown -R 65532:65532 "$work/volumes/muster-$of-tls"
done
volume muster-checkpoints
volume muster-data "$data"
for i in 0 1 2 3; do volume muster-worker-$i-scratch; done
mkdir "$work/pods"
python3 tests/deploy/kube_pods.py base "$work/pods" --workers=4 --env worker MUSTER_WORKER_SLOW_DOWN=60 \
  --env worker MUSTER_WORKER_ORPHAN_TIMEOUT=150 --env psserver MUSTER_PSSERVER_ORPHAN_TIMEOUT=150 \
  --env coordinator MUSTER_COORDINATOR_SET=checkpoint.every=1s >/dev/null
chmod -R a+rX "$work"

play muster-coordinator muster-psserver-{0,1} muster-worker-{0,1,2}
for name in "${pods[@]}"; do
  until_true 60 "$name is live" probe "$name" liveness
  until_true 60 "$name is ready" probe "$name" readiness
done
# The report that the last coordinator wrote must fulfil a condition, in Python.
expect_report() { # WHAT CONDITION
  python3 - "$work/volumes/muster-checkpoints/job/report.json" "$2" <<'PY' || fail "$1"
import json, sys
report = json.load(open(sys.argv[1]))
if not eval(f"({sys.argv[2]})"):  # of several lines
    print({key: report[key] for key in ("status", "steps", "samples", "checkpoint", "continued_from", "failures", "eval")})
    sys.exit(1)
PY
}
address_of() {
  podman inspect -f "{{(index .NetworkSettings.Networks \"$network\").IPAddress}}" \
    "$(podman pod inspect -f '{{.InfraContainerID}}' "$1")"
}
# Prometheus' way: HTTPS, with a certificate of the job's authority; every pod is a target.
address=$(address_of muster-coordinator)
scrape() {
  curl -s --fail --resolve "coordinator.muster:9100:$address" --cacert "$work/certificates/ca.crt" "${@:2}" \
    "https://coordinator.muster:9100$1"
}
as_worker=(--cert "$work/certificates/worker.crt" --key "$work/certificates/worker.key")
[[ $(scrape /targets "${as_worker[@]}" | grep -c 9100) == 6 ]] || fail "the coordinator does not name six processes"
three_workers() {
  local page  # whole: grep -q would close the pipe on curl
  page=$(scrape /metrics "${as_worker[@]}") && grep -q '^muster_coordinator_members{role="worker",state="ready"} 3' <<<"$page"
}
until_true 30 "the coordinator's metrics show three workers" three_workers
! scrape /metrics || fail "metrics are told without a certificate"
say "six pods train; worker 1's and server 1's are removed and made again"
further 40
before="$(address_of muster-worker-1) $(address_of muster-psserver-1)"
play muster-worker-1 muster-psserver-1
for name in muster-worker-1 muster-psserver-1; do
  [[ " $before " != *" $(address_of $name) "* ]] || fail "$name has an address of before: $before"
done
further 40
say "worker 3 is added; worker 0 and server 0 get SIGTERM"
play muster-worker-3
terminate muster-worker-0
expect_exit muster-worker-0 0 5
expect_after worker 0 Restart
play muster-worker-0
terminate muster-psserver-0
expect_exit muster-psserver-0 0 5
expect_after psserver 0 Restart
play muster-psserver-0
further 40
say "the coordinator gets SIGTERM, its next pod SIGKILL"
terminate muster-coordinator
expect_exit muster-coordinator 143 5
expect_after coordinator 143 Count
expect_report "not all that was trained is saved" 'report["status"] == "stopped" and report["checkpoint"]'
expect_report "SIGTERM to worker 0 or server 0 cost something" \
  '{f["role"] for f in report["failures"] if f["kind"] == "left"} == {"worker", "psserver"} and
   not any(f["updates_rolled_back"] or f["steps_repeated"] for f in report["failures"] if f["kind"] == "left")'
play muster-coordinator
until_true 150 "the coordinator is ready again" probe muster-coordinator readiness
further 40
podman kill muster-coordinator-coordinator >/dev/null
expect_after coordinator 137 Count
play muster-coordinator
expect_exit muster-coordinator 0 900
# Podman's name server stands still for seconds while it forwards a name that has just gone, so a daemon may not find the
# coordinator's last pod in time. It ends with 4 when its patience is over, as after an end of the network.
late=0
for name in "${pods[@]}"; do
  code=$(exit_of "$name" 240)
  [[ $code == 0 || $code == 4 ]] || fail "$name ended with $code"
  ((late += code == 4)) || true
done
((late <= 2)) || fail "$late of the daemons did not hear of the end"
# Every tenth of 100,836 ratings is for the evaluation; a batch has 256.
expect_report "it is not done as it should" 'report["status"] == "done" and report["continued_from"] and
  report["samples"] == 90753 and report["steps"] == 355 and report["eval"]["rmse"] <= 0.872'
say "done after 355 steps, $(grep -o '"rmse": [0-9.]*' "$work/volumes/muster-checkpoints/job/report.json")"

# Before a volume is made again: podman would wait for ever for the pods that use it.
no_pods() {
  podman pod rm -f -t 0 "${pods[@]}" >/dev/null
  pods=()
}
# other_end WHAT EXIT_CODE OUTCOME EDIT [--env...]: another job, the coordinator's pod and job file changed by EDIT (of sed).
other_end() {
  local what=$1 code=$2 outcome=$3 edit=$4 name
  shift 4
  ((${#pods[@]} == 0)) || no_pods
  volume muster-checkpoints "$work/volumes/checkpoints-of-$code"
  chown 65532:65532 "$work/volumes/checkpoints-of-$code"
  rm -f "$work"/pods/*
  podman volume rm -f muster-job >/dev/null 2>&1 || true
  python3 tests/deploy/kube_pods.py "$overlay" "$work/pods" "$@" >/dev/null
  sed -i "$edit" "$work/pods/muster-coordinator.yaml"
  play muster-coordinator
  [[ $what != *machine* ]] && play muster-psserver-{0,1} muster-worker-0
  if [[ $what == *stopped* ]]; then
    until_true 60 "it trains" further 1
    terminate muster-coordinator
  fi
  expect_exit muster-coordinator "$code" 120
  expect_after coordinator "$code" "$outcome"
  if [[ $outcome == FailJob ]]; then  # nobody continues it
    for name in muster-psserver-{0,1} muster-worker-0; do expect_exit $name 0 30; done
  fi
  say "$what: exit code $code, $outcome"
}
overlay=base
one="--env coordinator MUSTER_COORDINATOR_WORKERS=1"
# shellcheck disable=SC2086
other_end "a wrong job" 2 FailJob 's/learning_rate: 0.1/learning_rat: 0.1/' $one
# A user's own program in the place of the coordinator's, and a job file in an overlay, as users have them.
mkdir "$work/own" "$work/volumes/clicks"
cp build/bin/own_model "$work/own/"
printf 'FROM %s\nCOPY own_model /usr/local/bin/coordinator\n' $wanted >"$work/own/Dockerfile"
podman build -q -t muster-own:0.1.0 "$work/own" >/dev/null
# Such prices make infinity. The split between training and evaluation takes every tenth record: both have both labels.
{ echo user,age,price,clicked; for i in {1..4000}; do echo $((i % 100)),$((i % 60)),3.0e38,$((i / 2 % 2)); done; } \
  >"$work/volumes/clicks/clicks.csv"
no_pods
volume muster-data "$work/volumes/clicks"
overlay=$work/own
sed -e 's#\${CLICKS:-clicks.csv}#/data/clicks.csv#' \
  examples/own_model.yaml >"$work/own/job.yaml"
cat >"$work/own/kustomization.yaml" <<YAML
resources: [base]
configMapGenerator: [{name: muster-job, behavior: replace, namespace: muster, files: [job.yaml]}]
generatorOptions: {disableNameSuffixHash: true}
patches:
  - target: {kind: Job, name: muster-coordinator}
    patch: |-
      - {op: replace, path: /spec/template/spec/containers/0/image, value: "muster-own:0.1.0"}
YAML
cp -r deploy/kubernetes/base "$work/own/base"
# shellcheck disable=SC2086
other_end "a function of the user's that fails" 3 FailJob s/x/x/ $one
overlay=base
no_pods
volume muster-data "$data"
other_end "machines that fail" 4 Count s/x/x/ --env coordinator MUSTER_COORDINATOR_START_TIMEOUT=1
# shellcheck disable=SC2086
other_end "a job that is stopped" 143 Count s/x/x/ $one --env worker MUSTER_WORKER_SLOW_DOWN=50
say "OK"
