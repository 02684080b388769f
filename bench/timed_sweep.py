"""Runs `gainlens sweep` as a process and measures its wall time and its peak resident memory, as the kernel counts
it."""

import json
import os
import pathlib
import random
import statistics
import subprocess
import tempfile
import time


def write_random_ids(file, vocabulary, count):
    """Writes random ids and returns them. The same arguments give the same ids. They will do: the time of a forward
    pass does not depend on the text."""
    draw = random.Random(0)
    ids = [draw.randrange(vocabulary) for _ in range(count)]
    file.write_text(json.dumps(ids))
    return ids


class Sweeper:
    """Sweeps one chunk of a checkpoint."""

    def __init__(self, program, checkpoint, ids, threads):
        self.command = [
            program,
            "sweep",
            str(checkpoint),
            "--tokens",
            str(ids),
            "--samples",
            "1",
            "--quiet",
            "--threads",
            str(threads),
        ]

    def run(self, length, fields, nll=False):
        """Returns peak resident bytes and seconds. `fields` as in --statistics."""
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "run"
            command = [
                *self.command,
                "--lengths",
                str(length),
                "--statistics",
                fields,
                "--out",
                str(out),
                *([] if nll else ["--no-nll"]),
            ]
            begin = time.monotonic()
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            if status != 0:
                raise SystemExit(f"failed: {' '.join(command)}")
            return usage.ru_maxrss * 1024, time.monotonic() - begin


def in_turn(repeats, **runs):
    """Calls every function `repeats` times, round after round, so that a slow moment of the machine affects all of
    them. Returns the results by name."""
    results = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            results[name].append(run())
    return results


def medians(results):
    """Medians of (bytes, seconds) pairs."""
    return statistics.median(memory for memory, _ in results), statistics.median(seconds for _, seconds in results)
