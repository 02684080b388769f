"""Makes small random checkpoints in Hugging Face layout, whose attention is worth measuring.

The weights keep the stream near unit size. Biases and norms are so far from 0 and 1 that a test fails without them. The
attention of the heads ranges from nearly uniform to nearly one key. Experts are chosen by a wide margin, so that
rounding never changes a choice.
"""

import itertools
import json
import re

import gguf
import safetensors.torch
import torch
import transformers

import reference_model
from checkpoint_configs import BUFFERS_KEPT, QUANTISED, WITHOUT_PREFIX

BOS = 1
HEAD_SHARPNESS = (0.3, 2.5, 1.0, 2.0)  # factor on the queries of each head
EMBEDDINGS = ("embed_tokens.weight", "wte.weight", "embed_in.weight", "word_embeddings.weight")
CONV1D = ("c_attn.weight", "c_proj.weight", "c_fc.weight")  # GPT-2 stores [in, out]
CORRECTION = ("e_score_correction_bias", "expert_bias")
ALWAYS_CHOSEN = 3  # the expert that the correction always chooses
SPLIT_EXPERTS = (  # on disk
    "afmoe",
    "deepseek_v2",
    "deepseek_v3",
    "mimo_v2_flash",
    "qwen2_moe",
    "qwen3_moe",
    "qwen3_next",
)
INNER_NORM = re.compile(r"(q|k|query|key)_(layer)?norm(\.norms\.\d+)?\.weight$")
NORM = re.compile(r"(norm|norm_[12f]|ln_\w+|ln_?\d?|layernorm)\.weight$")


def normal(shape, generator, scale=1.0, mean=0.0):
    return mean + scale * torch.randn(shape, generator=generator, dtype=torch.float64)


def random_weight(name, shape, generator, norm_offset=0.0):
    """One random tensor. The family adds `norm_offset` to the weights of its norms; the sum is exact in float32."""
    if name.endswith("linear_attn.norm.weight"):  # in every family without an offset
        norm_offset = 0.0
    if norm_offset and (INNER_NORM.search(name) or NORM.search(name)):
        return (random_weight(name, shape, generator) * 2**20).round() / 2**20 - norm_offset
    if INNER_NORM.search(name):
        # Large weights, for sharp scores after the normalisation.
        return 0.5 + 1.5 * torch.rand(shape, generator=generator, dtype=torch.float64)
    if NORM.search(name):
        return normal(shape, generator, 0.2, 1.0)
    if name.endswith("A_log"):  # rates of decay from 0.02 to 8: states that last, and states that vanish at once
        return torch.empty(shape, dtype=torch.float64).uniform_(-4, 2, generator=generator)
    if name.endswith("sinks"):  # the sinks get from a few percent to most of the mass
        return normal(shape, generator, 1.5, 1.5)
    if name.endswith("bias"):
        return normal(shape, generator, 0.3)
    if name.endswith(EMBEDDINGS):  # with a common vector, the values of every layer have a mean far from zero
        return normal(shape, generator) + normal(shape[1:], generator, 0.5)
    if name.endswith(("wpe.weight", "embed_positions.weight")):
        return normal(shape, generator, 0.3)
    if name.endswith(CONV1D):
        return normal(shape, generator, shape[0] ** -0.5)
    return normal(shape, generator, shape[-1] ** -0.5)


