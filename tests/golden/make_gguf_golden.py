"""Makes GGUF twins of the golden checkpoints: the same weights, as the conversion script of llama.cpp writes them.

    python tests/golden/make_gguf_golden.py --models tests/golden/models --out tests/golden/gguf

Needs torch, transformers, accelerate and gguf. twins.json maps each file to its golden checkpoint, whose expected
outputs are also those of the twin. provenance.json holds the versions and two lists. "inexact": files that hold a
rounded number which the checkpoint's config leaves to be computed, so that they only need float32 accuracy. "checked":
files that the reference itself opened, and from which it computed the logits of the checkpoint.

What the conversion does:
- llama: interleaves the two halves of each head in queries and keys, because its rotation turns neighbouring rows.
- gemma: norms hold 1 + w.
- GPT-NeoX, BLOOM, Falcon: queries, keys and values are stacked over heads.
- GPT-2: matrices are transposed.
- The gated delta rule: norms hold 1 + w, except that of the rule's heads. A_log becomes -exp(A_log); the convolution
  loses its dimension of 1. Qwen 3 Next: the joined projections are sorted into all queries, keys and values, and the
  gates. Qwen 3.5: value heads are stored in turns, the first of every key head before the second of every key head.
- DeepSeek: the projection of keys and values is split; the keys of each head are transposed, and both are stacks over
  heads. The file describes the short rows as one KV head. Older files (OLDER_LATENT) leave the projection as it is.
- Experts are stacked in one tensor per matrix. The gate and up parts of gpt-oss are split.

Source of names and keys: gguf.TensorNameMap and the conversion script of llama.cpp (conversion/*.py, 2026).
"""

import argparse
import importlib.metadata
import json
import math
import pathlib
import re

import gguf
import safetensors.torch
import torch
import transformers

import reference_model
from random_checkpoint import quantised_type

ARCHITECTURES = {
    "deepseek_v2": "deepseek2",
    "deepseek_v3": "deepseek2",
    "hunyuan_v1_dense": "hunyuan-dense",
    "mixtral": "llama",
    "olmo3": "olmo2",
    "phi": "phi2",
    "qwen2_moe": "qwen2moe",
    "gemma3_text": "gemma3",
    "gpt_neox": "gptneox",
    "gpt_oss": "gpt-oss",
    "qwen3_moe": "qwen3moe",
    "qwen3_next": "qwen3next",
    "qwen3_5_text": "qwen35",
    "qwen3_5_moe_text": "qwen35moe",
}
COMMAND = "python tests/golden/make_gguf_golden.py --models tests/golden/models --out tests/golden/gguf"
# The reference does not open gptneox, mpt or olmo2, does not know norms of single heads, does not undo Falcon's
# stacking by groups, and fails on the numbers of gpt-oss's rope scaling. It does not know the gated delta rule and
# latent attention.
NOT_OPENED = (
    "afmoe",
    "deepseek-v2", "deepseek-v2-groups", "deepseek-v3", "deepseek-v3-direct",
    "qwen3-next-all-experts", "qwen3-5", "qwen3-5-moe", "starcoder2", "cohere2", "ernie4-5", "exaone4", "gemma",
    "glm4", "granite", "hunyuan-v1-dense", "mixtral", "olmo3", "phi", "qwen2-moe", "seed-oss", "smollm3", "gpt-neox",
    "mpt", "olmo2", "stablelm-2", "falcon-groups", "gpt-oss-mxfp4",
)
INEXACT = (
    "deepseek-v2-groups",
    "deepseek-v3",
    "hunyuan-v1-dense",
    "llama-rope-llama3",
    "phi3-longrope-long",
    "phi3-longrope-short",
    "qwen3-next-all-experts",
    "qwen3-5",
    "qwen3-5-moe",
)
LATENT = ("deepseek_v2", "deepseek_v3")
OLDER_LATENT = ("deepseek-v2",)  # written as older versions of the script do
DELTA_RULE = ("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text")
# Whose file has one more block, for the prediction of several tokens.
WITH_PREDICTION_LAYER = ("qwen3-5-moe", "deepseek-v3")
GOLDENS = (
    "llama",
    "llama-bias",
    "llama-rope-linear",
    "llama-rope-llama3",
    "llama-rope-yarn",
    "llama-quantised",
    "qwen2-tied",
    "qwen3",
    "gemma2",
    "gemma3",
    "gemma3-rope-by-type",
    "gpt2",
    "gpt-neox",
    "phi3-window",
    "phi3-longrope-long",
    "phi3-longrope-short",
    "qwen3-moe",
    "gpt-oss-mxfp4",
    "olmo2",
    "stablelm",
    "stablelm-2",
    "falcon",
    "falcon-groups",
    "bloom",
    "mpt",
    "cohere2",
    "ernie4-5",
    "exaone4",
    "gemma",
    "glm4",
    "granite",
    "hunyuan-v1-dense",
    "mixtral",
    "olmo3",
    "phi",
    "qwen2-moe",
    "seed-oss",
    "smollm3",
    "qwen3-next-all-experts",
    "qwen3-5",
    "qwen3-5-moe",
    "starcoder2",
    "deepseek-v2",
    "deepseek-v2-groups",
    "deepseek-v3",
    "deepseek-v3-direct",
    "afmoe",
)


