"""config.json of every golden checkpoint: small checkpoints of each family, with its special features.

Add new entries at the end, because the seed of a checkpoint is its position.
"""

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
    "bos_token_id": 1,
    "eos_token_id": 2,
    "torch_dtype": "float32",
}
LLAMA = BASE | {"model_type": "llama", "architectures": ["LlamaForCausalLM"]}
QWEN2 = BASE | {
    "model_type": "qwen2",
    "architectures": ["Qwen2ForCausalLM"],
    "head_dim": None,
    "hidden_size": 48,
    "rms_norm_eps": 1e-3,
}
QWEN2_WINDOW = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "use_sliding_window": True,
    "sliding_window": 13,
    "max_window_layers": 1,
}
QWEN3 = BASE | {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "rope_theta": 1000000.0}
GATED = QWEN3 | {
    "use_qk_norm": True,
    "qkv_bias": False,
    "headwise_attn_output_gate": False,
    "elementwise_attn_output_gate": False,
}

# rope settings whose frequencies differ from the plain ones well within LENGTH positions
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
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

# The scale of the scores is not 1/sqrt(head_dim). The caps are so small that they change most scores and logits.
GEMMA = BASE | {
    "hidden_act": None,
    "hidden_activation": "gelu_pytorch_tanh",
    "tie_word_embeddings": True,
    "sliding_window": 13,
}
GEMMA2 = GEMMA | {
    "model_type": "gemma2",
    "architectures": ["Gemma2ForCausalLM"],
    "num_hidden_layers": 3,
    "query_pre_attn_scalar": 4,
    "attn_logit_softcapping": 3.0,
    "final_logit_softcapping": 1.5,
}
GEMMA3 = GEMMA | {
    "model_type": "gemma3_text",
    "architectures": ["Gemma3ForCausalLM"],
    "num_hidden_layers": 4,
    "query_pre_attn_scalar": 64,
    "rope_theta": None,
}
GEMMA3_FLAT = {
    "rope_theta": 2000.0,
    "rope_local_base_freq": 300.0,
    "rope_scaling": {"rope_type": "linear", "factor": 2.5},
    "sliding_window_pattern": 3,
}
GEMMA3_NESTED = {
    "rope_parameters": {
        "full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 5000.0},
        "sliding_attention": {"rope_type": "default", "rope_theta": 100.0},
    },
    "layer_types": ["full_attention", "sliding_attention", "sliding_attention", "full_attention"],
}

GPT2 = {
    "model_type": "gpt2",
    "architectures": ["GPT2LMHeadModel"],
    "n_embd": 32,
    "n_head": 4,
    "n_layer": 3,
    "n_inner": 48,
    "n_positions": 96,
    "n_ctx": 96,
    "vocab_size": 64,
    "activation_function": "gelu_new",
    "layer_norm_epsilon": 1e-5,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "torch_dtype": "float32",
}

PLAIN_HEADS = {"num_key_value_heads": None, "head_dim": None}  # as many key heads as query heads, of width / heads
GPT_NEOX = (
    BASE
    | PLAIN_HEADS
    | {
        "model_type": "gpt_neox",
        "architectures": ["GPTNeoXForCausalLM"],
        "hidden_act": "gelu",
        "rms_norm_eps": None,
        "layer_norm_eps": 1e-5,
        "max_position_embeddings": 96,
        "rope_theta": None,
        "rotary_emb_base": 10000,
        "rotary_pct": 0.25,
        "use_parallel_residual": True,
    }
)

# The reference uses the short factors up to original_max_position_embeddings and the long factors beyond it.
PHI3 = BASE | {
    "model_type": "phi3",
    "architectures": ["Phi3ForCausalLM"],
    "hidden_size": 48,
    "head_dim": None,
    "pad_token_id": 0,
    "original_max_position_embeddings": 128,
}
LONGROPE = {
    "partial_rotary_factor": 0.5,
    "max_position_embeddings": 192,
    "rope_scaling": {"type": "longrope", "short_factor": [1.0, 1.25, 2.0], "long_factor": [1.5, 2.5, 6.0]},
}

