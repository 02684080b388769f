"""Makes the numbers for tests/bft/estimators_golden_test.cpp: every estimator of the variance of an estimate, query by
query, and its gradients.

    python tests/golden/make_estimators_golden.py > tests/golden/estimators.json

Variances come from plain loops over queries, dimensions and keys in numpy. Gradients come from torch.autograd over
textbook forms that hold v - e for each query, key and dimension. Nothing is shared with the C++ code, which expands the
squares about a centre. Needs numpy and torch.
"""

import json
import math
import sys

import numpy
import torch

BATCH, HEADS, KEYS, DIMENSIONS, MODEL = 2, 2, 5, 3, 4
ESTIMATORS = ("reml", "reml_naive", "reml_conjugate", "sandwich", "kish", "delta", "delta_weight_free")


def query_variances(estimator, w, v, seen, case, u, rows, token_precision):
    """V of each dimension, of one query. w: [key], v: [key, dimension]; seen: which keys are visible."""
    nu, prior, omega = case["nu"], case["prior"], case["omega"]
    if not numpy.any(w != 0):
        return [math.nan] * v.shape[1]
    total = w.sum()
    n = total**2 / (w**2).sum()
    found = []
    for i in range(v.shape[1]):
        e = sum(w[j] * v[j, i] for j in range(len(w))) / total
        s = sum(w[j] / total * (v[j, i] - e) ** 2 for j in range(len(w)))
        squares = sum((w[j] / total) ** 2 * (v[j, i] - e) ** 2 for j in range(len(w)))
        if estimator == "reml":
            found.append((s + nu * prior) / (n + nu))
        elif estimator == "reml_naive":
            found.append(s / (n - 1) if n > 1 else math.nan)
        elif estimator == "reml_conjugate":
            degrees = n - 1 + nu
            found.append((n * s + nu * prior) / (degrees * n) if degrees > 0 else math.nan)
        elif estimator == "sandwich":
            found.append(squares)
        elif estimator == "kish":
            visible = v[seen, i]
            count = len(visible)
            about = (count - 1) * numpy.var(visible, ddof=1) if count > 1 else 0.0
            degrees = count - 1 + nu
            found.append((about + nu * prior) / degrees / n if degrees > 0 else math.nan)
        elif estimator == "delta":
            gradients = [w[j] / total * (rows[i] + (v[j, i] - e) * u) for j in range(len(w))]
            found.append(sum(g @ g / token_precision[j] for j, g in enumerate(gradients)))
        else:
            found.append((s + nu * prior) / (n + nu) + omega**2 * squares)
    return found


def textbook(estimator, w, v, seen, case, q, key_projection, value_projection, token_precision):
    """The same as tensors, with v - e as [batch, head, query, key, dimension]; NaN where it is not defined."""
    nu, prior, omega = case["nu"], case["prior"], case["omega"]
    any_weight = (w != 0).any(-1)[..., None]
    total = torch.where(any_weight, w.sum(-1, keepdim=True), torch.ones(()).double())
    p = (w / total)[..., None]  # [batch, head, query, key, 1]
    e = (p * v[:, :, None]).sum(3, keepdim=True)
    deviation = v[:, :, None] - e
    s = (p * deviation**2).sum(3)
    squares = (p**2 * deviation**2).sum(3)
    n = torch.where(any_weight, 1 / torch.where(any_weight, (p**2).sum(3), torch.ones(()).double()), 1.0)

    def ratio(numerator, denominator):
        defined = denominator > 0
        return torch.where(defined, numerator / torch.where(defined, denominator, 1.0), math.nan)

    if estimator == "reml":
        variance = (s + nu * prior) / (n + nu)
    elif estimator == "reml_naive":
        variance = ratio(s, n - 1)
    elif estimator == "reml_conjugate":
        variance = ratio(n * s + nu * prior, (n - 1 + nu) * n)
    elif estimator == "sandwich":
        variance = squares
    elif estimator == "kish":
        mask = seen.double()[..., None]  # [batch, head, query, key, 1]
        count = mask.sum(3)
        mean = (mask * v[:, :, None]).sum(3, keepdim=True) / count[..., None, :].clamp(min=1)
        about = (mask * (v[:, :, None] - mean) ** 2).sum(3)
        variance = ratio(about + nu * prior, (count - 1 + nu) * n)
    elif estimator == "delta":
        u = torch.einsum("bhqd,hdm->bhqm", q, key_projection) / math.sqrt(v.shape[-1])
        gradient = (
            value_projection[None, :, None, None] + deviation[..., None] * u[:, :, :, None, None]
        )  # [batch, head, query, key, dimension, model]
        noise = p[..., 0] ** 2 / token_precision[:, None, None]
        variance = (noise[..., None] * (gradient**2).sum(-1)).sum(3)
    else:
        variance = (s + nu * prior) / (n + nu) + omega**2 * squares
    return torch.where(any_weight, variance, math.nan)


