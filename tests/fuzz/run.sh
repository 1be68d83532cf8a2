#!/usr/bin/env bash
# Builds and runs fuzz targets. Usage: tests/fuzz/run.sh [--seconds=180|--runs=N] [--keep] [--no-build] [TARGET...]
#   --seconds=N  each target for so long (default 180), or until 1,000,000 executions
#   --runs=N     each target for so many executions instead
#   --keep       chooses the corpus anew from it and what was found (otherwise the corpus stays as it is)
#   --no-build   runs what was built before
# Without TARGET all of them, one after the other; each starts from its corpus. Prints executions, covered edges and
# features of each. Fails on a crash, a leak, an input that takes 10 s, or one that takes 2 GB; the input is then in
# build-fuzz/findings/.
set -euo pipefail
cd "$(dirname "$0")/../.."

seconds=180
runs=1000000
keep=
build=yes
targets=()
while (($#)); do
  case $1 in
    --seconds=*) seconds=${1#*=} ;;
    --runs=*) runs=${1#*=}; seconds=0 ;;
    --keep) keep=yes ;;
    --no-build) build= ;;
    -h | --help) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) echo "run.sh: unknown option $1; see --help" >&2; exit 2 ;;
    *) targets+=("$1") ;;
  esac
  shift
done

all=($(sed -n 's/^ *muster_fuzz(\([a-z_]*\) .*/\1/p' tests/fuzz/CMakeLists.txt | sort -u))
((${#targets[@]})) || targets=("${all[@]}")
for target in "${targets[@]}"; do
  [[ " ${all[*]} " == *" $target "* ]] || { echo "run.sh: no target $target; there are: ${all[*]}" >&2; exit 2; }
done

if [[ $build ]]; then
  export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
  cmake --preset fuzz >build-fuzz.configure.log 2>&1 || { cat build-fuzz.configure.log >&2; exit 1; }
  rm -f build-fuzz.configure.log
  cmake --build build-fuzz -j "$(nproc)" --target "${targets[@]/#/fuzz_}"
fi

export ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=1
mkdir -p build-fuzz/findings build-fuzz/work build-fuzz/logs
result=0
printf '%-16s %10s %8s %9s %7s %8s  %s\n' target executions edges features corpus seconds result
for target in "${targets[@]}"; do
  program=build-fuzz/fuzz/fuzz_$target
  log=build-fuzz/logs/$target.log
  corpus=tests/fuzz/corpus/$target
  mkdir -p "$corpus" "build-fuzz/work/$target"
  status=0
  options=(-timeout=10 -rss_limit_mb=2048 -print_final_stats=1 "-artifact_prefix=build-fuzz/findings/$target-")
  [[ -f tests/fuzz/$target.dict ]] && options+=("-dict=tests/fuzz/$target.dict")
  begin=$SECONDS
  "$program" "${options[@]}" -max_total_time="$seconds" -runs="$runs" "build-fuzz/work/$target" "$corpus" >"$log" 2>&1 ||
    status=$?
  executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  read -r edges features files < <(
    sed -n 's/.* cov: \([0-9]*\) ft: \([0-9]*\) corp: \([0-9]*\).*/\1 \2 \3/p' "$log" | tail -1) || true
  said=ok
  ((status == 0)) || { said="FAILED, see $log"; result=1; }
  printf '%-16s %10s %8s %9s %7s %8s  %s\n' "$target" "${executions:--}" "${edges:--}" "${features:--}" "${files:--}" \
    $((SECONDS - begin)) "$said"
  if [[ $keep && $status == 0 ]]; then
    most=100
    [[ $target == coordinator || $target == worker ]] && most=12  # they start threads and wait
    python3 tests/fuzz/minimise.py "$most" "$program" "$corpus" "build-fuzz/work/$target" >>"$log"
  fi
done
exit $result
