"""The statistics by their definitions, from T x T weights in float64. Shares no code with the package."""

from __future__ import annotations

import numpy as np


def softmax_rows(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def head_statistics(q, k, v, visible, origin=None, scale=None, softcap=None, sink=None, nu=1.0, sigma2=None, lam=1.0):
    """q [T, d], k [S, d], v [S, dv], visible [T, S] of one head; origin [T]: the key that is key 0, negative: none.

    Returns arrays [T] by name, with `output` [T, dv] and `first_mass` [T, 8]. Queries that see no key are NaN.
    """
    q, k, v = (np.asarray(x, np.float64) for x in (q, k, v))
    queries, dims = len(q), v.shape[1]
    scale = q.shape[1] ** -0.5 if scale is None else scale
    sigma2 = 1 / dims if sigma2 is None else sigma2
    origin = np.zeros(queries, int) if origin is None else np.asarray(origin)
    names = ("n_eff entropy residual observation_precision log_observation_precision kalman_gain kalman_gain_scaled "
             "without_first_n_eff without_first_residual without_first_observation_precision "
             "without_first_kalman_gain without_first_norm estimate_norm gained_estimate_norm max_logit lse "
             "sink_logit_mass first_weight").split()
    out = {name: np.full(queries, np.nan) for name in names}
    out["output"] = np.zeros((queries, dims))
    out["first_mass"] = np.full((queries, 8), np.nan)
    for t in range(queries):
        seen = np.flatnonzero(visible[t])
        if len(seen) == 0:
            continue
        s = scale * (k[seen] @ q[t])
        if softcap is not None:
            s = softcap * np.tanh(s / softcap)
        p = softmax_rows(s[None])[0]
        lse = s.max() + np.log(np.exp(s - s.max()).sum())

        def moments(p, values):
            e = p @ values
            S = p @ (values - e) ** 2
            return 1 / (p**2).sum(), e, S

        n, e, S = moments(p, v[seen])
        precision = (n + nu) / (S + nu * sigma2)
        gain = precision / (lam + precision)
        share = 1.0 if sink is None else 1 / (1 + np.exp(sink - lse))
        last = np.flatnonzero(visible[origin == origin[t]].any(0)).max()  # of the keys of this text
        variance = v[max(origin[t], 0) : last + 1].var(0)
        scaled = np.where(variance > 0, S / np.where(variance > 0, variance, 1), 0)
        precision_scaled = (n + nu) / (scaled + nu)
        others = np.exp(np.delete(s, s.argmax()) - s.max()).sum()  # so that ln(1 + others) keeps its digits
        out["n_eff"][t] = n
        out["entropy"][t] = np.log1p(others) - (p * (s - s.max())).sum()
        out["residual"][t] = S.mean()
        out["observation_precision"][t] = precision.mean()
        out["log_observation_precision"][t] = np.log(precision).mean()
        out["kalman_gain"][t] = gain.mean()
        out["kalman_gain_scaled"][t] = (precision_scaled / (lam + precision_scaled)).mean()
        out["estimate_norm"][t] = np.linalg.norm(e)
        out["gained_estimate_norm"][t] = np.linalg.norm(gain * e)
        out["max_logit"][t] = s.max()
        out["lse"][t] = lse
        if sink is not None:
            out["sink_logit_mass"][t] = 1 - share
        is_first = seen == origin[t]
        out["first_weight"][t] = p[is_first].sum()
        for m in range(8):
            out["first_mass"][t, m] = share * p[seen == origin[t] + m].sum()
        out["output"][t] = share * e
        if (~is_first).any():
            n1, e1, S1 = moments(p[~is_first] / p[~is_first].sum(), v[seen][~is_first])
            precision1 = (n1 + nu) / (S1 + nu * sigma2)
            out["without_first_n_eff"][t] = n1
            out["without_first_residual"][t] = S1.mean()
            out["without_first_observation_precision"][t] = precision1.mean()
            out["without_first_kalman_gain"][t] = (precision1 / (lam + precision1)).mean()
            out["without_first_norm"][t] = np.linalg.norm(e1)
    return out


def statistics(q, k, v, visible, origin=None, sinks=None, **options):
    """q [B, H, T, d], k and v [B, KV, S, d], visible [B, T, S], origin [B, T]; arrays [B, H, T] by name."""
    batch, heads = q.shape[:2]
    group = heads // k.shape[1]
    rows = []
    for b in range(batch):
        for h in range(heads):
            rows.append(head_statistics(q[b, h], k[b, h // group], v[b, h // group], visible[b],
                                        None if origin is None else origin[b],
                                        sink=None if sinks is None else float(sinks[h]), **options))
    return {name: np.stack([row[name] for row in rows]).reshape(batch, heads, *rows[0][name].shape) for name in rows[0]}


def causal(batch, queries, keys, window=None):
    position = np.arange(keys - queries, keys)
    index = np.arange(keys)
    visible = index[None] <= position[:, None]
    if window is not None:
        visible &= position[:, None] - index[None] < window
    return np.broadcast_to(visible, (batch, queries, keys)).copy()


def error(found, wanted):
    """|a - b| / max(|b|, 1e-3 max |b|), the worst; NaN must be at the same places."""
    found, wanted = np.asarray(found, np.float64), np.asarray(wanted, np.float64)
    assert found.shape == wanted.shape, (found.shape, wanted.shape)
    assert (np.isnan(found) == np.isnan(wanted)).all(), "NaN at other places"
    good = ~np.isnan(wanted)
    if not good.any():
        return 0.0
    floor = np.maximum(np.abs(wanted[good]), 1e-3 * np.abs(wanted[good]).max())
    if floor.max() == 0:
        return float(np.abs(found[good]).max())
    return float((np.abs(found[good] - wanted[good]) / np.maximum(floor, 1e-300)).max())
