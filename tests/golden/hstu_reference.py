"""HSTU with its arms, written plainly in PyTorch from docs/recommend-training.md ("HSTU") and docs/bft.md.

Every history is one row of a padded batch: at the left for alignment "end", at the right for "start". A column's
number is the position of its item. Item 0 is padding. Weights are [batch, head, query, key], and sums over keys of
values are [batch, head, query, key, dimension], whatever their size: nothing here is expanded or fused. The names of
the parameters are those of gainlens checkpoints.
"""

import dataclasses
import json
import math
import pathlib

import safetensors.torch
import torch
from torch import nn
from torch.nn import functional

import filter_reference
import sasrec_reference

TIME_BUCKETS = 129
BUCKET_WIDTH = 0.301
LEAST_WEIGHT_SHARE = 1e-6
ARMS = ("plain", "ffn", "bft", "plain-no-wo", "plain-decay", "plain-popularity", "gate", "constant-k")
WITH_MLP = ("ffn", "bft", "gate", "constant-k")
WITH_GAIN = ("bft", "gate", "constant-k")


@dataclasses.dataclass(frozen=True)
class Config:
    """The model's sizes and choices; the field names are the keys of config.json."""

    items: int
    width: int
    heads: int
    layers: int
    inner_width: int
    positions: int
    embedding_norm: bool = False
    norm_epsilon: float = 1e-5
    alignment: str = "end"  # or "start"
    time_bias: bool = True
    precision_place: str = "presilu"  # or "multiplicative"
    extra_length: int = 0
    score_scale: str = "root"  # or "one"
    attention_norm_weights: bool = True
    projection_deviation: float = 0.02  # before training: changes nothing here
    output: str = "norm"  # or "unit"
    temperature: float = 0.05
    embedding_factor: str = "one"  # or "sqrt_width"
    arm: str = "plain"
    filter: filter_reference.Filter = filter_reference.Filter(estimator="sandwich", output_projection=True)

    @property
    def rows(self):
        return self.items + 1

    def __post_init__(self):
        assert self.arm in ARMS and self.width % self.heads == 0 and self.filter.estimator == "sandwich"
        assert self.alignment in ("end", "start") and self.precision_place in ("presilu", "multiplicative")

    def has_recency(self):
        return (self.arm in WITH_GAIN and self.filter.recency_decay) or self.arm == "plain-decay"

    def has_output(self):
        return self.filter.output_projection if self.arm in WITH_GAIN else self.arm != "plain-no-wo"

    def to_json(self):
        chosen = {"model_type": "gainlens-hstu", **dataclasses.asdict(self)}
        if self.arm == "plain":
            del chosen["arm"], chosen["filter"]
        else:
            chosen["filter"] = {
                field.name: getattr(self.filter, field.name)
                for field in dataclasses.fields(filter_reference.Filter)
                if getattr(self.filter, field.name) != field.default
            }
        return json.dumps(chosen, indent=2) + "\n"


class Uvqk(nn.Module):
    """The gate u, values, queries and keys, in this order, by one matrix without a bias."""

    def __init__(self, config):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(4 * config.width, config.width))


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.uvqk = Uvqk(config)
        self.place_bias = nn.Parameter(torch.zeros(config.positions))
        if config.time_bias:
            self.time_bias = nn.Parameter(torch.zeros(TIME_BUCKETS))
        if config.has_output():
            self.output = nn.Linear(config.width, config.width)


