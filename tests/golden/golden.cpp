#include "golden/golden.h"

#include "core/check.h"
#include "core/json.h"
#include "formats/tensor_file.h"
#include "golden/relative_error.h"
#include "hooks/hooked_model.h"
#include "hooks/hooks.h"
#include "models/checkpoint/load_decoder.h"
#include "models/decoder/attention_ops.h"
#include "support/shared_data.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace gainlens::golden {
namespace {

const std::filesystem::path models_folder = GAINLENS_SOURCE_DIR "/tests/golden/models";
const std::filesystem::path gguf_folder = GAINLENS_SOURCE_DIR "/tests/golden/gguf";
const std::string statistics_prefix = "statistics.";

/// A copy of a tensor of the file.
at::Tensor tensor_of(const formats::TensorEntry& entry) {
  ASSERT(entry.dtype == formats::DType::f64 || entry.dtype == formats::DType::i64, "golden tensor {} has another dtype",
         entry.name);
  const auto dtype = entry.dtype == formats::DType::f64 ? at::kDouble : at::kLong;
  at::Tensor tensor = at::empty(entry.shape, dtype);
  std::copy(entry.bytes.begin(), entry.bytes.end(), static_cast<std::byte*>(tensor.mutable_data_ptr()));
  return tensor;
}

/// Statistics by their names in the golden, each a list over layers.
using LayerStatistics = std::map<std::string, std::vector<at::Tensor>>;

/// @param layout  of the model: a golden has the largest number of KV heads in every layer, and sink logits in all or
///     none
void add_layer(LayerStatistics& layers, const Golden& golden, const hooks::AttentionLayout& layout,
               const kernels::QueryStatistics& found) {
  for (const auto& [field, tensor] : fields_by_query(found)) {
    layers[statistics_prefix + field].push_back(tensor.index_select(1, golden.query_positions));
  }
  if (found.sink_logit_mass.defined() || layout.sink_logits) {
    const at::Tensor mass = found.sink_logit_mass.defined() ? found.sink_logit_mass : at::zeros_like(found.n_eff);
    layers[statistics_prefix + "sink_logit_mass"].push_back(mass.index_select(1, golden.query_positions));
  }
  layers[statistics_prefix + "column_mean"].push_back(found.column_mean);
  layers[statistics_prefix + "value_variance"].push_back(
      found.value_variance.repeat_interleave(layout.kv_heads / found.value_variance.size(0), 0));
}

/// @param gate  [1, position, head], or [1, position, head, head_dim] for elementwise gates
void add_gate(LayerStatistics& layers, const Golden& golden, const at::Tensor& gate) {
  const at::Tensor by_position = gate.squeeze(0).to(at::kDouble);
  const at::Tensor by_head =
      (by_position.dim() == 3 ? by_position.mean(-1) : by_position).transpose(0, 1);  // [head, position]
  layers[statistics_prefix + "gate"].push_back(by_head.index_select(1, golden.query_positions));
}

/// Logits at the stored positions, [stored position, vocabulary].
at::Tensor logits(hooks::HookedModel& model, const Golden& golden, hooks::AttentionOp* attention,
                  const hooks::Hooks& hooks) {
  hooks::ForwardOptions options;
  options.attention = attention;
  const hooks::Stream stream = model.forward({golden.tokens.unsqueeze(0)}, options, hooks);
  return model.unembed(stream.hidden.cpu().squeeze(0).index_select(0, golden.logit_positions)).cpu();
}

/// Error of one statistic, each layer on its own scale. Infinity if the number of layers differs.
double error_of_layers(const std::vector<at::Tensor>& found, const at::Tensor& expected, Over over) {
  if (static_cast<std::int64_t>(found.size()) != expected.size(0)) return std::numeric_limits<double>::infinity();
  double worst = 0, squares = 0;
  for (std::size_t layer = 0; layer < found.size(); ++layer) {
    const double error = relative_error(found[layer], expected[static_cast<std::int64_t>(layer)], 1e-3, over);
    worst = std::max(worst, error);
    squares += error * error;
  }
  return over == Over::largest ? worst : std::sqrt(squares / static_cast<double>(found.size()));
}

/// Attention whose mean weights of all keys are compared with those of the T x T weights.
class ComparedKeys : public hooks::AttentionOp {
 public:
  at::Tensor run(std::int64_t, const hooks::Qkv& qkv, const kernels::AttentionOptions& options) override {
    const at::Tensor pattern = models::attention_pattern(qkv, options).squeeze(0).to(at::kDouble);
    const at::Tensor own = compare(qkv, options, pattern, kernels::KeyMeans::all);
    compare(qkv, options, pattern, kernels::KeyMeans::above);
    return own.unsqueeze(0);
  }
  hooks::ObservedAttention run_with_moments(std::int64_t, const hooks::Qkv&, const kernels::AttentionOptions&,
                                            const hooks::PrecisionBias&) override {
    throw_internal_error(__FILE__, __LINE__, "goldens have no filter");
  }

