"""Evaluates a trained S3-Rec checkpoint with the recommender of sasrec_reference.py, by leave-one-out.

    python tests/golden/evaluate_iclrec.py --checkpoint ICLRec-Beauty-1.safetensors --data Beauty.txt.gz \\
        --ranks ranks.npy

Needs torch, numpy and safetensors. DATA has one line a user, `user item item ...` in time order, perhaps gzipped. The
last item of each user is the target, all items before it are known. Candidates are all items but the known ones; a
target that is known stays. rank = 1 + candidates with a greater score + half the others with an equal score.
--ranks gets the rank of each user in the order of the lines (float64), and their SHA-256 is printed.
"""

import argparse
import gzip
import hashlib
import pathlib

import numpy
import safetensors.torch
import torch

import sasrec_reference
from sasrec_reference import Config

NAMES = {  # of S3-Rec, outermost first
    "item_embeddings.": "item_embedding.",
    "position_embeddings.": "position_embedding.",
    "item_encoder.layer.": "layers.",
    "attention.LayerNorm.": "attention_norm.",
    "attention.dense.": "attention.output.",
    "intermediate.LayerNorm.": "mlp_norm.",
    "intermediate.dense_1.": "mlp.up.",
    "intermediate.dense_2.": "mlp.down.",
}
CUTOFFS = (5, 10, 20)


def renamed(name):
    for theirs, ours in NAMES.items():
        name = name.replace(theirs, ours)
    return name.replace("LayerNorm.", "embedding_norm.")


def load_s3rec(file, heads, dtype):
    """The model of an S3-Rec checkpoint. Its last item is a mask, which is left out."""
    tensors = {renamed(name): tensor for name, tensor in safetensors.torch.load_file(file).items()}
    tensors["item_embedding.weight"] = tensors["item_embedding.weight"][:-1]
    rows, width = tensors["item_embedding.weight"].shape
    config = Config(
        items=rows - 1,
        width=width,
        heads=heads,
        layers=sum(name.endswith("mlp.up.weight") for name in tensors),
        inner_width=len(tensors["layers.0.mlp.up.weight"]),
        positions=len(tensors["position_embedding.weight"]),
        norm="post",
        embedding_norm=True,
        norm_epsilon=1e-12,
    )
    model = sasrec_reference.SASRec(config).to(dtype)
    model.load_state_dict(tensors)
    return model.eval()


def read_sequences(file):
    """The items of each line's user."""
    with (gzip.open if file.suffix == ".gz" else open)(file, "rt") as lines:
        return [[int(item) for item in line.split()[1:]] for line in lines]


@torch.no_grad()
def ranks_of(model, sequences):
    """The rank of each sequence's last item, [user]."""
    known = [sequence[:-1] for sequence in sequences]
    targets = torch.tensor([sequence[-1] for sequence in sequences])[:, None] - 1
    items = sasrec_reference.pad(known, model.config)
    last = sasrec_reference.last_columns(items, model.config)
    scores = model.scores(model(items)[torch.arange(len(items)), last])
    own = scores.gather(1, targets)
    for row, seen in zip(scores, known, strict=True):
        row[torch.tensor(seen) - 1] = -torch.inf
    scores.scatter_(1, targets, own)
    greater, equal = (scores > own).sum(1), (scores == own).sum(1) - 1
    return 1 + greater + 0.5 * equal.double()


def print_figures(ranks):
    for cutoff in CUTOFFS:
        hit = ranks <= cutoff
        gain = torch.where(hit, 1 / torch.log2(ranks + 1), 0.0)
        print(f"HR@{cutoff} {hit.double().mean():.6f}  NDCG@{cutoff} {gain.mean():.6f}")
    print(f"MRR {(1 / ranks).mean():.6f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", type=pathlib.Path, required=True, help="safetensors with the names of S3-Rec")
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--ranks", type=pathlib.Path, help="npy file to write")
    parser.add_argument("--heads", type=int, default=2)
    parser.add_argument("--dtype", choices=["float64", "float32"], default="float64")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    model = load_s3rec(arguments.checkpoint, arguments.heads, getattr(torch, arguments.dtype))
    sequences = read_sequences(arguments.data)
    assert max(map(max, sequences)) <= model.config.items
    blocks = [sequences[begin : begin + 256] for begin in range(0, len(sequences), 256)]
    ranks = torch.cat([ranks_of(model, block) for block in blocks])
    print(f"{len(ranks)} users, {model.config.items} items, {arguments.dtype}")
    print_figures(ranks)
    print(f"SHA-256 of the ranks: {hashlib.sha256(ranks.numpy().tobytes()).hexdigest()}")
    if arguments.ranks:
        numpy.save(arguments.ranks, ranks.numpy())


if __name__ == "__main__":
    main()
