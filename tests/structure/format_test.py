"""Every C++ file is as clang-format 14 (Debian 12's) lays it out; other versions differ in places, and are skipped.

Run: python3 tests/structure/format_test.py; to fix: git ls-files '*.cc' '*.h' | xargs clang-format -i
"""
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from structure_test import ROOT, tracked_files

SKIPPED = 77  # the CMake property SKIP_RETURN_CODE
FILES_A_CALL = 50


def misplaced(tool, files):
    """What clang-format says of `files`: a line `path:line:column: error: ...` for each place."""
    run = subprocess.run([tool, "--dry-run", "--Werror", *files], cwd=ROOT, capture_output=True, text=True, check=False)
    if run.returncode == 0:
        return []
    places = [line for line in run.stderr.splitlines() if ": error: " in line]
    return places or [f"{tool} ended with {run.returncode}: {run.stderr}"]


def main():
    tool = next((t for t in ("clang-format-14", "clang-format") if shutil.which(t)), None)
    version = subprocess.run([tool, "--version"], capture_output=True, text=True, check=True).stdout if tool else ""
    if " 14." not in version:
        print(f"SKIPPED: clang-format 14 is needed, found: {version.strip() or 'none'}")
        return SKIPPED
    files = [path for path in tracked_files() if path.endswith((".cc", ".h"))]
    assert len(files) > 100, "the tree was not found"
    chunks = [files[i:i + FILES_A_CALL] for i in range(0, len(files), FILES_A_CALL)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = [line for lines in pool.map(lambda chunk: misplaced(tool, chunk), chunks) for line in lines]
    for line in found[:50]:
        print(line)
    if found:
        print(f"{len(found)} places in all; run: git ls-files '*.cc' '*.h' | xargs clang-format -i")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
