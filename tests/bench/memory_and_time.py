"""Peak memory and time of `gainlens sweep` against context length, with statistics and without, in one table.

    python tests/bench/memory_and_time.py build/gainlens CHECKPOINT --lengths 1024,2048,4096,8192

CHECKPOINT comes from make_random_checkpoint.py (it holds ids.json). Each figure is one process: its peak resident memory as the kernel
counts it, and the smallest wall time of --repeats runs. A sweep of 64 tokens gives what the weights and libraries take alone."""

import argparse
import os
import pathlib
import subprocess
import tempfile
import time


def measure(program, checkpoint, length, statistics):
    """Peak resident bytes and seconds of one sweep of one chunk."""
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "sweep", str(checkpoint), "--tokens", str(checkpoint / "ids.json"), "--lengths", str(length), "--samples", "1",
                   "--no-nll", "--statistics", statistics, "--quiet", "--out", f"{folder}/run"]
        begin = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        if status != 0:
            raise SystemExit(f"failed: {' '.join(command)}")
        return usage.ru_maxrss * 1024, time.monotonic() - begin


def best(repeats, *arguments):
    runs = [measure(*arguments) for _ in range(repeats)]
    return min(memory for memory, _ in runs), min(seconds for _, seconds in runs)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("checkpoint", type=pathlib.Path)
    parser.add_argument("--lengths", default="1024,2048,4096,8192")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    base_memory, base_seconds = best(arguments.repeats, arguments.program, arguments.checkpoint, 64, "none")
    print(f"weights and libraries alone (T = 64): {base_memory / 2**20:.0f} MiB, {base_seconds:.2f} s; the columns below are beyond these")
    print(f"{'T':>6} {'MiB none':>9} {'MiB all':>9} {'KiB/token':>10} {'s none':>8} {'s all':>8} {'all/none':>9}")
    for length in (int(part) for part in arguments.lengths.split(",")):
        memory_none, seconds_none = best(arguments.repeats, arguments.program, arguments.checkpoint, length, "none")
        memory_all, seconds_all = best(arguments.repeats, arguments.program, arguments.checkpoint, length, "all")
        beyond = memory_all - base_memory
        print(f"{length:>6} {(memory_none - base_memory) / 2**20:>9.0f} {beyond / 2**20:>9.0f} {beyond / 1024 / length:>10.1f} "
              f"{seconds_none - base_seconds:>8.2f} {seconds_all - base_seconds:>8.2f} {(seconds_all - base_seconds) / (seconds_none - base_seconds):>9.2f}")


main()
