"""Makes the numbers for tests/interventions/gate_arms_golden_test.cpp: arms in the gates' place.

    python tests/golden/make_gate_arms_golden.py > tests/golden/gate-arms.json

The decoder is that of make_intervention_golden.py: plain numpy and float64, one head and one query at a time. The
statistics of each query, the calibration and the arms are written here from the formulas of docs/method.md and
docs/analyses/prediction-3.md; lambda comes from a bisection over all numbers. Nothing is shared with the C++ code.

For every checkpoint: "documents" and "calibration" (token ids), for each head of each layer its "lambda", "scale",
"gate" and "raw_mean", and for each arm and context the readings of the first document.
"""

import json
import sys

import numpy

from make_intervention_golden import Model, sigmoid

TRAINED, CONTEXTS, TARGETS = 12, (6, 12, 24), 4
CHECKPOINTS = ("qwen3-gate-headwise", "qwen3-gate-elementwise", "llama")
GATED_ARMS = ("native", "constant", "gain", "scaled-gain", "modulated", "position", "raw", "one")
PLAIN_ARMS = ("native", "modulated", "position")


class GatedModel(Model):
    """Shows lambda_obs, the result of attention and the gate of each layer to `at_gate`, which returns the factor."""

    def __init__(self, name):
        super().__init__(name)
        self.elementwise = self.config.get("elementwise_attn_output_gate", False)
        self.at_gate = None

    def queries_and_gates(self, rows, prefix):
        if not self.elementwise:
            return super().queries_and_gates(rows, prefix)
        group = self.heads // self.kv_heads
        projected = rows @ self.weights[prefix + "q_proj.weight"].T
        parts = projected.reshape(len(rows), self.kv_heads, 2 * group * self.dimensions)
        by_head = (len(rows), self.heads, self.dimensions)
        queries = parts[:, :, : group * self.dimensions].reshape(by_head)
        return queries, sigmoid(parts[:, :, group * self.dimensions :].reshape(by_head))

    def attention(self, rows, layer, site):
        prefix = f"layers.{layer}.self_attn."
        count = len(rows)
        query, gate = self.queries_and_gates(rows, prefix)
        by_kv_head = (count, self.kv_heads, self.dimensions)
        key = (rows @ self.weights[prefix + "k_proj.weight"].T).reshape(by_kv_head)
        value = (rows @ self.weights[prefix + "v_proj.weight"].T).reshape(by_kv_head)
        if prefix + "q_norm.weight" in self.weights:
            query = self.normalised(query, prefix + "q_norm.weight")
            key = self.normalised(key, prefix + "k_norm.weight")
        query, key = self.rotated(query), self.rotated(key)
        z, precision = numpy.empty_like(query), numpy.empty_like(query)
        n_eff, first = numpy.empty((count, self.heads)), numpy.empty((count, self.heads))
        for h in range(self.heads):
            g = h // (self.heads // self.kv_heads)
            for t in range(count):
                scores = key[: t + 1, g] @ query[t, h] / numpy.sqrt(self.dimensions)
                p = numpy.exp(scores - scores.max())
                p /= p.sum()
                z[t, h] = p @ value[: t + 1, g]
                residual = p @ (value[: t + 1, g] - z[t, h]) ** 2
                n_eff[t, h], first[t, h] = 1 / (p**2).sum(), p[0]
                precision[t, h] = (n_eff[t, h] + 1) / (residual + 1 / self.dimensions)
        if gate is not None and not self.elementwise:
            gate = gate[:, :, None]
        factor = self.at_gate(layer, precision, z, gate, n_eff, first)
        return (z * factor).reshape(count, -1) @ self.weights[prefix + "o_proj.weight"].T

    def run(self, tokens, at_gate):
        self.at_gate = at_gate
        return self.logits(tokens, lambda _, tensor: tensor)


def gain(precision, lambda_, by_dimension):
    """[position, head, G]; lambda_ is a number or one for each head."""
    k = precision / (numpy.reshape(lambda_, (-1, 1)) + precision)
    return k if by_dimension else k.mean(axis=2, keepdims=True)


def solve(precision, mean):
    """lambda with this mean of precision / (lambda + precision)."""
    low, high = -60.0, 60.0
    for _ in range(200):
        middle = (low + high) / 2
        if (precision / (numpy.exp(middle) + precision)).mean() > mean:
            low = middle
        else:
            high = middle
    return numpy.exp((low + high) / 2)


