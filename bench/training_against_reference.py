"""Compares the time and memory of a training step of `gainlens train language-model` to the Python reference
(transformers with SDPA and fused AdamW), for the same decoder in float32.

    python bench/training_against_reference.py build/gainlens --context 256 2048

Needs torch and transformers. The decoder is the one of data/demo/plain.json, with 4,096 tokens in a step. A step of
gainlens is the difference of two trainings with 2 and with 2 + --steps steps, over that number of steps, so start,
tokenizer and validation do not count. The reference computes its steps on random ids, once with all 4,096 tokens
together and once in the parts that the recipe takes at once; the faster way counts. Rounds take turns. Peaks are
those of the processes."""

import argparse
import collections
import json
import multiprocessing
import os
import pathlib
import queue
import resource
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def recipe_of(context, steps):
    recipe = json.loads((ROOT / "data/demo/plain.json").read_text())
    recipe |= {"stages": [{"context": context, "steps": steps}], "warmup_steps": 1}
    recipe |= {"evaluate_every": 10**6, "save_every": 10**6, "validation_fraction": 0.2}
    return recipe


def gainlens_run(program, context, steps, threads):
    """Seconds and peak memory (bytes) of one training."""
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder, "recipe.json")
        config.write_text(json.dumps(recipe_of(context, steps)))
        command = [program, "--threads", str(threads), "train", "language-model", "--config", str(config)]
        command += ["--text", str(ROOT / "data/demo/text.txt"), "--out", str(pathlib.Path(folder, "out")), "--quiet"]
        begin = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        if status != 0:
            sys.exit(f"{' '.join(command)}: exit status {status}")
        return time.monotonic() - begin, usage.ru_maxrss * 1024


def reference_run(context, steps, threads, tokens_at_once, answer):
    import torch
    import transformers

    torch.set_num_threads(threads)
    recipe = recipe_of(context, steps)
    settings = {key: value for key, value in recipe["model"].items() if key not in ("architectures", "model_type")}
    config = transformers.Qwen3Config(vocab_size=recipe["tokenizer"]["vocabulary"], **settings)
    config._attn_implementation = "sdpa"
    model = transformers.Qwen3ForCausalLM(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=recipe["learning_rate"], betas=(0.9, 0.95),
                                  weight_decay=recipe["weight_decay"], fused=True)
    generator = torch.Generator().manual_seed(1)

    def step():
        for _ in range(recipe["tokens_per_step"] // tokens_at_once):
            ids = torch.randint(config.vocab_size, (tokens_at_once // context, context), generator=generator)
            loss = model(input_ids=ids, labels=ids).loss
            (loss * tokens_at_once / recipe["tokens_per_step"]).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    for _ in range(2):
        step()
    begin = time.monotonic()
    for _ in range(steps):
        step()
    answer.put((time.monotonic() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024))


def reference_step(context, arguments, tokens_at_once):
    """Seconds of one step, and peak memory. In a process of its own, for its peak."""
    answer = multiprocessing.get_context("spawn").Queue()
    process = multiprocessing.get_context("spawn").Process(
        target=reference_run, args=(context, arguments.steps, arguments.threads, tokens_at_once, answer))
    process.start()
    while True:
        try:
            seconds, peak = answer.get(timeout=1)
            break
        except queue.Empty:
            if not process.is_alive():
                sys.exit(f"the reference ended without a result: exit code {process.exitcode}")
    process.join()
    return seconds / arguments.steps, peak


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--context", type=int, nargs="+", default=[256, 2048])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    for context in arguments.context:
        ours, whole, parts, peaks = [], [], [], collections.Counter()
        together = recipe_of(context, 1)
        for _ in range(arguments.repeats):
            short, _ = gainlens_run(arguments.program, context, 2, arguments.threads)
            long, peak = gainlens_run(arguments.program, context, 2 + arguments.steps, arguments.threads)
            peaks["gainlens"] = max(peaks["gainlens"], peak)
            ours.append((long - short) / arguments.steps)
            for times, tokens in ((whole, together["tokens_per_step"]), (parts, together["tokens_at_once"])):
                seconds, peak = reference_step(context, arguments, tokens)
                name = f"reference, {tokens} tokens at once"
                peaks[name] = max(peaks[name], peak)
                times.append(seconds)
        best = min(statistics.median(whole), statistics.median(parts))
        print(f"context {context}: seconds of a step, {arguments.threads} threads, {arguments.repeats} rounds")
        rows = {"gainlens": ours, "reference, whole step at once": whole, "reference, in parts": parts}
        for name, times in rows.items():
            print(f"  {name:<32} {' '.join(f'{seconds:.3f}' for seconds in times)}")
        print(f"  ratio of the medians, to the faster reference: {statistics.median(ours) / best:.2f}")
        for name, peak in peaks.items():
            print(f"  peak of {name:<34} {peak / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
