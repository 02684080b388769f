// Written by tests/models/configs/make_reference_keys.py from the source of transformers 5.23.0 and 4.57.1.
// Do not edit it by hand.
#include "models/families/reference_keys.h"

namespace gainlens::models::reference {

// By every configuration class, and by code that all models share.
const std::string_view shared_keys = R"(
_attn_implementation _attn_implementation_internal _attn_was_changed _auto_class _check_received_keys _commit_hash
_configuration_file _decode_special_floats _dict_from_json_file _encode_special_floats _experts_implementation
_experts_implementation_internal _from_auto _from_pipeline _get_config_dict _get_global_generation_defaults
_heterogeneity_spec _is_quantized _name_or_path _output_attentions _post_init_done _pre_quantization_dtype
_rope_type_labels _set_token_in_kwargs add_cross_attention=false alibi allow_global_per_layer_attribute_access
architectures attention_chunk_size attention_dropout attn_implementation attribute_map base_config_key=""
base_model_ep_plan base_model_fsdp_plan base_model_pp_plan base_model_tp_plan bos_token_id cache_dir
chain_hidden_post_norm chunk_size_feed_forward=0 classifier_dropout commit_message cross_attention_hidden_size decoder
decoder_start_token_id default_config_fields default_rope_type default_theta device_map device_mesh disable_mmap
disk_offload_folder distributed_config dtype dtype_plan embed_dim eos_token_id experts_implementation
extra_config_files extra_files finetuning_task force_download from_dict from_json_file from_pretrained
from_text_audio_configs from_text_vision_configs fusion_config generator get_config_dict gguf_file
gradient_checkpointing has_no_defaults_at_init=false head_dim hf_quantizer hidden_dropout hidden_size id2label
ignore_keys_at_rope_validation ignore_metadata_errors ignore_mismatched_sizes init_std initializer_factor
initializer_range is_causal is_custom_code is_decoder=false is_encoder_decoder=false is_heterogeneous is_quantized
is_remote_code kv_sharing_modes label2id layer_types local_files_only logits_mup_width_multiplier
max_position_embeddings model_type="" mtp_hidden_states_first name_or_path num_attention_heads num_heads
num_hidden_layers num_kv_shared_layers num_labels num_mtp_layers number_of_conv_states offload_buffers organization
original_max_position_embeddings output_attentions=false output_hidden_states=false pad_token_id partial_rotary_factor
per_layer_attributes per_layer_config prefix pretrained_model_name_or_path problem_type proxies pruned_heads
quantization_config register_for_auto_class repo_id repo_path_or_name repo_url resume_download return_dict=true
return_unused_kwargs revision rms_norm_eps rope_parameters rope_scaling rope_theta save_jinja_files sep_token_id
serialize_explicit_per_layer_config setter sharded_metadata skip sliding_window sub_configs sub_configs_defaults
subfolder task_specific_params text_config text_encoder tf_legacy_loss tie_encoder_decoder=false
tie_word_embeddings=true token token_classification_bias tokenizer_class torch_dtype torchscript=false
transformers_version transformers_weights trust_remote_code unpadded_vocab_size use_alibi use_auth_token use_bfloat16
use_return_dict validate vision_config vocab_size weight_mapping weights_only
)";

