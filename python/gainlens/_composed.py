"""Attention and its statistics from library calls over blocks of queries: any device, and the gradients.

Scores are computed in float32 (float64 for float64 inputs), everything after them in float64. No tensor of
T x T elements exists: a block holds at most BLOCK_ELEMENTS weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

BLOCK_ELEMENTS = 1 << 24
"""Weights of a block of queries, over all heads and batch rows."""


def _queries_per_block(query: torch.Tensor, key: torch.Tensor) -> int:
    return max(1, BLOCK_ELEMENTS // (query.shape[0] * query.shape[1] * key.shape[2]))


class _Weights:
    """The softmax of a block of queries.

    weights [batch, head, query, key] float64: exp(s - maximum), 0 where a key is hidden
    """

    def __init__(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        keys_of_query: torch.Tensor,
        scale: float,
        soft_cap: float,
    ) -> None:
        batch, heads, count, dims = query.shape
        self.kv_heads, self.keys = key.shape[1], key.shape[2]
        real = torch.float64 if query.dtype == torch.float64 else torch.float32
        grouped = query.to(real).reshape(batch, self.kv_heads, -1, dims)
        scores = torch.matmul(grouped, key.to(real).transpose(2, 3)).reshape(batch, heads, count, self.keys) * scale
        if soft_cap > 0:
            scores = soft_cap * torch.tanh(scores / soft_cap)
        begin, end, origin = keys_of_query[:, None, :, :, None].unbind(3)  # [batch, 1, query, 1] each
        index = torch.arange(self.keys, device=query.device)
        self.empty = begin >= end
        visible = ((index >= begin) & (index < end)) | self.empty  # a query without keys is overwritten by the caller
        self.is_first = (index == origin) & visible & ~self.empty
        scores = scores.double()
        self.visible_scores = scores.masked_fill(~visible, -torch.inf)
        self.maximum = self.visible_scores.amax(-1, keepdim=True).detach()
        self.difference = torch.where(visible, scores - self.maximum, 0)
        self.weights = torch.where(visible, torch.exp(self.difference), 0)
        self.total = self.weights.sum(-1, keepdim=True)
        self.log_total = (self.maximum + torch.log(self.total)).squeeze(-1)
        self.n_eff = (self.total**2 / (self.weights**2).sum(-1, keepdim=True)).squeeze(-1)
        mean_difference = (self.weights * self.difference).sum(-1, keepdim=True) / self.total
        self.entropy = (torch.log(self.total) - mean_difference).squeeze(-1)

    def times(self, weights: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        """weights [batch, head, query, key] times values [batch, kv_head, key, dim], by head."""
        batch, heads, count, _ = weights.shape
        grouped = weights.reshape(batch, self.kv_heads, -1, self.keys)
        return torch.matmul(grouped, values).reshape(batch, heads, count, values.shape[3])

    def keys_share(self, sink_logit: torch.Tensor | None) -> torch.Tensor:
        """1 - p_s [batch, head, query, 1], the share of the softmax that is not a learned sink's."""
        if sink_logit is None:
            return torch.ones_like(self.log_total)[..., None]
        return torch.sigmoid(self.log_total - sink_logit.double()[None, :, None])[..., None]

    def first_masses(self, keys_of_query: torch.Tensor, count: int) -> torch.Tensor:
        """Weights among the keys of the keys 0, 1, .. of the text [batch, head, query, count]."""
        begin, end, origin = keys_of_query.unbind(2)
        index = origin[..., None] + torch.arange(count, device=origin.device)  # [batch, query, count]
        seen = (index >= begin[..., None]) & (index < end[..., None])
        place = index.clamp(0, self.keys - 1)[:, None].expand(-1, self.weights.shape[1], -1, -1)
        return torch.where(seen[:, None], torch.gather(self.weights / self.total, 3, place), 0)


