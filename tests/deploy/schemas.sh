#!/usr/bin/env bash
# Checks every object of deploy/kubernetes, rendered, and the pod of docs/deploy.md against Kubernetes' own schemas. By
# hand: it needs kubectl, node and the npm registry; without them it ends with 77: skipped.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD

skip() { echo "schemas.sh: SKIPPED: $*"; exit 77; }
for program in kubectl node npm; do command -v $program >/dev/null || skip "there is no $program"; done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$work" && npm init -y && npm install --no-audit --no-fund kubernetes-models@5 @kubernetes-models/cert-manager@6 js-yaml@4 \
  typescript@5) >"$work/npm.log" 2>&1 || { tail -n 3 "$work/npm.log"; skip "npm cannot install the schemas"; }
failed=0
check() { # WHAT: of rendered.yaml
  local said
  said=$(cd "$work" && node "$root/tests/deploy/schemas.mjs" <rendered.yaml) || failed=1
  echo "$1: $said"
}
for folder in deploy/kubernetes/*/; do
  kubectl kustomize "$folder" >"$work/rendered.yaml"
  check "$folder"
done
sed -n '/^# fill.yaml$/,/^```$/{/^```$/d;p}' docs/deploy.md >"$work/rendered.yaml"
check docs/deploy.md
exit $failed
