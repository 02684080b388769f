"""Makes the numbers for tests/interventions/golden_test.cpp: what interventions do to two golden checkpoints.

    python tests/golden/make_intervention_golden.py > tests/golden/interventions.json

A decoder in plain numpy and float64, one head and one query at a time, whose sites can be written to. It reads the
weights itself and shares nothing with the C++ code. Each intervention runs the whole model. Needs numpy.

For every checkpoint: "tokens" of the document, "donor" of the document that is resampled from, "calibration" of the
document of the means, "native" and for each intervention "nll", "logits" of the last position (all ids), and the norms
of what is written.
"""

import json
import pathlib
import re
import struct
import sys

import numpy

FOLDER = pathlib.Path(__file__).parent / "models"
LENGTH = 24
COMMON = (
    "blocks.0.attn.hook_z[head=1]=zero",
    "blocks.1.attn.hook_z[head=3]=mean",
    "blocks.1.attn.hook_z[head=2]=resample",
    "blocks.0.attn.hook_v[head=1]=resample",
    "blocks.1.attn.hook_k[head=0][position=5]=mean",
    "blocks.1.hook_resid_pre[position=7]=resample",
    "blocks.0.hook_mlp_out=0.25",
    "blocks.1.hook_attn_out=mean",
    "hook_embed[position=3]=zero",
    "blocks.0.attn.hook_z[head=0]=zero + blocks.1.hook_mlp_out[position=9]=-1",
)
CHECKPOINTS = {
    "llama": COMMON,
    "qwen3-gate-headwise": COMMON + ("blocks.0.attn.hook_gate[head=2]=0.3", "blocks.1.attn.hook_gate=mean"),
}


def read_weights(file):
    """The tensors of a safetensors file that holds float32 alone."""
    content = file.read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    weights = {}
    for name, entry in json.loads(content[8 : 8 + size]).items():
        if name == "__metadata__":
            continue
        assert entry["dtype"] == "F32"
        begin, end = entry["data_offsets"]
        values = numpy.frombuffer(content[8 + size + begin : 8 + size + end], dtype="<f4")
        weights[name.removeprefix("model.")] = values.astype(numpy.float64).reshape(entry["shape"])
    return weights


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