EXPERTS = {"num_experts_per_tok": 2, "output_router_logits": False, "router_aux_loss_coef": 0.001}
QWEN3_MOE = (
    BASE
    | EXPERTS
    | {
        "model_type": "qwen3_moe",
        "architectures": ["Qwen3MoeForCausalLM"],
        "num_experts": 6,
        "moe_intermediate_size": 16,
        "norm_topk_prob": True,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
    }
)
# One layer that is dense because of decoder_sparse_step, one because of mlp_only_layers, and one with experts.
QWEN3_MOE_MIXED = {"norm_topk_prob": False, "num_hidden_layers": 4, "decoder_sparse_step": 2, "mlp_only_layers": [1]}
GPT_OSS = (
    BASE
    | EXPERTS
    | {
        "model_type": "gpt_oss",
        "architectures": ["GptOssForCausalLM"],
        "num_hidden_layers": 3,
        "num_local_experts": 5,
        "intermediate_size": 16,
        "swiglu_limit": 1.0,
        "attention_bias": True,
        "sliding_window": 13,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        "rope_theta": 500.0,
        "rope_scaling": {
            "rope_type": "yarn",
            "factor": 4.0,
            "beta_fast": 2.0,
            "beta_slow": 1.0,
            "truncate": False,
            "original_max_position_embeddings": 32,
        },
    }
)

OLMO2 = BASE | {"model_type": "olmo2", "architectures": ["Olmo2ForCausalLM"], "head_dim": None, "num_hidden_layers": 3}
STABLELM = BASE | {
    "model_type": "stablelm",
    "architectures": ["StableLmForCausalLM"],
    "head_dim": None,
    "rms_norm_eps": None,
    "layer_norm_eps": 1e-5,
    "partial_rotary_factor": 0.5,
}
STABLELM_2 = {"use_qkv_bias": True, "qk_layernorm": True, "use_parallel_residual": True}

FALCON = (
    BASE
    | PLAIN_HEADS
    | {
        "model_type": "falcon",
        "architectures": ["FalconForCausalLM"],
        "hidden_act": None,
        "intermediate_size": None,
        "ffn_hidden_size": 48,
        "rms_norm_eps": None,
        "layer_norm_epsilon": 1e-5,
        "tie_word_embeddings": None,
        "multi_query": True,
        "parallel_attn": True,
        "new_decoder_architecture": False,
        "alibi": False,
        "bias": False,
    }
)
FALCON_GROUPS = {"new_decoder_architecture": True, "num_kv_heads": 2}
FALCON_ALIBI = {"multi_query": False, "parallel_attn": False, "alibi": True, "bias": True}

# Six heads: tests the slopes for a number of heads that is not a power of two.
BLOOM = {
    "model_type": "bloom",
    "architectures": ["BloomForCausalLM"],
    "hidden_size": 36,
    "n_head": 6,
    "n_layer": 2,
    "vocab_size": 64,
    "layer_norm_epsilon": 1e-5,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "torch_dtype": "float32",
}
MPT = {
    "model_type": "mpt",
    "architectures": ["MptForCausalLM"],
    "d_model": 36,
    "n_heads": 6,
    "n_layers": 2,
    "expansion_ratio": 4,
    "max_seq_len": 128,
    "vocab_size": 64,
    "no_bias": True,
    "learned_pos_emb": True,
    "attn_config": {"alibi": True, "alibi_bias_max": 8},
    "bos_token_id": 1,
    "eos_token_id": 2,
    "torch_dtype": "float32",
}

