#include "core/check.h"
#include "core/json.h"
#include "formats/torch_file.h"
#include "recommend/sasrec_foreign.h"

#include <ATen/ATen.h>

#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// SASRec.pytorch has had three forms; python/model.py of github.com/pmixer/SASRec.pytorch at
//   30c43cf (2020): norms of queries, padding set to 0, one position for each place;
//   33bc1d8 (2024): padding goes through the layers, and has a position of its own;
//   f701731 (2025): norms before each part or after each sum (norm_first), and one after the last layer.
// fcf5588, of the same day as f701731, has norms after each sum and no option that says so: it is taken for 33bc1d8.

namespace gainlens::recommend {
namespace {

/// args.txt: a line `name,value` for each option of main.py.
class Arguments {
 public:
  explicit Arguments(const std::filesystem::path& path) : where_(printable(path.string())) {
    std::error_code error;
    CHECK(std::filesystem::is_regular_file(path, error),
          "{}: no such file; main.py of SASRec.pytorch writes it into the folder of its checkpoints, and only it says "
          "where the norms stand",
          where_);
    const std::string content = read_text_file(path, max_bytes);
    for (std::size_t begin = 0; begin < content.size();) {
      const std::size_t end = std::min(content.find('\n', begin), content.size());
      std::string_view line(content.data() + begin, end - begin);
      if (line.ends_with('\r')) line.remove_suffix(1);
      begin = end + 1;
      if (line.empty()) continue;
      const std::size_t comma = line.find(',');
      CHECK(comma != std::string_view::npos, "{}: the line '{}' is not name,value", where_, printable(line, 60));
      const std::string name(line.substr(0, comma));
      CHECK(values_.emplace(name, line.substr(comma + 1)).second, "{}: '{}' stands twice", where_, printable(name, 40));
    }
  }

  const std::string& where() const { return where_; }
  bool has(const std::string& name) const { return values_.contains(name); }
  const std::string& text(const std::string& name) const {
    const auto found = values_.find(name);
    CHECK(found != values_.end(), "{}: has no '{}'", where_, name);
    return found->second;
  }
  std::int64_t whole(const std::string& name) const {
    const std::string& text = this->text(name);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    CHECK(error == std::errc() && end == text.data() + text.size(), "{}: '{}' is '{}'; must be a whole number", where_,
          name, printable(text, 40));
    return value;
  }
  bool flag(const std::string& name) const {
    const std::string& text = this->text(name);
    CHECK(text == "True" || text == "False", "{}: '{}' is '{}'; must be True or False", where_, name,
          printable(text, 40));
    return text == "True";
  }

 private:
  static constexpr std::uintmax_t max_bytes = 1 << 20;
  std::string where_;
  std::map<std::string, std::string> values_;
};

SasRecConfig config_of(const Arguments& arguments, const ForeignTensors& tensors, const ForeignOptions& options) {
  SasRecConfig config;
  const auto& items = tensors.shape("item_emb.weight", 2);
  config.items = items[0] - 1;  // 0 is padding
  config.width = items[1];
  config.positions = tensors.shape("pos_emb.weight", 2)[0];
  config.layers = arguments.whole("num_blocks");
  config.inner_width = config.width;
  config.heads = arguments.whole("num_heads");
  CHECK(!options.heads || *options.heads == config.heads, "--heads: {}; {} says {}", *options.heads, arguments.where(),
        config.heads);
  config.norm_epsilon = 1e-8;
  config.embedding_factor = EmbeddingFactor::sqrt_width;
  config.alignment = Alignment::end;
  config.foreign.activation = ForeignParts::Activation::relu;

  const std::int64_t seen = arguments.whole("maxlen");
  const bool own_position = config.positions == seen + 1;
  CHECK(own_position || config.positions == seen, "{}: 'maxlen' is {}; the checkpoint has {} positions",
        arguments.where(), seen, config.positions);
  config.foreign.padding = own_position ? ForeignParts::Padding::seen : ForeignParts::Padding::zeroed;
  config.norm = NormPlace::post;
  if (!arguments.has("norm_first")) {
    config.foreign.norm = ForeignParts::Norm::queries;
  } else if (arguments.flag("norm_first")) {
    config.norm = NormPlace::pre;
  } else {
    config.foreign.norm = ForeignParts::Norm::last;
  }
  CHECK(!arguments.has("norm_first") || own_position,
        "{}: has 'norm_first', and the checkpoint no position of padding; they are not of one version",
        arguments.where());
  check(config, tensors.where());
  return config;
}

/// The tensor of a slot. Queries, keys and values are one matrix there, and the MLP is made of convolutions of width 1.
at::Tensor read_slot(ForeignTensors& tensors, const WeightSlot& slot, std::int64_t width) {
  const std::size_t dot = slot.name.rfind('.');
  const std::string stem = slot.name.substr(0, dot), kind = slot.name.substr(dot);
  if (stem == "item_embedding") return tensors.read("item_emb.weight", slot.shape);
  if (stem == "position_embedding") return tensors.read("pos_emb.weight", slot.shape);
  if (stem == "final_norm") return tensors.read("last_layernorm" + kind, slot.shape);
  const std::size_t after = stem.find('.', std::string("layers.").size());
  const std::string layer = stem.substr(7, after - 7), part = stem.substr(after + 1);
  static const std::map<std::string, std::string> norms = {{"attention_norm", "attention_layernorms."},
                                                           {"mlp_norm", "forward_layernorms."}};
  if (norms.contains(part)) return tensors.read(norms.at(part) + layer + kind, slot.shape);
  const std::string attention = "attention_layers." + layer, mlp = "forward_layers." + layer;
  if (part == "attention.output") return tensors.read(attention + ".out_proj" + kind, slot.shape);
  static const std::map<std::string, std::int64_t> thirds = {
      {"attention.query", 0}, {"attention.key", 1}, {"attention.value", 2}};
  std::vector<std::int64_t> shape = slot.shape;
  if (const auto third = thirds.find(part); third != thirds.end()) {
    shape[0] *= 3;
    const std::string name = attention + (kind == ".weight" ? ".in_proj_weight" : ".in_proj_bias");
    return tensors.read(name, shape).narrow(0, third->second * width, width).contiguous();
  }
  if (kind == ".weight") shape.push_back(1);
  return tensors.read(mlp + (part == "mlp.up" ? ".conv1" : ".conv2") + kind, shape).view(slot.shape);
}

}  // namespace

ForeignSasRec load_pmixer(const std::filesystem::path& path, const ForeignOptions& options) {
  const formats::TorchFile file = formats::TorchFile::open(path);
  const Arguments arguments(path.parent_path() / "args.txt");
  const auto entries = file.tensors(file.content().root(), "its content");
  ForeignTensors tensors(entries, file.where());
  ForeignSasRec read;
  read.model.config = config_of(arguments, tensors, options);
  if (!options.items.empty()) read.items = named_items(options, read.model.config.items, file.where());
  read.model.weights = foreign_weights(
      read.model.config, [&](const WeightSlot& slot) { return read_slot(tensors, slot, read.model.config.width); });
  tensors.check_all_read();
  if (!read.items.empty()) order_items(read.model.weights, read.items);
  return read;
}

}  // namespace gainlens::recommend
