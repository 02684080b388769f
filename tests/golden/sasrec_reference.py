"""A sequential recommender in the manner of SASRec, written plainly in PyTorch from its specification.

Every sequence is padded to `positions` columns: at the left for alignment "end", at the right for "start". A column's
number is the position of its item. Item 0 is padding. The names of the parameters are those of gainlens checkpoints.
"""

import dataclasses
import json
import pathlib

import safetensors.torch
import torch
from torch import nn
from torch.nn import functional


@dataclasses.dataclass(frozen=True)
class Config:
    """The model's sizes and choices; the field names are the keys of config.json."""

    items: int
    width: int
    heads: int
    layers: int
    inner_width: int
    positions: int
    norm: str = "pre"  # or "post"
    embedding_norm: bool = False
    norm_epsilon: float = 1e-5
    alignment: str = "end"  # or "start"

    model_type = "gainlens-sasrec"
    causal = True  # a query sees nothing later

    @property
    def rows(self):
        """Rows of the item embedding: padding, the items, and what other tokens there are."""
        return self.items + 1

    def __post_init__(self):
        assert self.norm in ("pre", "post") and self.alignment in ("end", "start") and self.width % self.heads == 0

    def fields(self):
        return dataclasses.asdict(self)

    def to_json(self):
        return json.dumps({"model_type": self.model_type, **self.fields(), "activation": "gelu"}, indent=2) + "\n"


class Attention(nn.Module):
    """Multi-head attention with biases. `fused` selects PyTorch's scaled_dot_product_attention."""

    def __init__(self, config, dropout, fused):
        super().__init__()
        self.heads, self.dropout, self.fused = config.heads, dropout, fused
        self.query = nn.Linear(config.width, config.width)
        self.key = nn.Linear(config.width, config.width)
        self.value = nn.Linear(config.width, config.width)
        self.output = nn.Linear(config.width, config.width)

    def forward(self, x, visible):
        """x [batch, T, width], visible [batch, 1, query, key]; returns [batch, T, width]."""
        query, key, value = (
            linear(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for linear in (self.query, self.key, self.value)
        )
        if self.fused:
            rate = self.dropout if self.training else 0.0
            mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=visible, dropout_p=rate)
        else:
            scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
            weights = scores.masked_fill(~visible, -torch.inf).softmax(-1)
            mixed = functional.dropout(weights, self.dropout, self.training) @ value
        return self.output(mixed.transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.up = nn.Linear(config.width, config.inner_width)
        self.down = nn.Linear(config.inner_width, config.width)

    def forward(self, x):
        return self.down(functional.gelu(self.up(x)))


class Block(nn.Module):
    def __init__(self, config, dropout, fused):
        super().__init__()
        self.pre = config.norm == "pre"
        self.attention_norm = nn.LayerNorm(config.width, config.norm_epsilon)
        self.attention = Attention(config, dropout, fused)
        self.mlp_norm = nn.LayerNorm(config.width, config.norm_epsilon)
        self.mlp = Mlp(config)
        self.drop = nn.Dropout(dropout)

    def forward(self, x, visible):
        if self.pre:
            x = x + self.drop(self.attention(self.attention_norm(x), visible))
            return x + self.drop(self.mlp(self.mlp_norm(x)))
        x = self.attention_norm(x + self.drop(self.attention(x, visible)))
        return self.mlp_norm(x + self.drop(self.mlp(x)))


class SASRec(nn.Module):
    def __init__(self, config, dropout=0.0, fused=False):
        super().__init__()
        self.config = config
        self.item_embedding = nn.Embedding(config.rows, config.width)
        self.position_embedding = nn.Embedding(config.positions, config.width)
        if config.embedding_norm:
            self.embedding_norm = nn.LayerNorm(config.width, config.norm_epsilon)
        self.drop = nn.Dropout(dropout)
        self.layers = nn.ModuleList(Block(config, dropout, fused) for _ in range(config.layers))
        if config.norm == "pre":
            self.final_norm = nn.LayerNorm(config.width, config.norm_epsilon)

    def forward(self, items, positions=None):
        """Hidden states [batch, T, width] of items [batch, T]. Those of padding columns mean nothing.

        `positions` [T] are those of the columns; default 0, 1, ..."""
        length = items.shape[1]
        positions = torch.arange(length) if positions is None else positions
        x = self.item_embedding(items) + self.position_embedding(positions)
        if self.config.embedding_norm:
            x = self.embedding_norm(x)
        x = self.drop(x)
        visible = visible_keys(items, self.config.causal)
        for layer in self.layers:
            x = layer(x, visible)
        return self.final_norm(x) if self.config.norm == "pre" else x

    def scores(self, hidden):
        """Scores [..., items] of items 1 to n."""
        return hidden @ self.item_embedding.weight[1 : self.config.items + 1].T


def visible_keys(items, causal=True):
    """Which keys each query sees, [batch, 1, query, key]: no padding and, if causal, nothing later.

    Every query sees itself, also on padding, so that no row of the softmax is empty."""
    length = items.shape[1]
    allowed = torch.ones(length, length, dtype=torch.bool)
    allowed = allowed.tril() if causal else allowed
    itself = torch.eye(length, dtype=torch.bool)
    return (allowed & (items != 0)[:, None, None, :]) | itself


def pad(sequences, config):
    """The last items of each sequence as [batch, positions]."""
    rows = torch.zeros(len(sequences), config.positions, dtype=torch.long)
    for row, sequence in zip(rows, sequences, strict=True):
        kept = torch.tensor(sequence[-config.positions :])
        row[columns(len(kept), config)] = kept
    return rows


def columns(length, config):
    """The columns of a padded row that hold a sequence of `length` items."""
    first = config.positions - length if config.alignment == "end" else 0
    return slice(first, first + length)


def last_columns(items, config):
    """The column of each row's last item, [batch]."""
    lengths = (items != 0).sum(-1)
    return torch.full_like(lengths, config.positions - 1) if config.alignment == "end" else lengths - 1


def training_rows(sequences, config):
    """Inputs and targets, both [batch, positions], of the sequences with at least two items."""
    long_enough = [sequence for sequence in sequences if len(sequence) >= 2]
    inputs = pad([sequence[:-1] for sequence in long_enough], config)
    targets = pad([sequence[1:] for sequence in long_enough], config)
    assert torch.equal(inputs != 0, targets != 0)
    return inputs, targets


def training_loss(model, inputs, targets):
    """Mean cross-entropy over the valid positions; the candidates are items 1 to n."""
    valid = targets != 0
    return functional.cross_entropy(model.scores(model(inputs)[valid]), targets[valid] - 1)


def dense_training_loss(model, inputs, targets):
    """The same number, with scores computed at padded positions too and then ignored."""
    scores = model.scores(model(inputs))
    return functional.cross_entropy(scores.flatten(0, 1), targets.flatten() - 1, ignore_index=-1)


def save(config, tensors, folder):
    """Writes a checkpoint: config.json and model.safetensors."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(config.to_json())
    safetensors.torch.save_file(tensors, folder / "model.safetensors")


def load(folder, dtype):
    """The model of a checkpoint. Every tensor must be used and none may be missing."""
    fields = json.loads((pathlib.Path(folder) / "config.json").read_text())
    assert fields.pop("model_type") == "gainlens-sasrec" and fields.pop("activation") == "gelu"
    model = SASRec(Config(**fields)).to(dtype)
    model.load_state_dict(safetensors.torch.load_file(pathlib.Path(folder) / "model.safetensors"))
    return model.eval()
