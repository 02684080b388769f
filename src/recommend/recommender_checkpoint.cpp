#include "recommend/recommender_checkpoint.h"

#include "core/atomic_file.h"
#include "core/check.h"
#include "core/nearest.h"
#include "core/sha256.h"
#include "formats/tensor_file.h"
#include "models/checkpoint/tensor_values.h"
#include "recommend/finished_seeds.h"
#include "recommend/recommender_files.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <vector>

namespace gainlens::recommend {
namespace {

constexpr const char* weights_name = "model.safetensors";
constexpr std::uintmax_t max_names_bytes = std::uintmax_t{4} << 30;

std::string checksum_of_names(std::span<const std::string> names) {
  Sha256 hash;
  for (const std::string& name : names) {
    hash.update(name);
    hash.update("\n");
  }
  return hash.hex();
}

OrderedJson to_json(const TrainedOn& data) {
  OrderedJson document = {{"item_names", data.item_names}};
  if (data.split.empty()) return document;
  document["split"] = data.split;
  document["ties"] = data.ties;
  document["min_item_count"] = data.min_item_count;
  if (data.duplicates != TrainedOn{}.duplicates) document["duplicates"] = data.duplicates;
  if (data.protocol != TrainedOn{}.protocol) document["protocol"] = data.protocol;
  if (!data.times.empty()) document["times"] = data.times;
  return document;
}

/// The key 'data' of config.json. Earlier versions wrote 'item_names' alone.
TrainedOn read_trained_on(const Json& data, const std::string& where) {
  const auto shown = [&](const char* key) {
    return data.contains(key) ? printable(data[key].dump(), 60) : std::string("missing");
  };
  const auto text = [&](const char* key) {
    CHECK(data.contains(key) && data[key].is_string(), "{}: 'data.{}' is {}; must be a text", where, key, shown(key));
    return data[key].get<std::string>();
  };
  CHECK(data.is_object(), "{}: 'data' must be an object with the checksum 'item_names'", where);
  TrainedOn trained_on{text("item_names")};
  if (!data.contains("split")) return trained_on;
  trained_on.split = text("split");
  trained_on.ties = text("ties");
  CHECK(data.contains("min_item_count") && data["min_item_count"].is_number_unsigned(),
        "{}: 'data.min_item_count' is {}; must be a whole number", where, shown("min_item_count"));
  trained_on.min_item_count = data["min_item_count"].get<std::int64_t>();
  if (data.contains("duplicates")) trained_on.duplicates = text("duplicates");
  if (data.contains("protocol")) trained_on.protocol = text("protocol");
  if (data.contains("times")) trained_on.times = text("times");
  return trained_on;
}

/// The names that item_names_file holds, or none if there is no such file.
/// @param items  of the catalogue
std::vector<std::string> stored_names(const std::filesystem::path& folder, const TrainedOn& data, std::int64_t items) {
  const std::filesystem::path path = folder / item_names_file;
  if (data.item_names.empty() || !std::filesystem::exists(path)) return {};
  const std::string content = read_text_file(path, max_names_bytes);
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin < content.size();) {
    const std::size_t end = std::min(content.find('\n', begin), content.size());
    names.push_back(content.substr(begin, end - begin));
    begin = end + 1;
  }
  CHECK(std::ssize(names) == items && checksum_of_names(names) == data.item_names,
        "{}: is not as the training wrote it; put it back, or delete it: then names are compared by their checksum",
        printable(path.string()));
  return names;
}

/// How the names of two catalogues differ, as the end of a message; empty: the names of the checkpoint are not known.
std::string difference_in_words(const std::vector<std::string>& trained_names, const data::Interactions& interactions) {
  if (trained_names.empty()) return {};
  const std::set<std::string_view> known(trained_names.begin(), trained_names.end()),
      given(interactions.items.begin() + 1, interactions.items.end());
  for (const std::string_view name : given) {
    if (!known.contains(name)) return fmt::format(": '{}' is an item of the data alone", printable(name, 60));
  }
  for (const std::string_view name : known) {
    if (!given.contains(name)) return fmt::format(": '{}' is an item of the checkpoint alone", printable(name, 60));
  }
  return {};
}

/// Every layout that a checkpoint can have.
std::vector<std::string> layout_names() {
  std::vector<std::string> names{std::string(own_layout)};
  for (const BackboneKind& kind : backbones()) {
    for (const ForeignLayout& layout : kind.layouts) names.emplace_back(layout.name);
  }
  return names;
}

ForeignModel open_foreign(const std::filesystem::path& path, std::string_view name, const ForeignOptions& options) {
  for (const BackboneKind& kind : backbones()) {
    for (const ForeignLayout& layout : kind.layouts) {
      if (layout.name == name) return layout.open(path, options);
    }
  }
  ASSERT(false, "no layout '{}'", name);
}

/// The backbone that config.json names.
const BackboneKind& kind_of(const Json& document, const std::string& where) {
  const bool typed = document.is_object() && document.contains("model_type");
  const std::optional<std::string> name = typed ? backbone_of_type(document["model_type"]) : std::nullopt;
  CHECK(name.has_value(), "{}: 'model_type' is {}; it is not that of a recommender, which begins with 'gainlens-'",
        where, typed ? printable(document["model_type"].dump(), 60) : "missing");
  return backbone_named(*name, where + ": the backbone in 'model_type'");
}

}  // namespace

