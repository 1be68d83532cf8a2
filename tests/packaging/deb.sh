#!/usr/bin/env bash
# Builds the Debian packages, installs them with apt into a fresh root of Debian 12, and there builds the project of
# outside/ against libmuster-dev and trains with it on the packaged programs.
#
#   tests/packaging/deb.sh [BUILD]
#
# Needs root, debootstrap and Debian's archive (MUSTER_DEBIAN_MIRROR, default http://deb.debian.org/debian); without them
# it ends with 77: skipped.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(cd "${1:-build}" && pwd)
mirror=${MUSTER_DEBIAN_MIRROR:-http://deb.debian.org/debian}
skip() { echo "deb.sh: SKIPPED: $*"; exit 77; }
fail() { echo "deb.sh: $*" >&2; exit 1; }
((EUID == 0)) || skip "it needs root for a root of its own"
command -v debootstrap >/dev/null || skip "there is no debootstrap"

work=$(mktemp -d)
root=$work/root
finish() {
  local code=$?
  mountpoint -q "$root/proc" && umount -l "$root/proc"
  # What is still mounted must not be deleted.
  mountpoint -q "$root/proc" || rm -rf --one-file-system "$work"
  exit "$code"
}
trap finish EXIT

deploy/deb.sh --build="$build" --out="$work/packages"
for package in "$work"/packages/*.deb; do
  dpkg-deb --field "$package" Package Version Depends
  ! dpkg-deb --contents "$package" | awk '{print $6}' | grep -vE '^\./(usr/.*)?$' || fail "$package has files outside of /usr"
done

debootstrap --variant=minbase bookworm "$root" "$mirror" >"$work/debootstrap.log" 2>&1 || { tail -n 3 "$work/debootstrap.log"; skip "debootstrap cannot make a root here"; }
mount -t proc proc "$root/proc" || skip "/proc cannot be mounted here"
cp /etc/resolv.conf "$root/etc/resolv.conf"
mkdir "$root/packages" "$root/outside"
cp "$work"/packages/*.deb "$root/packages/"
cp tests/packaging/outside/* "$root/outside/"

inside() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive "$@"; }
inside apt-get update -qq
# The programs alone first: what they need to run must not come with what development needs.
inside sh -c 'apt-get install -y -qq --no-install-recommends /packages/muster_*.deb' >"$work/apt.log" 2>&1 || { tail -n 20 "$work/apt.log"; fail "muster cannot be installed"; }
for program in coordinator worker psserver; do inside $program --version; done
# Its data is not here, and that is all.
said=$(inside coordinator check /usr/share/muster/jobs/movielens_mf.yaml 2>&1 || true)
[[ $said == "2 problems"* && $said == *"there is no file"* ]] || fail "the packaged job file: $said"
inside test -e /usr/lib/systemd/system/muster-worker@.service || fail "there is no unit"

inside sh -c 'apt-get install -y -qq --no-install-recommends /packages/libmuster-dev_*.deb g++ cmake make python3' >"$work/apt.log" 2>&1 || { tail -n 20 "$work/apt.log"; fail "libmuster-dev cannot be installed"; }
inside sh -c 'mkdir /trial && cd /trial && bash /outside/run.sh /usr/bin'
inside sh -c 'apt-get purge -y -qq muster libmuster-dev' >"$work/apt.log" 2>&1 || { tail -n 20 "$work/apt.log"; fail "the packages cannot be removed"; }
! find "$root/usr" -path '*muster*' | grep . || fail "these files are left"
echo "deb.sh: passed"
