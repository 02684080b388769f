"""The operator against the definitions, in every shape and option, and against the library calls."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import gainlens
from gainlens import _composed, _operators

import oracle

TOLERANCE = {torch.float64: 1e-10, torch.float32: 2e-5, torch.bfloat16: 2e-5, torch.float16: 2e-5}
OUTPUT = {torch.float64: 1e-12, torch.float32: 2e-6, torch.bfloat16: 8e-3, torch.float16: 1e-3}


def tensors(batch, heads, kv_heads, queries, keys, dim, value_dim=None, dtype=torch.float32, seed=0, sharpness=1.0):
    generator = torch.Generator().manual_seed(seed)

    def draw(*sizes):
        return torch.randn(*sizes, generator=generator, dtype=torch.float64)

    q = (draw(batch, heads, queries, dim) * sharpness).to(dtype)
    k, v = draw(batch, kv_heads, keys, dim), draw(batch, kv_heads, keys, value_dim or dim) + 0.3
    return q, k.to(dtype), v.to(dtype)


def compare(stats, wanted, dtype, factor=1):
    for name in wanted:
        if getattr(stats, name) is None:
            continue
        found = getattr(stats, name).detach().double().numpy()
        if name == "output":
            assert np.abs(found - wanted[name]).max() <= OUTPUT[dtype] * max(1, np.abs(wanted[name]).max()), name
        else:
            error = oracle.error(found, wanted[name])
            assert error <= factor * TOLERANCE[dtype], (name, error)


def check(q, k, v, visible, origin=None, sinks=None, options=None, factor=1, **arguments):
    stats = gainlens.attention_statistics(q, k, v, sinks=sinks, **arguments)
    wanted = oracle.statistics(q.double().numpy(), k.double().numpy(), v.double().numpy(), visible, origin,
                               None if sinks is None else sinks.double().numpy(), **(options or {}))
    compare(stats, wanted, q.dtype, factor)
    return stats


@pytest.mark.parametrize("length", [1, 2, 63, 64, 65, 127, 257])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_lengths(length, dtype):
    q, k, v = tensors(2, 4, 2, length, length, 16, dtype=dtype)
    check(q, k, v, oracle.causal(2, length, length))


@pytest.mark.parametrize("dim, value_dim", [(1, 1), (8, 8), (64, 64), (80, 80), (24, 48), (256, 256)])
def test_dimensions(dim, value_dim):
    q, k, v = tensors(1, 2, 1, 70, 70, dim, value_dim)
    # The norm of a single dimension is near 0 for some queries.
    check(q, k, v, oracle.causal(1, 70, 70), factor=3 if value_dim == 1 else 1)


@pytest.mark.parametrize("window", [1, 3, 64, 100])
def test_windows(window):
    q, k, v = tensors(1, 4, 4, 130, 130, 16, dtype=torch.float64)
    check(q, k, v, oracle.causal(1, 130, 130, window), window=window)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(dtype):
    q, k, v = tensors(1, 4, 2, 100, 100, 32, dtype=dtype)
    check(q, k, v, oracle.causal(1, 100, 100))


def test_subnormal_halves():
    bits = torch.arange(0x7C00, dtype=torch.int32).to(torch.int16)
    value = torch.cat((bits, bits | -0x8000)).view(torch.float16)[:62000].reshape(1, 1, -1, 8)
    q, k, v = value[:, :, :1], value[:, :, :1], value
    for first in range(0, v.shape[2], 97):  # a query that sees one key: the output is its value
        stats = gainlens.attention_statistics(q, v[:, :, first : first + 1], v[:, :, first : first + 1], scale=1e-9)
        assert torch.equal(stats.output, v[:, :, first : first + 1]), first
    del k


def test_soft_cap_scale_and_priors():
    q, k, v = tensors(1, 2, 2, 90, 90, 16, dtype=torch.float64, sharpness=5)
    check(q, k, v, oracle.causal(1, 90, 90), softcap=7.0, scale=0.4, prior_strength=2.0, prior_variance=0.3,
          prior_precision=3.0, options={"softcap": 7.0, "scale": 0.4, "nu": 2.0, "sigma2": 0.3, "lam": 3.0})


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_sink_logits(dtype):
    q, k, v = tensors(2, 4, 2, 80, 80, 16, dtype=dtype)
    sinks = torch.tensor([-3.0, 0.0, 2.0, 9.0])
    stats = check(q, k, v, oracle.causal(2, 80, 80, 20), sinks=sinks, window=20)
    assert torch.allclose(stats.bos_mass, stats.first_weight * (1 - stats.sink_logit_mass), atol=1e-6)


def test_fewer_queries_than_keys():
    q, k, v = tensors(2, 4, 2, 3, 200, 16, dtype=torch.float64)
    check(q, k, v, oracle.causal(2, 3, 200))
    check(q, k, v, oracle.causal(2, 3, 200, 50), window=50)


def test_all_keys():
    q, k, v = tensors(1, 2, 2, 70, 90, 16, dtype=torch.float64)
    check(q, k, v, np.ones((1, 70, 90), bool), causal=False)
    q, k, v = tensors(1, 2, 2, 90, 70, 16, dtype=torch.float64)
    check(q, k, v, np.ones((1, 90, 70), bool), causal=False)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_padding_and_packed_texts(dtype):
    length = 300
    q, k, v = tensors(3, 4, 2, length, length, 16, dtype=dtype)
    texts = [[(5, 300)], [(0, 210)], [(0, 70), (70, 71), (80, 290)]]
    visible = np.zeros((3, length, length), bool)
    origin = np.zeros((3, length), int)
    keys = torch.zeros(3, length, 3, dtype=torch.int64)
    for row, parts in enumerate(texts):
        for begin, end in parts:
            for query in range(begin, end):
                visible[row, query, begin : query + 1] = True
                origin[row, query] = begin
                keys[row, query] = torch.tensor([begin, query + 1, begin])
    bad = ~torch.from_numpy(visible.any(1))
    for tensor in (k, v):  # what no query sees does not matter
        tensor.masked_fill_(bad[:, None, :, None], torch.nan)
    q[1, :, 210:] = torch.inf
    stats = gainlens.attention_statistics(q, k, v, keys_of_query=keys)
    clean = [torch.nan_to_num(x.double(), 0, 0, 0).numpy() for x in (q, k, v)]
    compare(stats, oracle.statistics(*clean, visible, origin), dtype)


def test_origin_before_the_given_keys():
    """A cache that has dropped key 0 of the text, and one that has dropped more than the first eight."""
    q, k, v = tensors(1, 2, 1, 4, 100, 16, dtype=torch.float64)
    for origin in (-1, -3, -40):
        keys = gainlens.keys_of_queries(1, 4, 100)
        keys[..., 2] = origin
        check(q, k, v, oracle.causal(1, 4, 100), np.full((1, 4), origin), keys_of_query=keys)


def test_values_with_a_large_mean():
    q, k, v = tensors(1, 2, 2, 200, 200, 16)
    check(q, k, v + 100, oracle.causal(1, 200, 200))


def test_sharp_scores():
    """Scores of up to 68: float32 rounds them to 4e-6. The error of S is bounded by the largest (v - c)^2."""
    q, k, v = tensors(1, 2, 2, 200, 200, 16, sharpness=12)
    stats = gainlens.attention_statistics(q, k, v)
    wanted = oracle.statistics(*(x.double().numpy() for x in (q, k, v)), oracle.causal(1, 200, 200))
    for name in ("n_eff", "entropy", "max_logit", "lse", "first_mass"):
        assert oracle.error(getattr(stats, name), wanted[name]) < 1e-4, name
    largest = float(((v - v[:, :, :64].mean(2, keepdim=True)) ** 2).max())
    assert np.abs(stats.residual.numpy() - wanted["residual"]).max() < 4e-6 * largest


def test_nearly_all_mass_on_key_0():
    q, k, v = tensors(1, 2, 2, 200, 200, 16, dtype=torch.float64)
    q[..., 0], k[:, :, 0, 0], v[:, :, 0] = 4, 40, v[:, :, 0] * 1e-3
    stats = check(q, k, v, oracle.causal(1, 200, 200))
    assert float(stats.bos_mass.min()) > 0.999


def test_values_of_any_size():
    q, k, v = tensors(1, 1, 1, 100, 100, 8, dtype=torch.float64)
    v[..., 0] *= 1e-40
    v[..., 90:, 1] *= 1e15
    check(q, k, v, oracle.causal(1, 100, 100))


def test_views_are_read_where_they_are():
    q, k, v = tensors(2, 6, 3, 90, 90, 16)
    wanted = gainlens.attention_statistics(q, k, v)
    packed = torch.cat([q, k, v], 1).transpose(1, 2).contiguous().transpose(1, 2)  # [B, T, heads, d] in memory
    views = packed[:, :6], packed[:, 6:9], packed[:, 9:]
    assert torch.equal(gainlens.attention_statistics(*views).kalman_gain, wanted.kalman_gain)
    reversed_ = [x.transpose(2, 3).contiguous().transpose(2, 3) for x in (q, k, v)]  # last dimension not contiguous
    assert torch.equal(gainlens.attention_statistics(*reversed_).kalman_gain, wanted.kalman_gain)


def test_threads_change_no_bit_and_later_tokens_nothing_before():
    q, k, v = tensors(1, 4, 2, 500, 500, 32)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = gainlens.attention_statistics(q, k, v)
        torch.set_num_threads(2)
        two = gainlens.attention_statistics(q, k, v)
    finally:
        torch.set_num_threads(threads)
    for name in _operators.NAMES:
        if getattr(one, name) is not None:
            assert torch.equal(getattr(one, name).nan_to_num(-1), getattr(two, name).nan_to_num(-1)), name
    k2, v2 = k.clone(), v.clone()
    k2[:, :, 300:] += 1
    v2[:, :, 300:] += 1
    later = gainlens.attention_statistics(q, k2, v2)
    for name in ("n_eff", "entropy", "residual", "kalman_gain", "lse", "output"):
        assert torch.equal(getattr(one, name)[:, :, :300], getattr(later, name)[:, :, :300]), name


def test_top_keys():
    q, k, v = tensors(1, 2, 1, 90, 90, 16, dtype=torch.float64)
    stats = gainlens.attention_statistics(q, k, v, top_keys=5)
    scores = (q @ k.transpose(2, 3) / 4).masked_fill(~torch.from_numpy(oracle.causal(1, 90, 90))[:, None], -torch.inf)
    weights = scores.softmax(-1)
    wanted = weights.sort(dim=-1, descending=True, stable=True)
    assert torch.equal(stats.top_key[:, :, 4:], wanted.indices[:, :, 4:, :5])
    assert torch.allclose(stats.top_weight[:, :, 4:], wanted.values[:, :, 4:, :5])
    assert (stats.top_key[:, :, 0, 1:] == -1).all() and stats.top_weight[:, :, 0, 1:].isnan().all()


def test_column_mean():
    q, k, v = tensors(1, 2, 1, 40, 40, 16, dtype=torch.float64)
    stats = gainlens.attention_statistics(q, k, v, window=10)
    weights = np.stack([oracle.softmax_rows(np.where(oracle.causal(1, 40, 40, 10)[0], x, -np.inf))
                        for x in (q @ k.transpose(2, 3) / 4)[0].numpy()])
    wanted = [[weights[h, m:, m].mean() for m in range(8)] for h in range(2)]
    assert np.allclose(stats.column_mean[0].numpy(), wanted)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("case", ["plain", "window", "cap", "sinks", "few queries", "padding"])
def test_library_calls_give_the_same(dtype, case, monkeypatch):
    """What runs on a GPU, on the CPU."""
    queries = 5 if case == "few queries" else 150
    q, k, v = tensors(2, 4, 2, queries, 150, 16, 24, dtype=dtype)
    keys = gainlens.keys_of_queries(2, queries, 150, window=40 if case == "window" else None)
    if case == "padding":
        keys[0, :, 0] = keys[0, :, 2] = 7
        keys[1, 130:, 1] = 0
    sinks = torch.tensor([-1.0, 0, 1, 5]).double() if case == "sinks" else None
    arguments = (q, k, v, keys, sinks, 0.25, 5.0 if case == "cap" else 0.0, 1.0, 1 / 24, 1.0, 2, 8, 3)
    monkeypatch.setattr(_composed, "BLOCK_ELEMENTS", 2 * 4 * 150 * 32)
    ours = torch.ops.gainlens.attention_statistics(*arguments)
    calls = _composed.statistics(_operators.NAMES, *arguments)
    limit = 1e-10 if dtype == torch.float64 else 2e-5
    assert torch.allclose(ours[0], calls[0], atol=limit)
    for index, name in enumerate(_operators.NAMES):
        assert oracle.error(ours[1][index], calls[1][index]) <= limit, name
    assert oracle.error(ours[2], calls[2]) <= limit
    assert torch.equal(ours[3], calls[3])
    assert oracle.error(ours[4], calls[4]) <= limit


@pytest.mark.parametrize("sinks", [False, True])
def test_gradients(sinks, monkeypatch):
    monkeypatch.setattr(_composed, "BLOCK_ELEMENTS", 2 * 4 * 7 * 3)
    q, k, v = tensors(2, 4, 2, 7, 9, 3, 5, dtype=torch.float64)
    inputs = [x.requires_grad_() for x in (q, k, v)]
    if sinks:
        inputs.append(torch.tensor([-1.0, 0, 1, 2], dtype=torch.float64, requires_grad=True))

    def numbers(*tensors):
        stats = gainlens.attention_statistics(*tensors[:3], softcap=4.0, window=6,
                                              sinks=tensors[3] if len(tensors) > 3 else None)
        return stats.output, stats.n_eff, stats.residual, stats.entropy, stats.lse, stats.first_mass

    assert torch.autograd.gradcheck(numbers, inputs, fast_mode=True)
    stats = gainlens.attention_statistics(*inputs[:3])
    assert not stats.kalman_gain.requires_grad  # no gradient rather than a wrong one


def test_opcheck():
    # Each query sees more than key 0 and there are sinks, so that no number is NaN: NaN is not equal to itself.
    inputs = [x.requires_grad_() for x in tensors(1, 2, 1, 6, 9, 8, dtype=torch.float64)]
    keys, sinks = gainlens.keys_of_queries(1, 6, 9), torch.zeros(2, dtype=torch.float64)
    torch.library.opcheck(torch.ops.gainlens.attention_statistics.default,
                          (*inputs, keys, sinks, 0.3, 0.0, 1.0, 0.1, 1.0, 2, 4, 2))


def test_compiles_without_a_graph_break():
    q, k, v = tensors(1, 2, 1, 33, 33, 8)

    def mean_of_n_eff(q, k, v):
        return gainlens.attention_statistics(q, k, v, window=9).n_eff.mean(-1) * 2

    compiled = torch.compile(mean_of_n_eff, fullgraph=True, backend="aot_eager")
    assert torch.allclose(compiled(q, k, v), mean_of_n_eff(q, k, v))


@pytest.mark.parametrize("change, message", [
    (lambda q, k, v: (q.int(), k, v), "dtype torch.int32"),
    (lambda q, k, v: (q, k.double(), v), "must be the same"),
    (lambda q, k, v: (q[0], k, v), r"must be \[batch, head, position, dimension\]"),
    (lambda q, k, v: (q[:, :, :0], k, v), "no size may be 0"),
    (lambda q, k, v: (q[:, :3], k, v), "multiple"),
    (lambda q, k, v: (q, k[..., :5], v), "last dimension"),
    (lambda q, k, v: (q, k, v[:, :, :5]), "positions must agree"),
    (lambda q, k, v: (q, k[:, :, :5], v[:, :, :5]), "10 queries over 5 keys"),
])
def test_wrong_tensors(change, message):
    with pytest.raises(ValueError, match=message):
        gainlens.attention_statistics(*change(*tensors(1, 4, 2, 10, 10, 8)))


@pytest.mark.parametrize("arguments, message", [
    ({"window": 0}, "window 0"), ({"softcap": -1}, "softcap -1"), ({"scale": float("nan")}, "scale nan"),
    ({"first_masses": 9}, "first_masses 9"), ({"top_keys": 65}, "top_keys 65"),
    ({"prior_strength": -1}, "prior_strength"),
    ({"sinks": torch.zeros(3)}, r"sinks has shape \[3\]"),
    ({"keys_of_query": torch.zeros(1, 10, 2, dtype=torch.int64)}, "keys_of_query"),
])
def test_wrong_options(arguments, message):
    with pytest.raises(ValueError, match=message):
        gainlens.attention_statistics(*tensors(1, 4, 2, 10, 10, 8), **arguments)


@pytest.mark.parametrize("name, index", [("query", 0), ("key", 1), ("value", 2)])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1e38])
def test_numbers_that_cannot_be_used(name, index, bad):
    inputs = list(tensors(1, 4, 2, 10, 10, 8))
    inputs[index][0, 0, 3, 1] = bad
    with pytest.raises(RuntimeError, match=f"{name} holds NaN" if bad != 1e38 else "may overflow float32"):
        gainlens.attention_statistics(*inputs)


def test_keys_outside_of_the_text():
    keys = gainlens.keys_of_queries(1, 10, 10)
    keys[0, 4, 1] = 11
    with pytest.raises(RuntimeError, match=r"keys \[0, 11\)"):
        gainlens.attention_statistics(*tensors(1, 4, 2, 10, 10, 8), keys_of_query=keys)