  double worst = 0;

 private:
  /// @returns  the output of attention
  at::Tensor compare(const hooks::Qkv& qkv, kernels::AttentionOptions options, const at::Tensor& pattern,
                     kernels::KeyMeans means) {
    options.returned.key_means = means;
    kernels::AttentionPlan plan(options);
    const kernels::QueryStatistics found = kernels::attention_statistics(plan, qkv.query[0], qkv.key[0], qkv.value[0]);
    const std::int64_t length = pattern.size(1);
    const at::Tensor expected =
        at::stack({pattern.sum(1) / found.key_queries, pattern.slice(1, length - length / 2).mean(1),
                   pattern.slice(1, length - length / 4).mean(1)},
                  2);
    const at::Tensor mean = found.key_mean.to(at::kDouble), given = at::isnan(mean).logical_not();
    // Near the threshold rounding decides which keys are given.
    const double least = means == kernels::KeyMeans::above ? options.returned.min_key_mean * (1 + 1e-4) : 0;
    const at::Tensor missing = expected.select(2, 0).ge(least).logical_and(given.select(2, 0).logical_not());
    if (missing.any().item<bool>()) worst = std::numeric_limits<double>::infinity();
    worst = std::max(worst, (mean - expected).abs().masked_fill(given.logical_not(), 0).max().item<double>());
    return found.output;
  }
};

}  // namespace

double key_mean_error(const Golden& golden, at::ScalarType dtype) {
  const c10::InferenceMode inference;
  models::LoadOptions load;
  load.dtype = dtype;
  const auto model = models::load_decoder(*golden.checkpoint, load);
  ComparedKeys keys;
  hooks::ForwardOptions options;
  options.attention = &keys;
  model->forward({golden.tokens.unsqueeze(0)}, options, {});
  return keys.worst;
}

std::vector<std::pair<std::string, at::Tensor>> fields_by_query(const kernels::QueryStatistics& found) {
  return {
      {"n_eff", found.n_eff},
      {"entropy", found.entropy},
      {"residual", found.residual},
      {"observation_precision", found.observation_precision},
      {"log_observation_precision", found.log_observation_precision},
      {"kalman_gain", found.kalman_gain},
      {"kalman_gain_scaled", found.kalman_gain_scaled},
      {"without_first_n_eff", found.without_first_n_eff},
      {"without_first_residual", found.without_first_residual},
      {"without_first_observation_precision", found.without_first_observation_precision},
      {"without_first_kalman_gain", found.without_first_kalman_gain},
      {"estimate_norm", found.estimate_norm},
      {"gained_estimate_norm", found.gained_estimate_norm},
      {"without_first_norm", found.without_first_norm},
      {"first_mass", found.first_mass},
  };
}

