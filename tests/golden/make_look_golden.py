"""Makes the numbers for tests/look/golden_test.cpp: what `gainlens look` shows of golden checkpoints.

    python tests/golden/make_look_golden.py > tests/golden/look.json

The field's Python reference implementation (reference_model.py), in float64. Needs torch and transformers.

For every checkpoint: "tokens"; "next", the most likely next tokens; for each layer with softmax attention "top_keys"
and "top_weights" [head, query, rank] and "column_mean" [head, key]; "lens" [layer], where the reference itself runs its
final norm and its head on the stream after that layer: at the last position the next tokens, and at every position the
"entropy", the divergence "kl" of the last layer, and "rank" and "logit" of the "answer" of the attribution; and
"attribution": the parts of a logit difference by the formula d . part, with the divisor of each norm that of the whole.
The formula is held against the reference's own norms and logits here.
"""

import json
import sys

import torch
import transformers

import attention_statistics
import make_family_interventions
import reference_model

LENGTH = make_family_interventions.LENGTH
TOP_KEYS, NEXT, LENS_NEXT = 8, 10, 3
CHECKPOINTS = (
    "afmoe",  # gates, norms on both sides, experts, a scale of the embedding
    "cohere2",  # parallel residual, LayerNorm without bias, a scale of the logits, windows
    "exaone4",  # norms behind attention and MLP alone
    "gemma2",  # norms on both sides, soft caps of scores and logits, windows
    "gpt-neox",  # parallel residual, LayerNorm
    "gpt-oss",  # sink logits, experts, a bias behind the heads
    "gpt2",  # LayerNorm, biases, learned positions
    "granite",  # scales of embedding, residual and logits
    "granite-swa",  # an output that is scaled by the share of the keys
    "lfm3",  # short convolutions, gates of heads, norms on both sides
    "llama",
    "mimo-v2-flash",  # values of another size than keys, with a factor; sinks and KV heads by layer
    "phi",  # a bias of the output head
    "qwen3-gate-headwise",
    "qwen3-next",  # layers of linear attention
)
NORM_BEHIND_ATTENTION = dict.fromkeys(("afmoe", "gemma2", "exaone4"), "post_attention_layernorm") | {
    "lfm3": "post_operator_norm"
}
FINAL_NORMS = ("norm", "embedding_norm", "ln_f", "final_layer_norm", "final_layernorm")


class WeightRecorder(reference_model.Recorder):
    """Keeps the weights [head, query, key] of each layer, over keys and sink."""

    def __init__(self):
        super().__init__(fused=False)
        self.weights = []

    def record(self, query, key, value, visible, scaling, **options):
        self.weights.append(attention_statistics.attention_weights(query, key, visible, scaling, **options))


def one(modules):
    (module,) = modules
    return module


def first(output):
    return output[0] if isinstance(output, tuple) else output


class Looked(make_family_interventions.Watched):
    """One run of a checkpoint, with what enters the stream at the last position."""

    def __init__(self, name):
        super().__init__(make_family_interventions.FOLDER / name)
        assert not self.own
        self.recorder = WeightRecorder()
        self.behind = {}  # layer: [width] the stream behind it
        self.streams = {}  # layer: [position, width] likewise, of every position
        self.linear = {}  # layer: [width] what it has in place of softmax attention gives
        self.stream = None  # replaces what the final norm reads
        self.final_norm = one(
            module
            for path, module in self.model.named_modules()
            if path.split(".")[-1] in FINAL_NORMS and not any(part.isdigit() for part in path.split("."))
        )
        self.final_norm.register_forward_pre_hook(self.before_final_norm)
        for index, layer in enumerate(self.layers):
            layer.register_forward_hook(self.keep(self.behind, index))
            layer.register_forward_hook(self.keep_all(index))
            if hasattr(layer, "linear_attn"):
                layer.linear_attn.register_forward_hook(self.keep(self.linear, index))
            elif hasattr(layer, "conv"):  # behind its norm
                layer.post_operator_norm.register_forward_hook(self.keep(self.linear, index))

    @staticmethod
    def keep(place, index):
        def hook(module, positional, output):
            place[index] = first(output)[0, -1].clone()

        return hook

    def keep_all(self, index):
        def hook(module, positional, output):
            self.streams[index] = first(output)[0].clone()

        return hook

    def before_final_norm(self, module, positional):
        return None if self.stream is None else (self.stream.expand_as(positional[0]),)

    def logits_from(self, stream, tokens):
        """The logits of a stream [position, width], by the reference's own final norm and head."""
        self.stream = stream
        logits = self.run(tokens)
        self.stream = None
        return logits


class FrozenNorm:
    """A norm as a linear map: its divisor is that of one input [width], `whole`."""

    def __init__(self, module, whole):
        kind = type(module).__name__
        self.centred = "LayerNorm" in kind
        self.bias = getattr(module, "bias", None)
        self.weight = module.weight + (1 if kind.startswith(("Gemma", "Qwen3Next")) else 0)
        epsilon = module.eps if hasattr(module, "eps") else module.variance_epsilon
        spread = whole - whole.mean() if self.centred else whole
        self.divisor = ((spread**2).mean() + epsilon).sqrt()
        found = self(whole) if self.bias is None else self(whole) + self.bias
        torch.testing.assert_close(found, module(whole[None, None])[0, 0], rtol=1e-12, atol=1e-13)

    def __call__(self, part):
        """Without the bias."""
        spread = part - part.mean(-1, keepdim=True) if self.centred else part
        return spread / self.divisor * self.weight