def interleave_halves(tensor, heads):
    """[heads * head_dim, ...]: rows i and i + head_dim/2 of each head become rows 2i and 2i + 1."""
    return tensor.unflatten(0, (heads, 2, -1)).transpose(1, 2).reshape(tensor.shape)


def stack_projections(tensor, kv_heads, queries):
    """Rows grouped by key head (`queries` queries, a key, a value), sorted into all queries, all keys, all values."""
    groups = tensor.unflatten(0, (kv_heads, queries + 2, -1))
    return torch.cat([groups[:, :queries].flatten(0, 2), groups[:, -2].flatten(0, 1), groups[:, -1].flatten(0, 1)])


def in_turns(tensor, config, dimension, begin=0):
    """Value heads from `begin` on: the first of every key head, then the second of every key head, ..."""
    kept, values = tensor.split([begin, tensor.shape[dimension] - begin], dimension)
    groups = config.linear_num_key_heads
    values = values.unflatten(dimension, (groups, config.linear_num_value_heads // groups, -1))
    return torch.cat([kept, values.transpose(dimension, dimension + 1).flatten(dimension, dimension + 2)], dimension)


def delta_tensor(name, tensor, config):
    """The tensors made from one tensor of a layer of the gated delta rule."""
    keys = config.linear_num_key_heads * config.linear_key_head_dim
    if name.endswith("in_proj_qkvz.weight"):
        values = config.linear_num_value_heads // config.linear_num_key_heads * config.linear_value_head_dim
        groups = tensor.unflatten(0, (config.linear_num_key_heads, -1))
        parts = groups.split([config.linear_key_head_dim, config.linear_key_head_dim, values, values], 1)
        query, key, value, gate = (part.flatten(0, 1) for part in parts)
        return {name.replace("qkvz", "qkv"): torch.cat([query, key, value]), name.replace("qkvz", "z"): gate}
    if name.endswith("A_log"):
        tensor = -tensor.exp()
    if name.endswith("conv1d.weight"):
        tensor = tensor.squeeze()
    if config.model_type != "qwen3_next" and not name.endswith("linear_attn.norm.weight"):
        begin = 2 * keys if name.endswith(("in_proj_qkv.weight", "conv1d.weight")) else 0
        tensor = in_turns(tensor, config, 1 if name.endswith("out_proj.weight") else 0, begin)
    return {name.replace("dt_bias", "dt_proj.bias"): tensor}


def kv_heads(config):
    """Number of key heads for the file. Falcon's config states one key head with `multi_query`."""
    if config.model_type == "falcon":
        return config.num_kv_heads if config.new_decoder_architecture else 1
    return getattr(config, "num_key_value_heads", None) or config.num_attention_heads


def split_latent(name, tensor, config):
    """The stacks over heads of keys, transposed, and of values."""
    heads = tensor.unflatten(0, (config.num_attention_heads, -1))
    keys, values = heads.split([config.qk_nope_head_dim, config.v_head_dim], 1)
    return {name.replace("kv_b_proj", "k_b_proj"): keys.transpose(1, 2), name.replace("kv_b_proj", "v_b_proj"): values}


def one_tensor(golden, name, tensor, config):
    """The tensors of the file made from one tensor of the checkpoint, under their old names."""
    heads = config.num_attention_heads
    if name.endswith("kv_b_proj.weight") and golden not in OLDER_LATENT:
        return split_latent(name, tensor, config)
    if name.endswith("e_score_correction_bias"):
        return {name.replace("_bias", ".bias"): tensor}
    if name.endswith("expert_bias"):
        return {f"{name}.bias": tensor}
    if config.model_type in ("llama", "mixtral", "granite", "smollm3") and re.search(r"(q|k)_proj\.", name):
        tensor = interleave_halves(tensor, heads if "q_proj" in name else kv_heads(config))
    if config.model_type in ("gpt_neox", "bloom", "falcon") and "query_key_value" in name:
        tensor = stack_projections(
            tensor, *((kv_heads(config), heads // kv_heads(config)) if config.model_type == "falcon" else (heads, 1))
        )
    if ".linear_attn." in name:
        return delta_tensor(name, tensor, config)
    if config.model_type in ("gemma", *DELTA_RULE) and name.endswith("norm.weight"):
        tensor = tensor + 1
    if config.model_type == "qwen3_next" and name.endswith("shared_expert_gate.weight"):
        tensor = tensor.squeeze()  # as older versions of the script do
    if config.model_type == "qwen3_5_moe_text" and name.endswith("experts.gate_up_proj"):
        gate, up = tensor.chunk(2, 1)
        parts = {"gate": gate, "up": up}
        return {name.replace("gate_up_proj", f"{half}_proj.weight"): part for half, part in parts.items()}
    if config.model_type == "qwen3_5_moe_text" and name.endswith("experts.down_proj"):
        return {f"{name}.weight": tensor}
    if config.model_type in ("gemma2", "gemma3_text"):
        # The file's scale is 1/sqrt(head_dim). If the config has another scale, the queries are multiplied by the
        # ratio, which is exact, because it is a power of two.
        factor = math.sqrt(config.head_dim / config.query_pre_attn_scalar)
        queries = "q_norm.weight" if config.model_type == "gemma3_text" else "q_proj.weight"
        tensor = (tensor + 1 if name.endswith("norm.weight") else tensor) * (factor if name.endswith(queries) else 1)
    if config.model_type == "gpt2" and name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight")):
        tensor = tensor.T
    if name.endswith("experts.gate_up_proj"):  # [expert, in, out], gate and up alternate
        tensor = tensor.transpose(-1, -2)
        return {
            name.replace("gate_up_proj", f"{half}_proj.weight"): tensor[:, i::2]
            for i, half in enumerate(("gate", "up"))
        }
    if name.endswith("experts.gate_up_proj_bias"):
        return {
            name.replace("gate_up_proj_bias", f"{half}_proj.bias"): tensor[:, i::2]
            for i, half in enumerate(("gate", "up"))
        }
    if name.endswith("experts.down_proj"):
        return {f"{name}.weight": tensor.transpose(-1, -2)}
    if name.endswith("experts.down_proj_bias"):
        return {name.replace("_bias", ".bias"): tensor}
    return {f"{name}.weight" if name.endswith("sinks") else name: tensor}


def stack_numbered(weights, pattern):
    """Stacks the tensors whose names match `pattern`, (before)(number)(after), into one, named without the number."""
    stacks, rest = {}, {}
    for name, tensor in weights.items():
        if match := re.fullmatch(pattern, name):
            stacks.setdefault(match[1] + match[3], {})[int(match[2])] = tensor
        else:
            rest[name] = tensor
    return rest | {name: torch.stack([stack[i] for i in range(len(stack))]) for name, stack in stacks.items()}


def prediction_tensors(name, config):
    """Two tensors that stand for a block that predicts several tokens, which no program here reads."""
    if name not in WITH_PREDICTION_LAYER:
        return {}
    at, ones = f"blk.{config.num_hidden_layers}.", torch.ones(config.hidden_size)
    return {f"{at}attn_norm.weight": ("", ones), f"{at}nextn.enorm.weight": ("", ones)}


def file_tensors(name, weights, config):
    """Every tensor of the file by its name in the file, and the name of the tensor it is made from."""
    names = gguf.get_tensor_name_map(
        gguf.MODEL_ARCH[architecture(config).upper().replace("-", "_")], config.num_hidden_layers
    )
    weights = {old: tensor for old, tensor in weights.items() if not old.endswith(reference_model.BUFFERS)}
    converted = {}
    for old, tensor in weights.items():
        converted |= {new: (old, value) for new, value in one_tensor(name, old, tensor, config).items()}
    stacked = stack_numbered({name: value for name, (_, value) in converted.items()}, r"(.*\.experts\.)(\d+)\.(.*)")
    stacked = stack_numbered(stacked, r"(.*_layernorm)\.norms\.(\d+)(\.weight)")
    result = {}
    for old, tensor in stacked.items():
        new = names.get_name(old, try_suffixes=(".weight", ".bias"))
        assert new is not None, f"no name for {old}"
        result[new] = (converted.get(old, (old,))[0], tensor)
    return result | rope_tensors(config) | prediction_tensors(name, config)


def rope_tensors(config):
    """Frequency factors of the rotation, which the file holds as tensors."""
    rope = getattr(config, "rope_parameters", None) or {}
    if rope.get("rope_type") == "longrope":
        return {
            f"rope_factors_{which}.weight": ("", torch.tensor(rope[f"{which}_factor"])) for which in ("long", "short")
        }
    if rope.get("rope_type") != "llama3":
        return {}
    inverse, _ = transformers.modeling_rope_utils.ROPE_INIT_FUNCTIONS["llama3"](config, "cpu")
    head_dim = config.head_dim or config.hidden_size // config.num_attention_heads
    plain = rope["rope_theta"] ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
    return {"rope_freqs.weight": ("", (plain / inverse).float())}


def architecture(config):
    return ARCHITECTURES.get(config.model_type, config.model_type)


def first_of(config, *names):
    return next((value for name in names if (value := getattr(config, name, None)) is not None), None)


def add_rope(writer, config):
    rope = getattr(config, "rope_parameters", None)
    if not rope or getattr(config, "alibi", False):
        return
    by_type = rope if "full_attention" in rope else {"full_attention": rope}
    rope, local = by_type["full_attention"], by_type.get("sliding_attention")
    # Files of these families leave it out.
    if config.model_type not in ("gpt_neox", "falcon", "gemma", "phi", "stablelm"):
        base, dimensions = rope["rope_theta"], first_of(config, "head_dim")
        if config.model_type == "hunyuan_v1_dense":  # the file holds the stretched base
            base *= rope["alpha"] ** (dimensions / (dimensions - 2))
        writer.add_rope_freq_base(base)
    if local and config.model_type != "olmo3":
        writer.add_rope_freq_base_swa(local["rope_theta"])
    if config.model_type not in ("gemma2", "gemma3_text", "gpt_oss", "qwen2", "qwen3", "qwen3_moe", "olmo2", "falcon"):
        head_dim = first_of(config, "head_dim") or config.hidden_size // config.num_attention_heads
        writer.add_rope_dimension_count(int(head_dim * rope.get("partial_rotary_factor", 1.0)))
    kind = rope["rope_type"]
    if kind in ("linear", "yarn"):
        writer.add_rope_scaling_type(gguf.RopeScalingType(kind))
        writer.add_rope_scaling_factor(rope["factor"])
    if kind == "yarn":
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
        writer.add_rope_scaling_yarn_beta_fast(rope["beta_fast"])
        writer.add_rope_scaling_yarn_beta_slow(rope["beta_slow"])
    if config.model_type == "phi3":
        original = config.original_max_position_embeddings
        scale = config.max_position_embeddings / original
        writer.add_rope_scaling_orig_ctx_len(original)
        if kind == "longrope":
            writer.add_rope_scaling_attn_factors(math.sqrt(1 + math.log(scale) / math.log(original)))


def add_windows(writer, config, name):
    window = getattr(config, "sliding_window", None)
    if window is None or (config.model_type.startswith("qwen") and not config.use_sliding_window):
        return
    writer.add_sliding_window(window)
    if config.model_type in ("exaone4", "olmo3"):
        writer.add_sliding_window_pattern([kind == "sliding_attention" for kind in config.layer_types])
    if config.model_type == "gemma3_text":  # every n-th layer is global, or there is a flag for each layer
        flags = [kind == "sliding_attention" for kind in config.layer_types]
        writer.add_sliding_window_pattern(flags if name == "gemma3-rope-by-type" else flags.index(False) + 1)


def add_latent(writer, config, older):
    """The keys of latent attention and of its experts."""
    rotated, keys = config.qk_rope_head_dim, config.qk_nope_head_dim + config.qk_rope_head_dim
    if older:
        writer.add_head_count_kv(config.num_attention_heads)
        writer.add_key_length(keys)
        writer.add_value_length(config.v_head_dim)
    else:
        writer.add_head_count_kv(1)
        writer.add_key_length(config.kv_lora_rank + rotated)
        writer.add_value_length(config.kv_lora_rank)
        writer.add_key_length_mla(keys)
        writer.add_value_length_mla(config.v_head_dim)
        writer.add_expert_group_count(config.n_group or 1)
        writer.add_expert_group_used_count(config.topk_group or 1)
        sigmoid = config.model_type == "deepseek_v3"
        writer.add_expert_gating_func(getattr(gguf.ExpertGatingFuncType, "SIGMOID" if sigmoid else "SOFTMAX"))
    writer.add_kv_lora_rank(config.kv_lora_rank)
    if config.q_lora_rank is not None:
        writer.add_q_lora_rank(config.q_lora_rank)
    writer.add_leading_dense_block_count(config.first_k_dense_replace)
    writer.add_expert_shared_count(config.n_shared_experts)
    writer.add_expert_weights_scale(config.routed_scaling_factor)
    if config.norm_topk_prob:
        writer.add_expert_weights_norm(True)
    if mscale := config.rope_parameters.get("mscale_all_dim"):
        writer.add_rope_scaling_yarn_log_mul(0.1 * mscale)


def add_parameters(writer, config, name):
    heads = config.num_attention_heads
    writer.add_context_length(
        first_of(config, "max_position_embeddings", "n_positions", "max_seq_len", "seq_length") or 2048
    )
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers + (name in WITH_PREDICTION_LAYER))
    if name in WITH_PREDICTION_LAYER:
        writer.add_nextn_predict_layers(1)
    writer.add_feed_forward_length(
        first_of(config, "intermediate_size", "ffn_hidden_size", "n_inner") or 4 * config.hidden_size
    )
    writer.add_head_count(heads)
    if config.model_type in LATENT:
        add_latent(writer, config, name in OLDER_LATENT)
    elif config.model_type not in ("gpt2", "gpt_neox", "mpt"):
        writer.add_head_count_kv(kv_heads(config))
    without_head_dim = ("falcon", "gpt2", "gpt_neox", "bloom", "mpt", "stablelm", "phi", "phi3", "cohere2")
    if config.model_type not in (*without_head_dim, *LATENT) and first_of(config, "head_dim"):
        writer.add_key_length(config.head_dim)
        writer.add_value_length(config.head_dim)
    if (epsilon := first_of(config, "rms_norm_eps")) is not None:
        writer.add_layer_norm_rms_eps(epsilon)
    else:
        writer.add_layer_norm_eps(first_of(config, "layer_norm_eps", "layer_norm_epsilon", "norm_epsilon"))
    if config.model_type in ("gpt_neox", "stablelm"):
        writer.add_parallel_residual(config.use_parallel_residual)
    if config.model_type == "gemma2":
        writer.add_attn_logit_softcapping(config.attn_logit_softcapping)
        writer.add_final_logit_softcapping(config.final_logit_softcapping)
    if config.model_type == "granite":
        writer.add_embedding_scale(config.embedding_multiplier)
        writer.add_attention_scale(config.attention_multiplier)
        writer.add_residual_scale(config.residual_multiplier)
        writer.add_logit_scale(config.logits_scaling)
    if config.model_type == "cohere2":
        writer.add_logit_scale(config.logit_scale)
    if config.model_type == "mpt":
        writer.add_max_alibi_bias(config.attn_config.alibi_bias_max)
    if config.model_type == "falcon":
        writer.add_tensor_data_layout("jploski")
    if config.model_type in DELTA_RULE:
        writer.add_ssm_conv_kernel(config.linear_conv_kernel_dim)
        writer.add_ssm_state_size(config.linear_key_head_dim)
        writer.add_ssm_group_count(config.linear_num_key_heads)
        writer.add_ssm_time_step_rank(config.linear_num_value_heads)
        writer.add_ssm_inner_size(config.linear_num_value_heads * config.linear_value_head_dim)
        writer.add_full_attention_interval(config.layer_types.index("full_attention") + 1)
    if config.model_type in ("qwen3_5_text", "qwen3_5_moe_text"):
        writer.add_rope_dimension_sections([2, 1, 1, 0])
    if config.model_type == "afmoe":
        writer.add_leading_dense_block_count(config.num_dense_layers)
        writer.add_expert_shared_count(config.num_shared_experts)
        writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
        writer.add_expert_weights_norm(True)
        writer.add_expert_weights_scale(config.route_scale)
    sparse = ("afmoe", "mixtral", "qwen2_moe", "qwen3_moe", "gpt_oss", "qwen3_next", "qwen3_5_moe_text", *LATENT)
    if config.model_type in sparse:
        writer.add_expert_count(first_of(config, "num_local_experts", "num_experts"))
        writer.add_expert_used_count(config.num_experts_per_tok)
    if config.model_type in ("qwen2_moe", "qwen3_next", "qwen3_5_moe_text"):
        writer.add_expert_shared_feed_forward_length(config.shared_expert_intermediate_size)
    if config.model_type in sparse and config.model_type != "mixtral":
        writer.add_expert_feed_forward_length(first_of(config, "moe_intermediate_size", "intermediate_size"))
    add_rope(writer, config)
    add_windows(writer, config, name)


def add_tokenizer(writer, config):
    """The smallest vocabulary for a file: unknown, BOS, EOS, a character for every other id, one merge of two."""
    sentencepiece = config.model_type in ("llama", "gemma2", "gemma3_text", "phi3")
    tokens = ["<unk>", "<s>", "</s>"] + [chr(ord("!") + i) for i in range(config.vocab_size - 4)] + ["!#"]
    writer.add_tokenizer_model("llama" if sentencepiece else "gpt2")
    writer.add_tokenizer_pre("default" if sentencepiece else "gpt-2")
    writer.add_token_list(tokens)
    if sentencepiece:
        writer.add_token_scores([0.0 if i < 3 else float(-i) for i in range(len(tokens))])
    writer.add_token_types(
        [gguf.TokenType.UNKNOWN] + 2 * [gguf.TokenType.CONTROL] + (len(tokens) - 3) * [gguf.TokenType.NORMAL]
    )
    if not sentencepiece:
        writer.add_token_merges(["! #"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    if sentencepiece:
        writer.add_unk_token_id(0)
    writer.add_add_bos_token(True)


def write_twin(name, folder, file):
    config = transformers.AutoConfig.from_pretrained(folder)
    writer = gguf.GGUFWriter(file, architecture(config))
    writer.add_name(name)
    add_parameters(writer, config, name)
    writer.add_vocab_size(config.vocab_size)
    add_tokenizer(writer, config)
    weights = safetensors.torch.load_file(folder / "model.safetensors")
    for new, (old, tensor) in sorted(file_tensors(name, weights, config).items()):
        kind = quantised_type(name, old) or gguf.GGMLQuantizationType.F32
        data = tensor.contiguous().numpy()
        if kind == gguf.GGMLQuantizationType.F32:
            writer.add_tensor(new, data)
            continue
        blocks = gguf.quants.quantize(data, kind)
        assert (gguf.quants.dequantize(blocks, kind) == data).all(), f"{name}: {new} is not exact in {kind.name}"
        writer.add_tensor(new, blocks, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def check_twin(name, folder, file):
    """Checks that the reference, reading the file itself, computes the logits of the checkpoint.

    It gets the config of the checkpoint, because it ignores much of the file's metadata.
    """
    config = transformers.AutoConfig.from_pretrained(folder)
    if hasattr(config, "query_pre_attn_scalar"):
        config.query_pre_attn_scalar = config.head_dim
    expected = safetensors.torch.load_file(folder / "expected.safetensors")
    model = transformers.AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, config=config, dtype=torch.float32
    )
    with torch.no_grad():
        logits = model.eval()(expected["tokens"][None], use_cache=False).logits[0, expected["logit_positions"]]
    error = (logits - expected["logits"]).abs().max() / expected["logits"].abs().max()
    print(f"{name:24} {error:.1e}")
    assert error < 1e-5, f"{name}: the reference reads other logits from the file"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=pathlib.Path, required=True, help="folder of the golden checkpoints")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder to write the GGUF files to")
    parser.add_argument("--only", nargs="*", default=GOLDENS, help="names of the goldens to convert; default all")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.only:
        file = arguments.out / f"{name}.gguf"
        write_twin(name, arguments.models / name, file)
        if name not in NOT_OPENED:
            check_twin(name, arguments.models / name, file)
    versions = {module.__name__: module.__version__ for module in (torch, transformers)} | {
        "gguf": importlib.metadata.version("gguf")
    }
    checked = [f"{name}.gguf" for name in GOLDENS if name not in NOT_OPENED]
    provenance = {
        "command": COMMAND,
        "versions": versions,
        "checked": checked,
        "inexact": [f"{name}.gguf" for name in INEXACT],
    }
    twins = {f"{name}.gguf": name for name in GOLDENS}
    for file_name, content in (("twins.json", twins), ("provenance.json", provenance)):
        (arguments.out / file_name).write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
