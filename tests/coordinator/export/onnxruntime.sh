#!/usr/bin/env bash
# Installs ONNX Runtime for node into FOLDER (default: build/onnxruntime), where the tests of ONNX models look for it.
# It needs node and the npm registry; 77: they are not there.
set -euo pipefail
cd "$(dirname "$0")/../../.."
folder=${1:-build/onnxruntime}
for program in node npm; do command -v $program >/dev/null || { echo "there is no $program"; exit 77; }; done
mkdir -p "$folder"
# Its install script would download libraries for graphics cards; what the processor needs is in the package.
(cd "$folder" && npm init -y && npm install --ignore-scripts --no-audit --no-fund onnxruntime-node@1) >"$folder/npm.log" 2>&1 ||
  { tail -n 3 "$folder/npm.log"; exit 77; }
