#!/usr/bin/env bash
# Boots systemd in a container of Debian 12 with the package `muster`, and trains there by the units, under mutual TLS and
# all of their sandboxing: a job that is done ends all units and is not trained again; so does one with convolutions; a
# wrong job is not started again; a coordinator, server and worker that are killed are, and the job continues; so is a
# coordinator that somebody asks to end, but not after `systemctl stop`, which leaves no failed unit.
#
#   tests/packaging/systemd.sh [BUILD]
#
# Needs root, podman, debootstrap and Debian's archive (MUSTER_DEBIAN_MIRROR, default http://deb.debian.org/debian); without
# them it ends with 77: skipped.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(cd "${1:-build}" && pwd)
mirror=${MUSTER_DEBIAN_MIRROR:-http://deb.debian.org/debian}
skip() { echo "systemd.sh: SKIPPED: $*"; exit 77; }
fail() { echo "systemd.sh: $*" >&2; exit 1; }
((EUID == 0)) || skip "it needs root"
for program in podman debootstrap; do command -v $program >/dev/null || skip "there is no $program"; done

work=$(mktemp -d)
root=$work/root
container=muster-systemd-$$
finish() {
  local code=$?
  ((code == 0 || code == 77)) || podman exec "$container" journalctl --no-pager -n 80 2>/dev/null || true
  podman rm -f -t 0 "$container" >/dev/null 2>&1 || true
  rm -rf --one-file-system "$work"
  exit "$code"
}
trap finish EXIT

source tests/deploy/podman_settings.sh

deploy/deb.sh --build="$build" --out="$work/packages"
debootstrap --variant=minbase --include=systemd,dbus,openssl bookworm "$root" "$mirror" >"$work/debootstrap.log" 2>&1 ||
  { tail -n 3 "$work/debootstrap.log"; skip "debootstrap cannot make a root here"; }
cp "$work"/packages/muster_*.deb "$root/"
podman run -d --name "$container" --privileged --systemd=always --hostname machine --rootfs "$root" /lib/systemd/systemd \
  >/dev/null || skip "systemd cannot run in a container here"

inside() { podman exec "$container" "$@"; }
property() { inside systemctl show "$1" --property="$2" --value; }
# wait_for SECONDS WHAT COMMAND...: until it is true.
wait_for() {
  local end=$((SECONDS + $1)) what=$2
  shift 2
  until "$@"; do
    ((SECONDS < end)) || fail "waited in vain until $what"
    sleep 0.5
  done
}
is() { [[ $(property "$1" "$2") == "$3" ]]; }
restarted() { is "$1" NRestarts "$2" && is "$1" ActiveState active; }
# No pipes: grep -q would close them on the writer, which then fails.
process_log_has() { grep -q -e "$2" <(inside journalctl --no-pager -q _PID="$(property "$1" MainPID)"); }
log_has() { grep -q -e "$2" <(inside journalctl --no-pager -q -u "$1"); }
booted() { grep -qE 'running|degraded' <(inside systemctl is-system-running 2>/dev/null); }
checkpoints() { inside sh -c 'ls -d /var/lib/muster/long/checkpoints/ckpt-* 2>/dev/null | wc -l'; }
has_checkpoints() { (($(checkpoints) > 0)); }
wait_for 60 "systemd runs" booted

inside sh -c 'apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends /muster_*.deb' \
  >"$work/apt.log" 2>&1 || { tail -n 20 "$work/apt.log"; fail "muster cannot be installed"; }
inside id muster
inside sh -ec '
  install -d /etc/muster/jobs
  install -d -m 750 -g muster /etc/muster/tls
  bash /usr/share/muster/make_certs.sh /root/certs
  cd /root/certs
  install -m 640 -g muster *.crt coordinator.key worker.key psserver.key /etc/muster/tls/
  cp /usr/share/muster/systemd/*.env /etc/muster/
  sed -i s/coordinator.example/localhost/ /etc/muster/*.env
  coordinator make-data criteo --rows=20000 --test_rows=2000 --out=/srv/criteo-like
  cd /etc/muster/jobs
  job=/usr/share/muster/jobs/criteo_dlrm.yaml
  sed -e "s#\${MUSTER_DATA:-../../data}#/srv#" -e "s/hash_buckets: .*/hash_buckets: 1000/" $job >short.yaml
  sed -e "s/epochs: .*/epochs: 1000/" -e "/^checkpoint:/d" short.yaml >long.yaml
  echo "checkpoint: {every: 1s}" >>long.yaml
  sed -e "s/^  dlrm:/  nonsense:/" short.yaml >wrong.yaml
  # 256 images of 28 x 28, all of class 0.
  { printf "\000\000\010\003\000\000\001\000\000\000\000\034\000\000\000\034"; head -c 200704 /dev/urandom; } >/srv/images
  { printf "\000\000\010\001\000\000\001\000"; head -c 256 /dev/zero; } >/srv/labels
  cat >images.yaml <<END
name: images
data: {train: {format: idx, files: [/srv/images], labels: [/srv/labels]}}
model: {cnn: {image_column: image, height: 28, width: 28, label_column: label, classes: 10, filters: [4], hidden: [8]}}
optimizer: {adam: {learning_rate: 0.001}}
training: {batch_size: 32}
END'

echo "--- a wrong job"
inside systemctl start muster-coordinator@wrong muster-worker@a
# It sends those home that register within 30 s.
wait_for 60 "the wrong job has ended" is muster-coordinator@wrong ActiveState failed
wait_for 30 "its worker was sent home" is muster-worker@a ActiveState inactive
is muster-coordinator@wrong ExecMainStatus 2 || fail "the wrong job did not end with 2"
is muster-coordinator@wrong NRestarts 0 || fail "the wrong job was started again"
inside systemctl reset-failed

echo "--- a job from beginning to end"
daemons="muster-worker@a muster-worker@b muster-psserver@0 muster-psserver@1"
inside systemctl start muster-coordinator@short $daemons
for unit in muster-coordinator@short $daemons; do
  wait_for 120 "$unit has ended" is "$unit" ActiveState inactive
done
log_has muster-coordinator@short 'evaluated: 2,000 examples' || fail "the job did not end well"
wait_for 30 "the daemons' target has ended with the last of them" is muster-daemons.target ActiveState inactive
[[ -z $(inside systemctl --failed --quiet --plain --no-legend) ]] || fail "a unit failed"
inside test -s /var/lib/muster/short/report.json || fail "there is no report"
inside systemctl start muster-coordinator@short
is muster-coordinator@short ConditionResult no || fail "a job that was done is trained again"

echo "--- convolutions, whose code oneDNN writes"
inside systemctl start muster-coordinator@images $daemons
for unit in muster-coordinator@images $daemons; do
  wait_for 120 "$unit has ended" is "$unit" ActiveState inactive
done
log_has muster-coordinator@images 'images: done, 256 samples' || fail "the images were not trained"

echo "--- kills"
inside systemctl start muster-coordinator@long $daemons
wait_for 60 "there is a checkpoint" has_checkpoints
inside systemctl kill -s KILL muster-coordinator@long
wait_for 60 "the coordinator is back" restarted muster-coordinator@long 1
wait_for 60 "the job continues" process_log_has muster-coordinator@long 'CONTINUES from'
for unit in muster-psserver@1 muster-worker@a; do
  inside systemctl kill -s KILL $unit
  wait_for 60 "$unit is back" restarted $unit 1
  wait_for 60 "$unit has registered again" process_log_has $unit 'registered as\|serves at'
done
echo "--- exit codes of daemons"
inside sh -c 'echo MUSTER_WORKER_LISTEN=0.0.0.0:7000 >/etc/muster/worker-taken.env; echo MUSTER_WORKER_LISTEN=nowhere >/etc/muster/worker-wrong.env'
inside systemctl start muster-worker@taken muster-worker@wrong
wait_for 30 "a worker whose port is taken is started again" is muster-worker@taken NRestarts 1
wait_for 30 "a worker with wrong settings has failed" is muster-worker@wrong ActiveState failed
is muster-worker@wrong ExecMainStatus 2 || fail "wrong settings do not end with 2"
is muster-worker@wrong NRestarts 0 || fail "a worker with wrong settings was started again"
inside systemctl stop muster-worker@taken
# Of all units it would also reset the count of restarts.
inside systemctl reset-failed muster-worker@wrong
# It has failed too if it was just ending when it was asked to stop; otherwise systemd may have forgotten it.
inside systemctl reset-failed muster-worker@taken 2>/dev/null || true
echo "--- asked to end by others than systemd"
inside systemctl kill -s TERM --kill-whom=main muster-coordinator@long
wait_for 120 "the coordinator is back" restarted muster-coordinator@long 2
wait_for 60 "the job continues" process_log_has muster-coordinator@long 'CONTINUES from'
echo "--- systemctl stop"
inside systemctl stop muster-coordinator@long muster-daemons.target
for unit in muster-coordinator@long $daemons; do
  wait_for 120 "$unit has ended" is "$unit" ActiveState inactive
done
last_lines=$(inside journalctl --no-pager -q -u muster-coordinator@long -n 12)
[[ $last_lines == *": stopped, "* ]] || fail "the coordinator did not end cleanly"
[[ -z $(inside systemctl --failed --quiet --plain --no-legend) ]] || fail "a unit failed"
echo "--- the only daemon of a machine is killed"
inside systemctl start muster-worker@a
inside systemctl kill -s KILL muster-worker@a
wait_for 60 "the worker is back" restarted muster-worker@a 1
is muster-daemons.target ActiveState active || fail "the daemons' target ended with a daemon that was started again"
inside systemctl stop muster-worker@a
wait_for 30 "the daemons' target has ended" is muster-daemons.target ActiveState inactive
echo "systemd.sh: passed"
