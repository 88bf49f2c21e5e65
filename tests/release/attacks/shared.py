# SPDX-License-Identifier: MIT
"""What the attacks share: their command line, how they report, libraries to preload, and changed copies of programs."""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import random
import re
import shlex
import shutil
import subprocess
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))
import helpers  # noqa: E402


def parse(doc, words, **options):
    """The command line: options of this attack as name=(default, what it is); the programs; --seed and --jobs, which all have."""
    options |= {
        "seed": (random.SystemRandom().randrange(1 << 31), "repeats the random choices of a run"),
        "jobs": (os.cpu_count(), "processes at the same time"),
    }
    name, _, doc = doc.partition(": ")
    form = argparse.ArgumentDefaultsHelpFormatter
    parser = argparse.ArgumentParser(prog=name, description=doc, formatter_class=form)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help="such as chapter05/dot; default: all")
    for option, (default, text) in options.items():
        kind = {"action": "store_true"} if default is False else {"type": type(default), "default": default}
        parser.add_argument("--" + option.replace("_", "-"), help=text, **kind)
    found = parser.parse_args(words, argparse.Namespace(name=name))
    known = [program.name for program in helpers.programs()]
    if unknown := [p for p in found.programs if p not in known]:
        parser.error(f"there is no program {unknown[0]}")
    return found


def campaign(options, pool, function, tasks, figures, done=()):
    """Runs function(task) for each task, several at once in a pool of this class. It returns a title or None, a Counter of what it has
    done, and a list of defects; prints them, and at last figures(sum of all Counters). Returns the exit status, 1 if there are defects.
    """
    done = collections.Counter(done)
    with pool(options.jobs) as running:
        for ended in concurrent.futures.as_completed([running.submit(function, task) for task in tasks]):
            title, counts, defects = ended.result()
            done.update(counts, defects=len(defects))
            if title or defects:
                print(title or "defect", *defects, sep="\n    ", flush=True)
    shown = {**figures(done), "defects": done["defects"], "seed": options.seed}
    print(f"{options.name}: " + ", ".join(f"{what} {value}" for what, value in shown.items()), flush=True)
    return int(done["defects"] > 0)


def library(name):
    """Compiles NAME.c for LD_PRELOAD, if it has changed. Returns the path of the library."""
    source, made = HERE / f"{name}.c", helpers.BUILD / f"attacks/{name}.so"
    if not made.exists() or made.stat().st_mtime < source.stat().st_mtime:
        made.parent.mkdir(parents=True, exist_ok=True)
        new = made.with_name(f"{name}.{threading.get_native_id()}.so")
        compiler = os.environ.get("CC", "cc").split()
        options = ["-std=gnu11", "-O1", "-shared", "-fPIC", source, "-o", new, "-ldl"]
        subprocess.run([*compiler, *options], check=True)
        new.replace(made)
    return made.resolve()


def commands(programs, *settings):
    """The command that compiles each program, as make prints it: a list of words without those that write dependencies. Programs
    that lack a library are missing."""
    helpers.make("common", "BACKEND=cpu", *settings)
    output = helpers.make("-n", "-k", "BACKEND=cpu", *settings, *programs, status=None)
    found = {}
    for line in output.replace("\\\n", " ").splitlines():
        if match := re.search(r" -MMD .*? -o \S+/(\w+/\w+) ", line):
            found[match[1]] = shlex.split(re.sub(r" -MMD -MP -MF \S+ -MT \S+", "", line))
    return found


def compile_copy(program, command, folder, binary, changed=None):
    """Compiles a copy of a program in which the files of the dictionary `changed` have other contents. Returns the messages of the
    compiler if it fails."""
    chapter = folder / program.split("/")[0]
    if not chapter.exists():
        shutil.copytree(helpers.ROOT / chapter.name, chapter, ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "common").symlink_to(helpers.ROOT / "common")
    for file, text in (changed or {}).items():
        (folder / file).write_text(text)
    words = [w for w in command if w not in ("-O2", "-g", "-lineinfo", "-Xcompiler=-Wall,-Wextra,-pthread")]
    words[words.index("-o") + 1] = str(binary)
    words[words.index(f"{program}.cu")] = str(folder / f"{program}.cu")
    words[1:1] = ["-O1", "-w", "-Xcompiler=-pthread"]
    done = subprocess.run(words, cwd=helpers.ROOT, **helpers.TOGETHER)
    return done.stdout if done.returncode else None
