#!/usr/bin/env bash
# A project outside of the tree (outside/) uses Muster in both ways of docs/packages.md: installed, by find_package, and as
# a subproject. With the installed one it trains on 2 workers and 2 servers.
#
#   tests/packaging/outside.sh [BUILD]      (default build; its coordinator, worker and psserver must be built)
#
# Of the subproject only what needs protoc is built, or, with MUSTER_TEST_SUBPROJECT=all, everything, and it trains too.
set -euo pipefail
cd "$(dirname "$0")/../.."
source=$PWD
build=$(cd "${1:-build}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "outside.sh: $*" >&2; exit 1; }
generator=()
! command -v ninja >/dev/null || generator=(-G Ninja)

# The same flags as any user's: none of this tree's.
unset CXXFLAGS CFLAGS LDFLAGS
prefix=$work/prefix
cmake --install "$build" --prefix "$prefix" >"$work/install.log" || { tail "$work/install.log"; exit 1; }
for file in bin/coordinator bin/worker bin/psserver share/muster/make_certs.sh share/muster/jobs/movielens_mf.yaml \
  share/muster/kubernetes/base/kustomization.yaml share/muster/systemd/worker.env lib/sysusers.d/muster.conf \
  include/muster/coordinator/muster.h include/muster/proto/job.pb.h; do
  [[ -e $prefix/$file ]] || fail "$file is not installed"
done
"$prefix/bin/coordinator" --version
grep -q "^ExecStart=$prefix/bin/worker" "$prefix/lib/systemd/system/muster-worker@.service" || fail "the unit names another worker"
# No file of the package may name this tree or its build.
! grep -rlE "$source|$build" "$prefix/lib/cmake" "$prefix/include" "$prefix/share" "$prefix/lib/systemd" || fail "these files name the tree"

mkdir "$work/installed" "$work/subproject"
cd "$work/installed"
"$source/tests/packaging/outside/run.sh" "$prefix/bin" "${generator[@]}" -DCMAKE_PREFIX_PATH="$prefix"
# (No pipe: grep -q would close it on nm.) Linked from an archive, it must still look at the processor before anything else.
grep -q ' T muster_require_processor$' <(nm -C build/outside) || fail "the program does not look at the processor"
! cmake -S "$source/tests/packaging/outside" -B wrong -DCMAKE_PREFIX_PATH="$prefix" -DMUSTER_VERSION=9.9 >wrong.log 2>&1 ||
  fail "version 9.9 was found"
grep -q 'requested version "9.9"' wrong.log || { cat wrong.log; fail "the wrong message for version 9.9"; }

cd "$work/subproject"
if [[ ${MUSTER_TEST_SUBPROJECT:-} == all ]]; then
  cmake -S "$source/tests/packaging/outside" -B build "${generator[@]}" -DMUSTER_SOURCE="$source" -DCMAKE_BUILD_TYPE=Release >configure.log
  cmake --build build -j "$(nproc)" --target worker psserver >build.log || { tail -n 60 build.log; exit 1; }
  "$source/tests/packaging/outside/run.sh" "$work/subproject/build" "${generator[@]}" -DMUSTER_SOURCE="$source"
else
  cmake -S "$source/tests/packaging/outside" -B build "${generator[@]}" -DMUSTER_SOURCE="$source" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >configure.log 2>&1 || { cat configure.log; exit 1; }
  cmake --build build -j "$(nproc)" --target mu_base >build.log || { tail -n 60 build.log; exit 1; }
  ! grep -q -e -march <(grep -E 'outside/main\.cc' build/compile_commands.json) || fail "Muster's flags reach the user's files"
  grep -q 'mu_base.dir' build/compile_commands.json || fail "the subproject's files are not there"
fi
echo "outside.sh: passed"