def flat(values):
    """Numbers in row-major order; null for NaN."""
    return [None if math.isnan(x) else float(x) for x in numpy.asarray(values, dtype=float).ravel()]


def make_case(name, rng, nu, prior, offset=0.0, signed=False, causal=True):
    case = {"name": name, "nu": nu, "prior": prior, "omega": 0.3, "causal": causal, "signed": signed}
    shape = (BATCH, HEADS, KEYS, KEYS)
    seen = numpy.tril(numpy.ones((KEYS, KEYS), dtype=bool))
    if not causal:  # padding: sequence 1 sees its first two keys; its last query sees none
        seen = numpy.ones((KEYS, KEYS), dtype=bool)
    seen = numpy.broadcast_to(seen, shape).copy()
    if not causal:
        seen[1, :, :, 2:] = False
        seen[1, :, -1] = False
    scores = numpy.where(seen, rng.normal(size=shape) * 1.5, -numpy.inf)
    w = numpy.exp(scores)
    if signed:
        w *= rng.choice([1.0, 1.0, 1.0, -0.4], size=shape)
    else:
        w /= numpy.maximum(w.sum(-1, keepdims=True), 1e-300)
    v = offset + rng.normal(size=(BATCH, HEADS, KEYS, DIMENSIONS))
    q = rng.normal(size=(BATCH, HEADS, KEYS, DIMENSIONS))
    key_projection = rng.normal(size=(HEADS, DIMENSIONS, MODEL)) / 2
    value_projection = rng.normal(size=(HEADS, DIMENSIONS, MODEL)) / 2
    token_precision = rng.uniform(0.5, 20.0, size=(BATCH, KEYS))
    upstream = rng.normal(size=(BATCH, HEADS, KEYS, DIMENSIONS))
    tensors = {
        "weights": w,
        "values": v,
        "visible": seen,
        "query": q,
        "key_projection": key_projection,
        "value_projection": value_projection,
        "token_precision": token_precision,
        "upstream": upstream,
    }
    for key, value in tensors.items():
        case[key] = flat(value)
    case["estimators"] = {}
    for estimator in ("sandwich",) if signed else ESTIMATORS:
        variance = numpy.full((BATCH, HEADS, KEYS, DIMENSIONS), math.nan)
        for b in range(BATCH):
            for h in range(HEADS):
                for t in range(KEYS):
                    u = key_projection[h].T @ q[b, h, t] / math.sqrt(DIMENSIONS)
                    variance[b, h, t] = query_variances(
                        estimator, w[b, h, t], v[b, h], seen[b, h, t], case, u, value_projection[h], token_precision[b]
                    )
        leaves = [torch.tensor(x, requires_grad=True) for x in (w, v, q, key_projection, value_projection)]
        result = textbook(
            estimator, leaves[0], leaves[1], torch.tensor(seen), case, *leaves[2:], torch.tensor(token_precision)
        )
        numpy.testing.assert_allclose(result.detach().numpy(), variance, rtol=1e-9, atol=1e-25)
        defined = ~torch.isnan(result)
        (result[defined] * torch.tensor(upstream)[defined]).sum().backward()
        entry = {"variance": flat(variance)}
        for leaf, key in zip(leaves, ("weights", "values", "query", "key_projection", "value_projection")):
            if leaf.grad is not None:
                entry[f"gradient_{key}"] = flat(leaf.grad.numpy())
        case["estimators"][estimator] = entry
    return case


def main():
    rng = numpy.random.default_rng(20250601)
    cases = [
        make_case("causal", rng, 1.0, 1 / DIMENSIONS),
        make_case("values far from 0", rng, 2.5, 0.7, offset=100.0),
        make_case("no prior", rng, 0.0, 0.5),
        make_case("padding", rng, 1.0, 1 / DIMENSIONS, causal=False),
        make_case("weights of both signs", rng, 1.0, 1 / DIMENSIONS, signed=True),
    ]
    header = {
        "made_by": "tests/golden/make_estimators_golden.py",
        "python": sys.version.split()[0],
        "numpy": numpy.__version__,
        "torch": torch.__version__,
        "shape": {"batch": BATCH, "heads": HEADS, "keys": KEYS, "dimensions": DIMENSIONS, "model": MODEL},
    }
    json.dump({**header, "cases": cases}, sys.stdout, separators=(",", ":"))
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