void check_layout(std::string_view name) {
  const std::vector<std::string> names = layout_names();
  CHECK(std::find(names.begin(), names.end(), name) != names.end(), "--layout: '{}'; must be {}{}", printable(name, 60),
        fmt::join(names, " or "), did_you_mean(name, names));
}

std::string item_names_checksum(const data::Interactions& interactions) {
  return checksum_of_names(std::span(interactions.items).subspan(1));
}

TrainedOn trained_on_split(const data::LeaveOneOut& split, const data::InteractionOptions& options, bool times) {
  return {item_names_checksum(split.interactions()),
          split.checksum(),
          options.ties.name(),
          options.min_item_count,
          std::string(data::duplicates_name(options.duplicates)),
          options.split.name(),
          times ? split.checksum_of_times() : ""};
}

std::string TrainedOn::options() const {
  return fmt::format("--ties {} --min-item-count {}{}{}", printable(ties, 40), min_item_count,
                     duplicates == TrainedOn{}.duplicates ? "" : " --duplicates " + printable(duplicates, 40),
                     protocol == TrainedOn{}.protocol ? "" : " --split " + printable(protocol, 40));
}

SplitMatch match_split(const RecommenderCheckpoint& checkpoint, const data::LeaveOneOut& split) {
  if (checkpoint.data.split.empty()) return SplitMatch::unknown;
  if (checkpoint.data.split != split.checksum()) return SplitMatch::other;
  const std::string& times = checkpoint.data.times;
  return times.empty() || times == split.checksum_of_times() ? SplitMatch::same : SplitMatch::other_times;
}