# A config that a GGUF file can express. GGUF files hold neither the limit of the experts' activation (here the
# published 7, which the config may leave out) nor how yarn rounds. Sizes are multiples of 32, for blocks of 32.
GPT_OSS_MXFP4 = GPT_OSS | {
    "swiglu_limit": None,
    "intermediate_size": 32,
    "num_local_experts": 3,
    "num_hidden_layers": 2,
    "layer_types": None,
}
GEMMA = BASE | {
    "model_type": "gemma",
    "architectures": ["GemmaForCausalLM"],
    "hidden_act": "gelu",  # in this family the tanh form
    "tie_word_embeddings": True,
}
MIXTRAL = BASE | EXPERTS | {"model_type": "mixtral", "architectures": ["MixtralForCausalLM"], "num_local_experts": 5}
PHI = (
    BASE
    | PLAIN_HEADS
    | {
        "model_type": "phi",
        "architectures": ["PhiForCausalLM"],
        "hidden_act": "gelu_new",
        "rms_norm_eps": None,
        "layer_norm_eps": 1e-5,
        "partial_rotary_factor": 0.5,
    }
)
OPT = {
    "model_type": "opt",
    "architectures": ["OPTForCausalLM"],
    "hidden_size": 32,
    "ffn_dim": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "max_position_embeddings": 96,
    "word_embed_proj_dim": 32,
    "activation_function": "relu",
    "vocab_size": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "torch_dtype": "float32",
}
GPT_NEO = {
    "model_type": "gpt_neo",
    "architectures": ["GPTNeoForCausalLM"],
    "hidden_size": 32,
    "num_layers": 4,
    "num_heads": 4,
    "attention_types": [[["global", "local"], 2]],
    "window_size": 13,
    "max_position_embeddings": 96,
    "activation_function": "gelu_new",
    "vocab_size": 64,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "torch_dtype": "float32",
}
GPTJ = {
    "model_type": "gptj",
    "architectures": ["GPTJForCausalLM"],
    "n_embd": 48,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 96,
    "rotary_dim": 8,
    "vocab_size": 64,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "torch_dtype": "float32",
}
GRANITE = BASE | {
    "model_type": "granite",
    "architectures": ["GraniteForCausalLM"],
    "head_dim": None,
    "embedding_multiplier": 3.0,
    "attention_multiplier": 0.25,
    "residual_multiplier": 0.625,
    "logits_scaling": 4.0,
}
OLMO3 = OLMO2 | {
    "model_type": "olmo3",
    "architectures": ["Olmo3ForCausalLM"],
    "num_hidden_layers": 4,
    "sliding_window": 13,
    "rope_theta": 500000.0,  # with another base, versions of the reference disagree about layers with a window
    "rope_scaling": {
        "rope_type": "yarn",
        "factor": 4.0,
        "original_max_position_embeddings": 32,
        "beta_fast": 2.0,
        "beta_slow": 1.0,
        "attention_factor": 1.1386294361119891,  # 0.1 ln(4) + 1, as in the published models: GGUF files leave it out
    },
}
SMOLLM3 = BASE | {
    "model_type": "smollm3",
    "architectures": ["SmolLM3ForCausalLM"],
    "head_dim": None,
    "num_hidden_layers": 4,
    "pad_token_id": 0,
}
STARCODER2 = BASE | {
    "model_type": "starcoder2",
    "architectures": ["Starcoder2ForCausalLM"],
    "head_dim": None,
    "hidden_act": "gelu_pytorch_tanh",
    "rms_norm_eps": None,
    "norm_epsilon": 1e-5,
    "sliding_window": 13,
    "tie_word_embeddings": True,
}
SEED_OSS = BASE | {"model_type": "seed_oss", "architectures": ["SeedOssForCausalLM"], "attention_bias": True}
HUNYUAN = BASE | {
    "model_type": "hunyuan_v1_dense",
    "architectures": ["HunYuanDenseV1ForCausalLM"],
    "rope_scaling": {"type": "dynamic", "alpha": 50.0, "factor": 1.0, "beta_fast": 32, "beta_slow": 1},
}
GLM4 = BASE | {
    "model_type": "glm4",
    "architectures": ["Glm4ForCausalLM"],
    "pad_token_id": 0,
    "attention_bias": True,
    "partial_rotary_factor": 0.5,
}
EXAONE4 = BASE | {
    "model_type": "exaone4",
    "architectures": ["Exaone4ForCausalLM"],
    "num_hidden_layers": 4,
    "sliding_window": 13,
    "sliding_window_pattern": 2,
}
COHERE2 = BASE | {
    "model_type": "cohere2",
    "architectures": ["Cohere2ForCausalLM"],
    "head_dim": None,
    "num_hidden_layers": 4,
    "rms_norm_eps": None,
    "layer_norm_eps": 1e-5,
    "logit_scale": 0.25,
    "sliding_window": 13,
    "sliding_window_pattern": 4,
    "tie_word_embeddings": True,
}
QWEN2_MOE = (
    QWEN2
    | EXPERTS
    | {
        "model_type": "qwen2_moe",
        "architectures": ["Qwen2MoeForCausalLM"],
        "num_experts": 6,
        "moe_intermediate_size": 16,
        "shared_expert_intermediate_size": 24,
        "norm_topk_prob": False,
    }
)
ERNIE4_5 = BASE | {"model_type": "ernie4_5", "architectures": ["Ernie4_5ForCausalLM"], "use_bias": True}

