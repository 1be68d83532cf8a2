#!/usr/bin/env bash
# Installs ONNX Runtime for node into FOLDER (default: build/onnxruntime), where the tests of ONNX models look for it;
# tests/run.sh calls it. What is there stays. It needs node and the npm registry; 77: they are not there.
set -euo pipefail
cd "$(dirname "$0")/../../.."
folder=${1:-build/onnxruntime}
package=onnxruntime-node
if [[ -f $folder/node_modules/$package/package.json ]]; then exit 0; fi
for program in node npm; do command -v $program >/dev/null || { echo "there is no $program"; exit 77; }; done
# A registry that does not answer within seconds is none: npm itself would try for minutes.
quick=(--fetch-retries=0 --fetch-timeout=10000)
timeout 20 npm view "${quick[@]}" $package@1 version >/dev/null 2>&1 || { echo "the npm registry does not answer"; exit 77; }
# Complete or not there: an install that is interrupted leaves no folder that tests would take for one.
part=$folder.part
rm -rf "$part"
mkdir -p "$part"
# Its install script would download libraries for graphics cards; what the processor needs is in the package.
(cd "$part" && npm init -y &&
  timeout 300 npm install "${quick[@]}" --ignore-scripts --no-audit --no-fund $package@1) >"$folder.npm.log" 2>&1 ||
  { tail -n 1 "$folder.npm.log"; rm -rf "$part"; exit 77; }
rm -rf "$folder"
mv "$part" "$folder"