def calibrate(model, documents):
    by_dimension = model.elementwise or not model.gated
    seen = {}

    def native(layer, precision, z, gate, n_eff, first):
        seen.setdefault(layer, []).append((precision, z, gate))
        return 1 if gate is None else gate

    for document in documents:
        model.run(document, native)
    found = {}
    for layer, passes in seen.items():
        start = [(p[:TRAINED], z[:TRAINED], None if g is None else g[:TRAINED]) for p, z, g in passes]
        precision, z = (numpy.concatenate([one[i] for one in start]) for i in (0, 1))
        k = gain(precision, 1, by_dimension)
        one = {"raw": k.mean(axis=0)}
        followed = [gain(p, 1, by_dimension) / one["raw"] for p, _, _ in passes]
        if passes[0][2] is not None:
            gate = numpy.concatenate([g for _, _, g in start])
            one["gate"] = gate.mean(axis=0)
            one["scale"] = numpy.sqrt(((gate * z) ** 2).sum(axis=(0, 2)) / ((k * z) ** 2).sum(axis=(0, 2)))
            one["lambda"] = numpy.array([solve(precision[:, h], one["gate"][h].mean()) for h in range(model.heads)])
            followed = [gain(p, one["lambda"], by_dimension) for p, _, _ in passes]
        one["position"] = numpy.mean(followed, axis=0)
        found[layer] = one
    return found


def factor_of(arm, calibration, precision, gate, by_dimension):
    raw = gain(precision, 1, by_dimension)
    if arm == "constant":
        return numpy.broadcast_to(calibration["gate"], raw.shape)
    if arm == "gain":
        return gain(precision, calibration["lambda"], by_dimension)
    if arm == "scaled-gain":
        return raw * calibration["scale"][:, None]
    if arm == "modulated":
        return raw / calibration["raw"] * (1 if gate is None else gate)
    if arm == "position":
        return calibration["position"][: len(precision)]
    if arm == "raw":
        return raw
    return numpy.ones_like(raw) if arm == "one" or gate is None else gate


def reading(model, arm, calibration, tokens):
    by_dimension = model.elementwise or not model.gated
    means = []

    def at_gate(layer, precision, z, gate, n_eff, first):
        factor = factor_of(arm, calibration[layer], precision, gate, by_dimension)
        queries = slice(len(tokens) - 1 - TARGETS, len(tokens) - 1)
        means.append((factor.mean(), first[queries].mean(), n_eff[queries].mean()))
        return factor

    logits = model.run(tokens, at_gate)
    losses = []
    for t in range(len(tokens) - 1 - TARGETS, len(tokens) - 1):
        top = logits[t].max()
        losses.append(numpy.log(numpy.exp(logits[t] - top).sum()) + top - logits[t, tokens[t + 1]])
    gate_mean, bos_mass, n_eff = numpy.mean(means, axis=0).tolist()
    return {"nll": float(numpy.mean(losses)), "gate_mean": gate_mean, "bos_mass": bos_mass, "n_eff": n_eff}


def main():
    found = {}
    for name in CHECKPOINTS:
        model = GatedModel(name)
        random = numpy.random.default_rng(3)
        size = max(CONTEXTS)
        calibration_ids = [random.integers(3, model.config["vocab_size"], size).tolist() for _ in range(3)]
        document = random.integers(3, model.config["vocab_size"], size).tolist()
        calibration = calibrate(model, calibration_ids)
        gated = model.gated or model.elementwise
        heads = [
            {"layer": layer, "head": head, "raw_mean": float(one["raw"][head].mean())}
            | (
                {
                    "gate": float(one["gate"][head].mean()),
                    "lambda": float(one["lambda"][head]),
                    "scale": float(one["scale"][head]),
                }
                if gated
                else {}
            )
            for layer, one in calibration.items()
            for head in range(model.heads)
        ]
        found[name] = {
            "calibration": calibration_ids,
            "document": document,
            "heads": heads,
            "arms": {
                arm: [reading(model, arm, calibration, document[-context:]) for context in CONTEXTS]
                for arm in (GATED_ARMS if gated else PLAIN_ARMS)
            },
        }
    json.dump(
        {
            "numpy": numpy.__version__,
            "trained_length": TRAINED,
            "contexts": CONTEXTS,
            "targets": TARGETS,
            "checkpoints": found,
        },
        sys.stdout,
        indent=1,
    )
    print()


if __name__ == "__main__":
    main()
