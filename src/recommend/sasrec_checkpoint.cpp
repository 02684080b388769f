#include "recommend/sasrec_checkpoint.h"

#include "core/check.h"
#include "formats/tensor_file.h"
#include "models/checkpoint/tensor_values.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <limits>
#include <map>
#include <set>

namespace gainlens::recommend {
namespace {

/// What a tensor of the layout iclrec is called there; empty: the layout has no such tensor.
std::string iclrec_name(const std::string& name) {
  static const std::map<std::string, std::string> stems = {
      {"attention_norm", "attention.LayerNorm"}, {"attention.query", "attention.query"},
      {"attention.key", "attention.key"},        {"attention.value", "attention.value"},
      {"attention.output", "attention.dense"},   {"mlp_norm", "intermediate.LayerNorm"},
      {"mlp.up", "intermediate.dense_1"},        {"mlp.down", "intermediate.dense_2"}};
  const std::size_t dot = name.rfind('.');
  const std::string stem = name.substr(0, dot), kind = name.substr(dot);
  if (stem == "item_embedding") return "item_embeddings" + kind;
  if (stem == "position_embedding") return "position_embeddings" + kind;
  if (stem == "embedding_norm") return "LayerNorm" + kind;
  const std::size_t after = stem.find('.', std::string("layers.").size());
  return "item_encoder.layer." + stem.substr(7, after - 7) + "." + stems.at(stem.substr(after + 1)) + kind;
}

const formats::TensorEntry& matrix(const formats::TensorFile& file, const std::string& name) {
  const formats::TensorEntry& entry = file.at(name);
  CHECK(entry.shape.size() == 2, "{}: '{}' has {} dimensions; must have 2", printable(file.path().string()), name,
        entry.shape.size());
  return entry;
}

SasRecConfig iclrec_config(const formats::TensorFile& file, std::int64_t heads) {
  SasRecConfig config;
  const auto& items = matrix(file, "item_embeddings.weight");
  config.items = items.shape[0] - 2;  // padding and mask are no items
  config.width = items.shape[1];
  config.positions = matrix(file, "position_embeddings.weight").shape[0];
  config.layers = 0;
  while (file.has(fmt::format("item_encoder.layer.{}.attention.query.weight", config.layers))) ++config.layers;
  CHECK(config.layers > 0, "{}: no tensor 'item_encoder.layer.0.attention.query.weight'; not of the layout iclrec",
        printable(file.path().string()));
  config.inner_width = matrix(file, "item_encoder.layer.0.intermediate.dense_1.weight").shape[0];
  config.heads = heads;
  config.norm = NormPlace::post;
  config.embedding_norm = true;
  config.norm_epsilon = 1e-12;
  config.alignment = Alignment::end;
  return config;
}

std::filesystem::path iclrec_file(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) return path;
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (entry.path().extension() == ".safetensors") found.push_back(entry.path());
  }
  CHECK(found.size() == 1, "{}: {} safetensors files; name the one to read", printable(path.string()), found.size());
  return found.front();
}

/// Numbers that no training writes.
void check_filter(const SasRecWeights& weights, const std::string& where) {
  const auto check_range = [&](const at::Tensor& x, const char* name, double least, double most) {
    if (!x.defined()) return;
    CHECK(x.min().item<double>() >= least && x.max().item<double>() <= most,
          "{}: '{}' holds a number below {} or above {}; the file is damaged", where, name, least, most);
  };
  constexpr double none = std::numeric_limits<double>::infinity();
  check_range(weights.precision.strength, "precision.strength", 0, 1);
  check_range(weights.precision.base, "precision.base", 0, 1);
  check_range(weights.precision.items, "precision.items", 0, none);
  for (std::size_t i = 0; i < weights.layers.size(); ++i)
    check_range(weights.layers[i].filter.stretch, fmt::format("layers.{}.filter.stretch", i).c_str(), 1e-3, none);
}

}  // namespace

SasRecWeights stored_sasrec_weights(const SasRecConfig& config, const WeightSource& source) {
  SasRecWeights weights;
  for (const WeightSlot& slot : sasrec_slots(config, weights)) *slot.tensor = source.read(slot);
  check_filter(weights, source.where);
  return weights;
}

StoredSasRec load_iclrec(const std::filesystem::path& path, std::int64_t heads) {
  const formats::TensorFile file = formats::TensorFile::open(iclrec_file(path));
  const std::string where = printable(file.path().string());
  StoredSasRec stored{iclrec_config(file, heads), {}};
  check(stored.config, where);
  std::set<std::string> known;
  for (const WeightSlot& slot : sasrec_slots(stored.config, stored.weights)) {
    const std::string name = iclrec_name(slot.name);
    known.insert(name);
    const formats::TensorEntry& entry = file.at(name);
    const bool masked = slot.tensor == &stored.weights.item_embedding;
    std::vector<std::int64_t> shape = slot.shape;
    if (masked) ++shape[0];
    CHECK(entry.shape == shape, "{}: '{}' has shape [{}]; must have [{}]", where, name, fmt::join(entry.shape, ", "),
          fmt::join(shape, ", "));
    const at::Tensor values = models::read_values(entry, at::kFloat, where);
    *slot.tensor = masked ? values.narrow(0, 0, slot.shape[0]).contiguous() : values;
  }
  for (const auto& [name, entry] : file.entries())
    CHECK(known.contains(name), "{}: '{}' is no tensor of this model", where, printable(name, 100));
  return stored;
}

}  // namespace gainlens::recommend