def attention_parts(looked, index):
    """What a layer's attention adds to the stream, by name."""
    layer, family = looked.layers[index], looked.config.model_type
    if index in looked.linear:
        return {"short convolution" if hasattr(layer, "conv") else "linear attention": looked.linear[index]}
    output = one(
        module
        for path, module in layer.named_modules()
        if ("attn" in path or "attention" in path) and path.split(".")[-1] in make_family_interventions.OUTPUTS
    )
    rows = looked.changes.seen["attn.hook_z", index][-1]  # [head, d]
    weight = output.weight if isinstance(output, torch.nn.Linear) else output.weight.T  # [width, head x d]
    heads = torch.einsum("whd,hd->hw", weight.unflatten(1, (looked.heads, -1)), rows)
    if family in NORM_BEHIND_ATTENTION:
        assert output.bias is None
        heads = FrozenNorm(getattr(layer, NORM_BEHIND_ATTENTION[family]), heads.sum(0))(heads)
    heads = heads * getattr(layer, "residual_multiplier", 1)
    parts = {f"attn[head={head}]": heads[head] for head in range(looked.heads)}
    return parts if output.bias is None else parts | {"attn.bias": output.bias}


def attribution(looked, logits, answer, foil):
    """Parts of logits[answer] - logits[foil]. Called after a run."""
    before = [looked.changes.seen["hook_resid_pre", index][-1] for index in range(len(looked.layers))]
    end = looked.behind[len(looked.layers) - 1]
    norm, head = FrozenNorm(looked.final_norm, end), looked.model.get_output_embeddings()
    scale = getattr(looked.config, "logit_scale", 1) / getattr(looked.config, "logits_scaling", 1)
    direction = (head.weight[answer] - head.weight[foil]) * scale
    parts = {"embedding": before[0]}
    for index in range(len(looked.layers)):
        entering = attention_parts(looked, index)
        rest = looked.behind[index] - before[index] - sum(entering.values())
        parts |= {f"blocks.{index}.{name}": part for name, part in (entering | {"mlp": rest}).items()}
    values = {name: (direction @ norm(part)).item() for name, part in parts.items()}
    constant = 0.0
    if norm.bias is not None:
        constant += (direction @ norm.bias).item()
    if head.bias is not None:
        constant += ((head.bias[answer] - head.bias[foil]) * scale).item()
    if constant != 0:
        values["output bias"] = constant
    difference = (logits[answer] - logits[foil]).item()
    linear, cap = difference, getattr(looked.config, "final_logit_softcapping", None)
    if cap is not None:
        linear = (cap * torch.atanh(logits[[answer, foil]] / cap)).diff().neg().item()
    assert abs(sum(values.values()) - linear) < 1e-11, (sum(values.values()), linear)
    return {"answer": answer, "foil": foil, "difference": difference, "linear": linear, "parts": rounded(values)}


def rounded(numbers):
    if isinstance(numbers, dict):
        return {name: rounded(number) for name, number in numbers.items()}
    if isinstance(numbers, list):
        return [rounded(number) for number in numbers]
    return float(f"{numbers:.11g}") if isinstance(numbers, float) else numbers


def likely(logits, count):
    probability, ids = logits.softmax(-1).topk(count)
    return {
        "ids": ids.tolist(),
        "logits": rounded(logits[ids].tolist()),
        "probabilities": rounded(probability.tolist()),
    }


def lens_of(looked, tokens, answer):
    streams = [stream for index, stream in sorted(looked.streams.items())]
    logits = [looked.logits_from(stream, tokens) for stream in streams]
    last = logits[-1].softmax(-1)
    rows = []
    for of_layer in logits:
        log_p = of_layer.log_softmax(-1)
        # torch's own formulas: the entropy of a distribution, and sum q (ln q - ln p).
        entropy = torch.distributions.Categorical(logits=of_layer).entropy()
        divergence = torch.nn.functional.kl_div(log_p, last, reduction="none").sum(-1)
        rank = (of_layer > of_layer[:, answer, None]).sum(-1) + 1
        rows.append(
            likely(of_layer[-1], LENS_NEXT)
            | {
                "entropy": rounded(entropy.tolist()),
                "kl": rounded(divergence.tolist()),
                "rank": rank.tolist(),
                "logit": rounded(of_layer[:, answer].tolist()),
            }
        )
    return rows


def heads_of(looked):
    found = {}
    layers = [index for index in range(len(looked.layers)) if index not in looked.linear]
    for index, weights in zip(layers, looked.recorder.weights, strict=True):
        ranked, keys = weights.sort(dim=-1, descending=True, stable=True)
        seen = (weights > 0).sum(-1)  # a hidden key has no weight
        rows = [[(head, query) for query in range(LENGTH)] for head in range(looked.heads)]

        def top(tensor, seen=seen, rows=rows):
            return [[tensor[at][: min(TOP_KEYS, int(seen[at]))].tolist() for at in of_head] for of_head in rows]

        found[str(index)] = {
            "top_keys": top(keys),
            "top_weights": rounded(top(ranked)),
            "column_mean": rounded(
                torch.stack([weights[:, key:, key].mean(-1) for key in range(LENGTH)], -1).tolist()
            ),
        }
    return found


def golden(name):
    looked = Looked(name)
    generator = torch.Generator().manual_seed(44)
    tokens = torch.randint(3, 64, (LENGTH,), generator=generator).tolist()
    logits = looked.run(tokens)[-1]
    found = {"tokens": tokens, "next": likely(logits, NEXT), "heads": heads_of(looked)}
    found["attribution"] = attribution(looked, logits, *logits.topk(2).indices.tolist())
    found["lens"] = lens_of(looked, tokens, found["attribution"]["answer"])
    return found


def main():
    with reference_model.float64_throughout(), torch.no_grad():
        found = {name: golden(name) for name in sys.argv[1:] or CHECKPOINTS}
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    print(make_family_interventions.written({"versions": versions, "checkpoints": found}))


if __name__ == "__main__":
    main()