class Model:
    def __init__(self, name):
        self.config = json.loads((FOLDER / name / "config.json").read_text())
        self.weights = read_weights(FOLDER / name / "model.safetensors")
        self.heads = self.config["num_attention_heads"]
        self.kv_heads = self.config["num_key_value_heads"]
        self.dimensions = self.config.get("head_dim", self.config["hidden_size"] // self.heads)
        self.gated = self.config.get("headwise_attn_output_gate", False)

    def normalised(self, rows, name):
        mean_square = (rows**2).mean(axis=-1, keepdims=True)
        return rows / numpy.sqrt(mean_square + self.config["rms_norm_eps"]) * self.weights[name]

    def rotated(self, heads):
        """heads [position, head, dimension]; dimension i turns together with i + d / 2."""
        half = self.dimensions // 2
        theta = self.config.get("rope_theta") or self.config["rope_parameters"]["rope_theta"]
        turned = numpy.empty_like(heads)
        for t in range(len(heads)):
            for i in range(half):
                angle = t * theta ** (-i / half)
                a, b = heads[t, :, i], heads[t, :, i + half]
                turned[t, :, i] = a * numpy.cos(angle) - b * numpy.sin(angle)
                turned[t, :, i + half] = b * numpy.cos(angle) + a * numpy.sin(angle)
        return turned

    def queries_and_gates(self, rows, prefix):
        """[position, head, dimension] and [position, head]; the gates' rows follow the queries of their KV group."""
        projected = rows @ self.weights[prefix + "q_proj.weight"].T
        if not self.gated:
            return projected.reshape(len(rows), self.heads, self.dimensions), None
        group = self.heads // self.kv_heads
        parts = projected.reshape(len(rows), self.kv_heads, group * self.dimensions + group)
        queries = parts[:, :, : group * self.dimensions].reshape(len(rows), self.heads, self.dimensions)
        return queries, sigmoid(parts[:, :, group * self.dimensions :].reshape(len(rows), self.heads))

    def attention(self, rows, layer, site):
        prefix = f"layers.{layer}.self_attn."
        name = f"blocks.{layer}.attn."
        count = len(rows)
        query, gate = self.queries_and_gates(rows, prefix)
        query = site(name + "hook_q", query)
        by_kv_head = (count, self.kv_heads, self.dimensions)
        key = site(name + "hook_k", (rows @ self.weights[prefix + "k_proj.weight"].T).reshape(by_kv_head))
        value = site(name + "hook_v", (rows @ self.weights[prefix + "v_proj.weight"].T).reshape(by_kv_head))
        if self.config.get("use_qk_norm"):
            query = self.normalised(query, prefix + "q_norm.weight")
            key = self.normalised(key, prefix + "k_norm.weight")
        query, key = self.rotated(query), self.rotated(key)
        z = numpy.empty_like(query)
        for h in range(self.heads):
            g = h // (self.heads // self.kv_heads)
            for t in range(count):
                scores = key[: t + 1, g] @ query[t, h] / numpy.sqrt(self.dimensions)
                weights = numpy.exp(scores - scores.max())
                z[t, h] = weights / weights.sum() @ value[: t + 1, g]
        z = site(name + "hook_z", z)
        if self.gated:
            z = z * site(name + "hook_gate", gate)[:, :, None]
        return z.reshape(count, -1) @ self.weights[prefix + "o_proj.weight"].T

    def feedforward(self, rows, layer):
        prefix = f"layers.{layer}.mlp."
        gate = rows @ self.weights[prefix + "gate_proj.weight"].T
        up = rows @ self.weights[prefix + "up_proj.weight"].T
        return (gate * sigmoid(gate) * up) @ self.weights[prefix + "down_proj.weight"].T

    def logits(self, tokens, site):
        """[position, id]. `site(name, tensor)` sees the tensor of a site and returns what stands there."""
        hidden = site("hook_embed", self.weights["embed_tokens.weight"][tokens])
        for layer in range(self.config["num_hidden_layers"]):
            hidden = site(f"blocks.{layer}.hook_resid_pre", hidden)
            rows = self.normalised(hidden, f"layers.{layer}.input_layernorm.weight")
            hidden = hidden + site(f"blocks.{layer}.hook_attn_out", self.attention(rows, layer, site))
            rows = self.normalised(hidden, f"layers.{layer}.post_attention_layernorm.weight")
            hidden = hidden + site(f"blocks.{layer}.hook_mlp_out", self.feedforward(rows, layer))
        head = self.weights.get("lm_head.weight", self.weights["embed_tokens.weight"])
        return self.normalised(hidden, "norm.weight") @ head.T


def sites_of(model, tokens):
    """The tensors of all sites of a document."""
    seen = {}

    def site(name, tensor):
        seen[name] = tensor.copy()
        return tensor

    model.logits(tokens, site)
    return seen


def mean_loss(logits, tokens):
    total = 0.0
    for t in range(len(tokens) - 1):
        total += numpy.log(numpy.exp(logits[t] - logits[t].max()).sum()) + logits[t].max() - logits[t, tokens[t + 1]]
    return total / (len(tokens) - 1)


def effect(model, text, tokens, calibration, donor):
    writes = []
    for part in text.split(" + "):
        name, brackets, value = re.fullmatch(r"([\w.]+)((?:\[\w+=\d+\])*)=(.+)", part).groups()
        where = {key: int(number) for key, number in re.findall(r"\[(\w+)=(\d+)\]", brackets)}
        writes.append((name, where, value))
    squares = {"before": 0.0, "after": 0.0}

    def site(name, tensor):
        for written, where, value in writes:
            if written != name:
                continue
            tensor = tensor.copy()
            positions = [where["position"]] if "position" in where else range(len(tensor))
            for t in positions:
                place = (t, where["head"]) if "head" in where else (t,)
                squares["before"] += (tensor[place] ** 2).sum()
                if value == "zero":
                    tensor[place] = 0
                elif value == "mean":
                    tensor[place] = calibration[name].mean(axis=0)[place[1:]]
                elif value == "resample":
                    tensor[place] = donor[name][place]
                else:
                    tensor[place] = tensor[place] * float(value)
                squares["after"] += (tensor[place] ** 2).sum()
        return tensor

    logits = model.logits(tokens, site)
    return {
        "nll": mean_loss(logits, tokens),
        "logits": logits[-1].tolist(),
        "norm_before": float(numpy.sqrt(squares["before"])),
        "norm_after": float(numpy.sqrt(squares["after"])),
    }


def main():
    found = {}
    for name, interventions in CHECKPOINTS.items():
        model = Model(name)
        random = numpy.random.default_rng(33)
        documents = [random.integers(3, model.config["vocab_size"], LENGTH).tolist() for _ in range(3)]
        tokens, donor, calibration = documents
        calibration_sites, donor_sites = sites_of(model, calibration), sites_of(model, donor)
        native = model.logits(tokens, lambda _, tensor: tensor)
        found[name] = {
            "tokens": tokens,
            "donor": donor,
            "calibration": calibration,
            "native": {"nll": mean_loss(native, tokens), "logits": native[-1].tolist()},
            "interventions": {
                text: effect(model, text, tokens, calibration_sites, donor_sites) for text in interventions
            },
        }
    json.dump({"numpy": numpy.__version__, "checkpoints": found}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
