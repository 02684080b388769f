"""Makes the numbers for tests/language/answer_golden_test.cpp: the loss and the gradients of one fine-tuning step.

    python tests/golden/make_finetune_golden.py > tests/golden/finetune.json

The field's Python reference implementation (reference_model.py) and its autograd, in float64. Needs torch and
transformers.

The step has three rows of different lengths. Its loss is the mean over their answer tokens of (1 - p)^gamma (-ln p). Of
every gradient two numbers are stored: its norm, and its product with cos(0), cos(1), ... . Arms with a filter have the
formulas of decoder_filter_reference.py.
"""

import json
import sys

import torch
import transformers

import decoder_filter_reference
import reference_model
from make_family_interventions import FOLDER

CHECKPOINTS = ("gemma3", "llama", "qwen3")  # windows and norms on both sides; plain; norms of queries and keys
GAMMAS = (0.0, 0.5, 2.0)
ROWS = (  # ids, and the place of the first answer token
    ([1, 7, 9, 30, 31, 2], 3),
    ([1, 8, 40, 2], 2),
    ([1, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 41, 42, 43, 2], 18),
)


def rounded(number):
    return float(f"{number:.12g}")


def step(model, gamma, kept=None):
    model.zero_grad()
    losses = []
    for ids, first in ROWS:
        if kept is None:
            logits = model(torch.tensor([ids]), use_cache=False).logits[0].double()
        else:
            logits = decoder_filter_reference.logits(model, kept, torch.tensor(ids))
        log_p = logits.log_softmax(-1)[first - 1 : -1].gather(1, torch.tensor(ids[first:])[:, None])[:, 0]
        losses.append((1 - log_p.exp()) ** gamma * -log_p)
    loss = torch.cat(losses).mean()
    loss.backward()
    gradients = {}
    for name, parameter in [*model.named_parameters(), *(kept.weights.items() if kept else ())]:
        flat = parameter.grad.flatten()
        product = flat @ torch.arange(len(flat), dtype=torch.float64).cos()
        gradients[name] = [rounded(flat.norm().item()), rounded(product.item())]
    made = {"gamma": gamma, "loss": rounded(loss.item()), "gradients": gradients}
    return made if kept is None else {"arm": kept.arm, **made}


def main():
    made = {"versions": {"torch": torch.__version__, "transformers": transformers.__version__}}
    made["rows"] = [{"ids": ids, "first_answer": first} for ids, first in ROWS]
    with reference_model.float64_throughout():
        for name in CHECKPOINTS:
            model = reference_model.load(FOLDER / name, torch.float64, "eager")
            made[name] = [step(model, gamma) for gamma in GAMMAS]
            for arm in decoder_filter_reference.ARMS:
                kept = decoder_filter_reference.Filter(arm, model.config, post_norm=name == "gemma3")
                made[name].append(step(model, 0.0, kept))
    json.dump(made, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