LLAMA_QUANTISED = LLAMA | {"intermediate_size": 64}

# Every second layer has attention. The gated delta rule of the others has two value heads for each key head.
QWEN3_NEXT = BASE | {
    "model_type": "qwen3_next",
    "architectures": ["Qwen3NextForCausalLM"],
    "num_hidden_layers": 4,
    "full_attention_interval": 2,
    "partial_rotary_factor": 0.25,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 6,
    "linear_conv_kernel_dim": 4,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
    "shared_expert_intermediate_size": 24,
    "norm_topk_prob": True,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [1],
}
LINEAR_LAYERS = ["linear_attention", "full_attention", "linear_attention"]
QWEN3_5 = BASE | {
    "model_type": "qwen3_5_text",
    "architectures": ["Qwen3_5ForCausalLM"],
    "num_hidden_layers": 3,
    "layer_types": LINEAR_LAYERS,
    "attn_output_gate": True,
    "mamba_ssm_dtype": "float32",
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 6,
    "rope_theta": None,
    "rope_parameters": {
        "rope_type": "default",
        "rope_theta": 10000.0,
        "partial_rotary_factor": 0.5,
        "mrope_section": [2, 1, 1],
        "mrope_interleaved": True,
    },
}
QWEN3_5_MOE = QWEN3_5 | {
    "model_type": "qwen3_5_moe_text",
    "architectures": ["Qwen3_5MoeForCausalLM"],
    "intermediate_size": None,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
    "shared_expert_intermediate_size": 24,
}
TEXT_PART = {"architectures": None, "torch_dtype": None}
VISION_PART = {"model_type": "qwen3_5", "hidden_size": 8, "depth": 1}

# Keys of 20 dimensions, of which 8 are rotated, and values of 16.
DEEPSEEK = BASE | {
    "num_key_value_heads": 4,
    "num_hidden_layers": 3,
    "head_dim": None,
    "qk_nope_head_dim": 12,
    "qk_rope_head_dim": 8,
    "v_head_dim": 16,
    "kv_lora_rank": 24,
    "q_lora_rank": None,
    "first_k_dense_replace": 1,
    "moe_layer_freq": 1,
    "n_routed_experts": 8,
    "n_shared_experts": 2,
    "num_experts_per_tok": 3,
    "moe_intermediate_size": 12,
}
DEEPSEEK_V2 = DEEPSEEK | {
    "model_type": "deepseek_v2",
    "architectures": ["DeepseekV2ForCausalLM"],
    "topk_method": "greedy",
    "norm_topk_prob": False,
    "scoring_func": "softmax",
}
DEEPSEEK_YARN = YARN | {"mscale": 0.707, "mscale_all_dim": 0.707}
DEEPSEEK_V2_GROUPS = DEEPSEEK_V2 | {
    "q_lora_rank": 20,
    "topk_method": "group_limited_greedy",
    "n_group": 4,
    "topk_group": 2,
    "routed_scaling_factor": 2.5,
    "rope_scaling": DEEPSEEK_YARN,
}
DEEPSEEK_V3 = DEEPSEEK | {
    "model_type": "deepseek_v3",
    "architectures": ["DeepseekV3ForCausalLM"],
    "q_lora_rank": 20,
    "v_head_dim": 24,
    "topk_method": "noaux_tc",
    "norm_topk_prob": True,
    "scoring_func": "sigmoid",
    "n_shared_experts": 1,
    "n_group": 4,
    "topk_group": 2,
    "routed_scaling_factor": 1.5,
    "rope_scaling": DEEPSEEK_YARN | {"mscale": 1.0, "mscale_all_dim": 1.0},
    "num_nextn_predict_layers": 1,
}
DEEPSEEK_V3_DIRECT = DEEPSEEK_V3 | {
    "q_lora_rank": None,
    "v_head_dim": 16,
    "attention_bias": True,
    "norm_topk_prob": False,
    "n_group": 1,
    "topk_group": 1,
    "rope_scaling": None,
}