def bucket(seconds):
    return min(int(math.log(max(abs(seconds), 1)) // BUCKET_WIDTH), TIME_BUCKETS - 1)


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        affine = config.attention_norm_weights
        self.attention_norm = nn.LayerNorm(config.width, config.norm_epsilon, elementwise_affine=affine)
        self.attention = Attention(config)
        self.attended_norm = nn.LayerNorm(config.width, config.norm_epsilon, elementwise_affine=affine)
        if config.arm in WITH_MLP:
            self.mlp_norm = nn.LayerNorm(config.width, config.norm_epsilon)
            self.mlp = sasrec_reference.Mlp(config)
        self.filter = filter_reference.LayerFilter(config)
        self.couplings = None

    refresh = filter_reference.Block.refresh
    couplings_now = filter_reference.Block.couplings_now
    stretch = filter_reference.Block.stretch
    predicted = filter_reference.Block.predicted

    def biases(self, times, length):
        """What positions and times add to a score, [batch, query, key]. Keys behind the query are hidden later."""
        place = torch.arange(length)
        distance = (place[:, None] - place[None, :]).clamp(min=0)
        bias = self.attention.place_bias[distance]
        if not self.config.time_bias:
            return bias[None]
        buckets = torch.tensor([[[bucket(query - key) for key in row] for query in row] for row in times.tolist()])
        return bias + self.attention.time_bias[buckets]

    def weights(self, query, key, times, precision, visible, strength):
        """[batch, head, query, key]"""
        config = self.config
        root = query.shape[-1] ** 0.5 if config.score_scale == "root" else 1
        scores = query @ key.transpose(-1, -2) / root
        scores = scores + self.biases(times, scores.shape[-1])[:, None]
        logs = torch.zeros_like(scores)
        if config.has_recency():
            place = torch.arange(scores.shape[-1])
            distance = (place[:, None] - place[None, :]).clamp(min=0)
            logs = logs + strength * distance * functional.logsigmoid(self.filter.recency)[:, None, None]
        if config.arm in ("bft", "plain-popularity"):
            logs = logs + strength * precision.mean(-1).log()[:, None, None, :]
        if config.precision_place == "presilu":
            weights = functional.silu(scores + logs) / (config.positions + config.extra_length)
        else:
            weights = functional.silu(scores) * logs.exp() / (config.positions + config.extra_length)
        return weights * visible

    def forward(self, h, times, precision, visible, strength):
        """The state and its precision behind the layer, and what the filter found, all [batch, T, width]."""
        config, settings = self.config, self.config.filter
        x = self.attention_norm(h)
        gate, value, query, key = functional.silu(x @ self.attention.uvqk.weight.T).chunk(4, dim=-1)
        value, query, key = (filter_reference.split_heads(rows, config.heads) for rows in (value, query, key))
        weights = self.weights(query, key, times, precision, visible, strength)
        attended = (weights[..., None] * value[:, :, None]).sum(3)
        y = gate * self.attended_norm(filter_reference.merge_heads(attended))
        found, gain = {}, 1
        if config.arm == "bft":
            total = weights.sum(3, keepdim=True)
            least = LEAST_WEIGHT_SHARE * weights.abs().sum(3, keepdim=True)
            assert ((total.abs() > least) | ~visible.any(3, keepdim=True)).all()  # the floor has a test of its own
            share = (weights / total)[..., None]
            centre = (share * value[:, :, None]).sum(3, keepdim=True)
            variance = (share**2 * (value[:, :, None] - centre) ** 2).sum(3)
            variance = filter_reference.merge_heads(variance)
            observed = 1 / variance.clamp(1 / settings.most_precision, 1 / settings.least_precision)
            kalman = observed / (precision + observed)
            gain = 1 + strength * (kalman - 1)
            found = {"precision": precision, "observation_precision": observed, "gain": gain}
            precision = settings.bounded(precision + observed)
        elif config.arm == "gate":
            gain = self.filter.gate(x).sigmoid()
        elif config.arm == "constant-k":
            gain = self.filter.gain.sigmoid()
        if not config.has_output():
            h = h + gain * y
        elif settings.gain_place == "before":
            h = h + self.attention.output(gain * y)
        else:
            h = h + gain * self.attention.output(y)
        if config.arm in WITH_MLP:
            z = self.mlp_norm(h)
            if config.arm == "bft":
                precision = self.predicted(precision, self.stretch(h, z))
            h = h + self.mlp(z)
        return h, precision, found


class Hstu(nn.Module):
    """In training mode the Jacobian is that of the current weights; otherwise its running mean, where there is one."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.item_embedding = nn.Embedding(config.rows, config.width)
        self.position_embedding = nn.Embedding(config.positions, config.width)
        if config.embedding_norm:
            self.embedding_norm = nn.LayerNorm(config.width, config.norm_epsilon)
        if config.arm in ("bft", "plain-popularity"):
            self.precision = filter_reference.Precision(config)
        self.layers = nn.ModuleList(Block(config) for _ in range(config.layers))
        if config.output == "norm":
            self.final_norm = nn.LayerNorm(config.width, config.norm_epsilon)

    def states(self, items, times, positions=None):
        """Hidden states [batch, T, width] of items and times [batch, T], what the filter of each layer found, and the
        precision behind the last layer."""
        positions = torch.arange(items.shape[1]) if positions is None else positions
        embeddings = self.item_embedding(items)
        factor = self.config.width**0.5 if self.config.embedding_factor == "sqrt_width" else 1
        h = factor * embeddings + self.position_embedding(positions)
        if self.config.embedding_norm:
            h = self.embedding_norm(h)
        precision, strength = None, 1
        if self.config.arm in ("bft", "plain-popularity"):
            precision = self.precision(items, embeddings)[..., None].expand_as(h)
            strength = self.precision.strength
        visible = sasrec_reference.visible_keys(items)
        every_found = []
        for layer in self.layers:
            h, precision, found = layer(h, times, precision, visible, strength)
            every_found.append(found)
        if self.config.output == "unit":
            return functional.normalize(h, dim=-1) / self.config.temperature, every_found, precision
        return self.final_norm(h), every_found, precision

    def forward(self, items, times, positions=None):
        return self.states(items, times, positions)[0]

    def scores(self, hidden):
        """Scores [..., items] of items 1 to n."""
        embeddings = self.item_embedding.weight[1:]
        if self.config.output == "unit":
            embeddings = functional.normalize(embeddings, dim=-1)
        return hidden @ embeddings.T


def pad(histories, config):
    """Items and times of the last interactions of each history, both [batch, positions]. Padding has item 0, time 0."""
    items = sasrec_reference.pad([[item for item, _ in history] for history in histories], config)
    times = torch.zeros(items.shape, dtype=torch.float64)
    for row, history in zip(times, histories, strict=True):
        kept = torch.tensor([time for _, time in history[-config.positions :]], dtype=torch.float64)
        row[sasrec_reference.columns(len(kept), config)] = kept
    return items, times


def training_loss(model, histories):
    """Mean cross-entropy: each interaction but the last of a history is asked for the item that follows."""
    config = model.config
    long_enough = [history for history in histories if len(history) >= 2]
    items, times = pad([history[:-1] for history in long_enough], config)
    targets, _ = pad([history[1:] for history in long_enough], config)
    valid = targets != 0
    return functional.cross_entropy(model.scores(model(items, times)[valid]), targets[valid] - 1)


def load(folder, dtype):
    """The model of a checkpoint, in training mode. Every tensor must be used and none may be missing."""
    fields = json.loads((pathlib.Path(folder) / "config.json").read_text())
    assert fields.pop("model_type") == "gainlens-hstu"
    if "filter" in fields:
        fields["filter"] = filter_reference.Filter(**fields["filter"])
    model = Hstu(Config(**fields)).to(dtype)
    model.load_state_dict(safetensors.torch.load_file(pathlib.Path(folder) / "model.safetensors"))
    for layer in model.layers:
        if model.config.arm == "bft":
            layer.refresh()
    return model.train()
