#!/usr/bin/env bash
# Builds the Debian packages `muster` (programs, units, jobs, manifests) and `libmuster-dev` (libraries, headers) for
# Debian 12, and prints their files' names.
#
#   deploy/deb.sh [--out=DIR] [--build=DIR]
#     --out=DIR     where the packages go (default the build's folder)
#     --build=DIR   the build whose programs are packed (default build, of the preset release); built as far as necessary
set -euo pipefail
cd "$(dirname "$0")/.."

build=build out=
for argument in "$@"; do
  case $argument in
    --out=*) out=${argument#--out=} ;;
    --build=*) build=${argument#--build=} ;;
    *) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 2 ;;
  esac
done
for program in cpack dpkg-deb dpkg-shlibdeps file; do
  command -v $program >/dev/null || { echo "deb.sh: there is no $program; apt-get install cmake dpkg-dev file" >&2; exit 4; }
done

export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
if [[ ! -e $build/CMakeCache.txt ]]; then
  cmake -G Ninja -B "$build" -DCMAKE_BUILD_TYPE=Release >/dev/null
fi
cmake --build "$build" -j "$(nproc)" --target coordinator worker psserver >"$build/deb.log" 2>&1 || { tail -n 40 "$build/deb.log" >&2; exit 1; }
out=${out:-$build}
mkdir -p "$out"
out=$(cd "$out" && pwd)
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
cpack --config "$build/CPackConfig.cmake" -B "$stage" >"$build/deb.log" 2>&1 || { tail -n 40 "$build/deb.log" >&2; exit 1; }
for package in "$stage"/*.deb; do
  mv "$package" "$out/"
  echo "$out/$(basename "$package")"
done