std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(models_folder)) names.push_back(entry.path().filename());
  const Json twins = read_json_file(gguf_folder / "twins.json");
  for (const auto& [file, twin] : twins.items()) names.push_back(file);
  std::sort(names.begin(), names.end());
  return names;
}

Golden read_golden(const std::string& name) {
  // A GGUF file holds the same weights as its twin and therefore has the same expected outputs.
  const bool gguf = name.ends_with(".gguf");
  const std::filesystem::path folder =
      models_folder / (gguf ? read_json_file(gguf_folder / "twins.json").at(name).get<std::string>() : name);
  const auto file = formats::TensorFile::open(folder / "expected.safetensors");
  Golden golden;
  golden.name = name;
  golden.checkpoint = gguf                                              ? gguf_folder / name
                      : std::filesystem::exists(folder / "config.json") ? folder
                                                                        : testing::shared_data("models/" + name);
  const Json inexact = read_json_file(gguf_folder / "provenance.json").at("inexact");
  // The reference's BLOOM code uses only eight digits of sqrt(2 / pi) in its gelu.
  golden.exact = !name.starts_with("bloom") && std::find(inexact.begin(), inexact.end(), name) == inexact.end();
  golden.tokens = tensor_of(file.at("tokens"));
  golden.query_positions = tensor_of(file.at("query_positions"));
  golden.logit_positions = tensor_of(file.at("logit_positions"));
  const std::string error_prefix = "bfloat16_error.";
  for (const auto& [key, entry] : file.entries()) {
    if (key.starts_with(statistics_prefix) || key == "logits") golden.expected[key] = tensor_of(entry);
    if (key.starts_with(error_prefix))
      golden.bfloat16_error[key.substr(error_prefix.size())] = tensor_of(entry).item<double>();
  }
  return golden;
}

std::map<std::string, double> measure(const Golden& golden, at::ScalarType dtype, at::Device device) {
  CHECK(golden.checkpoint, "golden {}: its checkpoint is shared test data that is absent", golden.name);
  const c10::InferenceMode inference;
  models::LoadOptions load;
  load.dtype = dtype;
  load.device = device;
  const auto model = models::load_decoder(*golden.checkpoint, load);

  LayerStatistics layers;
  models::StatisticsAttention statistics(
      [&](std::int64_t, kernels::QueryStatistics&& found) { add_layer(layers, golden, model->layout(), found); });
  hooks::Hooks hooks;
  if (model->layout().gated) {
    hooks.observe(hooks::Glob("*.hook_gate"),
                  [&](const hooks::Site&, const at::Tensor& gate) { add_gate(layers, golden, gate); });
  }

  const at::Tensor& expected_logits = golden.expected.at("logits");
  const Over over = dtype == at::kBFloat16 ? Over::root_mean_square : Over::largest;
  std::map<std::string, double> errors;
  errors["logits"] = relative_error(logits(*model, golden, &statistics, hooks), expected_logits, 1, over);
  errors["logits.fused"] = relative_error(logits(*model, golden, nullptr, {}), expected_logits, 1, over);
  for (const auto& [name, tensor] : golden.expected) {
    if (name != "logits") errors[name] = error_of_layers(layers[name], tensor, over);
  }
  // A statistic that is measured but not in the golden (a gate that should not be there) has an infinite error.
  for (const auto& [name, found] : layers) errors.try_emplace(name, std::numeric_limits<double>::infinity());
  return errors;
}

double tolerance(const Golden& golden, at::ScalarType dtype, const std::string& name) {
  const std::string stored = name == "logits.fused" ? "logits" : name;
  switch (dtype) {
    case at::kDouble:
      return golden.exact ? 1e-9 : 1e-6;
    case at::kFloat:
      return stored == "logits" ? 1e-5 : 1e-4;
    case at::kBFloat16:
      return 2 * golden.bfloat16_error.at(stored);
    default:
      throw_invalid("golden {}: no tolerance for dtype {}", golden.name, at::toString(dtype));
  }
}

}  // namespace gainlens::golden
