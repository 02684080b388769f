"""Attention and its statistics for tensors of queries, keys and values."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import torch

from . import _operators

MAX_FIRST_MASSES = 8

UNITS: dict[str, tuple[str, str]] = {
    "n_eff": ("keys", "Kish effective number of keys"),
    "entropy": ("nats", "entropy of the attention weights"),
    "bos_mass": ("1", "attention weight of key 0 of the text"),
    "residual": ("value^2", "weighted variance S of the values, mean over dimensions"),
    "observation_precision": ("1/value^2", "REML observation precision, mean over dimensions"),
    "log_observation_precision": ("ln(1/value^2)", "log of the REML observation precision, mean over dimensions"),
    "kalman_gain": ("1", "Kalman gain at prior precision 1, mean over dimensions"),
    "kalman_gain_scaled": ("1", "Kalman gain of values scaled to unit variance, mean over dimensions"),
    "without_first_n_eff": ("keys", "Kish effective number of the keys other than key 0"),
    "without_first_residual": ("value^2", "weighted variance S of the values of the keys other than key 0"),
    "without_first_observation_precision": ("1/value^2", "REML observation precision of the keys other than key 0"),
    "without_first_kalman_gain": ("1", "Kalman gain of the keys other than key 0"),
    "without_first_norm": ("value", "L2 norm of the estimate without key 0"),
    "estimate_norm": ("value", "L2 norm of the estimate e"),
    "gained_estimate_norm": ("value", "L2 norm of K o e"),
    "max_logit": ("1", "largest score of a key that the query sees, after scale and soft cap"),
    "lse": ("1", "ln sum exp(score) over the keys that the query sees, without a sink logit"),
    "sink_logit_mass": ("1", "weight of the learned sink logit"),
    "first_weight": ("1", "weight of key 0 among the keys, without the sink logit"),
}
"""Unit and meaning of each number of a query. "value" is the unit of the value vectors."""


@dataclasses.dataclass(frozen=True)
class AttentionStatistics:
    """Statistics of every query of every head. Definitions: docs/method.md, "Statistics of one query".

    Unless it says otherwise, a field is [batch, head, query], float64 for float64 inputs and float32 otherwise. NaN:
    the query is padding; `without_first_*` also where the query sees key 0 alone. With a sink logit of mass p_s, n_eff,
    entropy, S, lambda_obs and K use the weights p / (1 - p_s), `bos_mass` and `first_mass` the weights p.
    Gradients: `output`, `n_eff`, `entropy`, `residual`, `lse`, `first_mass` and `bos_mass`. The others have none.
    """

    output: torch.Tensor
    """[batch, head, query, value_dim], dtype of the inputs: (1 - p_s) e, what attention hands on"""
    n_eff: torch.Tensor
    """1 / sum p^2, in keys: from 1 to the number of keys that the query sees"""
    entropy: torch.Tensor
    """-sum p ln p, in nats"""
    first_mass: torch.Tensor
    """[batch, head, query, first_masses] weights of keys 0, 1, .. of the text; 0 if the key is hidden"""
    residual: torch.Tensor
    """S = sum p (v - e)^2, mean over dimensions, in the square of the values' unit"""
    observation_precision: torch.Tensor
    """lambda_obs = (n_eff + nu) / (S + nu sigma0^2), mean over dimensions, in 1 / values^2"""
    log_observation_precision: torch.Tensor
    """ln lambda_obs, mean over dimensions"""
    kalman_gain: torch.Tensor
    """K = lambda_obs / (lambda + lambda_obs), mean over dimensions"""
    kalman_gain_scaled: torch.Tensor
    """K of values divided by their deviation over the keys of the text, with sigma0^2 = 1"""
    without_first_n_eff: torch.Tensor
    """n_eff of the keys other than key 0; the plain one where the query does not see key 0"""
    without_first_residual: torch.Tensor
    """S of the keys other than key 0"""
    without_first_observation_precision: torch.Tensor
    """lambda_obs of the keys other than key 0"""
    without_first_kalman_gain: torch.Tensor
    """K of the keys other than key 0"""
    without_first_norm: torch.Tensor
    """norm of e over the keys other than key 0"""
    estimate_norm: torch.Tensor
    """norm of e"""
    gained_estimate_norm: torch.Tensor
    """norm of K o e, with the K of each dimension"""
    max_logit: torch.Tensor
    """largest score of a key that the query sees: scale q.k, after the soft cap; without the sink logit"""
    lse: torch.Tensor
    """ln sum exp(s) over these scores; without the sink logit"""
    sink_logit_mass: torch.Tensor | None
    """p_s; None without sink logits"""
    first_weight: torch.Tensor
    """weight of key 0 among the keys: p_0 / (1 - p_s)"""
    top_key: torch.Tensor
    """[batch, head, query, top_keys] int64: keys of the largest scores, counted in their text; -1: there is none"""
    top_weight: torch.Tensor
    """[batch, head, query, top_keys] weights of these keys; NaN where there is none"""

    @property
    def bos_mass(self) -> torch.Tensor:
        """Weight of key 0 of the text, the sink included."""
        if self.first_mass.shape[3] == 0:
            raise AttributeError("bos_mass: was not computed; ask for first_masses of at least 1")
        return self.first_mass[..., 0]

    @property
    def column_mean(self) -> torch.Tensor:
        """[batch, head, first_masses] mean weight of key m over the queries from m on, for one text in a batch row."""
        queries = self.first_mass.shape[2]
        place = torch.arange(queries, device=self.first_mass.device)[:, None]
        later = place >= torch.arange(self.first_mass.shape[3], device=place.device)
        return self.first_mass.masked_fill(~later, torch.nan).nanmean(2)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(f"attention_statistics: {message}")


