"""Whether each mistake still applies and compiles, without building anything: the file with the mistake lies in a
temporary folder, which the compiler looks through first."""
import glob
import json
import os
import shlex
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

from mutant_list import ROOT, Misfit

# Without compile_commands.json.
USUAL = ["g++", "-std=c++20", "-march=x86-64-v3", "-I/usr/include/eigen3", "-DMUSTER_WITH_GRPC=1",
         "-DSPDLOG_COMPILED_LIB", "-DSPDLOG_FMT_EXTERNAL", "-DSPDLOG_SHARED_LIB", "-DFMT_SHARED"]


def known_flags():
    """path of a source, relative to its tree -> its compiler with flags."""
    flags = {}
    for build in ("build", "build-mutants/tree/build"):
        path = os.path.join(ROOT, build, "compile_commands.json")
        if not os.path.exists(path):
            continue
        tree = os.path.dirname(os.path.dirname(path))
        with open(path, encoding="utf-8") as file:
            entries = json.load(file)
        for entry in entries:
            words = shlex.split(entry["command"])
            words = words[1:] if os.path.basename(words[0]) == "ccache" else words
            if "-o" in words:
                words = words[:words.index("-o")]  # the output and the source are last
            flags.setdefault(os.path.relpath(entry["file"], tree), words)
        break
    return flags


def includer(header):
    """A source of the product that includes the header, perhaps through others."""
    texts = {}
    for role in ("common", "coordinator", "psserver", "worker"):
        for path in sorted(glob.glob(os.path.join(ROOT, role, "**", "*.*"), recursive=True)):
            if path.endswith((".cc", ".h")):
                with open(path, encoding="utf-8") as file:
                    texts[os.path.relpath(path, ROOT)] = file.read()
    waiting = [header]
    for wanted in waiting:  # grows
        found = [path for path, text in texts.items() if f'#include "{wanted}"' in text]
        for path in found:
            if path.endswith(".cc"):
                return path
        waiting += [path for path in found if path not in waiting]
    raise Misfit(f"no source includes {header}")


def compile_one(mutant, flags, generated):
    with open(os.path.join(ROOT, mutant.file), encoding="utf-8") as file:
        changed = mutant.apply(file.read())
    with tempfile.TemporaryDirectory() as own:
        path = os.path.join(own, mutant.file)
        os.makedirs(os.path.dirname(path))
        with open(path, "w", encoding="utf-8") as file:
            file.write(changed)
        source = mutant.file if mutant.file.endswith(".cc") else includer(mutant.file)
        first, *rest = flags.get(source, USUAL)
        command = [first, "-I" + own, "-I" + ROOT, "-I" + generated, *rest, "-w", "-fsyntax-only",
                   path if source == mutant.file else os.path.join(ROOT, source)]
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    errors = [line for line in run.stderr.splitlines() if "error:" in line]
    return "" if run.returncode == 0 else f"does not compile: {(errors or ['?'])[0]}"


def check(mutants, jobs):
    """Prints what is wrong with each mistake; returns with how many something is."""
    flags = known_flags()
    with tempfile.TemporaryDirectory() as generated:
        protos = glob.glob(os.path.join(ROOT, "proto", "*.proto"))
        subprocess.run(["protoc", "-I" + ROOT, "--cpp_out=" + generated, *protos], check=True)

        def problem_of(mutant):
            try:
                return compile_one(mutant, flags, generated)
            except (Misfit, OSError) as misfit:
                return f"does not apply: {misfit}"

        bad = 0
        with ThreadPoolExecutor(jobs) as pool:
            for mutant, problem in zip(mutants, pool.map(problem_of, mutants)):
                if problem:
                    bad += 1
                    print(f"{mutant.name}: {problem}", flush=True)
    print(f"{len(mutants) - bad} of {len(mutants)} apply and compile")
    return bad
