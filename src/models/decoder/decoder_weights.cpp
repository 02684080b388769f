#include "models/decoder/decoder_weights.h"

namespace gainlens::models {

TensorsByField tensors_by_field(LayerWeights& weights) {
  TensorsByField fields = {
      {"attention_norm", &weights.attention_norm},
      {"attention_norm_bias", &weights.attention_norm_bias},
      {"query_latent", &weights.query_latent},
      {"query_latent_bias", &weights.query_latent_bias},
      {"query_latent_norm", &weights.query_latent_norm},
      {"key_latent", &weights.key_latent},
      {"key_latent_bias", &weights.key_latent_bias},
      {"key_rotated", &weights.key_rotated},
      {"key_rotated_bias", &weights.key_rotated_bias},
      {"key_latent_norm", &weights.key_latent_norm},
      {"query", &weights.query},
      {"query_bias", &weights.query_bias},
      {"gate_score", &weights.gate_score},
      {"gate_score_bias", &weights.gate_score_bias},
      {"key", &weights.key},
      {"key_bias", &weights.key_bias},
      {"value", &weights.value},
      {"value_bias", &weights.value_bias},
      {"query_norm", &weights.query_norm},
      {"key_norm", &weights.key_norm},
      {"sink_logit", &weights.sink_logit},
      {"output", &weights.output},
      {"output_bias", &weights.output_bias},
      {"delta_query", &weights.delta_query},
      {"delta_key", &weights.delta_key},
      {"delta_value", &weights.delta_value},
      {"delta_gate", &weights.delta_gate},
      {"delta_beta", &weights.delta_beta},
      {"delta_decay", &weights.delta_decay},
      {"delta_convolution", &weights.delta_convolution},
      {"delta_log_rate", &weights.delta_log_rate},
      {"delta_decay_bias", &weights.delta_decay_bias},
      {"delta_norm", &weights.delta_norm},
      {"delta_output", &weights.delta_output},
      {"convolution_gate", &weights.convolution_gate},
      {"convolution_gate_bias", &weights.convolution_gate_bias},
      {"convolution_output_gate", &weights.convolution_output_gate},
      {"convolution_output_gate_bias", &weights.convolution_output_gate_bias},
      {"convolution_input", &weights.convolution_input},
      {"convolution_input_bias", &weights.convolution_input_bias},
      {"convolution", &weights.convolution},
      {"convolution_bias", &weights.convolution_bias},
      {"convolution_output", &weights.convolution_output},
      {"convolution_output_bias", &weights.convolution_output_bias},
      {"attention_post_norm", &weights.attention_post_norm},
      {"mlp_norm", &weights.mlp_norm},
      {"mlp_norm_bias", &weights.mlp_norm_bias},
      {"mlp_gate", &weights.mlp_gate},
      {"mlp_gate_bias", &weights.mlp_gate_bias},
      {"mlp_up", &weights.mlp_up},
      {"mlp_up_bias", &weights.mlp_up_bias},
      {"mlp_down", &weights.mlp_down},
      {"mlp_down_bias", &weights.mlp_down_bias},
      {"router", &weights.router},
      {"router_bias", &weights.router_bias},
      {"router_correction", &weights.router_correction},
      {"expert_gate", &weights.expert_gate},
      {"expert_gate_bias", &weights.expert_gate_bias},
      {"expert_up", &weights.expert_up},
      {"expert_up_bias", &weights.expert_up_bias},
      {"expert_down", &weights.expert_down},
      {"expert_down_bias", &weights.expert_down_bias},
      {"shared_gate", &weights.shared_gate},
      {"shared_gate_bias", &weights.shared_gate_bias},
      {"shared_up", &weights.shared_up},
      {"shared_up_bias", &weights.shared_up_bias},
      {"shared_down", &weights.shared_down},
      {"shared_down_bias", &weights.shared_down_bias},
      {"shared_score", &weights.shared_score},
      {"mlp_post_norm", &weights.mlp_post_norm},
  };
  fields.merge(bft::tensors_by_name(weights.filter));
  return fields;
}

TensorsByField tensors_by_field(DecoderWeights& weights) {
  TensorsByField fields = {
      {"embedding", &weights.embedding},
      {"position_embedding", &weights.position_embedding},
      {"embedding_norm", &weights.embedding_norm},
      {"embedding_norm_bias", &weights.embedding_norm_bias},
      {"final_norm", &weights.final_norm},
      {"final_norm_bias", &weights.final_norm_bias},
      {"head", &weights.head},
      {"head_bias", &weights.head_bias},
  };
  fields.merge(bft::tensors_by_name(weights.precision));
  return fields;
}

}  // namespace gainlens::models