def _check_inputs(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        _require(isinstance(tensor, torch.Tensor), f"{name} is a {type(tensor).__name__}; must be a tensor")
        shape = list(tensor.shape)
        _require(tensor.dim() == 4, f"{name} has shape {shape}; must be [batch, head, position, dimension]")
        allowed = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
        _require(tensor.dtype in allowed,
                 f"{name} has dtype {tensor.dtype}; must be float32, float64, float16 or bfloat16")
        _require(tensor.dtype == q.dtype, f"{name} has dtype {tensor.dtype}, q {q.dtype}; must be the same")
        _require(tensor.device == q.device, f"{name} is on {tensor.device}, q on {q.device}; must be the same")
        _require(tensor.numel() > 0, f"{name} has shape {shape}; no size may be 0")
        _require(tensor.shape[0] == q.shape[0], f"{name} has {shape[0]} batch rows, q {q.shape[0]}; must be the same")
    _require(k.shape[1:3] == v.shape[1:3],
             f"k has shape {list(k.shape)}, v {list(v.shape)}; heads and positions must agree")
    _require(q.shape[3] == k.shape[3], f"q has shape {list(q.shape)}, k {list(k.shape)}; the last dimension must agree")
    _require(q.shape[1] % k.shape[1] == 0,
             f"{q.shape[1]} query heads over {k.shape[1]} kv heads; the first must be a multiple of the second")


def keys_of_queries(
    batch: int, queries: int, keys: int, causal: bool = True, window: int | None = None
) -> torch.Tensor:
    """The keys that each query sees: int64 [batch, query, 3] on the CPU, with first key, end, and 0 for the origin.

    The queries are the last positions of the keys.
    """
    position = torch.arange(keys - queries, keys)
    begin = torch.zeros_like(position)
    end = position + 1 if causal else torch.full_like(position, keys)
    if window is not None:
        begin = torch.maximum(begin, position - window + 1)
        end = torch.minimum(end, position + window)
    return torch.stack((begin, end, torch.zeros_like(position)), 1)[None].repeat(batch, 1, 1)


def attention_statistics(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    causal: bool = True,
    window: int | None = None,
    softcap: float | None = None,
    sinks: torch.Tensor | None = None,
    scale: float | None = None,
    *,
    keys_of_query: torch.Tensor | None = None,
    first_masses: int = MAX_FIRST_MASSES,
    top_keys: int = 0,
    prior_strength: float = 1.0,
    prior_variance: float | None = None,
    prior_precision: float = 1.0,
) -> AttentionStatistics:
    """Computes attention and its statistics with memory of O(T): no T x T tensor exists. No input is copied.

    q [batch, head, query, d], k [batch, kv_head, key, d], v [batch, kv_head, key, value_dim]: float32, float64, float16
    or bfloat16, any strides, on the CPU (our kernel) or on a GPU (library calls over blocks of queries). Query head h
    reads kv head h // (head / kv_head). With fewer queries than keys, the queries are the last positions.

    causal        query t sees the keys j <= t
    window        query t sees only keys with |t - j| < window, itself included
    softcap       score s becomes softcap tanh(s / softcap)
    sinks         [head] learned sink logits, which take part in the softmax and have no value
    scale         factor on q.k; 1 / sqrt(d) by default
    keys_of_query int64 [batch, query, 3], in place of causal and window: the keys [begin, end) that the query sees, and
                  the key that is key 0 of its text. begin >= end: the query is padding
    first_masses  how many of the first keys have their weights returned, 0 to 8
    top_keys      how many of the heaviest keys are returned, 0 to 64
    prior_strength, prior_variance, prior_precision
                  nu, sigma0^2 (1 / value_dim by default) and lambda of docs/method.md

    float16 and bfloat16 are computed in float32. Error: docs/method.md, "How the sums are formed".

    @raises ValueError    a wrong argument
    @raises RuntimeError  NaN or infinity in a tensor, or products that may overflow float32
    """
    _check_inputs(q, k, v)
    batch, heads, queries, dims = q.shape
    keys = k.shape[2]
    _require(window is None or window >= 1, f"window {window}; must be at least 1 (the query itself), or None")
    cap = 0.0 if softcap is None else float(softcap)
    _require(softcap is None or 1e-30 <= cap <= 1e30, f"softcap {softcap}; must be between 1e-30 and 1e30, or None")
    factor = 1 / math.sqrt(dims) if scale is None else float(scale)
    _require(math.isfinite(factor), f"scale {scale}; must be finite")
    _require(0 <= first_masses <= MAX_FIRST_MASSES, f"first_masses {first_masses}; must be between 0 and 8")
    _require(0 <= top_keys <= 64, f"top_keys {top_keys}; must be between 0 and 64")
    variance = 1 / v.shape[3] if prior_variance is None else float(prior_variance)
    for name, prior in (("prior_strength", prior_strength), ("prior_variance", variance),
                        ("prior_precision", prior_precision)):
        _require(0 <= prior <= 1e30, f"{name} {prior}; must be between 0 and 1e30")
    if keys_of_query is None:
        _require(queries <= keys or not (causal or window is not None),
                 f"{queries} queries over {keys} keys; causal queries are the last positions of the keys, so there may "
                 "not be more of them")
        keys_of_query = keys_of_queries(batch, queries, keys, causal, window)
    else:
        _require(causal and window is None, "give either keys_of_query or causal and window")
        _require(keys_of_query.dtype == torch.int64 and tuple(keys_of_query.shape) == (batch, queries, 3),
                 f"keys_of_query is {keys_of_query.dtype} {list(keys_of_query.shape)}; must be int64 "
                 f"[{batch}, {queries}, 3]")
        keys_of_query = keys_of_query.to("cpu").contiguous()
    if sinks is not None:
        _require(sinks.numel() == heads and sinks.dim() == 1, f"sinks has shape {list(sinks.shape)}; must be [{heads}]")
        sinks = sinks.to(device=q.device, dtype=torch.float64).contiguous()
    output, scalars, first_mass, top_key, top_weight = torch.ops.gainlens.attention_statistics(
        q, k, v, keys_of_query, sinks, factor, cap, prior_strength, variance, prior_precision, 2, first_masses, top_keys
    )
    fields: dict[str, Any] = {}
    for index, name in enumerate(_operators.NAMES):
        row = scalars[index]
        fields[name] = row if name in _operators.DIFFERENTIABLE else row.detach()
    if sinks is None:
        fields["sink_logit_mass"] = None
    return AttentionStatistics(
        output=output, first_mass=first_mass, top_key=top_key, top_weight=top_weight.detach(),
        **fields,
    )
