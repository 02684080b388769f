"""Builds the project in an empty folder without a compiler cache, and prints the processor seconds of each library.

    python3 bench/build_time.py [--jobs N] [--folder FOLDER] [--csv FILE] [TARGET ...]

TARGET: targets of CMake, built in this order; default: gainlens (the program), all (with the quick tests),
thorough_tests. The packages and libtorch must be there: call scripts/build once before. One row a library or program:
objects compiled, processor seconds (user and system) of its compilations and links; then one row a target with its
time on the clock. With --csv the rows are also written to FILE.
"""

import argparse
import collections
import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
LOG = "GAINLENS_BUILD_TIMES"  # the file to which timed compilations append their records


def timed(command):
    """Runs a compilation or a link; appends its output's name and its processor seconds to the log."""
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    output = command[command.index("-o") + 1] if "-o" in command else command[-1]
    record = {"output": output, "seconds": usage.ru_utime + usage.ru_stime, "link": "-c" not in command}
    with open(os.environ[LOG], "a") as log:
        log.write(json.dumps(record) + "\n")  # one short write: records of parallel jobs do not mix
    return os.waitstatus_to_exitcode(status)


def library_of(output):
    """The library or program to which an object belongs: the name of its folder in CMake's build tree."""
    found = re.search(r"CMakeFiles/(.*?)[.]dir/", output)
    return (found.group(1) if found else pathlib.Path(output).name).removeprefix("gainlens_")


def main():
    if sys.argv[1:2] == ["--timed"]:
        return timed(sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--folder", type=pathlib.Path, help="an empty folder; default: a temporary one")
    parser.add_argument("--csv", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.folder:
        arguments.folder = arguments.folder.resolve()  # the build has another working folder
    targets = arguments.targets or ["gainlens", "all", "thorough_tests"]
    if arguments.folder and arguments.folder.exists() and any(arguments.folder.iterdir()):
        parser.error(f"--folder {arguments.folder}: not empty")
    with tempfile.TemporaryDirectory() as place:
        folder = arguments.folder or pathlib.Path(place) / "build"
        log = pathlib.Path(place) / "log"
        log.touch()
        launcher = f"{sys.executable};{pathlib.Path(__file__).resolve()};--timed"
        environment = os.environ | {LOG: str(log), "CCACHE_DISABLE": "1"}
        quiet = {"env": environment, "stdout": subprocess.DEVNULL, "check": True, "cwd": ROOT}
        options = [f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}", f"-DCMAKE_CXX_LINKER_LAUNCHER={launcher}"]
        subprocess.run(["cmake", "--preset", "release", "-B", folder, "-DGAINLENS_CCACHE=OFF", *options], **quiet)
        clock = {}
        for target in targets:
            start = time.monotonic()
            subprocess.run(["cmake", "--build", folder, "--parallel", str(arguments.jobs), "--target", target], **quiet)
            clock[target] = time.monotonic() - start
        records = [json.loads(line) for line in log.read_text().splitlines()]
    objects, seconds = collections.Counter(), collections.Counter()
    for record in records:
        library = library_of(record["output"])
        objects[library] += not record["link"]
        seconds[library] += record["seconds"]
    rows = [(library, objects[library], round(spent, 1)) for library, spent in seconds.most_common()]
    rows.append(("sum", sum(objects.values()), round(sum(seconds.values()), 1)))
    for library, count, spent in rows:
        print(f"{library:34} {count:5} objects {spent:8.1f} s of a processor")
    for target, elapsed in clock.items():
        print(f"target {target}: {elapsed:.0f} s on the clock with {arguments.jobs} jobs")
    if arguments.csv:
        with arguments.csv.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("library", "objects", "processor_seconds"))
            writer.writerows(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
