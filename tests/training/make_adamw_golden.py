"""Writes adamw_golden.json: the parameters after each step of the Python library's AdamW with fixed gradients.

python make_adamw_golden.py adamw_golden.json
"""

import json
import sys

import torch


def main():
    torch.set_default_dtype(torch.float64)
    matrix = torch.nn.Parameter(torch.linspace(-1, 1, 6).view(2, 3))
    vector = torch.nn.Parameter(torch.tensor([0.5, -2.0]))
    groups = [
        {"params": [matrix], "weight_decay": 0.1, "lr": 0.01},
        {"params": [vector], "weight_decay": 0.0, "lr": 0.02},
    ]
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.95), eps=1e-8, fused=False, foreach=False)
    steps = []
    for step in range(5):
        factor = 1 - 0.1 * step
        optimizer.param_groups[0]["lr"], optimizer.param_groups[1]["lr"] = 0.01 * factor, 0.02 * factor
        matrix.grad = torch.sin(torch.arange(6.0) + step).view(2, 3)
        vector.grad = torch.cos(torch.arange(2.0) * 3 - step)
        optimizer.step()
        steps.append({"matrix": matrix.detach().flatten().tolist(), "vector": vector.detach().tolist()})
    with open(sys.argv[1], "w") as file:
        json.dump({"generator": "torch " + torch.__version__, "steps": steps}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