# Layers with a window have a rotary embedding of their own base; of the others one does not rotate. The window and the
# kinds of the layers are those of a file that lists neither: each fourth layer is global.
GRANITE_SWA = GRANITE | {
    "model_type": "granite_swa",
    "architectures": ["GraniteSWAForCausalLM"],
    "num_hidden_layers": 6,
    "tie_word_embeddings": True,
    "sliding_window": 13,
    "layer_rope_theta": [500.0, 10000.0, 10000.0, 0, 0, 10000.0],
}
GRANITEMOE_SWA = (
    GRANITE
    | EXPERTS
    | {
        "model_type": "granitemoe_swa",
        "architectures": ["GraniteMoeSWAForCausalLM"],
        "num_hidden_layers": 3,
        "num_local_experts": 5,
        "intermediate_size": 16,
        "shared_intermediate_size": 24,
        "sliding_window": 13,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
    }
)
AFMOE = BASE | {
    "model_type": "afmoe",
    "architectures": ["AfmoeForCausalLM"],
    "num_hidden_layers": 5,
    "num_dense_layers": 1,
    "num_experts": 8,
    "num_experts_per_tok": 3,
    "num_shared_experts": 2,
    "moe_intermediate_size": 12,
    "route_scale": 1.5,
    "mup_enabled": True,
    "sliding_window": 13,
}

# Short convolutions beside attention. The stated width of the MLP is adjusted to 64.
LFM2 = BASE | {
    "model_type": "lfm2",
    "architectures": ["Lfm2ForCausalLM"],
    "head_dim": None,
    "hidden_act": None,
    "rms_norm_eps": None,
    "norm_eps": 1e-5,
    "num_hidden_layers": 4,
    "layer_types": ["conv", "full_attention", "conv", "full_attention"],
    "conv_L_cache": 3,
    "intermediate_size": None,
    "block_ff_dim": 60,
    "block_multiple_of": 16,
    "block_ffn_dim_multiplier": 1.3,
}
# The kinds of the layers and their rotary embeddings are those of a file that lists neither.
LFM3 = BASE | {
    "model_type": "lfm3",
    "architectures": ["Lfm3ForCausalLM"],
    "hidden_act": None,
    "rms_norm_eps": None,
    "norm_eps": 1e-5,
    "rope_theta": None,
    "num_hidden_layers": 6,
    "conv_L_cache": 5,
    "conv_bias": True,
    "sliding_window": 13,
    "pad_token_id": 0,
}

