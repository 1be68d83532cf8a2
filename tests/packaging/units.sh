#!/usr/bin/env bash
# systemd reads the units of deploy/systemd without a complaint, and rates what they may do; each variable of the example
# environment files is a flag of its program; systemd waits longer than the programs take to end; what uses oneDNN may make
# memory executable, and nothing else.
#
#   tests/packaging/units.sh [BUILD]
#
# Without systemd-analyze it ends with 77: skipped.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(cd "${1:-build}" && pwd)
command -v systemd-analyze >/dev/null || { echo "units.sh: SKIPPED: there is no systemd-analyze"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "units.sh: $*" >&2; exit 1; }

cmake --install "$build" --prefix "$work/prefix" --component programs >/dev/null
units=$work/prefix/lib/systemd/system
for role in coordinator worker psserver; do
  unit=$units/muster-$role@.service
  cp "$unit" "$units/muster-$role@7.service"
  said=$(systemd-analyze verify --man=no --recursive-errors=no "$units/muster-$role@7.service" 2>&1) || fail "muster-$role@: $said"
  [[ -z $said ]] || fail "muster-$role@: $said"
  # 0 is locked up, 100 open; a daemon needs the network.
  systemd-analyze security --offline=yes --no-pager --threshold=25 "$units/muster-$role@7.service" >"$work/rating" ||
    { cat "$work/rating"; fail "muster-$role@ may do more than it needs"; }
  tail -n 1 "$work/rating"

  # oneDNN writes code while it runs.
  if grep -q libdnnl <(ldd "$build/bin/$role"); then
    ! grep -q '^MemoryDenyWriteExecute=yes' "$unit" || fail "muster-$role@ keeps oneDNN from writing code"
  else
    grep -q '^MemoryDenyWriteExecute=yes' "$unit" || fail "muster-$role@ may make memory executable without need"
  fi

  help=$work/$role.help
  if [[ $role == coordinator ]]; then "$build/bin/$role" train --help >"$help"; else "$build/bin/$role" --help >"$help"; fi
  for variable in $(grep -ohE '\bMUSTER_[A-Z_]+=' "$unit" "deploy/systemd/$role.env" | tr -d = | sort -u); do
    grep -qw "$variable" "$help" || fail "$role has no flag for $variable"
  done
  stop=$(sed -n 's/^TimeoutStopSec=\([0-9]*\)s$/\1/p' "$unit")
  drain=$(sed -n 's/.*_DRAIN_TIMEOUT=//p' "$unit")
  ((stop > ${drain:-25} + 2)) || fail "muster-$role@ is killed before its drain ends"
done
# It must be able to fail.
echo 'Restart=perhaps' >>"$units/muster-worker@7.service"
sed -i '/^\[Install\]/,/^WantedBy/d' "$units/muster-worker@7.service"
[[ -n $(systemd-analyze verify --man=no "$units/muster-worker@7.service" 2>&1 || true) ]] || fail "a wrong unit was not noticed"
echo "units.sh: passed"