RecommenderCheckpoint open_recommender(const std::filesystem::path& path, std::string_view layout,
                                       const ForeignOptions& options) {
  check_layout(layout);
  CHECK(std::filesystem::exists(path), "{}: no such file or folder", printable(path.string()));
  RecommenderCheckpoint checkpoint;
  if (layout != own_layout) {
    ForeignModel foreign = open_foreign(path, layout, options);
    checkpoint.model = std::move(foreign.model);
    if (!foreign.items.empty()) checkpoint.data.item_names = checksum_of_names(foreign.items);
    checkpoint.items = std::move(foreign.items);
    return checkpoint;
  }
  CHECK(!options.heads && options.items.empty(), "--{}: a checkpoint of gainlens tells it; leave it out",
        options.heads ? "heads" : "items");
  const std::filesystem::path config_file = path / "config.json", weights_file = path / weights_name;
  const std::string where = printable(config_file.string()), weights_where = printable(weights_file.string());
  const Json document = read_json_file(config_file);
  std::optional<formats::TensorFile> weights;
  std::set<std::string> known;
  const auto read = [&](const WeightSlot& slot) {
    if (!weights) {  // the backbone has read the configuration
      if (document.contains("data")) checkpoint.data = read_trained_on(document["data"], where);
      checkpoint.unproven = prove_checkpoint(path);
      weights.emplace(formats::TensorFile::open(weights_file));
    }
    known.insert(slot.name);
    const formats::TensorEntry& entry = weights->at(slot.name);
    CHECK(entry.shape == slot.shape, "{}: '{}' has shape [{}]; must have [{}]", weights_where, slot.name,
          fmt::join(entry.shape, ", "), fmt::join(slot.shape, ", "));
    return models::read_values(entry, at::kFloat, weights_where);
  };
  checkpoint.model = kind_of(document, where).open(document, where, {weights_where, read});
  ASSERT(weights.has_value(), "a backbone without weights");
  for (const auto& [name, entry] : weights->entries())
    CHECK(known.contains(name), "{}: '{}' is no tensor of this model", weights_where, printable(name, 100));
  if (const auto seed = weights->metadata().find("seed"); seed != weights->metadata().end())
    checkpoint.seed = seed->second;
  checkpoint.items = stored_names(path, checkpoint.data, checkpoint.model->items());
  return checkpoint;
}

void check_catalogue(const RecommenderCheckpoint& checkpoint, const data::Interactions& interactions,
                     const std::string& where) {
  CHECK(interactions.item_count() == checkpoint.model->items(),
        "{}: the data set has {} items; the checkpoint was made for {}{}", where, interactions.item_count(),
        checkpoint.model->items(), difference_in_words(checkpoint.items, interactions));
  if (!checkpoint.data.item_names.empty()) {
    CHECK(item_names_checksum(interactions) == checkpoint.data.item_names,
          "{}: its items have other names than those that the checkpoint was trained on{}", where,
          difference_in_words(checkpoint.items, interactions));
    return;
  }
  for (std::size_t id = 1; id < interactions.items.size(); ++id) {
    CHECK(interactions.items[id] == std::to_string(id),
          "{}: item {} has the name '{}'; the checkpoint numbers its items, so they must be named 1 to {}", where, id,
          printable(interactions.items[id], 60), checkpoint.model->items());
  }
}

void save_recommender(const std::filesystem::path& folder, Backbone& model, const TrainedOn& data,
                      const std::string& seed, std::span<const std::string> items) {
  std::vector<at::Tensor> contiguous;  // must exist until the bytes are written
  std::vector<formats::TensorToWrite> tensors;
  for (const WeightSlot& slot : model.slots()) {
    const at::Tensor& kept = contiguous.emplace_back(slot.tensor->detach().to(at::kCPU, at::kFloat).contiguous());
    if (!at::isfinite(kept).all().item<bool>()) throw_run_failed("checkpoint: NaN or infinity in '{}'", slot.name);
    tensors.push_back({slot.name,
                       formats::DType::f32,
                       slot.shape,
                       {static_cast<const std::byte*>(kept.const_data_ptr()), kept.nbytes()}});
  }
  ensure_writable_folder(folder);
  OrderedJson document = model.document();
  if (!data.item_names.empty()) document["data"] = to_json(data);
  std::map<std::string, std::string> metadata = {{"format", "pt"}};
  if (!seed.empty()) metadata["seed"] = seed;
  formats::write_tensors(folder / weights_name, tensors, metadata);
  if (!items.empty()) {
    write_file_atomically(folder / item_names_file, [&](OutputFile& file) {
      for (const std::string& name : items) file.write(name + "\n");
    });
  }
  write_file_atomically(folder / "config.json", document.dump(2) + "\n");
}

}  // namespace gainlens::recommend