def projections(weights, config, layer):
    """Views of one layer's query rows [kv_head, group, head_dim, width] and key rows [kv_head, head_dim, width]."""
    heads = config.num_attention_heads
    kv_heads = getattr(config, "num_key_value_heads", None) or heads
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // heads
    found = {name: tensor for name, tensor in weights.items() if f".{layer}." in name}

    def tensor(suffix):
        return next((value for name, value in found.items() if name.endswith(suffix)), None)

    if config.model_type == "mimo_v2_flash":  # its layers differ
        kv_heads = tensor("k_proj.weight").shape[0] // head_dim
    if config.model_type in reference_model.GATE_BY_HEAD:  # the queries of each head, then its gate scores
        query = tensor("q_proj.weight").unflatten(0, (kv_heads, heads // kv_heads, 2, head_dim))[:, :, 0]
        return query, tensor("k_proj.weight").unflatten(0, (kv_heads, head_dim))
    if (query := tensor("q_proj.weight")) is not None:
        # Rows of q_proj are grouped by key head: the queries of the group, then its gate scores, if it has any.
        grouped = query.unflatten(0, (kv_heads, -1))[:, : heads // kv_heads * head_dim]
        return grouped.unflatten(1, (heads // kv_heads, head_dim)), tensor("k_proj.weight").unflatten(
            0, (kv_heads, head_dim)
        )
    if config.model_type == "falcon" and (config.new_decoder_architecture or config.multi_query):
        kv_heads = config.num_kv_heads if config.new_decoder_architecture else 1
        fused = tensor("query_key_value.weight").unflatten(0, (kv_heads, heads // kv_heads + 2, head_dim))
        return fused[:, :-2], fused[:, -2]
    if (fused := tensor("query_key_value.weight")) is not None:  # each head's query, key and value
        fused = fused.unflatten(0, (heads, 3, head_dim))
        return fused[:, :1], fused[:, 1]
    fused = next(
        value for value in map(tensor, ("c_attn.weight", "Wqkv.weight", "qkv_proj.weight")) if value is not None
    )
    if config.model_type == "gpt2":
        fused = fused.T
    query, key, _ = fused.split([heads * head_dim, kv_heads * head_dim, kv_heads * head_dim])
    return query.unflatten(0, (kv_heads, heads // kv_heads, head_dim)), key.unflatten(0, (kv_heads, head_dim))


def slow_dimension(config, head_dim):
    """A dimension that is not rotated, or hardly rotated within the length of the golden."""
    rotary = getattr(config, "rope_parameters", None) or {}
    neighbours = config.model_type in ("cohere2", "ernie4_5", "glm4", "gptj")  # rotate dimensions 2i and 2i + 1
    whole = rotary.get("partial_rotary_factor", 1.0) == 1.0 and not neighbours
    return head_dim // 2 - 1 if whole else head_dim - 1


def sharpen(weights, config):
    """Makes heads from nearly uniform to nearly one key, and a last head that attends to the first token.

    The first head of each group gets small queries, the last head large ones. For the sink, one slowly rotating
    dimension of the last key head reads the first token's embedding. The same dimension of the last query head reads
    the direction that is common to all embeddings.
    """
    embedding = next(tensor for name, tensor in weights.items() if name.endswith(EMBEDDINGS))
    first, common = (direction / direction.norm() for direction in (embedding[BOS], embedding.mean(0)))
    factors = torch.tensor(
        list(itertools.islice(itertools.cycle(HEAD_SHARPNESS), config.num_attention_heads)), dtype=torch.float64
    )
    for layer in range(config.num_hidden_layers):
        if any(f"model.layers.{layer}.{name}" in weights for name in ("linear_attn.A_log", "conv.conv.weight")):
            continue
        if hasattr(config, "kv_lora_rank"):
            sharpen_latent(weights, config, f"model.layers.{layer}.self_attn.", factors, first, common)
            continue
        queries, keys = projections(weights, config, layer)
        slow = slow_dimension(config, keys.shape[1])
        queries *= factors.view(*queries.shape[:2], 1, 1)
        queries[-1, -1, slow] += 2 * common
        keys[-1, slow] += 2 * first
        if config.model_type == "gpt_neo":  # its scores are not divided
            queries *= keys.shape[1] ** -0.5


def sharpen_latent(weights, config, prefix, factors, first, common):
    """As sharpen, for queries that may be expanded from a short row, and a rotated key that all heads share."""
    direct = config.q_lora_rank is None
    queries = weights[prefix + ("q_proj.weight" if direct else "q_b_proj.weight")].unflatten(0, (len(factors), -1))
    queries *= factors.view(-1, 1, 1)
    if direct:
        queries[-1, -1] += 2 * common
    else:
        weights[prefix + "q_a_proj.weight"][0] += 2 * common
        queries[-1, -1, 0] += 2
    weights[prefix + "kv_a_proj_with_mqa.weight"][-1] += 2 * first


def make_sink(weights, config):
    """Makes heads for which the bound of the sink lemma is above 0.

    The first token gets much of the weight and has almost no value. The layers add little to the stream, so that the
    first token keeps the direction of its embedding in all layers.
    """
    embedding = weights["model.embed_tokens.weight"]
    first, common = (direction / direction.norm() for direction in (embedding[BOS], embedding.mean(0)))
    for layer in range(config.num_hidden_layers):
        prefix = f"model.layers.{layer}."
        queries, keys = projections(weights, config, layer)
        slow = slow_dimension(config, keys.shape[1])
        queries[:, :, slow] += torch.tensor([[0.2, 1.0], [0.6, 1.4]], dtype=torch.float64)[..., None] * common
        keys[:, slow] += 2 * first
        values = weights[prefix + "self_attn.v_proj.weight"]
        values += 0.1 * torch.sign(values[:, :1]) * common
        read = weights[prefix + "input_layernorm.weight"] * first
        values -= 0.97 * torch.outer(values @ read, read) / read.square().sum()
        for name in ("self_attn.o_proj", "mlp.down_proj"):
            weights[f"{prefix}{name}.weight"] *= 0.03


def wanted_experts(tokens, experts, chosen, corrected, config, generator):
    """The experts that each token is made to choose, [token, expert]. `chosen` of them lie in the groups that are kept.

    If the scores are `corrected`, one expert more is chosen always: the fourth.
    """
    order = torch.rand(tokens, experts, generator=generator)
    groups = getattr(config, "n_group", None) or 1
    if corrected:
        order[:, ALWAYS_CHOSEN] = 3
    elif groups == 1:
        return order.argsort(1) < chosen
    size = experts // groups
    preferred = torch.rand(tokens, groups, generator=generator)
    kept = preferred.argsort(1).argsort(1) < (config.topk_group if groups > 1 else 1)
    if corrected and groups > 1:  # the group of the expert that is always chosen, and one more
        preferred[:, ALWAYS_CHOSEN // size] = 2
        kept = preferred.argsort(1).argsort(1) < config.topk_group - 1
    order[~kept.repeat_interleave(size, 1)] += 2  # behind all others
    return order.argsort(1).argsort(1) < chosen


def separate_experts(weights, experts, chosen, config, generator):
    """Makes routers that choose by a wide margin.

    The first `experts` dimensions of the stream determine the experts of a token. Its embedding is near +1 in `chosen`
    of these dimensions and near -1 in the others. Attention and experts add little there.
    """
    embedding = next(tensor for name, tensor in weights.items() if name.endswith(EMBEDDINGS))
    corrected = any(name.endswith(CORRECTION) for name in weights)
    wanted = wanted_experts(embedding.shape[0], experts, chosen - corrected, corrected, config, generator)
    size = 0.8 + 0.8 * torch.rand(wanted.shape, generator=generator, dtype=torch.float64)
    embedding[:, :experts] = torch.where(wanted, size, -size)
    for name, tensor in weights.items():
        if name.endswith(CORRECTION):
            tensor *= 0.05
            tensor[ALWAYS_CHOSEN] = 0.9
        elif name.endswith(("mlp.gate.weight", "router.weight", "router.gate.weight")):
            tensor *= 0.2
            tensor[:, :experts] += 2 * torch.eye(experts, dtype=torch.float64)
        elif name.endswith(("o_proj.weight", "out_proj.weight", "output_linear.weight")) or re.search(
            r"(mlp|shared_experts?)\.down_proj\.weight$", name
        ):
            tensor[:experts] *= 0.1
        elif name.endswith(
            ("o_proj.bias", "down_proj_bias", "experts.down_proj")
        ):  # gpt-oss stores experts as [expert, in, out]
            if name.endswith("experts.down_proj") and tensor.shape[1] == embedding.shape[1]:
                tensor[:, :experts] *= 0.1
            else:
                tensor[..., :experts] *= 0.1


def split_experts(name, tensor):
    """Splits a fused tensor of experts into one tensor per expert and matrix, as in published checkpoints."""
    if name.endswith("experts.down_proj"):
        return {name.replace("down_proj", f"{expert}.down_proj.weight"): down for expert, down in enumerate(tensor)}
    stored = {}
    for expert, gate_and_up in enumerate(tensor):
        for half, matrix in zip(("gate_proj", "up_proj"), gate_and_up.chunk(2), strict=True):
            stored[name.replace("gate_up_proj", f"{expert}.{half}.weight")] = matrix
    return stored


def mixtral_experts(name, tensor):
    """As split_experts, with the names of published Mixtral checkpoints; also renames the router."""
    parts = split_experts(name, tensor) if ".experts." in name else {name: tensor}
    renamed = {}
    for key, part in parts.items():
        matrices = (("gate_proj", "w1"), ("down_proj", "w2"), ("up_proj", "w3"))
        for ours, theirs in (*matrices, (".mlp.", ".block_sparse_moe.")):
            key = key.replace(ours, theirs)
        renamed[key] = part
    return renamed


def buffers(config):
    """Constants that published checkpoints of the family hold in addition to the weights."""
    positions = config.max_position_embeddings
    if config.model_type == "gpt2":
        mask = torch.ones(positions, positions).tril()[None, None]
        return {f"transformer.h.{layer}.attn.bias": mask.clone() for layer in range(config.num_hidden_layers)}
    if config.model_type != "gpt_neox":
        return {}
    stored = {}
    for layer in range(config.num_hidden_layers):
        prefix = f"gpt_neox.layers.{layer}.attention."
        stored[prefix + "bias"] = torch.ones(positions, positions, dtype=torch.bool).tril()[None, None]
        stored[prefix + "masked_bias"] = torch.tensor(-1e9)
        stored[prefix + "rotary_emb.inv_freq"] = torch.ones(1)
    return stored


def quantised_type(checkpoint, tensor_name):
    """The GGUF type in which a tensor of the checkpoint is exact; None for float32."""
    suffix = next((suffix for suffix in QUANTISED.get(checkpoint, {}) if tensor_name.endswith(suffix)), None)
    return None if suffix is None else gguf.GGMLQuantizationType[QUANTISED[checkpoint][suffix]]


def round_to_quantised(checkpoint, tensor_name, tensor):
    kind = quantised_type(checkpoint, tensor_name)
    if kind is None:
        return tensor
    transposed = tensor_name.endswith(
        ("experts.gate_up_proj", "experts.down_proj")
    )  # [expert, in, out]; blocks run along `in`
    rows = tensor.transpose(-1, -2).contiguous() if transposed else tensor
    rows = torch.from_numpy(gguf.quants.dequantize(gguf.quants.quantize(rows.numpy(), kind), kind))
    return rows.transpose(-1, -2).contiguous() if transposed else rows


def on_disk(name, weights, config):
    """The tensors with names and shapes as in a published checkpoint; the reference changes them when it loads them."""
    stored = {}
    for tensor_name, tensor in weights.items():
        if config.model_type in SPLIT_EXPERTS and ".mlp.experts." in tensor_name:
            stored |= split_experts(tensor_name, tensor)
        elif config.model_type == "mixtral" and ".mlp." in tensor_name:
            stored |= mixtral_experts(tensor_name, tensor)
        elif config.model_type == "mimo_v2_flash":
            stored[tensor_name.replace(".sinks", ".attention_sink_bias")] = tensor
        elif config.model_type == "lfm3":
            stored[tensor_name.replace(".g_proj.", ".gate_proj.")] = tensor
        elif config.model_type == "gpt_neox":
            stored[re.sub("^lm_head", "embed_out", tensor_name)] = tensor
        else:
            stored[tensor_name] = tensor
    stored = {key: round_to_quantised(name, key, tensor.float().contiguous()) for key, tensor in stored.items()}
    if name in BUFFERS_KEPT:
        stored |= buffers(config)
    if name in WITHOUT_PREFIX:
        stored = {key.removeprefix("transformer."): tensor for key, tensor in stored.items()}
    return stored


def write_config(folder, config):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def without_none(config):
    return {
        key: without_none(value) if isinstance(value, dict) else value
        for key, value in config.items()
        if value is not None or key == "q_lora_rank"  # of which null is a value
    }


def make_checkpoint(folder, name, config, seed):
    """Writes config.json and model.safetensors with random weights in float32."""
    config = without_none(config)
    write_config(folder, config)
    model_class = reference_model.model_class(folder)
    loaded = transformers.AutoConfig.from_pretrained(folder)
    from_config = model_class._from_config if reference_model.is_gated(config) else model_class.from_config
    model = from_config(loaded)
    shapes = {key: tensor.shape for key, tensor in model.state_dict().items()}
    if loaded.tie_word_embeddings:
        del shapes["lm_head.weight"]
    generator = torch.Generator().manual_seed(seed)
    # These families add 1 to the weights of norms; Gemma also scales embeddings by sqrt(width).
    is_gemma = loaded.model_type in ("gemma", "gemma2", "gemma3_text")
    norm_offset = 1.0 if is_gemma or loaded.model_type in reference_model.GATE_BY_HEAD else 0.0
    weights = {key: random_weight(key, shapes[key], generator, norm_offset) for key in sorted(shapes)}
    if is_gemma:
        weights["model.embed_tokens.weight"] *= loaded.hidden_size**-0.5
    sharpen(weights, loaded)
    if name == "llama-sink":
        make_sink(weights, loaded)
    if "num_experts_per_tok" in config:
        experts = getattr(loaded, "num_local_experts", None) or loaded.num_experts
        separate_experts(weights, experts, loaded.num_experts_per_tok, loaded, generator)
    if loaded.model_type == "gpt_oss" and "swiglu_limit" not in config:  # so large that the published limit is reached
        for key in weights:
            weights[key] *= 5 if key.endswith("gate_up_proj") else 0.06 if key.endswith("down_proj") else 1
    safetensors.torch.save_file(on_disk(name, weights, loaded), folder / "model.safetensors", metadata={"format": "pt"})


def multimodal_name(name, config):
    """The name of a text model's tensor in the multimodal checkpoint."""
    if config["model_type"] == "gemma3":
        return f"language_model.{name}"
    return re.sub(r"^model\.", "model.language_model.", name)


def wrap_in_multimodal(text_folder, folder, config):
    """Writes the text checkpoint as the language model of the multimodal `config`.

    A few tensors stand for the parts that no program reads.
    """
    write_config(folder, without_none(config))
    weights = safetensors.torch.load_file(text_folder / "model.safetensors")
    wrapped = {multimodal_name(name, config): tensor for name, tensor in weights.items()}
    if config["model_type"] != "gemma3":
        wrapped["model.visual.patch_embed.proj.bias"] = torch.ones(8)
        wrapped["mtp.fc.weight"] = torch.ones(8, 8)  # for the prediction of several tokens
        safetensors.torch.save_file(wrapped, folder / "model.safetensors", metadata={"format": "pt"})
        return
    wrapped["vision_tower.vision_model.embeddings.patch_embedding.bias"] = torch.ones(8)
    wrapped["multi_modal_projector.mm_input_projection_weight"] = torch.ones(8, config["text_config"]["hidden_size"])
    safetensors.torch.save_file(wrapped, folder / "model.safetensors", metadata={"format": "pt"})


def same_text_model(text_folder, folder, config):
    """Checks that the text checkpoint made again is the one inside the checkpoint of text and images."""
    wrapped = safetensors.torch.load_file(folder / "model.safetensors")
    for name, tensor in safetensors.torch.load_file(text_folder / "model.safetensors").items():
        assert torch.equal(tensor, wrapped[multimodal_name(name, config)]), name
