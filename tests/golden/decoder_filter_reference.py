"""The Bayesian filter in decoders of the field's Python reference implementation, from the formulas of docs/bft.md.

The attention weights are T x T matrices, J comes from matrices of couplings, and gradients from autograd: no formula is
shared with the program. Known are Llama, Qwen 3 and Gemma 3: norms of queries and keys, windows, norms on both sides.
"""

import math

import torch
from torch import nn
from torch.nn import functional

MOST_PRECISION, LEAST_PRECISION = 3.0, 1e-3
MOST_NOISE, PRIOR_STRENGTH, RANK, RANGE = 10.0, 1.0, 16, 0.5
ARMS = ("bft", "constant-k", "gate", "plain-decay")


def bounded(precision):
    return precision.clamp(LEAST_PRECISION, MOST_PRECISION)


def filling(name, shape, start):
    """Numbers that follow from a name: the program fills its weights by the same rule."""
    shift = sum(name.encode()) % 97
    count = math.prod(shape)
    return (start + 0.3 * torch.cos(0.7 * torch.arange(count, dtype=torch.float64) + shift)).reshape(shape)


def low_rank(coupling):
    left, values, right = torch.linalg.svd(coupling.detach())
    return (left[:, :RANK] * values[:RANK]) @ right[:RANK]


def rotate_half(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), -1)


class Filter(nn.Module):
    """The weights of one arm's filter, by the names of a checkpoint."""

    def __init__(self, arm, config, post_norm):
        super().__init__()
        self.arm, self.config, self.post_norm = arm, config, post_norm
        width, found = config.hidden_size, config.num_attention_heads * config.head_dim
        estimate = width if post_norm else found
        self.weights = {}

        def add(name, shape, start):
            self.weights[name] = filling(name, shape, start).requires_grad_(True)

        for layer in range(config.num_hidden_layers):
            at = f"model.layers.{layer}.filter."
            if arm == "bft" and layer + 1 < config.num_hidden_layers:
                add(at + "process_noise", (width,), -2)
            add(at + "recency", (1,), math.log(0.99 / 0.01))
            if arm == "constant-k":
                add(at + "gain", (estimate,), math.log(9))
            if arm == "gate":
                add(at + "gate.weight", (estimate, width), 0)
                add(at + "gate.bias", (estimate,), math.log(9))
        if arm == "bft":
            self.weights["model.precision.range"] = torch.tensor([RANGE], dtype=torch.float64, requires_grad=True)
            add("model.precision.network.hidden.weight", (16, width), 0)
            add("model.precision.network.hidden.bias", (16,), 0)
            add("model.precision.network.output.weight", (1, 16), 0)
            add("model.precision.network.output.bias", (1,), 0)

    def initial(self, embedded):
        of = lambda name: self.weights["model.precision." + name]
        hidden = functional.gelu(embedded @ of("network.hidden.weight").T + of("network.hidden.bias"))
        tau = of("range") + functional.softplus(hidden @ of("network.output.weight").T + of("network.output.bias"))
        return bounded(tau).expand(embedded.shape)


def in_size(precision, size):
    return precision if precision.shape[-1] == size else precision.mean(-1, keepdim=True)


