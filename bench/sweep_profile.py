"""Profiles `gainlens sweep` with perf and adds up the processor time of each part of the work.

    python bench/sweep_profile.py build/gainlens sweep MODEL --tokens ids.json --lengths 4k --samples 1 --out RUN

Needs Linux perf. Parts are told apart by the names of functions; code that oneDNN generates at run time has none
and is a product. Weights of 16 bits that are widened before each product count as norms. A part's time is its share of
all samples of all threads, times the processor time of the process."""

import re
import resource
import subprocess
import sys
import tempfile

PARTS = {
    "attention and its statistics": r"N_\w+::(AddWeightedValues|ScoreTile|AbsorbScores|Summarise|Moments|Masses|PackValue"
    r"|PackKey|LoadQuery|CapScores|\w*Query\w*)|streaming|Streaming|packed_values",
    "products with weights": r"\[JIT\]|FinishWith|FinishGated|FinishClipped|AbsorbLogits|Segment|Multiply|brgemm|dnnl|mkl",
    "norms, rotation, finiteness": r"Widen|Narrow|Normalise|Scale|Rotate|Poison|map_rows|norm_rows|rotated",
    "reading and packing weights": r"dequantise|formats::|PackedWeight::pack|half_at|number_at|reduced_float_copy"
    r"|Sha256|sha256",
    "other operations of libtorch": r"libtorch|libc10|at::",
    "waiting threads (OpenMP)": r"libgomp",
    "system (pages, files)": r"\[kernel",
}


def main():
    command = sys.argv[1:]
    if not command:
        sys.exit(__doc__)
    with tempfile.NamedTemporaryFile() as samples:
        subprocess.run(["perf", "record", "-q", "-F", "499", "-o", samples.name, *command], check=True)
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        report = subprocess.run(
            ["perf", "report", "-i", samples.name, "--stdio", "--sort", "dso,symbol", "-F", "overhead,dso,symbol"],
            check=True, capture_output=True, text=True)
    shares = dict.fromkeys([*PARTS, "rest"], 0.0)
    for line in report.stdout.splitlines():
        found = re.match(r"\s*([\d.]+)%\s+(.*)", line)
        if not found:
            continue
        part = next((name for name, pattern in PARTS.items() if re.search(pattern, found[2])), "rest")
        shares[part] += float(found[1])
    seconds = usage.ru_utime + usage.ru_stime
    print(f"processor time {seconds:.2f} s")
    for name, share in shares.items():
        print(f"  {name:<32} {share:5.1f}%  {share / 100 * seconds:6.2f} s")


if __name__ == "__main__":
    main()
