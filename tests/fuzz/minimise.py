"""Chooses a small corpus: files that together reach as many edges as possible.

Usage: minimise.py MOST PROGRAM CORPUS FOLDER... replaces the files of CORPUS by at most MOST of its own and those of
the FOLDERs, greedily by the edges that each adds. Files named crash_* are kept: they once
found a mistake. libFuzzer's -merge says which edges a file reaches; what it would keep, a file for each count of each
edge, is some ten times as many.
"""
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile

MOST_BYTES = 32 << 10  # of a file


def edges_of(program, folders):
    """Path -> set of edges, of every file that does not crash."""
    with tempfile.TemporaryDirectory() as scratch:
        empty, control = os.path.join(scratch, "empty"), os.path.join(scratch, "control")
        os.mkdir(empty)
        subprocess.run([program, "-merge=1", f"-merge_control_file={control}", "-timeout=10", "-rss_limit_mb=2048", empty,
                        *folders], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(control, encoding="utf-8") as file:
            lines = file.read().splitlines()
    names = lines[2:2 + int(lines[0])]
    edges = {}
    for line in lines[2 + len(names):]:
        words = line.split()
        if words[0] == "COV":
            edges[names[int(words[1])]] = set(words[2:])
    return edges


def choose(edges, most, size_of):
    """The paths of the corpus, best first."""
    left = {path: set(reached) for path, reached in edges.items() if size_of(path) <= MOST_BYTES}
    chosen = []
    while left and len(chosen) < most:
        best = max(left, key=lambda path: (len(left[path]), -size_of(path), path))
        added = left.pop(best)
        if not added:
            break
        chosen.append(best)
        for reached in left.values():
            reached -= added
    return chosen


def main():
    most, program, corpus, *folders = sys.argv[1:]
    chosen = choose(edges_of(program, [corpus, *folders]), int(most), os.path.getsize)
    contents = {}
    for path in [os.path.join(corpus, name) for name in sorted(os.listdir(corpus)) if name.startswith("crash_")] + chosen:
        with open(path, "rb") as file:
            data = file.read()
        contents.setdefault(data, os.path.basename(path) if "crash_" in path else hashlib.sha1(data).hexdigest())
    shutil.rmtree(corpus)
    os.makedirs(corpus)
    for data, name in contents.items():
        with open(os.path.join(corpus, name), "wb") as file:
            file.write(data)
    print(f"{corpus}: {len(contents)} files, {sum(map(len, contents))} bytes")


if __name__ == "__main__":
    main()