const std::vector<FamilyKeys>& family_keys() {
  static const std::vector<FamilyKeys> table = {
      {"afmoe", R"(
attention_bias=false attention_dropout=0.0 base_config_key global_attn_every_n_layers=4 head_dim=128 hidden_act="silu"
hidden_size=2048 initializer_range=0.02 intermediate_size=6144 keys_to_ignore_at_inference
max_position_embeddings=16384 model_type moe_intermediate_size=1408 mup_enabled=false num_attention_heads=16
num_dense_layers=1 num_experts=64 num_experts_per_tok=6 num_hidden_layers=32 num_key_value_heads num_shared_experts=2
output_attentions output_router_logits=false rms_norm_eps=1e-05 route_scale=1.0 sliding_window=1024
tie_word_embeddings=false use_cache=true vocab_size=200192
)"},
      {"bloom", R"(
apply_residual_connection_post_layernorm=false attention_dropout=0.0 bos_token_id=1 eos_token_id=2 hidden_dropout=0.0
hidden_size=64 initializer_range=0.02 keys_to_ignore_at_inference layer_norm_epsilon=1e-05 n_embed n_head=8 n_layer=2
pretraining_tp=1 slow_but_exact=false use_cache=true vocab_size=250880
)"},
      {"cohere2", R"(
_sliding_window_pattern attention_bias=false attention_dropout=0.0 bos_token_id=5 eos_token_id=255001
hidden_act="silu" hidden_size=8192 initializer_range=0.02 intermediate_size=22528 keys_to_ignore_at_inference
layer_norm_eps=1e-05 logit_scale=0.0625 max_position_embeddings=8192 num_attention_heads=64 num_hidden_layers=40
num_key_value_heads pad_token_id=0 rope_theta=10000.0 sliding_window=4096 sliding_window_pattern use_cache=true
vocab_size=256000
)"},
      {"deepseek_v2", R"(
attention_bias=false attention_dropout=0.0 aux_loss_alpha=0.001 bos_token_id=1 eos_token_id=2 first_k_dense_replace=0
hidden_act="silu" hidden_size=4096 initializer_range=0.02 intermediate_size=11008 keys_to_ignore_at_inference
kv_lora_rank=512 max_position_embeddings=2048 mlp_bias=false moe_intermediate_size=1407 n_group n_routed_experts=64
n_shared_experts=2 norm_topk_prob=false num_attention_heads=32 num_experts num_experts_per_tok num_hidden_layers=32
num_key_value_heads output_router_logits=false pretraining_tp=1 q_lora_rank=1536 qk_head_dim qk_nope_head_dim=128
qk_rope_head_dim=64 rms_norm_eps=1e-06 rope_theta=10000.0 routed_scaling_factor=1.0 seq_aux=true
tie_word_embeddings=false topk_group topk_method="greedy" use_cache=true v_head_dim=128
)"},
      {"deepseek_v3", R"(
attention_bias=false attention_dropout=0.0 bos_token_id=0 eos_token_id=1 first_k_dense_replace=3 hidden_act="silu"
hidden_size=7168 initializer_range=0.02 intermediate_size=18432 keys_to_ignore_at_inference kv_lora_rank=512
max_position_embeddings=4096 moe_intermediate_size=2048 n_group=8 n_routed_experts=256 n_shared_experts=1
norm_topk_prob=true num_attention_heads=128 num_experts_per_tok=8 num_hidden_layers=61 num_key_value_heads=128
num_local_experts num_mtp_layers=1 num_nextn_predict_layers output_router_logits=false pretraining_tp=1
q_lora_rank=1536 qk_head_dim qk_nope_head_dim=128 qk_rope_head_dim=64 rms_norm_eps=1e-06 rope_interleave=true
rope_theta=10000.0 routed_scaling_factor=2.5 tie_word_embeddings=false topk_group=4 use_cache=true v_head_dim=128
vocab_size=129280
)"},
      {"ernie4_5", R"(
bos_token_id=1 eos_token_id=2 head_dim=128 hidden_act="silu" hidden_size=1024 initializer_range=0.02
intermediate_size=3072 keys_to_ignore_at_inference max_position_embeddings=131072 num_attention_heads=16
num_hidden_layers=18 num_key_value_heads=2 pad_token_id=0 rms_norm_eps=1e-05 rope_theta=500000.0 use_bias=false
use_cache=true vocab_size=103424
)"},
      {"exaone4", R"(
attention_dropout=0.0 bos_token_id=0 cache_implementation eos_token_id=2 hidden_act="silu" hidden_size=4096
initializer_range=0.02 intermediate_size=16384 keys_to_ignore_at_inference max_position_embeddings=2048
num_attention_heads=32 num_hidden_layers=32 num_key_value_heads=32 rms_norm_eps=1e-05 rope_theta=10000.0
sliding_window=4096 sliding_window_pattern=4 tie_word_embeddings=false use_cache=true vocab_size=102400
)"},
      {"falcon", R"(
activation="gelu" alibi=false attention_dropout=0.0 bias=false bos_token_id=11 eos_token_id=11 ffn_hidden_size
hidden_dropout=0.0 hidden_size=4544 initializer_range=0.02 keys_to_ignore_at_inference layer_norm_epsilon=1e-05
max_position_embeddings=2048 multi_query=true n_embed new_decoder_architecture=false num_attention_heads=71
num_hidden_layers=32 num_kv_heads num_ln_in_parallel_attn parallel_attn=true rope_theta=10000.0 rotary use_cache=true
vocab_size=65024
)"},
      {"gemma", R"(
attention_bias=false attention_dropout=0.0 bos_token_id=2 eos_token_id=1 head_dim=256 hidden_act="gelu_pytorch_tanh"
hidden_activation hidden_size=3072 initializer_range=0.02 intermediate_size=24576 keys_to_ignore_at_inference
max_position_embeddings=8192 num_attention_heads=16 num_hidden_layers=28 num_key_value_heads=16 pad_token_id=0
rms_norm_eps=1e-06 rope_theta=10000.0 use_bidirectional_attention use_cache=true vocab_size=256000
)"},
      {"gemma2", R"(
attention_bias=false attention_dropout=0.0 attn_logit_softcapping=50.0 bos_token_id=2 eos_token_id=1
final_logit_softcapping=30.0 head_dim=256 hidden_activation="gelu_pytorch_tanh" hidden_size=2304
initializer_range=0.02 intermediate_size=9216 keys_to_ignore_at_inference max_position_embeddings=8192
num_attention_heads=8 num_hidden_layers=26 num_key_value_heads=4 pad_token_id=0 query_pre_attn_scalar=256
rms_norm_eps=1e-06 rope_theta=10000.0 sliding_window=4096 use_bidirectional_attention use_cache=true vocab_size=256000
)"},
      {"gemma3", R"(
attention_bias attn_logit_softcapping boi_token_id boi_token_index=255999 eoi_token_id eoi_token_index=256000
final_logit_softcapping hidden_activation image_token_id image_token_index=262144 initializer_range=0.02
intermediate_size mm_tokens_per_image=256 num_key_value_heads query_pre_attn_scalar rope_local_base_freq
use_bidirectional_attention use_cache
)"},
      {"gemma3_text", R"(
_sliding_window_pattern attention_bias=false attention_dropout=0.0 attn_logit_softcapping bos_token_id=2
eos_token_id=1 final_logit_softcapping head_dim=256 hidden_activation="gelu_pytorch_tanh" hidden_size=2304
image_token_id initializer_range=0.02 intermediate_size=9216 keys_to_ignore_at_inference
max_position_embeddings=131072 mm_tokens_per_image num_attention_heads=8 num_hidden_layers=26 num_key_value_heads=4
pad_token_id=0 query_pre_attn_scalar=256 rms_norm_eps=1e-06 rope_local_base_freq=10000.0 rope_theta=1000000.0
sliding_window=4096 sliding_window_pattern use_bidirectional_attention=false use_cache=true vocab_size=262208
)"},
      {"glm4", R"(
attention_bias=true attention_dropout=0.0 head_dim=128 hidden_act="silu" hidden_size=4096 initializer_range=0.02
intermediate_size=13696 keys_to_ignore_at_inference max_position_embeddings=131072 num_attention_heads=32
num_hidden_layers=40 num_key_value_heads=2 pad_token_id=151329 partial_rotary_factor=0.5 rms_norm_eps=1.5625e-07
rope_theta=10000.0 tie_word_embeddings=false use_cache=true vocab_size=151552
)"},
      {"gpt2", R"(
activation_function="gelu_new" attn_pdrop=0.1 bos_token_id=50256 embd_pdrop=0.1 eos_token_id=50256
initializer_range=0.02 keys_to_ignore_at_inference layer_norm_epsilon=1e-05 n_embd=768 n_head=12 n_inner n_layer=12
n_positions=1024 reorder_and_upcast_attn=false resid_pdrop=0.1 scale_attn_by_inverse_layer_idx=false
scale_attn_weights=true summary_activation summary_first_dropout=0.1 summary_last_dropout summary_proj_to_labels=true
summary_type="cls_index" summary_use_proj=true use_cache=true vocab_size=50257
)"},
      {"gpt_neo", R"(
activation_function="gelu_new" attention_dropout=0.0 attention_layers attention_types bos_token_id=50256
classifier_dropout=0.1 embed_dropout=0.0 eos_token_id=50256 expand_attention_types_params hidden_size=2048
initializer_range=0.02 intermediate_size keys_to_ignore_at_inference layer_norm_epsilon=1e-05
max_position_embeddings=2048 num_heads=16 num_layers=24 resid_dropout=0.0 use_cache=true vocab_size=50257
window_size=256
)"},
      {"gpt_neox", R"(
attention_bias=true attention_dropout=0.0 bos_token_id=0 classifier_dropout=0.1 eos_token_id=2 hidden_act="gelu"
hidden_dropout=0.0 hidden_size=6144 initializer_range=0.02 intermediate_size=24576 keys_to_ignore_at_inference
layer_norm_eps=1e-05 max_position_embeddings=2048 num_attention_heads=64 num_hidden_layers=44 rotary_emb_base=10000
rotary_pct=0.25 tie_word_embeddings=false use_cache=true use_parallel_residual=true vocab_size=50432
)"},
      {"gpt_oss", R"(
attention_bias=true attention_dropout=0.0 head_dim=64 hidden_act="silu" hidden_size=2880 initializer_range=0.02
intermediate_size=2880 max_position_embeddings=131072 num_attention_heads=64 num_experts num_experts_per_tok=4
num_hidden_layers=36 num_key_value_heads=8 num_local_experts=128 output_router_logits=false rms_norm_eps=1e-05
rope_theta=150000.0 router_aux_loss_coef sliding_window=128 swiglu_alpha=1.702 swiglu_limit=7.0
tie_word_embeddings=false use_cache=true vocab_size=201088
)"},
      {"gptj", R"(
activation_function="gelu_new" attn_pdrop=0.0 bos_token_id=50256 embd_pdrop=0.0 eos_token_id=50256
initializer_range=0.02 layer_norm_epsilon=1e-05 n_embd=4096 n_head=16 n_inner n_layer=28 n_positions=2048
resid_pdrop=0.0 rotary_dim=64 tie_word_embeddings=false use_cache=true vocab_size=50400
)"},
      {"granite", R"(
attention_bias=false attention_dropout=0.0 attention_multiplier=1.0 bos_token_id=1 embedding_multiplier=1.0
eos_token_id=2 hidden_act="silu" hidden_size=4096 initializer_range=0.02 intermediate_size=11008
keys_to_ignore_at_inference logits_scaling=1.0 max_position_embeddings=2048 mlp_bias=false num_attention_heads=32
num_hidden_layers=32 num_key_value_heads residual_multiplier=1.0 rms_norm_eps=1e-06 rope_theta=10000.0
tie_word_embeddings=false use_cache=true vocab_size=32000
)"},
      {"granite_swa", R"(
attention_bias=false attention_dropout=0.0 attention_multiplier=1.0 base_config_key bos_token_id=100257
embedding_multiplier=1.0 eos_token_id=100257 hidden_act="silu" hidden_size=2560 initializer_range=0.02
intermediate_size=8192 keys_to_ignore_at_inference layer_rope_theta logits_scaling=1.0 max_position_embeddings=8192
mlp_bias=false model_type num_attention_heads=20 num_hidden_layers=24 num_key_value_heads=4 output_attentions
residual_multiplier=1.0 rms_norm_eps=1e-05 sliding_window=128 use_cache=true vocab_size=100352
)"},
      {"granitemoe_swa", R"(
attention_bias=false attention_dropout=0.0 attention_multiplier=1.0 base_config_key bos_token_id=1
embedding_multiplier=1.0 eos_token_id=2 hidden_act="silu" hidden_size=4096 initializer_range=0.02
intermediate_size=11008 keys_to_ignore_at_inference layer_rope_theta logits_scaling=1.0 max_position_embeddings=2048
model_type num_attention_heads=32 num_experts_per_tok=2 num_hidden_layers=32 num_key_value_heads num_local_experts=8
output_attentions output_router_logits=false residual_multiplier=1.0 rms_norm_eps=1e-06 router_aux_loss_coef=0.001
shared_intermediate_size=0 sliding_window=128 tie_word_embeddings=false use_cache=true vocab_size=32000
)"},
      {"hunyuan_v1_dense", R"(
attention_bias=false attention_dropout=0.0 bos_token_id=1 eod_token_id=3 eos_token_id=2 hidden_act="silu"
hidden_size=4096 initializer_range=0.02 intermediate_size=11008 keys_to_ignore_at_inference
max_position_embeddings=2048 num_attention_heads=32 num_hidden_layers=32 num_key_value_heads pad_token_id=0
pretraining_tp=1 rms_norm_eps=1e-05 rope_theta=10000.0 tie_word_embeddings=false use_cache=true vocab_size=290943
)"},
      {"lfm2", R"(
block_auto_adjust_ff_dim=true block_ff_dim block_ffn_dim_multiplier=1.0 block_multiple_of=256 bos_token_id=1
conv_L_cache=3 conv_bias=false eos_token_id=2 full_attn_idxs hidden_size=2560 initializer_range=0.02
intermediate_size=12288 keys_to_ignore_at_inference max_position_embeddings=128000 norm_eps=1e-05
num_attention_heads=32 num_hidden_layers=32 num_key_value_heads=8 pad_token_id=0 rope_theta=1000000.0 theta
tie_embedding use_cache=true vocab_size=65536
)"},
      {"lfm3", R"(
attention_bias=false attention_dropout=0.0 base_config_key bos_token_id=124894 conv_L_cache=7 conv_bias=false
eos_token_id=124900 head_dim=128 hidden_size=2048 initializer_range=0.02 intermediate_size=7680
keys_to_ignore_at_inference max_position_embeddings=128000 model_type norm_eps=1e-05 num_attention_heads=16
num_hidden_layers=24 num_key_value_heads=4 output_attentions pad_token_id=124893 sliding_window=256
use_attention_gate=true use_cache=true use_sandwich_norm=true vocab_size=128000
)"},
      {"llama", R"(
attention_bias=false attention_dropout=0.0 bos_token_id=1 eos_token_id=2 hidden_act="silu" hidden_size=4096
initializer_range=0.02 intermediate_size=11008 keys_to_ignore_at_inference max_position_embeddings=2048 mlp_bias=false
num_attention_heads=32 num_hidden_layers=32 num_key_value_heads pretraining_tp=1 rms_norm_eps=1e-06 rope_theta=10000.0
tie_word_embeddings=false use_cache=true vocab_size=32000
)"},
      {"mimo_v2_flash", R"(
attention_bias=false attention_dropout=0.0 attention_value_scale=0.707 base_config_key bos_token_id=1 head_dim=192
hidden_act="silu" hidden_size=4096 initializer_range=0.02 intermediate_size=16384 keys_to_ignore_at_inference
max_position_embeddings=131072 mlp_layer_types model_type moe_intermediate_size=2048 n_group=1 n_routed_experts=256
norm_topk_prob=true num_attention_heads=64 num_experts_per_tok=8 num_hidden_layers=48 num_key_value_heads=4
num_local_experts output_attentions output_router_logits=false rms_norm_eps=1e-05 routed_scaling_factor=1.0
sliding_window=129 sliding_window_size tie_word_embeddings=false topk_group=1 use_cache=true v_head_dim=128
vocab_size=152576
)"},
      {"mistral", R"(
attention_dropout=0.0 bos_token_id=1 eos_token_id=2 hidden_act="silu" hidden_size=4096 initializer_range=0.02
intermediate_size=14336 keys_to_ignore_at_inference num_attention_heads=32 num_hidden_layers=32 num_key_value_heads=8
rms_norm_eps=1e-06 rope_theta=10000.0 sliding_window=4096 tie_word_embeddings=false use_cache=true vocab_size=32000
)"},
      {"mixtral", R"(
attention_dropout=0.0 bos_token_id=1 eos_token_id=2 hidden_act="silu" hidden_size=4096 initializer_range=0.02
intermediate_size=14336 keys_to_ignore_at_inference num_attention_heads=32 num_experts num_experts_per_tok=2
num_hidden_layers=32 num_key_value_heads=8 num_local_experts=8 output_router_logits=false rms_norm_eps=1e-05
rope_theta=1000000.0 router_aux_loss_coef=0.001 router_jitter_noise=0.0 tie_word_embeddings=false use_cache=true
vocab_size=32000
)"},
      {"mpt", R"(
attn_config attn_pdrop clip_qkv d_model=2048 emb_pdrop=0.0 embedding_fraction=1.0 expansion_ratio=4 init_device="cpu"
initializer_range=0.02 layer_norm_epsilon=1e-05 learned_pos_emb=true logit_scale max_seq_len=2048 n_heads=16
n_layers=24 no_bias=true norm_type="low_precision_layernorm" resid_pdrop=0.0 softmax_scale use_cache=false verbose=0
vocab_size=50368
)"},
      {"olmo2", R"(
attention_bias=false attention_dropout=0.0 eos_token_id=50279 hidden_act="silu" hidden_size=4096
initializer_range=0.02 intermediate_size=11008 keys_to_ignore_at_inference max_position_embeddings=2048
num_attention_heads=32 num_hidden_layers=32 num_key_value_heads pad_token_id=1 rms_norm_eps=1e-05 rope_theta=10000.0
tie_word_embeddings=false use_cache=true vocab_size=50304
)"},
      {"olmo3", R"(
attention_bias=false attention_dropout=0.0 eos_token_id=50279 hidden_act="silu" hidden_size=4096
initializer_range=0.02 intermediate_size=11008 keys_to_ignore_at_inference max_position_embeddings=2048
num_attention_heads=32 num_hidden_layers=32 num_key_value_heads pad_token_id=1 rms_norm_eps=1e-05 rope_theta=10000.0
sliding_window=4096 tie_word_embeddings=false use_cache=true vocab_size=50304
)"},
      {"opt", R"(
_remove_final_layer_norm=false activation_function="relu" attention_dropout=0.0 bos_token_id=2
do_layer_norm_before=true dropout=0.1 enable_bias=true eos_token_id=2 ffn_dim=3072 hidden_size=768 init_std=0.02
keys_to_ignore_at_inference layer_norm_elementwise_affine=true layerdrop=0.0 max_position_embeddings=2048
num_attention_heads=12 num_hidden_layers=12 pad_token_id=1 use_cache=true vocab_size=50272 word_embed_proj_dim
)"},
      {"phi", R"(
attention_dropout=0.0 bos_token_id=1 embd_pdrop=0.0 eos_token_id=2 hidden_act="gelu_new" hidden_size=2048
initializer_range=0.02 intermediate_size=8192 keys_to_ignore_at_inference layer_norm_eps=1e-05
max_position_embeddings=2048 num_attention_heads=32 num_hidden_layers=24 num_key_value_heads partial_rotary_factor=0.5
qk_layernorm=false resid_pdrop=0.0 rope_theta=10000.0 tie_word_embeddings=false use_cache=true vocab_size=51200
)"},
      {"phi3", R"(
attention_dropout=0.0 bos_token_id=1 embd_pdrop=0.0 eos_token_id=32000 hidden_act="silu" hidden_size=3072
initializer_range=0.02 intermediate_size=8192 keys_to_ignore_at_inference max_position_embeddings=4096
num_attention_heads=32 num_hidden_layers=32 num_key_value_heads original_max_position_embeddings=4096
pad_token_id=32000 partial_rotary_factor=1.0 resid_pdrop=0.0 rms_norm_eps=1e-05 rope_theta=10000.0
tie_word_embeddings=false use_cache=true vocab_size=32064
)"},
      {"qwen2", R"(
attention_dropout=0.0 hidden_act="silu" hidden_size=4096 initializer_range=0.02 intermediate_size=22016
keys_to_ignore_at_inference max_position_embeddings=32768 max_window_layers=28 num_attention_heads=32
num_hidden_layers=32 num_key_value_heads=32 rms_norm_eps=1e-06 rope_theta=10000.0 sliding_window=4096
tie_word_embeddings=false use_cache=true use_sliding_window=false vocab_size=151936
)"},
      {"qwen2_moe", R"(
attention_dropout=0.0 decoder_sparse_step=1 hidden_act="silu" hidden_size=2048 initializer_range=0.02
intermediate_size=5632 keys_to_ignore_at_inference max_position_embeddings=32768 max_window_layers=28 mlp_only_layers
moe_intermediate_size=1408 norm_topk_prob=false num_attention_heads=16 num_experts=60 num_experts_per_tok=4
num_hidden_layers=24 num_key_value_heads=16 output_router_logits=false qkv_bias=true rms_norm_eps=1e-06
rope_theta=10000.0 router_aux_loss_coef=0.001 shared_expert_intermediate_size=5632 sliding_window=4096
tie_word_embeddings=false use_cache=true use_sliding_window=false vocab_size=151936
)"},
      {"qwen3", R"(
attention_bias=false attention_dropout=0.0 head_dim=128 hidden_act="silu" hidden_size=4096 initializer_range=0.02
intermediate_size=22016 keys_to_ignore_at_inference max_position_embeddings=32768 max_window_layers=28
num_attention_heads=32 num_hidden_layers=32 num_key_value_heads=32 rms_norm_eps=1e-06 rope_theta=10000.0
sliding_window=4096 tie_word_embeddings=false use_cache=true use_sliding_window=false vocab_size=151936
)"},
      {"qwen3_5", R"(
attention_bias base_config_key depth hidden_act image_token_id=248056 in_channels intermediate_size
keys_to_ignore_at_inference linear_conv_kernel_dim linear_key_head_dim linear_num_key_heads linear_num_value_heads
linear_value_head_dim model_type num_key_value_heads num_position_embeddings out_hidden_size output_attentions
patch_size spatial_merge_size temporal_patch_size tie_word_embeddings=false video_token_id=248057
vision_end_token_id=248054 vision_start_token_id=248053
)"},
      {"qwen3_5_moe", R"(
attention_bias base_config_key depth hidden_act image_token_id=248056 in_channels intermediate_size
keys_to_ignore_at_inference linear_conv_kernel_dim linear_key_head_dim linear_num_key_heads linear_num_value_heads
linear_value_head_dim model_type moe_intermediate_size num_experts num_experts_per_tok num_key_value_heads
num_position_embeddings out_hidden_size output_attentions output_router_logits patch_size router_aux_loss_coef
shared_expert_intermediate_size spatial_merge_size temporal_patch_size tie_word_embeddings=false video_token_id=248057
vision_end_token_id=248054 vision_start_token_id=248053
)"},
      {"qwen3_5_moe_text", R"(
attention_bias=false attention_dropout=0.0 base_config_key depth full_attention_interval head_dim=256
hidden_act="silu" hidden_size=2048 image_token_id in_channels initializer_range=0.02 intermediate_size
keys_to_ignore_at_inference linear_conv_kernel_dim=4 linear_key_head_dim=128 linear_num_key_heads=16
linear_num_value_heads=32 linear_value_head_dim=128 max_position_embeddings=32768 model_type moe_intermediate_size=512
num_attention_heads=16 num_experts=256 num_experts_per_tok=8 num_hidden_layers=40 num_key_value_heads=2
num_position_embeddings out_hidden_size output_attentions output_router_logits=false patch_size rms_norm_eps=1e-06
router_aux_loss_coef=0.001 shared_expert_intermediate_size=512 spatial_merge_size temporal_patch_size
tie_word_embeddings=false use_cache=true video_token_id vocab_size=248320
)"},
      {"qwen3_5_text", R"(
attention_bias=false attention_dropout=0.0 base_config_key depth full_attention_interval head_dim=256
hidden_act="silu" hidden_size=4096 image_token_id in_channels initializer_range=0.02 intermediate_size=12288
keys_to_ignore_at_inference linear_conv_kernel_dim=4 linear_key_head_dim=128 linear_num_key_heads=16
linear_num_value_heads=32 linear_value_head_dim=128 max_position_embeddings=32768 model_type num_attention_heads=16
num_hidden_layers=32 num_key_value_heads=4 num_position_embeddings out_hidden_size output_attentions patch_size
rms_norm_eps=1e-06 spatial_merge_size temporal_patch_size tie_word_embeddings=false use_cache=true video_token_id
vocab_size=248320
)"},
      {"qwen3_moe", R"(
attention_bias=false attention_dropout=0.0 decoder_sparse_step=1 hidden_act="silu" hidden_size=2048
initializer_range=0.02 intermediate_size=6144 keys_to_ignore_at_inference max_position_embeddings=32768
mlp_only_layers moe_intermediate_size=768 norm_topk_prob=false num_attention_heads=32 num_experts=128
num_experts_per_tok=8 num_hidden_layers=24 num_key_value_heads=4 num_local_experts output_router_logits=false
rms_norm_eps=1e-06 rope_theta=10000.0 router_aux_loss_coef=0.001 sliding_window=4096 tie_word_embeddings=false
use_cache=true use_sliding_window=false vocab_size=151936
)"},
      {"qwen3_next", R"(
attention_bias=false attention_dropout=0.0 decoder_sparse_step=1 full_attention_interval head_dim=256
hidden_act="silu" hidden_size=2048 initializer_range=0.02 intermediate_size=5632 keys_to_ignore_at_inference
linear_conv_kernel_dim=4 linear_key_head_dim=128 linear_num_key_heads=16 linear_num_value_heads=32
linear_value_head_dim=128 max_position_embeddings=32768 mlp_only_layers moe_intermediate_size=512 norm_topk_prob=true
num_attention_heads=16 num_experts=512 num_experts_per_tok=10 num_hidden_layers=48 num_key_value_heads=2
output_router_logits=false partial_rotary_factor=0.25 rms_norm_eps=1e-06 rope_theta=10000.0 router_aux_loss_coef=0.001
shared_expert_intermediate_size=512 tie_word_embeddings=false use_cache=true vocab_size=151936
)"},
      {"seed_oss", R"(
attention_bias=true attention_dropout=0.1 attention_out_bias=false bos_token_id=0 eos_token_id=2 head_dim=128
hidden_act="silu" hidden_size=4096 initializer_range=0.02 intermediate_size=27648 keys_to_ignore_at_inference
max_position_embeddings=524288 mlp_bias=false num_attention_heads=80 num_hidden_layers=64 num_key_value_heads=8
pad_token_id=1 pretraining_tp=1 residual_dropout=0.1 rms_norm_eps=1e-06 rope_theta=10000.0 tie_word_embeddings=false
use_cache=true vocab_size=155136
)"},
      {"smollm3", R"(
attention_bias=false attention_dropout=0.0 bos_token_id=128000 eos_token_id=128001 hidden_act="silu" hidden_size=2048
initializer_range=0.02 intermediate_size=11008 keys_to_ignore_at_inference max_position_embeddings=32768
mlp_bias=false no_rope_layer_interval=4 no_rope_layers num_attention_heads=16 num_hidden_layers=36
num_key_value_heads=4 pad_token_id=128004 rms_norm_eps=1e-06 rope_theta=2000000.0 use_cache=true
use_sliding_window=false vocab_size=128256
)"},
      {"stablelm", R"(
attention_dropout=0.0 bos_token_id=0 eos_token_id=0 hidden_act="silu" hidden_dropout=0.0 hidden_size=2560
initializer_range=0.02 intermediate_size=6912 keys_to_ignore_at_inference layer_norm_eps=1e-05
max_position_embeddings=4096 num_attention_heads=32 num_hidden_layers=32 num_key_value_heads=32
partial_rotary_factor=0.25 qk_layernorm=false rope_theta=10000 tie_word_embeddings=false use_cache=true
use_parallel_residual=false use_qkv_bias=false vocab_size=50304
)"},
      {"starcoder2", R"(
attention_dropout=0.0 bos_token_id=50256 embedding_dropout=0.0 eos_token_id=50256 hidden_act="gelu_pytorch_tanh"
hidden_size=3072 initializer_range=0.018042 intermediate_size=12288 keys_to_ignore_at_inference
max_position_embeddings=4096 norm_epsilon=1e-05 num_attention_heads=24 num_hidden_layers=30 num_key_value_heads=2
residual_dropout=0.0 rope_theta=10000.0 use_bias=true use_cache=true vocab_size=49152
)"},
  };
  return table;
}

}  // namespace gainlens::models::reference
