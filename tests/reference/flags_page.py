"""docs/reference/flags.md is what the programs themselves say of their flags.

Usage: flags_page.py FOLDER_OF_BINARIES [--write]
"""
import difflib
import os
import subprocess
import sys

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/reference/flags.md")
BEGIN = """# Flags

Made by `tests/reference/flags_page.py` from the programs themselves; do not edit it.

Each flag can also be given by its environment variable, in containers and systemd units say. The command line takes precedence over the environment. A flag without a value (`--local`) is set by `true`. Every program has `--help` and `--version`.
"""


def main():
    binaries = sys.argv[1]
    text = BEGIN
    for program in ("coordinator", "worker", "psserver"):
        for command in ([], ["health"]):
            text += subprocess.run([os.path.join(binaries, program), *command, "--help_markdown"], check=True,
                                   capture_output=True, text=True, env={}).stdout
    if sys.argv[2:] == ["--write"]:
        with open(PAGE, "w") as file:
            file.write(text)
        return 0
    with open(PAGE) as file:
        there = file.read()
    if there == text:
        return 0
    sys.stderr.writelines(difflib.unified_diff(there.splitlines(True), text.splitlines(True), "docs/reference/flags.md",
                                               "the programs"))
    print(f"write it anew: python3 tests/reference/flags_page.py {binaries} --write", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
