#!/usr/bin/env bash
# Makes the certificates of a job for trials: an authority and one certificate for each role. In production let
# cert-manager or your own authority sign them (docs/security.md says what they must hold).
#
#   deploy/make_certs.sh DIR [--days=N]      (N below 0 makes expired ones, for tests)
#
# DIR gets ca.crt and ca.key, and coordinator, worker and psserver with .crt and .key. An authority that is there is
# kept, so that a second call renews the roles' certificates: processes that run read them again by themselves.
set -euo pipefail

usage() {
  echo "usage: deploy/make_certs.sh DIR [--days=N]" >&2
  exit 2
}

directory=""
days=365
for argument in "$@"; do
  case "$argument" in
    --days=*) days="${argument#--days=}" ;;
    -*) usage ;;
    *) [[ -z "$directory" ]] || usage; directory="$argument" ;;
  esac
done
[[ -n "$directory" && "$days" =~ ^-?[0-9]+$ ]] || usage
command -v openssl >/dev/null || { echo "deploy/make_certs.sh: there is no openssl; apt-get install openssl" >&2; exit 4; }

mkdir -p "$directory"
umask 077  # keys are their owner's
work="$(mktemp -d "$directory/.new.XXXXXX")"
trap 'rm -rf "$work"' EXIT

new_key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1" 2>/dev/null; }

if [[ ! -e "$directory/ca.key" ]]; then
  new_key "$work/ca.key"
  openssl req -x509 -new -key "$work/ca.key" -days 3650 -subj "/CN=muster trial authority" \
    -addext "basicConstraints=critical,CA:TRUE" -addext "keyUsage=critical,keyCertSign,cRLSign" -out "$work/ca.crt"
  chmod 644 "$work/ca.crt"
  mv "$work/ca.crt" "$work/ca.key" "$directory/"
fi
for role in coordinator worker psserver; do
  new_key "$work/$role.key"
  openssl req -new -key "$work/$role.key" -subj "/CN=$role.muster" -out "$work/$role.csr"
  openssl x509 -req -in "$work/$role.csr" -CA "$directory/ca.crt" -CAkey "$directory/ca.key" -days "$days" \
    -extfile <(printf 'subjectAltName=DNS:%s.muster\nextendedKeyUsage=serverAuth,clientAuth\n' "$role") \
    -out "$work/$role.crt" 2>/dev/null
  chmod 644 "$work/$role.crt"
  mv "$work/$role.key" "$work/$role.crt" "$directory/"
done
echo "certificates of coordinator, worker and psserver, valid for $days days, are in $directory"
