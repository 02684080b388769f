#include "models/decoder/decoder_shapes.h"

#include "core/check.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

namespace gainlens::models {
namespace {

void check_field(const WeightField& field, const TensorsByField& tensors, at::ScalarType dtype, const std::string& of) {
  const at::Tensor& found = *tensors.at(field.name);
  ASSERT(field.wanted == found.defined(), "decoder weights: {} of {} is {}; the configuration says otherwise",
         field.name, of, field.wanted ? "missing" : "present");
  if (!field.wanted) return;
  ASSERT(found.sizes() == at::IntArrayRef(field.shape),
         "decoder weights: {} of {} is [{}]; the configuration asks for [{}]", field.name, of,
         fmt::join(found.sizes().vec(), ", "), fmt::join(field.shape, ", "));
  const bool wide = field.kind == WeightField::Kind::correction && dtype != at::kDouble;
  ASSERT(found.scalar_type() == (wide ? at::kFloat : dtype), "decoder weights: {} of {} is {}; the embedding is {}",
         field.name, of, c10::toString(found.scalar_type()), c10::toString(dtype));
}

}  // namespace

void check_layer_shapes(const DecoderConfig& config, std::int64_t layer, LayerWeights weights, at::ScalarType dtype) {
  const TensorsByField tensors = tensors_by_field(weights);
  for (const WeightField& field : layer_fields(config, layer))
    check_field(field, tensors, dtype, fmt::format("layer {}", layer));
}

void check_outer_shapes(const DecoderConfig& config, DecoderWeights weights) {
  ASSERT(config.window.size() == static_cast<std::size_t>(config.layers), "decoder config: {} windows for {} layers",
         config.window.size(), config.layers);
  for (const auto* kinds : {&config.delta.layers, &config.convolution.layers})
    ASSERT(kinds->empty() || kinds->size() == static_cast<std::size_t>(config.layers),
           "decoder config: {} kinds of layers for {} layers", kinds->size(), config.layers);
  ASSERT(config.kv_heads > 0 && config.heads % config.kv_heads == 0, "decoder config: {} heads over {} kv heads",
         config.heads, config.kv_heads);
  ASSERT(config.layer_kv_heads.empty() || std::ssize(config.layer_kv_heads) == config.layers,
         "decoder config: KV heads of {} layers; there are {}", config.layer_kv_heads.size(), config.layers);
  for (const std::int64_t own : config.layer_kv_heads)
    ASSERT(own > 0 && config.kv_heads % own == 0, "decoder config: {} KV heads in a layer, {} in others", own,
           config.kv_heads);
  ASSERT(config.sink_layers.empty() || std::ssize(config.sink_layers) == config.layers,
         "decoder config: sink logits of {} layers; there are {}", config.sink_layers.size(), config.layers);
  ASSERT(weights.embedding.defined() && weights.embedding.is_floating_point(),
         "decoder weights: the embedding is missing or not floating point");
  const at::ScalarType dtype = weights.embedding.scalar_type();
  if (config.tied_head) {
    ASSERT(weights.head.is_same(weights.embedding), "decoder weights: the head is tied but is not the embedding");
    weights.head = at::Tensor();
  }
  const TensorsByField tensors = tensors_by_field(weights);
  for (const WeightField& field : outer_fields(config)) check_field(field, tensors, dtype, "the model");
}

}  // namespace gainlens::models
