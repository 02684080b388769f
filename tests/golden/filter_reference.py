"""SASRec with a Bayesian filter as its layers, and the arms it is compared with, written plainly in PyTorch.

A layer of arm "bft" observes (attention weighted by precision), updates (a Kalman gain in the residual) and predicts
(the MLP moves the state, its Jacobian and a process noise the precision). The other arms keep one part of that, or
none. Weights are [batch, head, query, key, dimension], whatever their size: nothing here is expanded or fused. Names,
padding and positions are those of sasrec_reference.py.
"""

import dataclasses
import json
import pathlib

import safetensors.torch
import torch
from torch import nn
from torch.nn import functional

import sasrec_reference

FILTERS = ("bft", "textbook", "least-error")  # they keep a precision beside the stream
ARMS = (*FILTERS, "plain-no-wo", "plain-decay", "plain-popularity", "gate", "constant-k")
ESTIMATORS = ("reml", "reml_conjugate", "sandwich", "kish", "delta", "delta_weight_free")
PRECISION_NETWORK_WIDTH = 16
LEAST_STRETCH = 0.01


@dataclasses.dataclass(frozen=True)
class Filter:
    """The choices of the filter; the field names are the keys of "filter" in config.json. A file has the keys whose
    values differ from these.

    How training starts (initial_gain, initial_range, initial_decay, process_noise_start, warm_up and its unit) changes
    nothing here."""

    estimator: str = "reml"
    prior_strength: float = 1
    prior_variance: float = 0  # 0: 1 / head dimension
    score_noise: float = 0
    kriging: str = "scalar"  # or "per_dimension"
    predict: str = "jacobian"  # or "discount", "decay"
    jacobian: str = "low_rank"  # or "exact", "none"
    jacobian_rank: int = 16
    norm_jacobian: bool = False
    running_jacobian: bool = True
    discount: float = 0.95
    most_process_noise: float = 1
    process_noise_start: float = -9
    initial_precision: str = "content"  # or "table", "count", "em"
    initial_gain: float = 0.9
    initial_gain_of_data: bool = True
    initial_range: float = 0
    recency_decay: bool = True
    decay_owner: str = "layer"  # or "head"
    initial_decay: float = 0.99
    output_projection: bool = False
    gain_place: str = "before"  # or "after" the output projection
    least_precision: float = 0.001
    most_precision: float = 100
    warm_up: int = 50
    warm_up_unit: str = "steps"
    warm_up_form: str = "step"

    def __post_init__(self):
        assert self.estimator in ESTIMATORS and self.kriging in ("scalar", "per_dimension")
        assert self.predict in ("jacobian", "discount", "decay") and self.jacobian in ("low_rank", "exact", "none")
        assert self.jacobian == "exact" or not self.norm_jacobian
        assert self.decay_owner in ("layer", "head") and self.gain_place in ("before", "after")
        assert self.initial_precision in ("content", "table", "count", "em")

    def bounded(self, precision):
        return precision.clamp(self.least_precision, self.most_precision)


@dataclasses.dataclass(frozen=True)
class Config(sasrec_reference.Config):
    arm: str = "bft"
    filter: Filter = Filter()
    embedding_factor: str = "one"  # or "sqrt_width"

    def __post_init__(self):
        super().__post_init__()
        assert self.embedding_factor in ("one", "sqrt_width") and self.arm in ARMS

    def fields(self):
        chosen = super().fields()
        if self.embedding_factor == "one":
            del chosen["embedding_factor"]
        chosen["filter"] = {
            field.name: getattr(self.filter, field.name)
            for field in dataclasses.fields(Filter)
            if getattr(self.filter, field.name) != field.default
        }
        return chosen

    def has_recency(self):
        decaying = self.arm in (*FILTERS, "gate", "constant-k") and self.filter.recency_decay
        return decaying or self.arm == "plain-decay"

    def has_output(self):
        gains = self.arm in (*FILTERS, "gate", "constant-k") and self.filter.output_projection
        return gains or self.arm in ("plain-decay", "plain-popularity")


