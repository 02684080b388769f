"""Compares `gainlens intervene --each-head` on Gemma 3 270M with the usual way to take heads away in Python: a hook in
transformers that sets a head's output to zero, and a whole forward pass with its loss for each head (as
interpretability libraries do it).

    python bench/each_head_against_reference.py build/gainlens .models/gemma-3-270m-q4_k_m.gguf --length 1024

Needs what bench/gemma_against_reference.py needs. Both sides use float32, the same threads and the same token ids.
gainlens takes away each of the 72 heads, and measures the model as it is; its time is that of the process. The
reference does so for --heads of them, spread over the layers, with its weights loaded before and without that of its
first pass; the time of all 72 follows from it. Both changes of the loss are compared. One round has both."""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import transformers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden"))

import make_gemma_golden  # noqa: E402
from timed_sweep import in_turn, write_random_ids  # noqa: E402

LAYERS, HEADS = 18, 4


def loss_of(model, tokens):
    with torch.no_grad():
        logits = model.lm_head(make_gemma_golden.hidden_states(model, tokens).reshape(len(tokens), -1))
        return torch.nn.functional.cross_entropy(logits[:-1], tokens[1:]).item()


def loss_without(model, tokens, layer, head):
    """The loss of a whole pass in which the head adds nothing."""

    def without_head(_, inputs):
        values = inputs[0].clone()
        width = values.shape[-1] // HEADS
        values[..., head * width : (head + 1) * width] = 0
        return (values,)

    hook = model.model.layers[layer].self_attn.o_proj.register_forward_pre_hook(without_head)
    try:
        return loss_of(model, tokens)
    finally:
        hook.remove()


def by_reference(model, tokens, heads):
    native = loss_of(model, tokens)
    begin = time.monotonic()
    changes = {head: loss_without(model, tokens, *head) - native for head in heads}
    return (time.monotonic() - begin) / len(heads) * LAYERS * HEADS, changes


def by_gainlens(arguments, ids):
    command = [arguments.program, "intervene", str(arguments.model), "--tokens", str(ids), "--lengths"]
    command += [str(arguments.length), "--samples", "1", "--each-head", "--modes", "zero", "--json", "--quiet"]
    begin = time.monotonic()
    printed = subprocess.run([*command, "--threads", str(arguments.threads)], check=True, capture_output=True).stdout
    seconds = time.monotonic() - begin
    return seconds, {arm["intervention"]: arm["delta"] for arm in json.loads(printed)["arms"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--heads", type=int, default=9)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    transformers.utils.logging.disable_progress_bar()
    model = make_gemma_golden.load(arguments.model, torch.float32, "sdpa")
    chosen = [(i * LAYERS // arguments.heads, i % HEADS) for i in range(arguments.heads)]
    with tempfile.TemporaryDirectory() as folder:
        ids = pathlib.Path(folder) / "ids.json"
        tokens = torch.tensor(write_random_ids(ids, make_gemma_golden.CONFIG["vocab_size"], arguments.length))
        loss_of(model, tokens)  # the first pass allocates memory
        found = in_turn(
            arguments.repeats,
            reference=lambda: by_reference(model, tokens, chosen),
            gainlens=lambda: by_gainlens(arguments, ids),
        )
    ours = found["gainlens"][0][1]
    worst = max(
        abs(change - ours[f"blocks.{layer}.attn.hook_z[head={head}]=zero"])
        for (layer, head), change in found["reference"][0][1].items()
    )
    setting = f"T {arguments.length}, float32, {arguments.threads} threads, {arguments.repeats} rounds"
    print(f"{setting}; seconds for 72 heads")
    for name, results in found.items():
        seconds = [one for one, _ in results]
        print(f"{name:<10} median {statistics.median(seconds):8.1f}  ({', '.join(f'{one:.1f}' for one in seconds)})")
    print(f"largest difference of a change of the loss: {worst:.1e} nats")


main()
