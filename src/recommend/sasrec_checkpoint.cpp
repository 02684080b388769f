#include "recommend/sasrec_checkpoint.h"

#include "core/atomic_file.h"
#include "core/check.h"
#include "core/nearest.h"
#include "core/sha256.h"
#include "formats/tensor_file.h"
#include "models/checkpoint/tensor_values.h"
#include "recommend/finished_seeds.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <limits>
#include <map>
#include <set>

namespace gainlens::recommend {
namespace {

constexpr const char* weights_name = "model.safetensors";

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

/// Reads every tensor of the model and refuses others.
SasRecWeights read_weights(const formats::TensorFile& file, const SasRecConfig& config, CheckpointLayout layout) {
  const std::string where = printable(file.path().string());
  SasRecWeights weights;
  std::set<std::string> known;
  for (const SasRecSlot& slot : sasrec_slots(config, weights)) {
    const std::string name = layout == CheckpointLayout::iclrec ? iclrec_name(slot.name) : slot.name;
    known.insert(name);
    const formats::TensorEntry& entry = file.at(name);
    std::vector<std::int64_t> shape = slot.shape;
    const bool masked = layout == CheckpointLayout::iclrec && slot.tensor == &weights.item_embedding;
    if (masked) ++shape[0];
    CHECK(entry.shape == shape, "{}: '{}' has shape [{}]; must have [{}]", where, name, fmt::join(entry.shape, ", "),
          fmt::join(shape, ", "));
    const at::Tensor values = models::read_values(entry, at::kFloat, where);
    *slot.tensor = masked ? values.narrow(0, 0, slot.shape[0]).contiguous() : values;
  }
  for (const auto& [name, entry] : file.entries())
    CHECK(known.contains(name), "{}: '{}' is no tensor of this model", where, printable(name, 100));
  return weights;
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

OrderedJson to_json(const TrainedOn& data) {
  OrderedJson document = {{"item_names", data.item_names}};
  if (data.split.empty()) return document;
  document["split"] = data.split;
  document["ties"] = data.ties;
  document["min_item_count"] = data.min_item_count;
  return document;
}

/// The key 'data' of config.json. Earlier versions wrote 'item_names' alone.
TrainedOn read_trained_on(const Json& data, const std::string& where) {
  const auto text = [&](const char* key) {
    CHECK(data.contains(key) && data[key].is_string(), "{}: 'data' has no text '{}'", where, key);
    return data[key].get<std::string>();
  };
  CHECK(data.is_object(), "{}: 'data' must be an object with the checksum 'item_names'", where);
  TrainedOn trained_on{text("item_names")};
  if (!data.contains("split")) return trained_on;
  trained_on.split = text("split");
  trained_on.ties = text("ties");
  CHECK(data.contains("min_item_count") && data["min_item_count"].is_number_unsigned(),
        "{}: 'data' has no whole number 'min_item_count'", where);
  trained_on.min_item_count = data["min_item_count"].get<std::int64_t>();
  return trained_on;
}

}  // namespace

CheckpointLayout parse_checkpoint_layout(std::string_view name) {
  if (name == "gainlens") return CheckpointLayout::gainlens;
  if (name == "iclrec") return CheckpointLayout::iclrec;
  const std::vector<std::string> names = {"gainlens", "iclrec"};
  throw_invalid("--layout: '{}'; must be gainlens or iclrec{}", printable(name, 60), did_you_mean(name, names));
}

std::string item_names_checksum(const data::Interactions& interactions) {
  Sha256 hash;
  for (std::size_t id = 1; id < interactions.items.size(); ++id) {
    hash.update(interactions.items[id]);
    hash.update("\n");
  }
  return hash.hex();
}

TrainedOn trained_on_split(const data::LeaveOneOut& split, const data::InteractionOptions& options) {
  return {item_names_checksum(split.interactions()), split.checksum(), options.ties.name(), options.min_item_count};
}

SplitMatch match_split(const SasRecCheckpoint& checkpoint, const data::LeaveOneOut& split) {
  if (checkpoint.data.split.empty()) return SplitMatch::unknown;
  return checkpoint.data.split == split.checksum() ? SplitMatch::same : SplitMatch::other;
}

SasRecWeights stored_sasrec_weights(const SasRecConfig& config, const std::string& where, const WeightSource& source) {
  SasRecWeights weights;
  for (const SasRecSlot& slot : sasrec_slots(config, weights)) *slot.tensor = source(slot);
  check_filter(weights, where);
  return weights;
}

SasRecCheckpoint load_sasrec(const std::filesystem::path& path, CheckpointLayout layout, std::int64_t heads) {
  CHECK(std::filesystem::exists(path), "{}: no such file or folder", printable(path.string()));
  SasRecCheckpoint checkpoint;
  if (layout == CheckpointLayout::iclrec) {
    const formats::TensorFile file = formats::TensorFile::open(iclrec_file(path));
    checkpoint.config = iclrec_config(file, heads);
    check(checkpoint.config, printable(file.path().string()));
    checkpoint.weights = read_weights(file, checkpoint.config, layout);
    return checkpoint;
  }
  const std::filesystem::path config_file = path / "config.json";
  const Json document = read_json_file(config_file);
  checkpoint.config = parse_sasrec_config(document, printable(config_file.string()));
  if (document.contains("data")) checkpoint.data = read_trained_on(document["data"], printable(config_file.string()));
  checkpoint.unproven = prove_checkpoint(path);
  const formats::TensorFile file = formats::TensorFile::open(path / weights_name);
  checkpoint.weights = read_weights(file, checkpoint.config, layout);
  check_filter(checkpoint.weights, printable(file.path().string()));
  if (const auto seed = file.metadata().find("seed"); seed != file.metadata().end()) checkpoint.seed = seed->second;
  return checkpoint;
}

void check_catalogue(const SasRecCheckpoint& checkpoint, const data::Interactions& interactions,
                     const std::string& where) {
  CHECK(interactions.item_count() == checkpoint.config.items,
        "{}: the data set has {} items; the checkpoint was made for {}", where, interactions.item_count(),
        checkpoint.config.items);
  if (!checkpoint.data.item_names.empty()) {
    CHECK(item_names_checksum(interactions) == checkpoint.data.item_names,
          "{}: its items have other names than those that the checkpoint was trained on", where);
    return;
  }
  for (std::size_t id = 1; id < interactions.items.size(); ++id) {
    CHECK(interactions.items[id] == std::to_string(id),
          "{}: item {} has the name '{}'; the checkpoint numbers its items, so they must be named 1 to {}", where, id,
          printable(interactions.items[id], 60), checkpoint.config.items);
  }
}

void save_sasrec(const std::filesystem::path& folder, const SasRecConfig& config, SasRecWeights weights,
                 const TrainedOn& data, const std::string& seed) {
  std::vector<at::Tensor> contiguous;  // must exist until the bytes are written
  std::vector<formats::TensorToWrite> tensors;
  for (const SasRecSlot& slot : sasrec_slots(config, weights)) {
    const at::Tensor& kept = contiguous.emplace_back(slot.tensor->detach().to(at::kCPU, at::kFloat).contiguous());
    if (!at::isfinite(kept).all().item<bool>()) throw_run_failed("checkpoint: NaN or infinity in '{}'", slot.name);
    tensors.push_back({slot.name,
                       formats::DType::f32,
                       slot.shape,
                       {static_cast<const std::byte*>(kept.const_data_ptr()), kept.nbytes()}});
  }
  ensure_writable_folder(folder);
  OrderedJson document = to_json(config);
  if (!data.item_names.empty()) document["data"] = to_json(data);
  std::map<std::string, std::string> metadata = {{"format", "pt"}};
  if (!seed.empty()) metadata["seed"] = seed;
  formats::write_tensors(folder / weights_name, tensors, metadata);
  write_file_atomically(folder / "config.json", document.dump(2) + "\n");
}

}  // namespace gainlens::recommend
