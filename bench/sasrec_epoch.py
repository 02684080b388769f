"""Times an epoch of training of a plain padded SASRec in PyTorch, and measures its peak memory.

    python bench/sasrec_epoch.py --data Beauty.txt.gz --loss valid --threads 2
    python bench/sasrec_epoch.py --data Beauty.txt.gz --loss dense --threads 2 --max-steps 10

Needs torch, numpy and safetensors. DATA has one line a user, `user item item ...` in time order, perhaps gzipped; the
last two items of each user are held out. The model is tests/golden/sasrec_reference.py with pre-LN, width 64, 2 heads,
2 layers, inner width 256, 50 positions and dropout 0.5 everywhere, trained with Adam 1e-3 on shuffled batches of 256
users with cross-entropy over all items. --loss dense computes scores at every padded position and ignores those of
padding, as many public implementations do; valid only at the positions of items. --attention explicit forms the
weights; fused leaves them to scaled_dot_product_attention, which has no fused kernel for dropout on a CPU.

One step without an update comes first and is not timed. With --max-steps an epoch ends early, and its seconds are
those of its steps times the number of steps of a whole one. Peaks are those of the process; the first one is that of
Python, PyTorch, data and model before any step. On a shared machine the fastest step tells more than the sum.
"""

import argparse
import json
import pathlib
import platform
import resource
import statistics
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden"))
import evaluate_iclrec  # noqa: E402
import sasrec_reference  # noqa: E402

LOSSES = {"dense": sasrec_reference.dense_training_loss, "valid": sasrec_reference.training_loss}
BATCH = 256


def peak_bytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def initialise(model):
    """Matrices from N(0, 0.02); biases 0 and weights of norms 1."""
    for name, parameter in model.named_parameters():
        if parameter.dim() == 2:
            torch.nn.init.normal_(parameter, std=0.02)
        else:
            torch.nn.init.constant_(parameter, 1.0 if name.endswith("norm.weight") else 0.0)


def make_model(items, fused):
    config = sasrec_reference.Config(items=items, width=64, heads=2, layers=2, inner_width=256, positions=50)
    model = sasrec_reference.SASRec(config, dropout=0.5, fused=fused)
    initialise(model)
    return model.train()


def run_epoch(model, optimizer, loss_of, inputs, targets, max_steps):
    """Trains at most `max_steps` steps; returns (steps of a whole epoch, seconds of each step, mean loss)."""
    batches = torch.randperm(len(inputs)).split(BATCH)
    seconds, losses = [], []
    for users in batches[:max_steps]:
        begin = time.monotonic()
        loss = loss_of(model, inputs[users], targets[users])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        seconds.append(time.monotonic() - begin)
    return len(batches), seconds, sum(losses) / len(losses)


def measure(arguments):
    """Trains as asked and returns what was measured."""
    sequences = evaluate_iclrec.read_sequences(arguments.data)
    model = make_model(max(map(max, sequences)), arguments.attention == "fused")
    inputs, targets = sasrec_reference.training_rows([items[:-2] for items in sequences], model.config)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss_of = LOSSES[arguments.loss]
    before = peak_bytes()
    loss_of(model, inputs[:BATCH], targets[:BATCH]).backward()
    optimizer.zero_grad()
    epochs = []
    for _ in range(arguments.epochs):
        steps, seconds, loss = run_epoch(model, optimizer, loss_of, inputs, targets, arguments.max_steps)
        epoch = {"steps": len(seconds), "seconds": sum(seconds) * steps / len(seconds), "loss": loss}
        epochs.append(epoch | {"fastest_step": min(seconds), "median_step": statistics.median(seconds)})
    fill = (inputs != 0).double().mean().item()
    sizes = {"users": len(inputs), "items": model.config.items, "fill": fill, "steps_per_epoch": steps}
    return sizes | {"epochs": epochs, "peak_bytes_before": before, "peak_bytes": peak_bytes()}


def print_table(found, arguments):
    print(
        f"{found['users']} users, {found['items']} items, {found['fill']:.1%} of the padded positions filled; "
        f"loss {arguments.loss}, attention {arguments.attention}, {arguments.threads} threads"
    )
    for number, epoch in enumerate(found["epochs"], start=1):
        part = "" if epoch["steps"] == found["steps_per_epoch"] else ", extrapolated"
        steps = f"{epoch['steps']} of {found['steps_per_epoch']} steps{part}"
        print(
            f"epoch {number}: {epoch['seconds']:.2f} s ({steps}), mean loss {epoch['loss']:.4f}; "
            f"a step: median {epoch['median_step']:.3f} s, fastest {epoch['fastest_step']:.3f} s"
        )
    print(f"peak {found['peak_bytes'] / 1e9:.2f} GB, before any step {found['peak_bytes_before'] / 1e9:.2f} GB")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--loss", choices=LOSSES, default="valid")
    parser.add_argument("--attention", choices=["explicit", "fused"], default="explicit")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--max-steps", type=int, help="end each epoch after this many steps")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print JSON instead of lines")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(arguments.seed)
    found = measure(arguments)
    if arguments.json:
        settings = {name: getattr(arguments, name) for name in ("loss", "attention", "threads", "seed")}
        versions = {"torch": torch.__version__, "python": platform.python_version()}
        print(json.dumps(settings | found | {"versions": versions}, indent=2))
    else:
        print_table(found, arguments)


if __name__ == "__main__":
    main()