class PrecisionNetwork(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.hidden = nn.Linear(config.width, PRECISION_NETWORK_WIDTH)
        self.output = nn.Linear(PRECISION_NETWORK_WIDTH, 1)

    def forward(self, x):
        return self.output(functional.gelu(self.hidden(x)))


class Precision(nn.Module):
    """The precision tau an item starts with. `base`, `items` and `strength` are constants of training."""

    def __init__(self, config):
        super().__init__()
        self.filter = config.filter
        rows = config.rows
        if self.filter.initial_precision in ("content", "count"):
            self.range = nn.Parameter(torch.ones(1))
            self.register_buffer("base", torch.ones(rows))
        if self.filter.initial_precision == "content":
            self.network = PrecisionNetwork(config)
        if self.filter.initial_precision == "table":
            self.table = nn.Parameter(torch.zeros(rows))
        if self.filter.initial_precision == "em":
            self.register_buffer("items", torch.ones(rows))
        self.register_buffer("strength", torch.ones(1))

    def forward(self, items, embeddings):
        """tau of items [batch, T] whose embeddings are [batch, T, width]."""
        form = self.filter.initial_precision
        if form == "content":
            tau = self.range * self.base[items] + functional.softplus(self.network(embeddings)[..., 0])
        elif form == "count":
            tau = self.range * self.base[items]
        elif form == "table":
            tau = 1 + functional.softplus(self.table[items])
        else:
            tau = self.items[items]
        return self.filter.bounded(tau)


class LayerFilter(nn.Module):
    """What a layer has beyond attention and MLP. `stretch` is the running mean of (1 + J)^2, no trained weight."""

    def __init__(self, config):
        super().__init__()
        settings = config.filter
        if config.has_recency():
            self.recency = nn.Parameter(torch.zeros(config.heads if settings.decay_owner == "head" else 1))
        if config.arm == "gate":
            self.gate = nn.Linear(config.width, config.width)
        if config.arm == "constant-k":
            self.gain = nn.Parameter(torch.zeros(config.width))
        if config.arm in FILTERS and settings.predict == "jacobian" and settings.most_process_noise > 0:
            self.process_noise = nn.Parameter(torch.zeros(config.width))
        if config.arm in FILTERS and settings.predict == "decay":
            self.decay = nn.Parameter(torch.zeros(1))
        if config.arm in FILTERS and settings.running_jacobian and settings.jacobian != "none":
            self.register_buffer("stretch", torch.ones(config.width))


class Attention(nn.Module):
    """The projections alone."""

    def __init__(self, config):
        super().__init__()
        self.heads = config.heads
        self.query = nn.Linear(config.width, config.width)
        self.key = nn.Linear(config.width, config.width)
        self.value = nn.Linear(config.width, config.width)
        if config.has_output():
            self.output = nn.Linear(config.width, config.width)

    def project(self, x):
        """Query, key and value, each [batch, head, T, head dimension]."""
        return tuple(split_heads(linear(x), self.heads) for linear in (self.query, self.key, self.value))


def split_heads(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def merge_heads(x):
    return x.transpose(1, 2).flatten(2)


def gelu_slope(a):
    """The derivative of the exact GELU."""
    normal = torch.distributions.Normal(a.new_zeros(()), a.new_ones(()))
    return normal.cdf(a) + a * normal.log_prob(a).exp()


def jacobian_diagonal(function, x):
    """The diagonal of the Jacobian of a function of vectors, by autograd, at each of the vectors x [..., width]."""
    jacobians = torch.func.vmap(torch.func.jacrev(function))(x.flatten(0, -2))
    return jacobians.diagonal(dim1=-2, dim2=-1).view_as(x)


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.attention_norm = nn.LayerNorm(config.width, config.norm_epsilon)
        self.attention = Attention(config)
        self.mlp_norm = nn.LayerNorm(config.width, config.norm_epsilon)
        self.mlp = sasrec_reference.Mlp(config)
        self.filter = LayerFilter(config)
        self.couplings = None

    def refresh(self):
        """Takes the truncated factorisation of the MLP's couplings W2 * W1^T, a constant until the next refresh."""
        left, values, right = torch.linalg.svd(self.couplings_now().detach(), full_matrices=False)
        rank = min(self.config.filter.jacobian_rank, len(values))
        self.couplings = left[:, :rank] * values[:rank] @ right[:rank]

    def couplings_now(self):
        return self.mlp.down.weight * self.mlp.up.weight.T

    def weights(self, query, key, precision, visible, strength):
        """Weights over the keys, [batch, head, query, key, dimension]; one for all dimensions where they agree."""
        config = self.config
        scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
        if config.has_recency():
            place = torch.arange(scores.shape[-1])
            distance = (place[:, None] - place[None, :]).abs()
            rates = functional.logsigmoid(self.filter.recency)[:, None, None]  # of each head, or one for all
            scores = scores + strength * distance * rates
        scores = scores[..., None]
        if config.arm in FILTERS and config.filter.kriging == "per_dimension":
            scores = scores + strength * split_heads(precision, config.heads).log()[:, :, None]
        elif config.arm in (*FILTERS, "plain-popularity"):
            scores = scores + strength * precision.mean(-1).log()[:, None, None, :, None]
        return scores.masked_fill(~visible[..., None], -torch.inf).softmax(3)

    def variance(self, weights, query, value, precision, visible):
        """The variance of the estimate of each query and dimension, [batch, head, query, dimension]."""
        settings = self.config.filter
        nu = settings.prior_strength
        prior = settings.prior_variance or 1 / value.shape[-1]
        value = value[:, :, None]
        deviation = value - (weights * value).sum(3, keepdim=True)
        residual = (weights * deviation**2).sum(3)
        n_eff = 1 / (weights**2).sum(3)
        reml = (residual + nu * prior) / (n_eff + nu)
        sandwich = (weights**2 * deviation**2).sum(3)
        if settings.estimator == "reml":
            return reml
        if settings.estimator == "reml_conjugate":
            return (n_eff * residual + nu * prior) / ((n_eff - 1 + nu) * n_eff)
        if settings.estimator == "sandwich":
            return sandwich
        if settings.estimator == "delta_weight_free":
            return reml + settings.score_noise**2 * sandwich
        if settings.estimator == "kish":
            seen = visible[..., None].to(value.dtype)
            count = seen.sum(3)
            mean = (seen * value).sum(3, keepdim=True) / count[..., None, :]
            squares = (seen * (value - mean) ** 2).sum(3)  # (count - 1) s^2
            return (squares + nu * prior) / (count - 1 + nu) / n_eff
        rows = self.attention.value.weight.unflatten(0, (self.config.heads, -1))  # [head, dimension, width]
        keys = self.attention.key.weight.unflatten(0, (self.config.heads, -1))
        u = torch.einsum("bhqd,hdm->bhqm", query, keys) / query.shape[-1] ** 0.5
        # How the estimate moves with token j, over its weight: [batch, head, query, key, dimension, width].
        slope = rows[None, :, None, None] + deviation[..., None] * u[:, :, :, None, None]
        token_variance = 1 / precision.mean(-1)[:, None, None, :, None]
        return (weights**2 * token_variance * (slope**2).sum(-1)).sum(3)

    def stretch(self, before, x):
        """How much the MLP stretches a variance, from its input before and after the norm. A running mean is used for
        evaluation where there is one."""
        settings = self.config.filter
        if settings.jacobian == "none":
            return torch.ones_like(x)
        if settings.running_jacobian and not self.training:
            return self.filter.stretch.expand_as(x)
        if settings.jacobian == "low_rank":
            jacobian = gelu_slope(self.mlp.up(x)) @ self.couplings.T
        elif settings.norm_jacobian:
            jacobian = jacobian_diagonal(lambda vector: self.mlp(self.mlp_norm(vector)), before)
        else:
            jacobian = jacobian_diagonal(self.mlp, x)
        return ((1 + jacobian) ** 2).clamp(min=LEAST_STRETCH)

    def predicted(self, posterior, stretch):
        """The precision behind the MLP."""
        settings = self.config.filter
        if settings.predict == "jacobian":
            variance = stretch / posterior
            if settings.most_process_noise > 0:
                noise = functional.softplus(self.filter.process_noise) * settings.most_process_noise
                variance = variance + noise
            return settings.bounded(1 / variance)
        kept = settings.discount if settings.predict == "discount" else self.filter.decay.sigmoid()
        return settings.bounded(kept * posterior / stretch)

    def forward(self, h, precision, visible, strength):
        """The state and its precision behind the layer, and what the filter found, all [batch, T, width]."""
        settings = self.config.filter
        pre = self.config.norm == "pre"
        x = self.attention_norm(h) if pre else h
        query, key, value = self.attention.project(x)
        weights = self.weights(query, key, precision, visible, strength)
        estimate = merge_heads((weights * value[:, :, None]).sum(3))
        found = {}
        arm = self.config.arm
        gain = torch.ones_like(estimate)
        if arm in FILTERS:
            variance = merge_heads(self.variance(weights, query, value, precision, visible))
            # The variance is clamped rather than its inverse: the same, and defined where it is 0 (one visible key).
            observed = 1 / variance.clamp(1 / settings.most_precision, 1 / settings.least_precision)
            found = {"precision": precision, "observation_precision": observed}
            if arm == "least-error":  # the estimate of the change of h has h as an error
                kalman = (1 / precision) / (1 / precision + 1 / observed + h**2)
                posterior = precision / (1 - kalman)
            else:
                kalman = observed / (precision + observed)
                posterior = precision + observed
            gain = 1 + strength * (kalman - 1)
            found["gain"] = gain
        elif arm == "gate":
            gain = self.filter.gate(x).sigmoid()
        elif arm == "constant-k":
            gain = self.filter.gain.sigmoid()
        before = strength * h if arm == "textbook" else 0  # of which the estimate is a new value
        if not self.config.has_output():
            h = h + gain * estimate - gain * before
        elif settings.gain_place == "before":
            h = h + self.attention.output(gain * estimate) - gain * before
        else:
            h = h + gain * self.attention.output(estimate) - gain * before
        h = h if pre else self.attention_norm(h)
        z = self.mlp_norm(h) if pre else h
        if arm in FILTERS:
            precision = self.predicted(settings.bounded(posterior), self.stretch(h, z))
        h = h + self.mlp(z)
        return h if pre else self.mlp_norm(h), precision, found


class FilteredSASRec(nn.Module):
    """In training mode the Jacobian is that of the current weights; otherwise its running mean, where there is one."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.item_embedding = nn.Embedding(config.rows, config.width)
        self.position_embedding = nn.Embedding(config.positions, config.width)
        if config.embedding_norm:
            self.embedding_norm = nn.LayerNorm(config.width, config.norm_epsilon)
        if config.arm in (*FILTERS, "plain-popularity"):
            self.precision = Precision(config)
        self.layers = nn.ModuleList(Block(config) for _ in range(config.layers))
        if config.norm == "pre":
            self.final_norm = nn.LayerNorm(config.width, config.norm_epsilon)

    def states(self, items, positions=None):
        """Hidden states [batch, T, width] of items [batch, T], what the filter of each layer found, and the precision
        behind the last layer."""
        positions = torch.arange(items.shape[1]) if positions is None else positions
        embeddings = self.item_embedding(items)
        factor = self.config.width**0.5 if self.config.embedding_factor == "sqrt_width" else 1
        h = factor * embeddings + self.position_embedding(positions)
        if self.config.embedding_norm:
            h = self.embedding_norm(h)
        precision, strength = None, 1
        if self.config.arm in (*FILTERS, "plain-popularity"):
            precision = self.precision(items, embeddings)[..., None].expand_as(h)
            strength = self.precision.strength
        visible = sasrec_reference.visible_keys(items, self.config.causal)
        every_found = []
        for layer in self.layers:
            h, precision, found = layer(h, precision, visible, strength)
            every_found.append(found)
        return self.final_norm(h) if self.config.norm == "pre" else h, every_found, precision

    def forward(self, items, positions=None):
        return self.states(items, positions)[0]

    def scores(self, hidden):
        """Scores [..., items] of items 1 to n."""
        return hidden @ self.item_embedding.weight[1 : self.config.items + 1].T


def load(folder, dtype):
    """The model of a checkpoint, in training mode. Every tensor must be used and none may be missing."""
    fields = json.loads((pathlib.Path(folder) / "config.json").read_text())
    assert fields.pop("model_type") == "gainlens-sasrec" and fields.pop("activation") == "gelu"
    settings = Filter(**fields.pop("filter"))
    model = FilteredSASRec(Config(**fields, filter=settings)).to(dtype)
    model.load_state_dict(safetensors.torch.load_file(pathlib.Path(folder) / "model.safetensors"))
    for layer in model.layers:
        layer.refresh()
    return model.train()
