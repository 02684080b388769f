"""Statistics of every query of one attention layer, by brute force: T x T weights, float64, one formula per line.

Written from the definitions alone (the paper, Eq. reml, and docs/method.md). It shares nothing with the C++ kernels, so
that agreement with them is a real test.
"""

import math

import torch

FIRST_KEYS = 8  # the mass of this many first keys is reported


def masses(query, key, visible, scale, soft_cap=None, bias=None, sink_logit=None):
    """Softmax [head, query, key] of [head, T, d] queries and [kv_head, T, d] keys; 0 where not visible.

    A score s becomes soft_cap tanh(s / soft_cap). Then bias [head, key] is added. A sink logit [head] gives one more
    column, the last.
    """
    key = key.repeat_interleave(query.shape[0] // key.shape[0], dim=0)
    scores = scale * query @ key.transpose(1, 2)
    if soft_cap is not None:
        scores = soft_cap * torch.tanh(scores / soft_cap)
    if bias is not None:
        scores = scores + bias[:, None, :]
    scores = scores.masked_fill(~visible, -torch.inf)
    if sink_logit is not None:
        scores = torch.cat([scores, sink_logit[:, None, None].expand(-1, scores.shape[1], 1)], dim=-1)
    return torch.softmax(scores, dim=-1)


def attention_weights(query, key, *arguments, **options):
    """The weights of the values: `masses` without the column of the sink. With a sink they sum to less than 1."""
    return masses(query, key, *arguments, **options)[..., : key.shape[1]]


def moments(weights, values):
    """n_eff [head, query], e and S [head, query, d] of values [head, key, d].

    The weights [head, query, key] may have any positive sum.
    """
    total = weights.sum(-1, keepdim=True)
    share = weights / total
    n_eff = 1 / (share**2).sum(-1)
    mean = share @ values
    centred = values[:, None, :, :] - mean[:, :, None, :]  # [head, query, key, d]: brute force, no cancellation
    residual = (share[..., None] * centred**2).sum(2)
    return n_eff, mean, residual


def precision(n_eff, residual, prior_variance):
    """Eq. reml with nu = 1: (n_eff + nu) / (S + nu sigma0^2), per dimension."""
    return (n_eff[..., None] + 1) / (residual + prior_variance)


def gain(observation_precision):
    """K = lambda_obs / (lambda + lambda_obs) at lambda = 1, per dimension."""
    return observation_precision / (1 + observation_precision)


def statistics(query, key, value, visible, scale, soft_cap=None, bias=None, sink_logit=None, positions=None):
    """All fields for queries [head, T, d'], keys [kv_head, T, d'], values [kv_head, T, d] and visible [T, T].

    Everything is in float64. `positions` [query] are the queries to report, default all. Their moments need memory for
    d numbers per query and key. With a sink logit of mass p_s, first_mass and column_mean use the weights p; every
    other field uses the weights p / (1 - p_s) over the keys. sink_logit_mass [head, query] is p_s.
    """
    query, key, value = query.double(), key.double(), value.double()
    bias, sink_logit = (None if tensor is None else tensor.double() for tensor in (bias, sink_logit))
    length, value_dim = value.shape[1:]
    positions = torch.arange(length) if positions is None else positions
    mass = masses(query, key, visible, scale, soft_cap, bias, sink_logit)
    weights = mass if sink_logit is None else masses(query, key, visible, scale, soft_cap, bias)
    weights, every_mass, mass = weights[:, positions], mass, mass[:, positions]
    groups = query.shape[0] // value.shape[0]
    values = value.repeat_interleave(groups, dim=0)
    value_variance = value.var(dim=1, correction=0)

    n_eff, estimate, residual = moments(weights, values)
    observation_precision = precision(n_eff, residual, 1 / value_dim)
    scaled = residual / value_variance.repeat_interleave(groups, dim=0)[:, None, :]

    others = weights.clone()
    others[:, :, 0] = 0  # without key 0; a query that sees only key 0 gets 0/0 = NaN
    without_n_eff, without_estimate, without_residual = moments(others, values)
    without_precision = precision(without_n_eff, without_residual, 1 / value_dim)

    columns = min(FIRST_KEYS, length)
    sink = {} if sink_logit is None else {"sink_logit_mass": mass[..., -1]}
    return sink | {
        "n_eff": n_eff,
        "entropy": -torch.xlogy(weights, weights).sum(-1),
        "residual": residual.mean(-1),
        "observation_precision": observation_precision.mean(-1),
        "log_observation_precision": observation_precision.log().mean(-1),
        "kalman_gain": gain(observation_precision).mean(-1),
        "kalman_gain_scaled": gain(precision(n_eff, scaled, 1)).mean(-1),
        "without_first_n_eff": without_n_eff,
        "without_first_residual": without_residual.mean(-1),
        "without_first_observation_precision": without_precision.mean(-1),
        "without_first_kalman_gain": gain(without_precision).mean(-1),
        "estimate_norm": estimate.norm(dim=-1),
        "gained_estimate_norm": (gain(observation_precision) * estimate).norm(dim=-1),
        "without_first_norm": without_estimate.norm(dim=-1),
        "first_mass": mass[:, :, :columns],
        "column_mean": torch.stack([every_mass[:, m:, m].mean(-1) for m in range(columns)], dim=-1),
        "value_variance": value_variance,
    }


def check_hand_case():
    """Two keys, one dimension, equal scores: every field can be computed by hand.

    Query 0 sees only value 1: n_eff 1, S 0, lambda_obs (1 + 1)/(0 + 1) = 2, K 2/3.
    Query 1 sees values 1 and 3 with weights 1/2: n_eff 2, mean 2, S 1, lambda_obs 3/2, K 3/5. The variance of the
    values is 1, so the scaled gain is the same. Without key 0 one key remains: n_eff 1, S 0, lambda_obs 2, K 2/3.
    The norms are |e| = 1 and 2, K |e| = 2/3 and 6/5, and 3 without key 0.
    """
    zeros = torch.zeros(1, 2, 1)
    found = statistics(zeros, zeros, torch.tensor([[[1.0], [3.0]]]), torch.tensor([[True, False], [True, True]]), 1.0)
    nan = math.nan
    expected = {
        "n_eff": [[1, 2]],
        "entropy": [[0, math.log(2)]],
        "residual": [[0, 1]],
        "observation_precision": [[2, 1.5]],
        "log_observation_precision": [[math.log(2), math.log(1.5)]],
        "kalman_gain": [[2 / 3, 0.6]],
        "kalman_gain_scaled": [[2 / 3, 0.6]],
        "without_first_n_eff": [[nan, 1]],
        "without_first_residual": [[nan, 0]],
        "without_first_observation_precision": [[nan, 2]],
        "without_first_kalman_gain": [[nan, 2 / 3]],
        "estimate_norm": [[1, 2]],
        "gained_estimate_norm": [[2 / 3, 1.2]],
        "without_first_norm": [[nan, 3]],
        "first_mass": [[[1, 0], [0.5, 0.5]]],
        "column_mean": [[0.75, 0.5]],
        "value_variance": [[1]],
    }
    check_fields(found, expected)


def check_fields(found, expected):
    assert expected.keys() == found.keys()
    for name, value in expected.items():
        torch.testing.assert_close(
            found[name], torch.tensor(value, dtype=torch.float64), rtol=1e-14, atol=1e-14, equal_nan=True, msg=name
        )


def check_sink_case():
    """The hand case with a sink logit of 0, which has the same weight as a key.

    Query 0: the key and the sink have 1/2 each. Query 1: the two keys and the sink have 1/3 each. Only masses change.
    """
    zeros, values = torch.zeros(1, 2, 1), torch.tensor([[[1.0], [3.0]]])
    visible = torch.tensor([[True, False], [True, True]])
    plain = statistics(zeros, zeros, values, visible, 1.0)
    found = statistics(zeros, zeros, values, visible, 1.0, sink_logit=torch.zeros(1))
    expected = {name: tensor.tolist() for name, tensor in plain.items()} | {
        "sink_logit_mass": [[1 / 2, 1 / 3]],
        "first_mass": [[[1 / 2, 0], [1 / 3, 1 / 3]]],
        "column_mean": [[5 / 12, 1 / 3]],
    }
    check_fields(found, expected)


def check_score_case():
    """Scores before and after cap and bias, computed by hand.

    Query 1 has scores 2 and 0. A cap of 2 makes them 2 tanh(1) and 0. A bias of ln 3 on key 1 then gives odds of
    e^(2 tanh 1) : 3.
    """
    query, key = torch.tensor([[[0.0], [1.0]]]), torch.tensor([[[2.0], [0.0]]])
    visible = torch.tensor([[True, False], [True, True]])
    found = masses(
        query.double(), key.double(), visible, 1.0, 2.0, torch.tensor([[0.0, math.log(3)]], dtype=torch.float64)
    )
    odds = math.exp(2 * math.tanh(1)) / 3
    expected = torch.tensor([[[1.0, 0.0], [odds / (1 + odds), 1 / (1 + odds)]]], dtype=torch.float64)
    torch.testing.assert_close(found, expected, rtol=1e-14, atol=1e-14)
