#include "core/check.h"
#include "recommend/sasrec_foreign.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <map>
#include <string>
#include <vector>

namespace gainlens::recommend {
namespace {

/// What a tensor is called there.
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

SasRecConfig iclrec_config(const ForeignTensors& file, std::int64_t heads) {
  SasRecConfig config;
  const auto& items = file.shape("item_embeddings.weight", 2);
  config.items = items[0] - 2;  // padding and mask are no items
  config.width = items[1];
  config.positions = file.shape("position_embeddings.weight", 2)[0];
  config.layers = 0;
  while (file.has(fmt::format("item_encoder.layer.{}.attention.query.weight", config.layers))) ++config.layers;
  CHECK(config.layers > 0, "{}: no tensor 'item_encoder.layer.0.attention.query.weight'; not of the layout iclrec",
        file.where());
  config.inner_width = file.shape("item_encoder.layer.0.intermediate.dense_1.weight", 2)[0];
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

}  // namespace

ForeignSasRec load_iclrec(const std::filesystem::path& path, const ForeignOptions& options) {
  CHECK(options.items.empty(), "--items: the layout iclrec numbers its items; leave it out");
  const formats::TensorFile file = formats::TensorFile::open(iclrec_file(path));
  ForeignTensors tensors(file.entries(), printable(file.path().string()));
  ForeignSasRec read;
  read.model.config = iclrec_config(tensors, options.heads.value_or(2));
  check(read.model.config, tensors.where());
  read.model.weights = foreign_weights(read.model.config, [&](const WeightSlot& slot) {
    const bool masked = slot.name == "item_embedding.weight";
    std::vector<std::int64_t> shape = slot.shape;
    if (masked) ++shape[0];
    const at::Tensor values = tensors.read(iclrec_name(slot.name), shape);
    return masked ? values.narrow(0, 0, slot.shape[0]).contiguous() : values;
  });
  tensors.check_all_read();
  return read;
}

}  // namespace gainlens::recommend
