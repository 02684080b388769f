"""Models of the reference whose attention is part of the model's own code, where no attention function can be set.

Their queries, keys and values are computed a second time from the input of the attention layer, with the layer's own
methods. In float64, the attention output computed from them is compared with the input of the layer's output
projection.
"""

import torch
from transformers.models.falcon import modeling_falcon
from transformers.models.gptj import modeling_gptj

import attention_statistics

FAMILIES = ("bloom", "falcon", "gpt_neo", "gptj", "mpt")
LAYERS = {
    "bloom": "BloomAttention",
    "falcon": "FalconAttention",
    "gpt_neo": "GPTNeoSelfAttention",
    "gptj": "GPTJAttention",
    "mpt": "MptAttention",
}
OUTPUTS = {"bloom": "dense", "falcon": "dense", "gpt_neo": "out_proj", "gptj": "out_proj", "mpt": "out_proj"}


def implementation(model_config, fused):
    """The reference's name of the attention to run.

    Its eager Falcon adds an ALiBi bias twice, to the mask and to the scores, so only the fused attention is right.
    """
    if model_config["model_type"] == "falcon" and (fused or model_config.get("alibi")):
        return "sdpa"
    return "eager"


def bloom(module, hidden_states, arguments):
    query, key, value = module._reshape(module.query_key_value(hidden_states))
    return query, key, value, module.inv_norm_factor, arguments["alibi"][:, 0]


def falcon(module, hidden_states, arguments):
    query, key, value = (
        states.transpose(1, 2) for states in module._split_heads(module.query_key_value(hidden_states))
    )
    alibi = arguments["alibi"]
    if alibi is None:
        query, key = modeling_falcon.apply_rotary_pos_emb(query, key, *arguments["position_embeddings"])
    else:
        alibi = alibi.reshape(module.num_heads, -1) * module.inv_norm_factor
    if module.new_decoder_architecture:  # this architecture repeats the keys for each group of heads
        groups = module.num_heads // module.num_kv_heads
        key, value = key[:, ::groups], value[:, ::groups]
    return query, key, value, module.inv_norm_factor, alibi


def mpt(module, hidden_states, arguments):
    mixed = module.Wqkv(hidden_states)
    if module.clip_qkv:
        mixed = mixed.clamp(min=-module.clip_qkv, max=module.clip_qkv)
    query, key, value = (states.unflatten(-1, (module.n_heads, -1)).transpose(1, 2) for states in mixed.chunk(3, dim=2))
    return query, key, value, module.softmax_scale, arguments["position_bias"][:, 0, -hidden_states.shape[1] :]


def gpt_neo(module, hidden_states, arguments):
    query, key, value = (
        module._split_heads(projection(hidden_states), module.num_heads, module.head_dim)
        for projection in (module.q_proj, module.k_proj, module.v_proj)
    )
    return query, key, value, 1.0, None


def gptj(module, hidden_states, arguments):
    query, key, value = (
        projection(hidden_states).unflatten(-1, (module.num_attention_heads, module.head_dim))
        for projection in (module.q_proj, module.k_proj, module.v_proj)
    )
    table = module.embed_positions[arguments["position_ids"]].to(key.dtype)
    sine, cosine = table.chunk(2, dim=-1)
    rotated = module.rotary_dim
    query, key = (
        torch.cat([modeling_gptj.apply_rotary_pos_emb(x[..., :rotated], sine, cosine), x[..., rotated:]], dim=-1)
        for x in (query, key)
    )
    return query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2), module.head_dim**-0.5, None


PROJECT = {"bloom": bloom, "falcon": falcon, "gpt_neo": gpt_neo, "gptj": gptj, "mpt": mpt}


def use_exact_tables(model):
    """Replaces GPT-J's table of sines, whose frequencies are in float32 whatever the dtype of the model."""
    for module in model.modules():
        if type(module).__name__ == LAYERS["gptj"]:
            default = torch.get_default_dtype()
            torch.set_default_dtype(torch.float64)
            module.embed_positions = modeling_gptj.create_sinusoidal_positions(module.max_positions, module.rotary_dim)
            torch.set_default_dtype(default)


def visible_keys(module, length):
    """[T, T]: all earlier keys, or those that the module's own mask lets through."""
    if getattr(module, "attention_type", None) == "local":
        return module.bias[0, 0, :length, :length]
    return torch.ones(length, length, dtype=torch.bool).tril()


def record(model, family, recorder, check):
    """Lets `recorder` record every attention layer while `model` runs."""
    recorded = []

    def before(module, positional, arguments):
        hidden_states = positional[0] if positional else arguments["hidden_states"]
        query, key, value, scale, bias = PROJECT[family](module, hidden_states, arguments)
        visible = visible_keys(module, query.shape[2])
        recorder.record(query[0], key[0], value[0], visible, scale, bias=bias)
        if check:
            weights = attention_statistics.attention_weights(query[0], key[0], visible, scale, bias=bias)
            groups = query.shape[1] // value.shape[1]
            recorded.append((weights @ value[0].repeat_interleave(groups, dim=0)).transpose(0, 1).flatten(1))

    def output(module, positional):
        torch.testing.assert_close(recorded.pop(), positional[0][0], rtol=1e-9, atol=1e-12)

    for module in model.modules():
        if type(module).__name__ == LAYERS[family]:
            module.register_forward_pre_hook(before, with_kwargs=True)
            if check:
                getattr(module, OUTPUTS[family]).register_forward_pre_hook(output)
