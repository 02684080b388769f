"""Compares the time of `gainlens sweep` on Gemma 3 270M, with all statistics, to the Python reference (transformers),
which computes the model alone.

    python bench/gemma_against_reference.py build/gainlens .models/gemma-3-270m-q4_k_m.gguf --length 4096

Needs torch, transformers, accelerate, gguf, sentencepiece, protobuf and safetensors, like
tests/golden/make_gemma_golden.py. Both sides use float32, the same threads and the same token ids, and no output head.
One round has one forward pass of the reference with its SDPA attention (its weights are loaded before), and one process
for each kind of sweep. The results are medians of --repeats rounds. `whole` is the time of a sweep's process from start
to end. `pass` is that time minus the time of a sweep of 64 tokens, which loads the same weights. Compare `pass` with
the time of the reference.

--nll also runs sweeps with the output head, and the reference with its own head and cross entropy (all logits at once,
as transformers computes a loss). It prints the time that the head adds, and the rate of the head as a share of the rate
of a 2048 x 2048 product in the same rounds."""

import argparse
import os
import pathlib
import statistics
import sys
import tempfile
import time

import torch
import transformers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden"))

import make_gemma_golden  # noqa: E402
from timed_sweep import Sweeper, in_turn, write_random_ids  # noqa: E402

LOADING = 64  # length of the sweep that measures the time of loading


def seconds_of(work):
    begin = time.monotonic()
    work()
    return time.monotonic() - begin


def product_seconds():
    left, right = torch.rand(2048, 2048), torch.rand(2048, 2048)
    return statistics.median(seconds_of(lambda: left @ right) for _ in range(5))


def reference_likelihood(model, tokens):
    with torch.no_grad():
        logits = model.lm_head(make_gemma_golden.hidden_states(model, tokens).reshape(len(tokens), -1))
        return torch.nn.functional.cross_entropy(logits[:-1], tokens[1:])


def head_share(tokens, seconds, product):
    """Rate of the head (2 d V operations for each token), and its share of the rate of a product."""
    config = make_gemma_golden.CONFIG
    operations = 2 * tokens * config["hidden_size"] * config["vocab_size"]
    return operations / seconds, operations / seconds / (2 * 2048**3 / product)


def rounds(arguments, sweeper, model, tokens):
    def sweep(length, fields, nll=False):
        return lambda: sweeper.run(length, fields, nll)[1]

    runs = {
        "reference": lambda: seconds_of(lambda: make_gemma_golden.hidden_states(model, tokens)),
        "loading": sweep(LOADING, "none"),
        "none": sweep(arguments.length, "none"),
        "all": sweep(arguments.length, "all"),
    }
    if arguments.nll:
        runs |= {
            "reference nll": lambda: seconds_of(lambda: reference_likelihood(model, tokens)),
            "nll": sweep(arguments.length, "all", nll=True),
            "nll loading": sweep(LOADING, "all", nll=True),
            "product": product_seconds,
        }
    runs["reference"]()  # the first pass allocates memory
    return {name: statistics.median(results) for name, results in in_turn(arguments.repeats, **runs).items()}


def report(arguments, seconds):
    reference = seconds["reference"]
    print(f"T {arguments.length}, float32, {arguments.threads} threads, medians of {arguments.repeats} rounds")
    print(f"{'':<34} {'whole s':>8} {'pass s':>8} {'whole / reference':>18} {'pass / reference':>17}")
    print(f"{'reference, SDPA, no statistics':<34} {'':>8} {reference:>8.2f}")
    for name in ("none", "all"):
        whole, alone = seconds[name], seconds[name] - seconds["loading"]
        label = f"gainlens sweep --statistics {name}"
        print(f"{label:<34} {whole:>8.2f} {alone:>8.2f} {whole / reference:>18.3f} {alone / reference:>17.3f}")
    if arguments.nll:
        added = seconds["nll"] - seconds["all"] - (seconds["nll loading"] - seconds["loading"])
        if added <= 0:
            raise SystemExit(
                "the noise of this machine is larger than the time of the head: use a larger "
                "--length, more --repeats or a quiet machine"
            )
        print(f"{'reference, SDPA, with likelihood':<34} {'':>8} {seconds['reference nll']:>8.2f}")
        whole, alone = seconds["nll"], seconds["nll"] - seconds["nll loading"]
        ratios = f"{whole / seconds['reference nll']:>18.3f} {alone / seconds['reference nll']:>17.3f}"
        print(f"{'gainlens sweep, with likelihood':<34} {whole:>8.2f} {alone:>8.2f} {ratios}")
        rate, share = head_share(arguments.length - LOADING, added, seconds["product"])
        print(
            f"the head and its likelihood add {added:.2f} s: {1e-9 * rate:.0f} GFLOP/s, "
            f"{100 * share:.0f}% of the rate of a product"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--length", type=int, default=4096)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--nll", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    transformers.utils.logging.disable_progress_bar()
    model = make_gemma_golden.load(arguments.model, torch.float32, "sdpa")
    with tempfile.TemporaryDirectory() as folder:
        ids = pathlib.Path(folder) / "ids.json"
        tokens = torch.tensor(write_random_ids(ids, make_gemma_golden.CONFIG["vocab_size"], arguments.length))
        sweeper = Sweeper(arguments.program, arguments.model, ids, arguments.threads)
        report(arguments, rounds(arguments, sweeper, model, tokens))


main()
