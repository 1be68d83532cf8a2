#!/usr/bin/env bash
# Installs, builds and tests. Usage: tests/run.sh [--asan|--tsan|--threadsafety|--debug] [--label REGEX] [--product] [--no-install]
#   --asan, --tsan    the same tests under a sanitizer (TSan: only what is free of gRPC)
#   --threadsafety    builds everything with Clang's thread-safety analysis; runs no test
#   --product         with --threadsafety: the coordinator and the daemons only
#   --label REGEX     tests with such a label: unit, cluster (real processes), sim (100,000 simulated histories), memory
#                     (100,000 functions), long (minutes); default unit|cluster|sim|memory. Of unit and sim alone,
#                     nothing else is built
# MUSTER_DATA names the folder of the real data sets (default ../shared/data, if it is there); without it the tests
# that need them are skipped and say so.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=release
label=
install=yes
product=no
while (($#)); do
  case $1 in
    --asan | --tsan | --threadsafety | --debug) preset=${1#--} ;;
    --label) label=${2:?--label needs a regular expression}; shift ;;
    --no-install) install=no ;;
    --product) product=yes ;;
    -h | --help) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "run.sh: unknown option $1; see --help" >&2; exit 2 ;;
  esac
  shift
done
if [[ $product == yes && $preset != threadsafety ]]; then
  echo "run.sh: --product goes with --threadsafety only: tests need everything" >&2
  exit 2
fi

if [[ $install == yes ]]; then deploy/install_packages.sh; fi
if [[ -z ${MUSTER_DATA:-} && -d ../shared/data ]]; then MUSTER_DATA=$(cd ../shared/data && pwd); fi
export MUSTER_DATA=${MUSTER_DATA:-}

folder=build
[[ $preset == release ]] || folder=build-$preset
cores=$(nproc)
# Variants of one file in several folders share ccache's entries only if paths are taken relative to the project.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1

cmake --preset "$preset" >"$folder.configure.log" 2>&1 || { cat "$folder.configure.log" >&2; exit 1; }
rm -f "$folder.configure.log"
targets=()
if [[ $product == yes ]]; then targets=(--target coordinator --target psserver --target worker); fi
if [[ $label =~ ^(unit|sim)([|](unit|sim))*$ ]]; then
  for name in ${label//|/ }; do targets+=(--target "tests_$name"); done
fi
cmake --build "$folder" -j "$cores" "${targets[@]}"
# Without npm, or a registry that answers, the tests of ONNX models are skipped.
if [[ $preset == release && -x $folder/tests/onnx_runtime_test ]]; then
  tests/coordinator/export/onnxruntime.sh "$folder/onnxruntime" >"$folder/onnxruntime.log" 2>&1 ||
    echo "run.sh: no ONNX Runtime: $(tail -n 1 "$folder/onnxruntime.log")"
fi
if [[ $preset == threadsafety ]]; then
  echo "thread-safety analysis: clean"
  exit 0
fi
# Tests of real processes are marked to run alone; the rest runs in parallel.
# Long tests (minutes) run only when asked for: --label long.
# Other histories for each commit, the same for all who have it.
if [[ -z ${MUSTER_SIM_FIRST_SEED:-} ]] && commit=$(git rev-parse HEAD 2>/dev/null); then
  export MUSTER_SIM_FIRST_SEED=$((16#${commit:0:10}))
fi
# A sanitizer's report of a daemon that a test kills or starts again would be seen by nobody: every process writes its
# own file (CMakeLists.txt), and any file is a failure.
rm -rf "$folder/sanitizer"
mkdir -p "$folder/sanitizer"
result=0
ctest --test-dir "$folder" --output-on-failure --no-tests=error -j "$cores" -L "${label:-unit|cluster|sim|memory}" || result=$?
# A report ends with a summary; a warning, that more memory was asked for than there is, say, has none.
reports=$(grep -ls '^SUMMARY: ' "$folder"/sanitizer/* || true)
if [[ -n $reports ]]; then
  head -n 60 $reports >&2
  echo "run.sh: sanitizer reports of $(wc -w <<<"$reports") processes are in $folder/sanitizer" >&2
  result=1
fi
exit $result
