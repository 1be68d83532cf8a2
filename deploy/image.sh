#!/usr/bin/env bash
# Builds the container image of deploy/Dockerfile with podman, buildah or docker, whichever is there.
#
#   deploy/image.sh [--tag=NAME] [--base=IMAGE] [--debootstrap] [--prebuilt]
#     --tag=NAME       default muster:VERSION
#     --base=IMAGE     Debian 12 to build on (default docker.io/library/debian:12-slim)
#     --debootstrap    makes that base first, from Debian's packages: no registry is needed (podman or buildah, as root)
#     --prebuilt       takes build/bin of this tree, built on Debian 12, instead of building in a container
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(sed -n 's/^project(muster VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
tag=muster:$version base=docker.io/library/debian:12-slim prebuilt=no
for argument in "$@"; do
  case $argument in
    --tag=*) tag=${argument#--tag=} ;;
    --base=*) base=${argument#--base=} ;;
    --debootstrap) base=localhost/debian:12-debootstrap ;;
    --prebuilt) prebuilt=yes ;;
    *) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 2 ;;
  esac
done

tool=
for candidate in podman buildah docker; do
  if command -v "$candidate" >/dev/null; then tool=$candidate; break; fi
done
if [[ -z $tool ]]; then
  echo "image.sh: there is no podman, buildah or docker; install one (apt-get install podman)" >&2
  exit 4
fi
if [[ $prebuilt == yes ]]; then
  for program in coordinator worker psserver; do
    [[ -x build/bin/$program ]] || { echo "image.sh: there is no build/bin/$program; build it first (README.md)" >&2; exit 2; }
  done
fi

if [[ $base == localhost/debian:12-debootstrap ]] && ! "$tool" inspect "$base" >/dev/null 2>&1; then
  command -v debootstrap >/dev/null || { echo "image.sh: --debootstrap needs debootstrap; apt-get install debootstrap" >&2; exit 4; }
  root=$(mktemp -d)
  trap 'rm -rf "$root"' EXIT
  debootstrap --variant=minbase bookworm "$root" >/dev/null
  rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/*
  tar -C "$root" -cf "$root.tar" .
  trap 'rm -rf "$root" "$root.tar"' EXIT
  if [[ $tool == buildah ]]; then  # which has no import
    container=$(buildah from scratch)
    buildah add -q "$container" "$root.tar" / >/dev/null
    buildah commit -q "$container" "$base" >/dev/null
    buildah rm "$container" >/dev/null
  else
    "$tool" import "$root.tar" "$base" >/dev/null
  fi
fi

build=("$tool" build)
export DOCKER_BUILDKIT=1  # docker's other builder does not read Dockerfile.dockerignore
[[ $tool != podman && $tool != buildah ]] || build+=(--format=docker --ignorefile=deploy/Dockerfile.dockerignore)  # the format that knows HEALTHCHECK
"${build[@]}" --file=deploy/Dockerfile --tag="$tag" --build-arg=BASE="$base" --build-arg=PREBUILT="$prebuilt" \
  --build-arg=VERSION="$version" --build-arg=REVISION="$(git rev-parse HEAD 2>/dev/null || echo unknown)" .
if [[ $tool == buildah ]]; then  # which tells no bytes
  echo "image.sh: $tag is built ($(buildah images --format='{{.Size}}' "$tag"))"
else
  echo "image.sh: $tag is built ($("$tool" image inspect --format='{{.Size}}' "$tag" 2>/dev/null || echo "?") bytes)"
fi