# Layers with a window have twice as many KV heads, sinks, and a rotary embedding of their own. The kinds of the layers,
# which of them have experts, and the factor on the values are those of a file that lists none.
MIMO_V2_FLASH = BASE | {
    "model_type": "mimo_v2_flash",
    "architectures": ["MiMoV2FlashForCausalLM"],
    "num_hidden_layers": 6,
    "head_dim": 24,
    "v_head_dim": 16,
    "attention_bias": True,
    "sliding_window": 13,
    "rope_theta": None,
    "rope_parameters": {
        "full_attention": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.334},
        "sliding_attention": {"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.5},
    },
    "n_routed_experts": 8,
    "num_experts_per_tok": 3,
    "moe_intermediate_size": 12,
    "n_group": 4,
    "topk_group": 2,
    "routed_scaling_factor": 1.5,
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
    "gemma2": GEMMA2,
    "gemma3": GEMMA3 | GEMMA3_FLAT,
    "gemma3-rope-by-type": GEMMA3 | GEMMA3_NESTED,
    "gpt2": GPT2,
    "gpt2-inverse-layer": GPT2 | {"scale_attn_by_inverse_layer_idx": True},
    "gpt-neox": GPT_NEOX,
    "gpt-neox-sequential-tied": GPT_NEOX
    | {"use_parallel_residual": False, "rotary_pct": 0.5, "tie_word_embeddings": True},
    "phi3-window": PHI3 | {"sliding_window": 13},
    "phi3-longrope-long": PHI3 | LONGROPE | {"original_max_position_embeddings": 48},
    "phi3-longrope-short": PHI3 | LONGROPE | {"original_max_position_embeddings": 96},
    "qwen3-moe": QWEN3_MOE,
    "qwen3-moe-mixed": QWEN3_MOE | QWEN3_MOE_MIXED,
    "gpt-oss": GPT_OSS,
    "olmo2": OLMO2,
    "stablelm": STABLELM,
    "stablelm-2": STABLELM | STABLELM_2,
    "falcon": FALCON,
    "falcon-groups": FALCON | FALCON_GROUPS,
    "falcon-alibi": FALCON | FALCON_ALIBI,
    "bloom": BLOOM,
    "mpt": MPT,
    # A model of text and images. Its text part is measured. The tensors are those of a text checkpoint, with a prefix.
    "gemma3-multimodal": {
        "model_type": "gemma3",
        "architectures": ["Gemma3ForConditionalGeneration"],
        "text_config": GEMMA3 | GEMMA3_FLAT | {"num_hidden_layers": 3, "architectures": None, "torch_dtype": None},
        "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 8, "num_hidden_layers": 1},
        "image_token_index": 0,
        "mm_tokens_per_image": 4,
        "torch_dtype": "float32",
    },
    "llama-quantised": LLAMA_QUANTISED,
    "gpt-oss-mxfp4": GPT_OSS_MXFP4,
    "llama-sink": LLAMA,  # the first token is a sink with almost no value: random_checkpoint.make_sink
    "gemma": GEMMA,
    "mixtral": MIXTRAL,
    "phi": PHI,
    "opt": OPT,
    "gpt-neo": GPT_NEO,
    "gptj": GPTJ,
    "granite": GRANITE,
    "olmo3": OLMO3,
    "smollm3": SMOLLM3,
    "starcoder2": STARCODER2,
    "seed-oss": SEED_OSS,
    "hunyuan-v1-dense": HUNYUAN,
    "glm4": GLM4,
    "exaone4": EXAONE4,
    "cohere2": COHERE2,
    "ernie4-5": ERNIE4_5,
    "qwen2-moe": QWEN2_MOE,
    "qwen3-next": QWEN3_NEXT,
    "qwen3-5": QWEN3_5,
    "qwen3-5-moe": QWEN3_5_MOE,
    "qwen3-5-multimodal": {
        "model_type": "qwen3_5",
        "architectures": ["Qwen3_5ForConditionalGeneration"],
        "text_config": QWEN3_5 | TEXT_PART | {"attention_bias": True},
        "vision_config": VISION_PART,
        "image_token_id": 60,
    },
    "qwen3-5-moe-multimodal": {
        "model_type": "qwen3_5_moe",
        "architectures": ["Qwen3_5MoeForConditionalGeneration"],
        "text_config": QWEN3_5_MOE | TEXT_PART,
        "vision_config": VISION_PART | {"model_type": "qwen3_5_moe"},
        "image_token_id": 60,
    },
    "qwen3-next-all-experts": QWEN3_NEXT | {"mlp_only_layers": []},
    "deepseek-v2": DEEPSEEK_V2,
    "deepseek-v2-groups": DEEPSEEK_V2_GROUPS,
    "deepseek-v3": DEEPSEEK_V3,
    "deepseek-v3-direct": DEEPSEEK_V3_DIRECT,
    "granite-swa": GRANITE_SWA,
    "granitemoe-swa": GRANITEMOE_SWA,
    "afmoe": AFMOE,
    "lfm2": LFM2,
    "lfm3": LFM3,
    "mimo-v2-flash": MIMO_V2_FLASH,
}

# Weights that are exact in these GGUF types, by the end of their names. Covers every type to which the GGUF writer can
# quantise.
QUANTISED = {
    "llama-quantised": {
        "embed_tokens.weight": "F16",
        "lm_head.weight": "BF16",
        "q_proj.weight": "Q8_0",
        "k_proj.weight": "Q8_0",
        "v_proj.weight": "Q4_0",
        "o_proj.weight": "Q4_1",
        "gate_proj.weight": "Q5_0",
        "up_proj.weight": "Q5_1",
        "down_proj.weight": "Q8_0",
    },
    "gpt-oss-mxfp4": {"experts.gate_up_proj": "MXFP4", "experts.down_proj": "MXFP4", "self_attn.o_proj.weight": "Q8_0"},
}

# Published checkpoints of these families lack the prefix that the reference gives to their tensors.
WITHOUT_PREFIX = ("gpt2-inverse-layer", "bloom")
# These hold constants that older published checkpoints also hold: masks and frequencies.
BUFFERS_KEPT = ("gpt2-inverse-layer", "gpt-neox")