def layer_step(module, layer, kept, h, precision, rotary, window):
    """h, lambda [position, ..] after a layer."""
    config, attention, post_norm = kept.config, module.self_attn, kept.post_norm
    heads, d, positions = config.num_attention_heads, config.head_dim, len(h)
    moves = kept.arm == "bft"
    x = module.input_layernorm(h)

    def of_heads(projection, norm, rotates):
        y = projection(x).view(positions, -1, d)
        if norm is not None:
            y = norm(y)
        y = y.transpose(0, 1)
        if rotates:
            cos, sin = rotary
            y = y * cos[0] + rotate_half(y) * sin[0]
        return y.repeat_interleave(heads // y.shape[0], 0)

    query = of_heads(attention.q_proj, getattr(attention, "q_norm", None), True)
    key = of_heads(attention.k_proj, getattr(attention, "k_norm", None), True)
    value = of_heads(attention.v_proj, None, False)
    place = torch.arange(positions)
    distance = place[:, None] - place[None, :]
    scores = query @ key.transpose(1, 2) * attention.scaling
    scores = scores + distance * functional.logsigmoid(kept.weights[f"model.layers.{layer}.filter.recency"])
    if moves:
        scores = scores + precision.mean(1).log()
    hidden_keys = distance < 0
    if window is not None:
        hidden_keys = hidden_keys | (distance >= window)
    p = scores.masked_fill(hidden_keys, -torch.inf).softmax(-1)
    found = p @ value
    e = found.transpose(0, 1).reshape(positions, heads * d)

    def gained(estimate, observed):
        """The gain on an estimate, of the heads or of the stream."""
        at = f"model.layers.{layer}.filter."
        if moves:
            size = estimate.shape[-1]
            own, seen = in_size(precision, size), in_size(observed, size)
            return seen / (own + seen) * estimate
        if kept.arm == "constant-k":
            return torch.sigmoid(kept.weights[at + "gain"]) * estimate
        if kept.arm == "gate":
            return torch.sigmoid(x @ kept.weights[at + "gate.weight"].T + kept.weights[at + "gate.bias"]) * estimate
        return estimate

    observed = None
    if moves:
        n_eff = 1 / (p**2).sum(-1, keepdim=True)
        residual = torch.stack([((value[:, None] - found[:, :, None]) ** 2 * p[..., None]).sum(2)])[0]
        variance = (n_eff * residual + PRIOR_STRENGTH / d) / ((n_eff - 1 + PRIOR_STRENGTH) * n_eff)
        observed = bounded(1 / variance).transpose(0, 1).reshape(positions, heads * d)
    if post_norm:
        h = h + gained(module.post_attention_layernorm(attention.o_proj(e)), observed)
        mlp_norm, after = module.pre_feedforward_layernorm, module.post_feedforward_layernorm
    else:
        h = h + attention.o_proj(gained(e, observed))
        mlp_norm, after = module.post_attention_layernorm, None
    mlp, y = module.mlp, mlp_norm(h)
    fed = mlp(y)
    h = h + (fed if after is None else after(fed))
    if not moves or layer + 1 == config.num_hidden_layers:
        return h, precision
    posterior = bounded(precision + in_size(observed, h.shape[-1]))
    gates, neurons = mlp.gate_proj(y), mlp.up_proj(y)
    slope = torch.autograd.grad(mlp.act_fn(gates).sum(), gates, create_graph=True)[0]
    of_gate = low_rank(mlp.down_proj.weight * mlp.gate_proj.weight.T)
    of_up = low_rank(mlp.down_proj.weight * mlp.up_proj.weight.T)
    jacobian = (slope * neurons) @ of_gate.T + mlp.act_fn(gates) @ of_up.T
    if after is not None:
        jacobian = jacobian * (1 + after.weight) / (fed**2).mean(-1, keepdim=True).add(after.eps).sqrt()
    stretch = ((1 + jacobian) ** 2).clamp_min(0.01)
    noise = functional.softplus(kept.weights[f"model.layers.{layer}.filter.process_noise"]) * MOST_NOISE
    return h, bounded(1 / (stretch / posterior + noise))


def logits(model, kept, ids):
    """[position, token]."""
    inner = model.model
    h = inner.embed_tokens(ids)
    precision = kept.initial(h) if kept.arm == "bft" else None
    places = torch.arange(len(ids))[None]
    types = getattr(model.config, "layer_types", None) or ["full_attention"] * model.config.num_hidden_layers
    for layer, module in enumerate(inner.layers):
        local = types[layer] == "sliding_attention"
        if model.config.model_type == "gemma3_text":
            rotary = inner.rotary_emb(h[None], places, types[layer])
        else:
            rotary = inner.rotary_emb(h[None], places)
        h, precision = layer_step(
            module, layer, kept, h, precision, rotary, model.config.sliding_window if local else None
        )
    return model.lm_head(inner.norm(h))