def _centred(value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The values about a centre, and the centre [batch, kv_head, 1, dim], in float64."""
    wide = value.double()
    centre = wide.detach().mean(2, keepdim=True)
    return wide - centre, centre


def _by_head(rows: torch.Tensor, heads: int) -> torch.Tensor:
    """[batch, kv_head, ...] repeated for the query heads that share a kv head."""
    return rows.repeat_interleave(heads // rows.shape[1], dim=1)


def _text_variances(value: torch.Tensor, keys_of_query: torch.Tensor) -> torch.Tensor:
    """Population variance of the values of each query's text [batch, kv_head, query, dim], in float64."""
    batch, queries, _ = keys_of_query.shape
    begin, end, origin = (part.tolist() for part in keys_of_query.cpu().unbind(2))
    found = torch.zeros(batch, value.shape[1], queries, value.shape[3], dtype=torch.float64, device=value.device)
    for row in range(batch):
        first = 0
        while first < queries:  # the texts of a row: consecutive queries with one origin
            last, largest = first, 0
            while last < queries and (begin[row][last] >= end[row][last] or largest == 0
                                      or origin[row][last] == origin[row][first]):
                if begin[row][last] < end[row][last]:
                    first = last if largest == 0 else first
                    largest = max(largest, end[row][last])
                last += 1
            if largest > 0:
                values = value[row, :, max(origin[row][first], 0) : largest].double()
                found[row, :, first:last] = values.var(1, correction=0, keepdim=True)
            first = last
    return found


def statistics(
    names: Sequence[str],
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    keys_of_query: torch.Tensor,
    sink_logit: torch.Tensor | None,
    scale: float,
    soft_cap: float,
    prior_strength: float,
    prior_variance: float,
    prior_precision: float,
    summary: int,
    first_masses: int,
    top_keys: int,
) -> tuple[torch.Tensor, ...]:
    """The results of the operator `gainlens::attention_statistics`, on the device of the inputs.

    @raises RuntimeError  NaN or infinity in an input
    """
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if not bool(torch.isfinite(tensor).all()):
            raise RuntimeError(f"attention_statistics: {name} holds NaN or infinity; earlier activations overflowed or "
                               "a weight is damaged")
    batch, heads, queries, _ = query.shape
    real = torch.float64 if query.dtype == torch.float64 else torch.float32
    output = query.new_zeros((batch, queries, heads, value.shape[3])).transpose(1, 2)
    scalars = query.new_full((len(names), batch, heads, queries), torch.nan, dtype=real)
    masses = query.new_full((batch, heads, queries, first_masses), torch.nan, dtype=real)
    top_key = query.new_full((batch, heads, queries, top_keys), -1, dtype=torch.int64)
    top_weight = query.new_full((batch, heads, queries, top_keys), torch.nan, dtype=real)
    keys_of_query = keys_of_query.to(query.device)
    sink_logit = None if sink_logit is None else sink_logit.to(query.device)
    offsets, centre = _centred(value)
    variances = _text_variances(value, keys_of_query) if summary > 0 else None
    prior, nu = prior_strength * prior_variance, prior_strength

    def precision(n_eff: torch.Tensor, spread: torch.Tensor) -> torch.Tensor:
        return (n_eff[..., None] + nu) / (spread + prior)

    def gain(n_eff: torch.Tensor, variance: torch.Tensor) -> torch.Tensor:
        count = n_eff[..., None] + nu
        return count / (prior_precision * variance + count)

    step = _queries_per_block(query, key)
    for first in range(0, queries, step):
        part = slice(first, min(first + step, queries))
        seen = keys_of_query[:, part]
        soft = _Weights(query[:, :, part], key, seen, scale, soft_cap)
        share = soft.keys_share(sink_logit)
        mean = soft.times(soft.weights / soft.total, offsets)
        spread = (soft.times(soft.weights / soft.total, offsets**2) - mean**2).clamp(min=0)
        estimate = mean + _by_head(centre, heads)
        found = {
            "n_eff": soft.n_eff,
            "entropy": soft.entropy.clamp(min=0),
            "residual": spread.mean(-1),
            "observation_precision": precision(soft.n_eff, spread).mean(-1),
            "kalman_gain": gain(soft.n_eff, spread + prior).mean(-1),
            "max_logit": soft.maximum.squeeze(-1),
            "lse": soft.log_total,
            "first_weight": torch.where(soft.is_first, soft.weights, 0).sum(-1) / soft.total.squeeze(-1),
        }
        if sink_logit is not None:
            found["sink_logit_mass"] = torch.sigmoid(sink_logit.double()[None, :, None] - soft.log_total)
        if summary > 0 and variances is not None:
            variance = _by_head(variances[:, :, part], heads)
            relative = torch.where(variance > 0, spread / torch.where(variance > 0, variance, 1), 0)
            gains = gain(soft.n_eff, spread + prior)
            found["log_observation_precision"] = precision(soft.n_eff, spread).log().mean(-1)
            found["kalman_gain_scaled"] = gain(soft.n_eff, relative + nu).mean(-1)
            found["estimate_norm"] = estimate.norm(dim=-1)
            found["gained_estimate_norm"] = (gains * estimate).norm(dim=-1)
            rest = torch.where(soft.is_first, 0, soft.weights)
            total = rest.sum(-1, keepdim=True)
            alone = total.squeeze(-1) == 0
            rest = rest / torch.where(total > 0, total, 1)
            rest_mean = soft.times(rest, offsets)
            rest_spread = (soft.times(rest, offsets**2) - rest_mean**2).clamp(min=0)
            rest_n_eff = 1 / torch.where(alone, 1, (rest**2).sum(-1))
            without = {
                "n_eff": rest_n_eff,
                "residual": rest_spread.mean(-1),
                "observation_precision": precision(rest_n_eff, rest_spread).mean(-1),
                "kalman_gain": gain(rest_n_eff, rest_spread + prior).mean(-1),
                "norm": (rest_mean + _by_head(centre, heads)).norm(dim=-1),
            }
            if summary < 2:
                del without["residual"], without["observation_precision"]
            for name, numbers in without.items():
                found["without_first_" + name] = numbers.masked_fill(alone, torch.nan)
        empty = soft.empty.squeeze(-1)  # [batch, 1, query]
        for name, numbers in found.items():
            scalars[names.index(name), :, :, part] = numbers.masked_fill(empty, torch.nan).to(real)
        output[:, :, part] = (estimate * share).masked_fill(soft.empty, 0).to(output.dtype)
        mass = soft.first_masses(seen, first_masses) * share
        masses[:, :, part] = mass.masked_fill(soft.empty, torch.nan).to(real)
        if top_keys > 0:
            ranked = soft.visible_scores.sort(dim=-1, descending=True, stable=True)
            kept = slice(0, min(top_keys, key.shape[2]))
            score, place = ranked.values[..., kept], ranked.indices[..., kept]
            missing = (score == -torch.inf) | soft.empty
            place = place - seen[:, None, :, 2, None]
            top_key[:, :, part, kept] = place.masked_fill(missing, -1)
            weight = (torch.exp(score - soft.log_total[..., None]) * share).masked_fill(missing, torch.nan)
            top_weight[:, :, part, kept] = weight.to(real)
    return output, scalars, masses, top_key, top_weight


def gradients(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    keys_of_query: torch.Tensor,
    sink_logit: torch.Tensor | None,
    scale: float,
    soft_cap: float,
    output: torch.Tensor | None,
    scalars: Mapping[str, torch.Tensor],
    first_mass: torch.Tensor | None,
) -> tuple[torch.Tensor | None, ...]:
    """Gradients of query, key, value and sink logit, by computing each block of queries again.

    output      [batch, head, query, value_dim] gradient of the output, or None
    scalars     by name [batch, head, query] gradients of n_eff, entropy, residual and lse
    first_mass  [batch, head, query, first_masses] gradient, or None
    """
    keys_of_query = keys_of_query.to(query.device)
    leaves = [tensor.detach().requires_grad_() for tensor in (key, value)]
    sink = None if sink_logit is None else sink_logit.detach().to(query.device).requires_grad_()
    query_gradient = torch.zeros_like(query)
    sums: list[torch.Tensor] = [torch.zeros(leaf.shape, dtype=torch.float64, device=leaf.device) for leaf in leaves]
    if sink is not None:
        sums.append(torch.zeros_like(sink))
    step = _queries_per_block(query, key)
    for first in range(0, query.shape[2], step):
        part = slice(first, min(first + step, query.shape[2]))
        seen = keys_of_query[:, part]
        with torch.enable_grad():
            own = query[:, :, part].detach().requires_grad_()
            soft = _Weights(own, leaves[0], seen, scale, soft_cap)
            share = soft.keys_share(sink)
            terms: list[tuple[torch.Tensor, torch.Tensor]] = []
            if output is not None or "residual" in scalars:
                offsets, centre = _centred(leaves[1])
                mean = soft.times(soft.weights / soft.total, offsets)
                if output is not None:
                    terms.append((share * (mean + _by_head(centre, own.shape[1])), output[:, :, part]))
                if "residual" in scalars:
                    spread = soft.times(soft.weights / soft.total, offsets**2) - mean**2
                    terms.append((spread.mean(-1), scalars["residual"][:, :, part]))
            for name, numbers in (("n_eff", soft.n_eff), ("entropy", soft.entropy), ("lse", soft.log_total)):
                if name in scalars:
                    terms.append((numbers, scalars[name][:, :, part]))
            if first_mass is not None and first_mass.shape[3] > 0:
                terms.append((soft.first_masses(seen, first_mass.shape[3]) * share, first_mass[:, :, part]))
            if not terms:
                continue
            total = torch.zeros((), dtype=torch.float64, device=query.device)
            for numbers, gradient in terms:
                hidden = soft.empty if numbers.dim() == 4 else soft.empty.squeeze(-1)
                total = total + (numbers * gradient.double().masked_fill(hidden, 0)).sum()
        wanted = [own, *leaves] + ([] if sink is None else [sink])
        found = torch.autograd.grad(total, wanted, allow_unused=True)
        if found[0] is not None:
            query_gradient[:, :, part] = found[0]
        for sum_, gradient in zip(sums, found[1:]):
            if gradient is not None:
                sum_ += gradient
    return query_gradient, sums[0].to(key.dtype), sums[1].to(value.dtype), sums[2] if sink is not None else None
