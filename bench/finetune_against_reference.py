"""Compares the time and memory of a fine-tuning step of `gainlens train finetune` to the Python reference (transformers
with SDPA and fused AdamW): full weights in float32, 4 rows of 200 to 400 tokens, the loss of answer tokens alone.

    python bench/finetune_against_reference.py build/gainlens --gguf .models/gemma-3-270m-q4_k_m.gguf

Needs torch, transformers, numpy and sentencepiece; with --gguf what bench/gemma_against_reference.py needs. Without
--gguf the model is a random Llama of about 50 million parameters, with the tokenizer of data/demo. A step of gainlens
is the difference of two trainings of one and of 1 + --steps steps, over --steps: start, evaluation and the files do not
count. The reference pads a batch at its right end under an attention mask. Its forms:
  labels      labels of -100 outside the answers: all logits exist
  answers     the output head over the answer tokens alone
  checkpoint  the same with gradient checkpointing
Rounds take turns. On a busy machine the seconds of the processors (CPU s) say more than those of the clock. Peaks are
the largest resident memory of the processes, loading included."""

import argparse
import json
import multiprocessing
import os
import pathlib
import queue
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BATCH, WORDS = 4, (150, 300)  # a word has about 1.3 tokens in both tokenizers


def make_llama(folder):
    """A random Llama with the tokenizer of the demo."""
    command = [sys.executable, ROOT / "bench/make_random_checkpoint.py", folder, "--width", "768", "--layers", "7"]
    command += ["--heads", "12", "--kv-heads", "4", "--head-dim", "64", "--mlp-width", "2048", "--vocabulary", "2048"]
    subprocess.run([*command, "--positions", "2048"], check=True)
    for name in ("tokenizer.model", "tokenizer_config.json"):
        shutil.copyfile(ROOT / "data/demo/gated" / name, folder / name)
    config = json.loads((folder / "config.json").read_text()) | {"bos_token_id": 1, "eos_token_id": 2}
    (folder / "config.json").write_text(json.dumps(config))


def questions(count):
    """Prompts of the demo's words, and answers of one to four."""
    draw = random.Random(0)
    words = (ROOT / "data/demo/text.txt").read_text().split()
    made = []
    for _ in range(count):
        begin, length = draw.randrange(len(words) - 400), draw.randint(*WORDS)
        taken = words[begin : begin + length + 4]
        made.append({"prompt": " ".join(taken[:length]), "answers": [" ".join(taken[length:][: draw.randint(1, 4)])]})
    return made


def gainlens_run(arguments, model, arm, options, steps, rows, scratch):
    """Seconds, processor seconds and peak memory (bytes) of one training."""
    task = scratch / "task.jsonl"
    task.write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = [arguments.program, "--threads", str(arguments.threads), "--quiet", "train", "finetune", str(model)]
    command += ["--task", str(task), "--arm", arm, "--epochs", "1", "--batch", str(BATCH), "--warmup-ratio", "0"]
    command += ["--train-rows", str(BATCH * steps), "--validation-rows", "1", "--test-rows", "1", "--max-new", "1"]
    command += [*options, "--out", str(scratch / "out")]
    begin = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - begin
    shutil.rmtree(scratch / "out", ignore_errors=True)
    if status != 0:
        sys.exit(f"{' '.join(command)}: exit status {status}")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def gainlens_step(arguments, model, arm, options):
    rows = questions(BATCH * (arguments.steps + 1) + 10)
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        runs = [gainlens_run(arguments, model, arm, options, steps, rows, pathlib.Path(folder))
                for steps in (1, 1 + arguments.steps)]
    seconds, busy = ((after - before) / arguments.steps for before, after in zip(runs[0][:2], runs[1][:2], strict=True))
    return seconds, busy, runs[1][2]


def encoded_rows(model, count):
    """Ids of each row, and the number of those before the answer."""
    if model.suffix == ".gguf":
        sys.path.insert(0, str(ROOT / "tests/golden"))
        import make_lines_golden

        encode = make_lines_golden.gemma(model)
        bos, eos = 2, 1
    else:
        import sentencepiece

        encode = sentencepiece.SentencePieceProcessor(model_file=str(model / "tokenizer.model")).encode
        bos, eos = 1, 2
    for row in questions(count):
        prompt, whole = encode(row["prompt"]), encode(f"{row['prompt']} {row['answers'][0]}")
        yield [bos, *whole, eos], 1 + len(prompt)


