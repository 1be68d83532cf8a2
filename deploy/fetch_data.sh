#!/usr/bin/env bash
# Downloads public data sets from their owners' addresses, into the folders that deploy/jobs/*.yaml look in.
# Usage: deploy/fetch_data.sh [--out DIR] [movielens|a9a|adult|mnist|kdd99|criteo-sample ...]     (default: movielens)
# DIR, relative to where you stand, is MUSTER_DATA or this repository's data unless --out says otherwise. Each set's
# terms are printed; by using it you accept them. A file that is there already is not downloaded again.
set -euo pipefail

out=${MUSTER_DATA:-$(cd "$(dirname "$0")/.." && pwd)/data}
sets=()
while (($#)); do
  case $1 in
    --out) out=${2:?--out needs a folder}; shift ;;
    -h | --help) sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) echo "fetch_data: unknown option $1; see --help" >&2; exit 2 ;;
    *) sets+=("$1") ;;
  esac
  shift
done
((${#sets[@]})) || sets=(movielens)
known=" movielens a9a adult mnist kdd99 criteo-sample "
for set in "${sets[@]}"; do  # before anything is downloaded
  [[ $known == *" $set "* ]] ||
    { echo "fetch_data: no data set $set; there are:${known% } (a folder is given by --out)" >&2; exit 2; }
done
[[ $out == /* ]] || out=$PWD/$out

failed() {
  cat >&2 <<TEXT
fetch_data: could not get $1
  Without internet access, download it on another machine and copy it to $2.
  Behind a proxy, set https_proxy. If the owner has moved it, search for the name above and put it there by hand.
TEXT
  exit 1
}

# download URL FILE: FILE appears only when it is whole.
download() {
  local url=$1 file=$2
  if [[ -s $file ]]; then
    echo "fetch_data: $file is there"
    return
  fi
  mkdir -p "$(dirname "$file")"
  echo "fetch_data: $url"
  if command -v curl >/dev/null; then
    curl --fail --location --silent --show-error --retry 3 --connect-timeout 20 --output "$file.part" "$url" ||
      failed "$url" "$file"
  elif command -v wget >/dev/null; then
    wget --quiet --tries=3 --timeout=20 --output-document="$file.part" "$url" || failed "$url" "$file"
  else
    cat >&2 <<TEXT
fetch_data: there is neither curl nor wget on this machine. Do one of these, then run this again:
  apt-get install --yes curl                  (as root; or with sudo before it)
  or, on another machine, download            $url
  and copy it here as                         $file
TEXT
    exit 1
  fi
  mv "$file.part" "$file"
}

# verify FILE.gz SHA256: the sum of what is in it, without carriage returns. Owners change their files now and then, so
# another sum is no failure, but the figures of our tests do not hold for it.
verify() {
  gzip --test "$1" || { echo "fetch_data: $1 is damaged; remove it and run this again" >&2; exit 1; }
  if [[ $(gzip -dc "$1" | tr -d '\r' | sha256sum | cut -d' ' -f1) == "$2" ]]; then
    echo "fetch_data: $1 has the sum that is known"
  else
    echo "fetch_data: $1 is another version than the one that Muster's figures were measured on (its SHA-256 differs)" >&2
  fi
}

movielens() {
  echo "MovieLens ml-latest-small (Harper and Konstan, 2015): GroupLens' terms, not commercial; see README.txt in it."
  if [[ -s $out/movielens/ratings.csv.gz ]]; then
    echo "fetch_data: $out/movielens is there"
  else
    fetch_movielens
  fi
  verify "$out/movielens/ratings.csv.gz" 80da8b3393dae325bbba5a31f291a6ba55d8d4f4396de3c456f2c1635b1b70e8
  # What the models of choices read.
  [[ -s $out/movielens/ranking/items.csv ]] ||
    python3 "$(dirname "${BASH_SOURCE[0]}")/movielens_ranking.py" "$out/movielens/ratings.csv.gz" "$out/movielens/ranking"
}

fetch_movielens() {
  download https://files.grouplens.org/datasets/movielens/ml-latest-small.zip "$out/movielens/ml-latest-small.zip"
  # python3 is among deploy/packages.txt, unzip is not.
  python3 - "$out/movielens" <<'PYTHON'
import gzip, os, sys, zipfile
folder = sys.argv[1]
archive = zipfile.ZipFile(os.path.join(folder, "ml-latest-small.zip"))
with open(os.path.join(folder, "README.txt"), "wb") as readme:
    readme.write(archive.read("ml-latest-small/README.txt"))
for name in ("movies", "ratings"):
    path = os.path.join(folder, name + ".csv.gz")
    with gzip.open(path + ".part", "wb") as file:
        file.write(archive.read(f"ml-latest-small/{name}.csv"))
    os.rename(path + ".part", path)
PYTHON
  rm -f "$out/movielens/ml-latest-small.zip"
}

# compressed URL FILE.gz: a plain text that is kept compressed.
compressed() {
  [[ -s $2 ]] && { echo "fetch_data: $2 is there"; return; }
  download "$1" "${2%.gz}"
  gzip -n "${2%.gz}"
}

adult() {
  echo "UCI Adult (Becker and Kohavi, 1996): CC BY 4.0."
  compressed https://archive.ics.uci.edu/ml/machine-learning-databases/adult/adult.data "$out/adult/adult.data.gz"
  compressed https://archive.ics.uci.edu/ml/machine-learning-databases/adult/adult.test "$out/adult/adult.test.gz"
  verify "$out/adult/adult.data.gz" 5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d
  verify "$out/adult/adult.test.gz" a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05
}

a9a() {
  echo "a9a (LIBSVM data: UCI Adult as binary features): CC BY 4.0."
  local base=https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary
  compressed $base/a9a "$out/a9a/a9a.gz"
  compressed $base/a9a.t "$out/a9a/a9a.t.gz"
  verify "$out/a9a/a9a.gz" f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906
  verify "$out/a9a/a9a.t.gz" 7d8c09f1120d9ff231d85caba98956906033f3c4d53e2b15ab7ef83710de6a76
}

mnist() {
  echo "MNIST (LeCun, Cortes, Burges): CC BY-SA 3.0."
  local base=https://ossci-datasets.s3.amazonaws.com/mnist
  local file sum
  while read -r file sum; do
    download "$base/$file-ubyte.gz" "$out/mnist/$file-ubyte.gz"
    verify "$out/mnist/$file-ubyte.gz" "$sum"
  done <<SUMS
train-images-idx3 9a122587aaf49f624c396af1aca6420132648df0722ce924c759f4c74ffffee7
train-labels-idx1 65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5
t10k-images-idx3 d93e3ddff9e744be598f3426cd8e0aa2e95e1f5a1532b2dd2e41b600eb531ce7
t10k-labels-idx1 ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2
SUMS
}

kdd99() {
  echo "KDD Cup 1999, 10% (UCI): CC BY 4.0."
  download https://archive.ics.uci.edu/ml/machine-learning-databases/kddcup99-mld/kddcup.data_10_percent.gz \
    "$out/kdd99/kddcup.data_10_percent.gz"
  verify "$out/kdd99/kddcup.data_10_percent.gz" f8c8267ebcd9c0ed1fd7d6277fe5bfff8732e9b7db8e61b873542b2a534b6f9a
}

criteo-sample() {
  cat <<TEXT
Criteo 1TB Click Logs (Criteo AI Lab): CC BY-NC-SA 4.0. Its owner hands out whole days of 15 GB compressed:
  https://ailab.criteo.com/download-criteo-1tb-click-logs-dataset/
After you have accepted the terms there and have day_0.gz, deploy/jobs/criteo_sample.yaml reads its first lines:
  mkdir -p $out/criteo-1tb-sample
  zcat day_0.gz | head -n 1000 | gzip > $out/criteo-1tb-sample/day_0.1000.tsv.gz
TEXT
}

# jobs SET: which job files read it, and how.
jobs() {
  local repository job list=()
  repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
  for job in "$repository"/deploy/jobs/*.yaml; do
    if grep -q "/$1/" "$job"; then list+=("${job#"$repository"/}"); fi
  done
  echo "fetch_data: $out/$1 is read by ${list[*]}"
  [[ $out == "$repository/data" ]] || echo "fetch_data: with MUSTER_DATA=$out before the command"
}

for set in "${sets[@]}"; do
  "$set"
  [[ $set == criteo-sample ]] || jobs "$set"
done
