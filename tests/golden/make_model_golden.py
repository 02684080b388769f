"""Makes the golden checkpoints and their expected logits and attention statistics.

    python tests/golden/make_model_golden.py --shared-data ../shared/data --out tests/golden/models

needs torch and transformers (the versions used are stored in each expected.safetensors). Each folder <out>/<name> holds a small random
checkpoint in Hugging Face layout and `expected.safetensors`; the same versions and machine give the same bytes. `tinystories-656K` holds
expected outputs only: its checkpoint is read from --shared-data.

expected.safetensors, everything computed in float64 (reference_model.py):
    tokens [T], query_positions [Q], logit_positions [P]                   int64; which queries and logits are stored
    logits [P, vocabulary]; statistics.<field> [layer, head, Q(, key)]     statistics.column_mean [layer, head, key]
    statistics.value_variance [layer, kv_head, head_dim]                   statistics.gate only where the model has gates
    float32_error.<name>, bfloat16_error.<name> [1]                        of the reference's own runs; bfloat16: worse of fused and eager
"""

import argparse
import gzip
import json
import pathlib
import platform

import safetensors.torch
import torch
import transformers

import attention_statistics
import reference_model

COMMAND = "python tests/golden/make_model_golden.py --shared-data ../shared/data --out tests/golden/models"
LENGTH = 80  # crosses a tile of 64
BOS = 1

BASE = {
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "num_hidden_layers": 2,
    "intermediate_size": 48,
    "vocab_size": 64,
    "max_position_embeddings": 128,
    "rms_norm_eps": 1e-6,
    "hidden_act": "silu",
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
    "bos_token_id": BOS,
    "eos_token_id": 2,
    "torch_dtype": "float32",
}
LLAMA = BASE | {"model_type": "llama", "architectures": ["LlamaForCausalLM"]}
QWEN2 = BASE | {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "head_dim": None, "hidden_size": 48, "rms_norm_eps": 1e-3}
QWEN2_WINDOW = {"hidden_size": 32, "num_hidden_layers": 3, "use_sliding_window": True, "sliding_window": 13, "max_window_layers": 1}
QWEN3 = BASE | {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "rope_theta": 1000000.0}
GATED = QWEN3 | {"use_qk_norm": True, "qkv_bias": False, "headwise_attn_output_gate": False, "elementwise_attn_output_gate": False}

# rope settings whose frequencies differ from the plain ones well within LENGTH positions
LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32}
YARN = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32, "beta_fast": 2.0, "beta_slow": 1.0}
YARN_MSCALE = {
    "rope_type": "yarn",
    "rope_theta": 500.0,
    "factor": 8.0,
    "original_max_position_embeddings": 16,
    "mscale": 1.0,
    "mscale_all_dim": 0.5,
    "truncate": False,
}

CONFIGS = {
    "llama": LLAMA | {"hidden_size": 48, "head_dim": None, "num_hidden_layers": 3},  # head_dim 12: width / heads
    "llama-bias": LLAMA | {"attention_bias": True, "mlp_bias": True},
    "llama-rope-linear": LLAMA | {"rope_scaling": {"type": "linear", "factor": 2.5}},
    "llama-rope-llama3": LLAMA | {"rope_scaling": LLAMA3},
    "llama-rope-yarn": LLAMA | {"rope_theta": 500.0, "rope_scaling": YARN},
    "llama-rope-yarn-mscale": LLAMA | {"rope_theta": None, "rope_parameters": YARN_MSCALE},
    "mistral-window": BASE | {"model_type": "mistral", "architectures": ["MistralForCausalLM"], "sliding_window": 13},
    "qwen2-tied": QWEN2 | {"tie_word_embeddings": True},
    "qwen2-window": QWEN2 | QWEN2_WINDOW,
    "qwen3": QWEN3 | {"tie_word_embeddings": True},
    "qwen3-gate-headwise": GATED | {"headwise_attn_output_gate": True},
    "qwen3-gate-elementwise": GATED | {"elementwise_attn_output_gate": True},
    "qwen3-gate-bias-no-qk-norm": GATED | {"headwise_attn_output_gate": True, "qkv_bias": True, "use_qk_norm": False},
}


def normal(shape, generator, scale=1.0, mean=0.0):
    return mean + scale * torch.randn(shape, generator=generator, dtype=torch.float64)


