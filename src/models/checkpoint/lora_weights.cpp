#include "models/checkpoint/lora_weights.h"

#include "core/atomic_file.h"
#include "core/check.h"
#include "core/json.h"
#include "core/random.h"
#include "formats/adapter_folder.h"
#include "models/all_finite.h"
#include "models/checkpoint/slot_tensors.h"
#include "models/checkpoint/tensor_values.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace gainlens::models {
namespace {

/// Random stream of the factors A.
constexpr std::uint64_t lora_stream = (std::uint64_t{1} << 41) + 1;

std::string_view module_of(const TensorSlot& slot) {
  std::string_view name = slot.name;
  name.remove_suffix(std::string_view(".weight").size());
  return name;
}

LayerWeights& layer_of(DecoderWeights& weights, const TensorSlot& slot) {
  return weights.layers[static_cast<std::size_t>(slot.layer)];
}

/// The factor B of a stored projection, from those of its parts.
at::Tensor packed_up(const TensorSlot& slot, const std::map<std::string_view, LowRank>& low_rank) {
  std::vector<at::Tensor> parts;
  for (const SlotPart& part : slot.parts) parts.push_back(low_rank.at(part.field).up.detach());
  return pack(row_slot(slot, parts.front().size(1)), parts);
}

}  // namespace

LoraChanges lora_changes(const LoraAdapter& adapter, std::int64_t layer, at::ScalarType dtype) {
  const at::NoGradGuard no_gradients;
  LoraChanges changes;
  const std::string where = printable(adapter.files.back().string());
  for (const LoraFactors& factors : adapter.factors) {
    if (factors.slot.layer != layer) continue;
    const at::Tensor up = read_values(factors.up, dtype, where), down = read_values(factors.down, dtype, where);
    const at::Tensor product = at::mm(up, down).mul_(factors.scale);
    CHECK(all_finite(product), "{}: the change of '{}' is not finite", where, module_of(factors.slot));
    const std::vector<at::Tensor> parts =
        unpack(factors.slot, factors.slot.transposed || factors.embedding ? product.t().contiguous() : product);
    for (std::size_t i = 0; i < parts.size(); ++i)
      changes[{factors.slot.parts[i].field, factors.slot.parts[i].expert}] = parts[i];
  }
  return changes;
}

void begin_lora(const DecoderConfig& config, const LoraOptions& options, std::uint64_t seed, DecoderWeights& weights) {
  const std::vector<LoraModule> modules = lora_modules(config, options.targets);
  lora_parameter_count(modules, options.rank);
  auto generator = at::make_generator<at::CPUGeneratorImpl>(Random(seed, lora_stream).bits());
  for (const LoraModule& module : modules) {
    const std::int64_t inputs = inputs_of(module.slot);
    const double bound = 1 / std::sqrt(static_cast<double>(inputs));
    const at::Tensor down =
        at::empty({options.rank, inputs}, at::kFloat).uniform_(-bound, bound, generator).set_requires_grad(true);
    for (const SlotPart& part : module.slot.parts) {
      const at::Tensor up = at::zeros({part.shape.front(), options.rank}, at::kFloat).set_requires_grad(true);
      layer_of(weights, module.slot).low_rank[part.field] = {down, up,
                                                             options.alpha / static_cast<double>(options.rank)};
    }
  }
}

DecoderWeights merged(DecoderWeights weights) {
  const at::NoGradGuard no_gradients;
  for (LayerWeights& layer : weights.layers) {
    const TensorsByField fields = tensors_by_field(layer);
    for (const auto& [field, low_rank] : layer.low_rank) {
      at::Tensor& weight = *fields.at(field);
      weight = weight + at::mm(low_rank.up, low_rank.down).mul_(low_rank.scale);
    }
    layer.low_rank.clear();
  }
  return weights;
}

void save_lora_adapter(const std::filesystem::path& folder, const DecoderConfig& config, const LoraOptions& options,
                       const std::string& base, DecoderWeights weights) {
  std::vector<at::Tensor> kept;
  std::vector<formats::TensorToWrite> tensors;
  std::set<std::string> names;
  bool transposed = false;
  const auto add = [&](const TensorSlot& slot, const char* factor, const at::Tensor& values) {
    kept.push_back(values.detach().contiguous());
    const at::Tensor& tensor = kept.back();
    if (!all_finite(tensor)) throw_run_failed("adapter: {} of '{}' is not finite", factor, module_of(slot));
    tensors.push_back({fmt::format("base_model.model.{}.{}.weight", module_of(slot), factor),
                       formats::DType::f32,
                       tensor.sizes().vec(),
                       {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()}});
  };
  for (const LoraModule& module : lora_modules(config, options.targets)) {
    const auto& low_rank = layer_of(weights, module.slot).low_rank;
    add(module.slot, "lora_A", low_rank.at(module.slot.parts.front().field).down);
    add(module.slot, "lora_B", packed_up(module.slot, low_rank));
    names.insert(module.name);
    transposed = transposed || module.slot.transposed;
  }
  const Json document = {{"peft_type", "LORA"},
                         {"task_type", "CAUSAL_LM"},
                         {"base_model_name_or_path", base},
                         {"revision", nullptr},
                         {"inference_mode", true},
                         {"r", options.rank},
                         {"lora_alpha", options.alpha},
                         {"lora_dropout", 0.0},
                         {"target_modules", names},
                         {"fan_in_fan_out", transposed},
                         {"bias", "none"},
                         {"use_rslora", false},
                         {"use_dora", false},
                         {"init_lora_weights", true},
                         {"modules_to_save", nullptr},
                         {"rank_pattern", Json::object()},
                         {"alpha_pattern", Json::object()}};
  ensure_writable_folder(folder);
  formats::write_tensors(folder / formats::adapter_weights_name, tensors, {{"format", "pt"}});
  write_file_atomically(folder / formats::adapter_config_name, document.dump(2) + "\n");
}

}  // namespace gainlens::models
