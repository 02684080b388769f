"""Small random models of many families of transformers."""

from __future__ import annotations

import torch
import transformers

SMALL = dict(vocab_size=97, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, head_dim=8, max_position_embeddings=256, pad_token_id=0, bos_token_id=1,
             eos_token_id=2)
EXPERTS = dict(num_experts=4, num_local_experts=4, n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=16)

# Name of the configuration, and what it takes beside or instead of SMALL.
FAMILIES: dict[str, dict[str, object]] = {
    "LlamaConfig": {},
    "MistralConfig": dict(sliding_window=9),
    "Qwen2Config": {},
    "Qwen3Config": {},
    "Qwen3MoeConfig": dict(EXPERTS),
    "MixtralConfig": dict(EXPERTS, sliding_window=None),
    "GemmaConfig": {},
    "Gemma2Config": dict(sliding_window=9, attn_logit_softcapping=5.0, query_pre_attn_scalar=8),
    "Gemma3TextConfig": dict(sliding_window=9, query_pre_attn_scalar=8,
                             layer_types=["sliding_attention", "full_attention"]),
    "Phi3Config": dict(rope_parameters=dict(rope_type="default", rope_theta=1e4, partial_rotary_factor=1.0)),
    "OlmoConfig": {},
    "Olmo2Config": {},
    "Olmo3Config": dict(sliding_window=9, layer_types=["sliding_attention", "full_attention"]),
    "GptOssConfig": dict(EXPERTS, sliding_window=9, layer_types=["sliding_attention", "full_attention"]),
    "GPT2Config": dict(n_embd=32, n_head=4, n_layer=2, n_positions=256),
    "GPTNeoXConfig": {},
    "OPTConfig": dict(ffn_dim=48, word_embed_proj_dim=32),
    "PhiConfig": {},
    "CohereConfig": {},
    "Cohere2Config": dict(sliding_window=9, layer_types=["sliding_attention", "full_attention"]),
    "StableLmConfig": {},
    "Starcoder2Config": dict(sliding_window=9),
    "GraniteConfig": dict(attention_multiplier=0.3),
    "Glm4Config": {},
    "SmolLM3Config": {},
    "NemotronConfig": {},
    "Exaone4Config": dict(sliding_window=9, layer_types=["sliding_attention", "full_attention"]),
    "Ernie4_5Config": {},
    "HeliumConfig": {},
    "ArceeConfig": {},
    "ApertusConfig": {},
    "SeedOssConfig": {},
    "BitNetConfig": {},
    "HunYuanDenseV1Config": {},
    "Lfm2Config": dict(layer_types=["conv", "full_attention"]),
    "DeepseekV3Config": dict(EXPERTS, head_dim=4, num_key_value_heads=4, kv_lora_rank=16, q_lora_rank=12,
                             qk_rope_head_dim=4, qk_nope_head_dim=8, v_head_dim=6, n_group=1, topk_group=1,
                             first_k_dense_replace=1),
    "Llama4TextConfig": dict(EXPERTS, attention_chunk_size=8, intermediate_size_mlp=48, interleave_moe_layer_step=2,
                             layer_types=["chunked_attention", "full_attention"]),
    "Qwen3NextConfig": dict(EXPERTS, layer_types=["linear_attention", "full_attention"], linear_num_key_heads=2,
                            linear_num_value_heads=4, linear_key_head_dim=8, linear_value_head_dim=8,
                            shared_expert_intermediate_size=16, partial_rotary_factor=0.5),
}


def small_model(name: str, dtype: torch.dtype = torch.float64, seed: int = 0) -> torch.nn.Module:
    torch.manual_seed(seed)
    config = getattr(transformers, name)(**{**SMALL, **FAMILIES[name]})
    config._experts_implementation = "eager"  # grouped products do not take float64
    model = transformers.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():  # large enough weights that attention is not uniform
        for parameter_name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                parameter.normal_(std=0.35 if "embed" in parameter_name else 2 / parameter.shape[-1] ** 0.5)
            elif "sink" in parameter_name:
                parameter.normal_()
    return model.to(dtype).eval()