def random_weight(name, shape, generator):
    """Weights that keep the stream near unit size, with biases and norms far enough from 0 and 1 to be missed if forgotten."""
    if name.endswith(("q_norm.weight", "k_norm.weight")):
        return 0.5 + 1.5 * torch.rand(shape, generator=generator, dtype=torch.float64)  # sharp scores after normalisation
    if name.endswith("norm.weight"):
        return normal(shape, generator, 0.2, 1.0)
    if name.endswith("bias"):
        return normal(shape, generator, 0.3)
    if name.endswith("embed_tokens.weight"):  # a common vector gives the values of every layer a mean far from zero
        return normal(shape, generator) + normal(shape[1:], generator, 0.5)
    return normal(shape, generator, shape[1] ** -0.5)


def sharpen(weights, config, gate_rows):
    """Heads from nearly uniform to nearly one key, and a last head that attends to the first token.

    The first head of each group gets small queries, the last one large ones. The sink: one slowly rotating dimension of the last key head
    reads the first token's embedding, the same dimension of the last query head reads the direction common to all embeddings.
    """
    heads, groups = config.num_attention_heads, config.num_attention_heads // config.num_key_value_heads
    head_dim = weights["model.layers.0.self_attn.k_proj.weight"].shape[0] // config.num_key_value_heads
    embedding = weights["model.embed_tokens.weight"]
    first, common = (direction / direction.norm() for direction in (embedding[BOS], embedding.mean(0)))
    slow = head_dim // 2 - 1
    factors = torch.tensor([0.3, 2.5, 1.0, 2.0], dtype=torch.float64).repeat(heads // 4)
    for layer in range(config.num_hidden_layers):
        prefix = f"model.layers.{layer}.self_attn."
        key, query = weights[prefix + "k_proj.weight"], weights[prefix + "q_proj.weight"]
        # Rows of q_proj are grouped by key head: the group's queries, then its gate scores if there are any.
        grouped = query.view(config.num_key_value_heads, groups * head_dim + gate_rows // config.num_key_value_heads, -1)
        queries = grouped[:, : groups * head_dim].unflatten(1, (groups, head_dim))
        queries *= factors.view(config.num_key_value_heads, groups, 1, 1)
        queries[-1, -1, slow] += 2 * common
        key.view(config.num_key_value_heads, head_dim, -1)[-1, slow] += 2 * first


def make_checkpoint(folder, config, seed):
    """config.json and model.safetensors of random weights; float32."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {key: value for key, value in config.items() if value is not None}
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    model_class = reference_model.model_class(folder)
    loaded = transformers.AutoConfig.from_pretrained(folder)
    from_config = model_class._from_config if reference_model.is_gated(config) else model_class.from_config
    model = from_config(loaded)
    shapes = {name: tensor.shape for name, tensor in model.state_dict().items()}
    if loaded.tie_word_embeddings:
        del shapes["lm_head.weight"]
    generator = torch.Generator().manual_seed(seed)
    weights = {name: random_weight(name, shapes[name], generator) for name in sorted(shapes)}
    query_rows = shapes["model.layers.0.self_attn.o_proj.weight"][1]
    sharpen(weights, loaded, shapes["model.layers.0.self_attn.q_proj.weight"][0] - query_rows)
    weights = {name: tensor.float().contiguous() for name, tensor in weights.items()}
    safetensors.torch.save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def random_tokens(seed):
    tokens = torch.randint(3, BASE["vocab_size"], (LENGTH,), generator=torch.Generator().manual_seed(seed))
    tokens[0] = BOS
    return tokens


def text_tokens(model_folder, text_file, count):
    """The first `count` tokens of a text, its tokenizer's BOS first."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(model_folder)
    text = gzip.open(text_file, "rt", encoding="utf-8").read(20 * count)
    tokens = torch.tensor(tokenizer(text)["input_ids"][:count])
    assert len(tokens) == count and tokens[0] == tokenizer.bos_token_id
    return tokens


def collect(run, query_positions, logit_positions):
    """One flat dictionary of what is stored of a run."""
    logits, layers, gates = run
    stored = {"logits": logits[logit_positions]}
    for field in layers[0]:
        stacked = torch.stack([layer[field] for layer in layers])
        per_query = field not in ("column_mean", "value_variance")
        stored[f"statistics.{field}"] = stacked[:, :, query_positions] if per_query else stacked
    if gates:
        stored["statistics.gate"] = torch.stack(gates)[:, :, query_positions]
    return stored


def relative_error(found, expected, floor):
    """max |a-b| / max(|b|, floor max|b|); NaNs must coincide and are left out."""
    known = ~expected.isnan()
    assert torch.equal(known, ~found.isnan())
    scale = torch.clamp(expected[known].abs(), min=floor * expected[known].abs().max())
    return ((found[known] - expected[known]).abs() / scale).max()


def errors(found, expected):
    """Error of each stored tensor: logits against the largest one, statistics by the metric, the worst layer."""
    result = {"logits": relative_error(found["logits"], expected["logits"], 1.0)}
    for name in expected.keys() - {"logits"}:
        result[name] = torch.stack([relative_error(a, b, 1e-3) for a, b in zip(found[name], expected[name], strict=True)]).max()
    return result


def provenance(name):
    versions = {"torch": torch.__version__, "transformers": transformers.__version__, "python": platform.python_version()}
    return json.dumps({"checkpoint": name, "command": COMMAND, "versions": versions}, sort_keys=True)


def describe(name, expected, float32, bfloat16, plain64):
    """One line on standard output: how sharp the attention is, and how far the reference's other runs are from the float64 one."""
    n_eff, first = expected["statistics.n_eff"], expected["statistics.first_mass"][..., 0]
    worst = max(float32, key=lambda key: float32[key] if key != "logits" else 0)
    print(
        f"{name:28} n_eff {n_eff.min():.2f}..{n_eff.max():.1f} p0 {first.min():.1e}..{first[:, :, 1:].max():.5f} "
        f"logits f32 {float32['logits']:.1e} f64 {plain64['logits']:.1e} bf16 {bfloat16['logits']:.1e} "
        f"worst f32 {worst} {float32[worst]:.1e} bf16 {max(bfloat16.values()):.1e}"
    )


def write_expected(name, checkpoint, out, tokens, query_positions, logit_positions):
    """Runs the reference in every precision, checks the runs against each other, and writes expected.safetensors."""

    def stored(dtype, fused):
        return collect(reference_model.run(checkpoint, dtype, tokens, fused), query_positions, logit_positions)

    with reference_model.float64_throughout():
        expected = stored(torch.float64, fused=False)
    plain64 = errors(stored(torch.float64, fused=False), expected)  # the reference as it is: float32 inside, so about 1e-6 away
    float32 = errors(stored(torch.float32, fused=True), expected)
    # The reference has two attention functions, and one run's largest error is a noisy number: the worse of both.
    runs = [errors(stored(torch.bfloat16, fused), expected) for fused in (True, False)]
    bfloat16 = {key: max(run[key] for run in runs) for key in expected}
    describe(name, expected, float32, bfloat16, plain64)
    assert 1e-10 < plain64["logits"] < 1e-5 and float32["logits"] < 1e-5, "the float64 run is not the reference's own model"
    tensors = {"tokens": tokens, "query_positions": query_positions, "logit_positions": logit_positions} | expected
    tensors |= {f"float32_error.{key}": value.reshape(1) for key, value in float32.items()}
    tensors |= {f"bfloat16_error.{key}": value.reshape(1) for key, value in bfloat16.items()}
    out.mkdir(parents=True, exist_ok=True)
    tensors = {key: tensor.clone().contiguous() for key, tensor in tensors.items()}
    # One metadata key: the file format does not keep the order of several.
    safetensors.torch.save_file(tensors, out / "expected.safetensors", metadata={"provenance": provenance(name)})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared-data", type=pathlib.Path, required=True, help="folder with models/ and wikitext-raw/")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="where the golden folders go")
    parser.add_argument("--only", nargs="*", help="names of the goldens to make; default all")
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # sums in one order
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    attention_statistics.check_hand_case()

    queries = torch.tensor(sorted({*range(10), *range(0, LENGTH, 3), *range(61, 67), LENGTH - 1}))  # every start and tile edge
    logits = torch.arange(0, LENGTH, 3)
    for seed, (name, config) in enumerate(CONFIGS.items(), start=1):
        if arguments.only and name not in arguments.only:
            continue
        make_checkpoint(arguments.out / name, config, seed)
        write_expected(name, arguments.out / name, arguments.out / name, random_tokens(1000 + seed), queries, logits)

    name, count = "tinystories-656K", 256
    if not arguments.only or name in arguments.only:
        checkpoint = arguments.shared_data / "models" / name
        tokens = text_tokens(checkpoint, arguments.shared_data / "wikitext-raw" / "wiki.valid.raw.gz", count)
        write_expected(name, checkpoint, arguments.out / name, tokens, torch.arange(0, count, 8), torch.arange(0, count, 32))


if __name__ == "__main__":
    main()
