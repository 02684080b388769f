#include "core/check.h"
#include "formats/torch_file.h"
#include "recommend/sasrec_foreign.h"

#include <fmt/ranges.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::recommend {
namespace {

using formats::PickleId;
using formats::PickleKind;

/// The configuration that RecBole stores in a checkpoint: attributes of an object of its class Config.
class RecBoleConfig {
 public:
  explicit RecBoleConfig(const formats::TorchFile& file) : data_(file.content()), where_(file.where()) {
    const auto config = data_.value(data_.root(), "config");
    CHECK(config.has_value(), "{}: has no 'config'; RecBole's trainer writes one beside 'state_dict'", where_);
    const auto& state = data_.at(*config).state;
    const auto values = state ? data_.value(*state, "final_config_dict") : std::nullopt;
    CHECK(values.has_value(), "{}: 'config' is {}; must be RecBole's, with 'final_config_dict'", where_,
          data_.description(*config));
    values_ = *values;
  }

  std::string text(const std::string& key) const {
    const auto& node = data_.at(at(key));
    CHECK(node.kind == PickleKind::text, "{}: the option '{}' is {}; must be a text", where_, key,
          data_.description(at(key)));
    return node.text;
  }
  std::int64_t whole(const std::string& key) const {
    const auto& node = data_.at(at(key));
    CHECK(node.kind == PickleKind::integer, "{}: the option '{}' is {}; must be a whole number", where_, key,
          data_.description(at(key)));
    return node.integer;
  }
  double real(const std::string& key) const {
    const auto& node = data_.at(at(key));
    CHECK(node.kind == PickleKind::real, "{}: the option '{}' is {}; must be a number", where_, key,
          data_.description(at(key)));
    return node.real;
  }

 private:
  PickleId at(const std::string& key) const {
    const auto value = data_.value(values_, key);
    CHECK(value.has_value(), "{}: 'config' has no option '{}'", where_, key);
    return *value;
  }

  const formats::PickleData& data_;
  std::string where_;
  PickleId values_ = 0;
};

ForeignParts::Activation activation_named(const std::string& name, const std::string& where) {
  if (name == "gelu") return ForeignParts::Activation::gelu;
  if (name == "relu") return ForeignParts::Activation::relu;
  CHECK(name == "swish", "{}: the option 'hidden_act' is '{}'; gelu, relu and swish are read", where,
        printable(name, 40));
  return ForeignParts::Activation::silu;
}

SasRecConfig config_of(const RecBoleConfig& options, const ForeignTensors& tensors) {
  const std::string& where = tensors.where();
  const std::string model = options.text("model");
  CHECK(model == "SASRec", "{}: is a model '{}' of RecBole; SASRec is read", where, printable(model, 40));
  SasRecConfig config;
  config.items = tensors.shape("item_embedding.weight", 2)[0] - 1;  // 0 is padding
  config.positions = tensors.shape("position_embedding.weight", 2)[0];
  config.width = options.whole("hidden_size");
  config.heads = options.whole("n_heads");
  config.layers = options.whole("n_layers");
  config.inner_width = options.whole("inner_size");
  config.norm_epsilon = options.real("layer_norm_eps");
  config.norm = NormPlace::post;
  config.embedding_norm = true;
  config.alignment = Alignment::start;
  config.foreign.activation = activation_named(options.text("hidden_act"), where);
  check(config, where);
  return config;
}

/// What a tensor is called there.
std::string recbole_name(const std::string& name) {
  static const std::map<std::string, std::string> stems = {{"attention_norm", "multi_head_attention.LayerNorm"},
                                                           {"attention.query", "multi_head_attention.query"},
                                                           {"attention.key", "multi_head_attention.key"},
                                                           {"attention.value", "multi_head_attention.value"},
                                                           {"attention.output", "multi_head_attention.dense"},
                                                           {"mlp_norm", "feed_forward.LayerNorm"},
                                                           {"mlp.up", "feed_forward.dense_1"},
                                                           {"mlp.down", "feed_forward.dense_2"}};
  const std::size_t dot = name.rfind('.');
  const std::string stem = name.substr(0, dot), kind = name.substr(dot);
  if (stem == "embedding_norm") return "LayerNorm" + kind;
  if (!stem.starts_with("layers.")) return name;
  const std::size_t after = stem.find('.', std::string("layers.").size());
  return "trm_encoder.layer." + stem.substr(7, after - 7) + "." + stems.at(stem.substr(after + 1)) + kind;
}

}  // namespace

ForeignSasRec load_recbole(const std::filesystem::path& path, const ForeignOptions& options) {
  CHECK(!options.heads, "--heads: the layout recbole tells it; leave it out");
  CHECK(!options.items.empty(),
        "{}: RecBole keeps which item has which id in its data set and not in the checkpoint; give --items FILE.csv "
        "with the columns item and id",
        printable(path.string()));
  const formats::TorchFile file = formats::TorchFile::open(path);
  const RecBoleConfig config(file);
  const auto state = file.content().value(file.content().root(), "state_dict");
  CHECK(state.has_value(), "{}: has no 'state_dict'", file.where());
  const auto entries = file.tensors(*state, "'state_dict'");
  ForeignTensors tensors(entries, file.where());
  ForeignSasRec read;
  read.model.config = config_of(config, tensors);
  read.items = named_items(options, read.model.config.items, file.where());
  read.model.weights = foreign_weights(
      read.model.config, [&](const WeightSlot& slot) { return tensors.read(recbole_name(slot.name), slot.shape); });
  tensors.check_all_read();
  order_items(read.model.weights, read.items);
  return read;
}

}  // namespace gainlens::recommend