def reference_run(model, steps, threads, form, answer):
    import resource

    import torch
    import transformers

    torch.set_num_threads(threads)
    rows = list(encoded_rows(model, BATCH * (steps + 1)))
    if model.suffix == ".gguf":
        import make_gemma_golden

        network = make_gemma_golden.load(model, torch.float32, "sdpa").train()
    else:
        load = transformers.AutoModelForCausalLM.from_pretrained
        network = load(model, dtype=torch.float32, attn_implementation="sdpa").train()
    if form == "checkpoint":
        network.gradient_checkpointing_enable({"use_reentrant": False})
    network.config.use_cache = False
    decays = [[p for p in network.parameters() if (p.dim() > 1) == matrix] for matrix in (True, False)]
    optimizer = torch.optim.AdamW([{"params": decays[0], "weight_decay": 0.05}, {"params": decays[1]}], lr=1e-5,
                                  weight_decay=0, fused=True)

    def step(batch):
        longest = max(len(ids) for ids, _ in batch)
        ids = torch.tensor([ids + [0] * (longest - len(ids)) for ids, _ in batch])
        mask = torch.tensor([[1] * len(ids) + [0] * (longest - len(ids)) for ids, _ in batch])
        places = torch.arange(longest)
        first = torch.tensor([first for _, first in batch])[:, None]
        labels = ids.masked_fill((places < first) | (mask == 0), -100)
        if form == "labels":
            loss = network(input_ids=ids, attention_mask=mask, labels=labels).loss
        else:
            hidden = network.model(input_ids=ids, attention_mask=mask).last_hidden_state
            answering = labels[:, 1:] != -100
            logits = network.lm_head(hidden[:, :-1][answering])
            loss = torch.nn.functional.cross_entropy(logits, labels[:, 1:][answering])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    step(rows[:BATCH])
    begin, busy = time.monotonic(), time.process_time()
    for index in range(1, steps + 1):
        step(rows[BATCH * index : BATCH * (index + 1)])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    answer.put((time.monotonic() - begin, time.process_time() - busy, peak))


def reference_step(arguments, model, form):
    """Seconds and processor seconds of one step, and peak memory. In a process of its own, for its peak."""
    context = multiprocessing.get_context("spawn")
    answer = context.Queue()
    process = context.Process(target=reference_run, args=(model, arguments.steps, arguments.threads, form, answer))
    process.start()
    while True:
        try:
            seconds, busy, peak = answer.get(timeout=1)
            break
        except queue.Empty:
            if not process.is_alive():
                sys.exit(f"the reference ended without a result: exit code {process.exitcode}")
    process.join()
    return seconds / arguments.steps, busy / arguments.steps, peak


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--gguf", type=pathlib.Path, help="Gemma 3 270M")
    parser.add_argument("--arm", nargs="+", default=["sft", "bft"])
    parser.add_argument("--form", nargs="*", default=["labels", "answers", "checkpoint"])
    parser.add_argument("--options", action="append", help="of train finetune, as --options='--recompute'; may be "
                        "given several times, for a row of the table each")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--scratch", help="folder for models and states; memory is best")
    arguments = parser.parse_args()
    sys.path.insert(0, str(ROOT / "bench"))
    from timed_sweep import in_turn

    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        model = arguments.gguf
        if model is None:
            model = pathlib.Path(folder)
            make_llama(model)
        runs = {}
        for arm in arguments.arm:
            for text in arguments.options or [""]:
                name = f"gainlens {arm} {text}".strip()
                runs[name] = lambda arm=arm, text=text: gainlens_step(arguments, model, arm, text.split())
        for form in arguments.form:
            runs[f"reference, {form}"] = lambda form=form: reference_step(arguments, model, form)
        found = in_turn(arguments.repeats, **runs)
    print(f"{arguments.gguf or 'random Llama'}, {arguments.threads} threads, {arguments.repeats} rounds")
    print(f"{'':<44} {'s/step':>8} {'CPU s':>8} {'peak GB':>8}  rounds")
    for name, results in found.items():
        seconds, busy, peaks = zip(*results, strict=True)
        rounds = " ".join(f"{one:.2f}" for one in seconds)
        medians = f"{statistics.median(seconds):>8.2f} {statistics.median(busy):>8.2f}"
        print(f"{name:<44} {medians} {max(peaks) / 1e9:>8.2f}  {rounds}")


if __name__ == "__main__":
    main()
