"""BERT4Rec, plain or with a Bayesian filter as its layers, written plainly in PyTorch from its specification.

The transformer is that of sasrec_reference.py or filter_reference.py; each query sees every key that is no padding.
The token MASK (id items + 1) stands for what is asked. The head is a dense layer, GELU, a norm, the item embeddings
and a bias for each item.
"""

import dataclasses
import json
import pathlib

import safetensors.torch
import torch
from torch import nn
from torch.nn import functional

import filter_reference
import sasrec_reference


class Cloze:
    """What differs from SASRec in a configuration."""

    model_type = "gainlens-bert4rec"
    causal = False

    @property
    def mask(self):
        return self.items + 1

    @property
    def rows(self):
        return self.items + 2


@dataclasses.dataclass(frozen=True)
class Config(Cloze, sasrec_reference.Config):
    mask_probability: float = 0.2


@dataclasses.dataclass(frozen=True)
class FilterConfig(Cloze, filter_reference.Config):
    mask_probability: float = 0.2


class Head(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.dense = nn.Linear(config.width, config.width)
        self.norm = nn.LayerNorm(config.width, config.norm_epsilon)
        self.bias = nn.Parameter(torch.zeros(config.items))

    def forward(self, x):
        return self.norm(functional.gelu(self.dense(x)))


class WithHead:
    def __init__(self, config):
        super().__init__(config)
        self.head = Head(config)

    def forward(self, items, positions=None):
        return self.head(super().forward(items, positions))

    def scores(self, hidden):
        return super().scores(hidden) + self.head.bias


class Plain(WithHead, sasrec_reference.SASRec):
    pass


class Filtered(WithHead, filter_reference.FilteredSASRec):
    pass


def model_of(config):
    return (Filtered if isinstance(config, FilterConfig) else Plain)(config)


def asked(sequences, config):
    """Each history with MASK behind it, cut to the positions of the model."""
    return [[*sequence[-(config.positions - 1) :], config.mask] for sequence in sequences]


def cloze_loss(model, sequences, hidden_places):
    """Mean cross-entropy at the hidden places of each sequence's kept items; the candidates are items 1 to n."""
    config = model.config
    rows = sasrec_reference.pad(sequences, config)
    targets = torch.zeros_like(rows)
    for row, target, sequence, places in zip(rows, targets, sequences, hidden_places, strict=True):
        first = sasrec_reference.columns(min(len(sequence), config.positions), config).start
        for place in places:
            target[first + place] = row[first + place].clone()
            row[first + place] = config.mask
    valid = targets != 0
    return functional.cross_entropy(model.scores(model(rows)[valid]), targets[valid] - 1)


def load(folder, dtype):
    """The model of a checkpoint, in training mode. Every tensor must be used and none may be missing."""
    fields = json.loads((pathlib.Path(folder) / "config.json").read_text())
    assert fields.pop("model_type") == Cloze.model_type and fields.pop("activation") == "gelu"
    if "filter" in fields:
        config = FilterConfig(**{**fields, "filter": filter_reference.Filter(**fields["filter"])})
    else:
        config = Config(**fields)
    model = model_of(config).to(dtype)
    model.load_state_dict(safetensors.torch.load_file(pathlib.Path(folder) / "model.safetensors"))
    for layer in model.layers:
        if hasattr(layer, "refresh"):
            layer.refresh()
    return model.train()
