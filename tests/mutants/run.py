#!/usr/bin/env python3
"""Puts small mistakes into the product, one at a time, and says which of them no test notices.

The mistakes are in *.txt beside this file (mutant_list.py has the format). They are built and tested in a worktree of
HEAD below build-mutants/; the tree that the script is called in stays as it is. Hours for all of them: run it by hand.
"""
import argparse
import os
import signal
import sys
import time

import mutant_list
import syntax_check
import trial

LABELS = ("unit", "sim", "cluster")  # in this order, until one notices


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these mistakes, or all of a source file")
    parser.add_argument("--label", default="unit|sim", help="tests to run: of unit, sim and cluster (default unit|sim)")
    parser.add_argument("--list", action="store_true", help="print the names and files, and do nothing")
    parser.add_argument("--check", action="store_true", help="only: does each apply and compile? Builds nothing")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count(), help="compilers and tests at once")
    parser.add_argument("--timeout", type=float, default=20, metavar="MINUTES", help="of one mistake (default 20)")
    asked = parser.parse_args()
    asked.labels = [label for label in LABELS if label in asked.label.split("|")]
    if set(asked.label.split("|")) - set(LABELS):
        parser.error("--label takes unit, sim and cluster, separated by |")
    return asked


def selected(names):
    mutants = mutant_list.read_all()
    if not names:
        return mutants
    chosen = [mutant for mutant in mutants if mutant.name in names or mutant.file in names]
    unknown = set(names) - {mutant.name for mutant in chosen} - {mutant.file for mutant in chosen}
    if unknown:
        raise SystemExit("no such mistake: " + ", ".join(sorted(unknown)))
    return chosen


def verdict_on(mutant, tree, labels):
    """(what to print, the label that noticed it or None, whether the mistake itself is wrong)"""
    label = labels[0]
    try:
        with tree.with_mistake(mutant):
            near, problem = tree.build_near(mutant.file)
            if problem:
                return f"WRONG MISTAKE, does not build: {problem}", None, True
            if near and "unit" in labels and (name := tree.noticed_by("unit", near)):
                return f"unit: {name}", "unit", False
            for label in labels:
                if problem := tree.build(label):
                    return f"WRONG MISTAKE, does not build: {problem}", None, True
                if name := tree.noticed_by(label):
                    return f"{label}: {name}", label, False
    except mutant_list.Misfit as misfit:
        return f"WRONG MISTAKE, does not apply: {misfit}", None, True
    except trial.TimeIsOver:
        return f"NOT DECIDED, {label} takes longer than --timeout", None, False
    doubt = f"; {', '.join(tree.doubtful)} failed once and then passed" if tree.doubtful else ""
    return f"NOT NOTICED{doubt}", None, False


def main():
    asked = arguments()
    mutants = selected(asked.only)
    if asked.list:
        for mutant in mutants:
            print(f"{mutant.name}  {mutant.file}")
        return 0
    if asked.check:
        return 2 if syntax_check.check(mutants, asked.jobs) else 0
    # Whatever ends this takes the mistake back and its processes along.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    tree = trial.Trial(asked.jobs, asked.timeout)
    tree.look_at_head(asked.labels)
    noticed, wrong = [], 0
    for number, mutant in enumerate(mutants, 1):
        began = time.monotonic()
        text, label, is_wrong = verdict_on(mutant, tree, asked.labels)
        print(f"{number:2}/{len(mutants)} {mutant.name}: {text} ({time.monotonic() - began:.0f} s)", flush=True)
        wrong += is_wrong
        if label:
            noticed.append(label)
    alone = sum(label != "cluster" for label in noticed)
    print(f"{len(noticed)} of {len(mutants)} noticed, {alone} by unit and simulation alone")
    return 2 if wrong else int(len(noticed) < len(mutants))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
