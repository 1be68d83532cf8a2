"""The list of mistakes: *.txt beside this file.

    == name_that_says_what_goes_wrong
    file coordinator/core/core_cancel.cc
    -whole lines that are in the file exactly once
    +whole lines that take their place; none: they are dropped

Lines that begin with # are comments. Each mistake compiles, and some user could suffer from it.
"""
import glob
import os
from dataclasses import dataclass, field

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


class Misfit(Exception):
    """The mistake does not apply to the sources."""


@dataclass
class Mutant:
    name: str
    file: str = ""
    old: list = field(default_factory=list)
    new: list = field(default_factory=list)

    def apply(self, text):
        """`text` with the mistake. Raises Misfit."""
        old, new = ("".join(line + "\n" for line in lines) for lines in (self.old, self.new))
        found = ("\n" + text).count("\n" + old)
        if found != 1:
            raise Misfit(f"{self.file} has the lines {found} times instead of once")
        return ("\n" + text).replace("\n" + old, "\n" + new)[1:]


def parse(text, where):
    mutants = []
    for number, line in enumerate(text.splitlines(), 1):
        kind, rest = line[:1], line[1:]
        if line.startswith("== "):
            mutants.append(Mutant(line[3:].strip()))
        elif not line.strip() or kind == "#":
            continue
        elif not mutants:
            raise SystemExit(f"{where}:{number}: a mistake begins with '== NAME'")
        elif line.startswith("file "):
            mutants[-1].file = line[5:].strip()
        elif kind == "-":
            mutants[-1].old.append(rest)
        elif kind == "+":
            mutants[-1].new.append(rest)
        else:
            raise SystemExit(f"{where}:{number}: expected ==, file, -, + or #")
    for mutant in mutants:
        if not mutant.file or not mutant.old or mutant.old == mutant.new:
            raise SystemExit(f"{where}: {mutant.name} names no file or changes nothing")
    return mutants


def read_all():
    mutants = []
    for path in sorted(glob.glob(os.path.join(HERE, "*.txt"))):
        with open(path, encoding="utf-8") as file:
            mutants += parse(file.read(), os.path.relpath(path, ROOT))
    names = [mutant.name for mutant in mutants]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SystemExit("named twice: " + ", ".join(twice))
    return mutants
