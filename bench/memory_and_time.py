"""Prints one table of the peak memory and the time of `gainlens sweep` against context length, with and without
statistics.

    python bench/memory_and_time.py build/gainlens CHECKPOINT --lengths 1024,2048,4096,8192
    python bench/memory_and_time.py build/gainlens .models/gemma-3-270m-q4_k_m.gguf --vocabulary 262144 --lengths
    4096,8192

CHECKPOINT is made by make_random_checkpoint.py and holds ids.json. For another checkpoint, --vocabulary gives the
number of ids from which random tokens are drawn. Each number is the median of --repeats processes; those with and
without statistics run in turn. A sweep of 64 tokens measures the weights and libraries alone. `total` is the ratio of
the times of whole processes. `beyond` is the ratio of the times after subtracting the time of that sweep."""

import argparse
import os
import pathlib
import tempfile

from timed_sweep import Sweeper, in_turn, medians, write_random_ids

HEADER = (
    f"{'T':>6} {'MiB none':>9} {'MiB all':>9} {'KiB/token':>10} {'s none':>8} {'s all':>8} {'total':>7} {'beyond':>7}"
)


def line(length, base, none, both):
    """One line of the table. `base`, `none`, `both`: (bytes, seconds) of weights alone, without and with statistics."""
    beyond_none, beyond_all = none[0] - base[0], both[0] - base[0]
    return (
        f"{length:>6} {beyond_none / 2**20:>9.0f} {beyond_all / 2**20:>9.0f} "
        f"{beyond_all / 1024 / length:>10.1f} {none[1]:>8.2f} "
        f"{both[1]:>8.2f} {both[1] / none[1]:>7.3f} {(both[1] - base[1]) / (none[1] - base[1]):>7.3f}"
    )


def measure(sweeper, lengths, repeats):
    base = medians(in_turn(repeats, base=lambda: sweeper.run(64, "none"))["base"])
    print(
        f"weights and libraries alone (T = 64): {base[0] / 2**20:.0f} MiB, {base[1]:.2f} s; the MiB "
        f"columns do not include these"
    )
    print(HEADER)
    for length in lengths:
        runs = in_turn(repeats, none=lambda: sweeper.run(length, "none"), all=lambda: sweeper.run(length, "all"))
        print(line(length, base, medians(runs["none"]), medians(runs["all"])), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("checkpoint", type=pathlib.Path)
    parser.add_argument("--lengths", default="1024,2048,4096,8192")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument(
        "--vocabulary", type=int, help="draw random token ids below this instead of reading CHECKPOINT/ids.json"
    )
    arguments = parser.parse_args()
    lengths = [int(part) for part in arguments.lengths.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        ids = arguments.checkpoint / "ids.json"
        if arguments.vocabulary:
            ids = pathlib.Path(folder) / "ids.json"
            write_random_ids(ids, arguments.vocabulary, max(lengths))
        measure(Sweeper(arguments.program, arguments.checkpoint, ids, arguments.threads), lengths, arguments.repeats)


main()
