#include "core/check.h"
#include "models/families/common_keys.h"
#include "models/families/family.h"

#include <algorithm>

namespace gainlens::models {
namespace exaone4_family {

/// The windows that a word such as "LLLG" gives, repeated over the layers: L is a layer with the window, G one without.
std::vector<std::int64_t> windows_by_word(const ConfigReader& reader, std::string_view word, std::int64_t layers,
                                          std::int64_t window) {
  CHECK(!word.empty() && word.find_first_not_of("LG") == std::string_view::npos,
        "{}: 'sliding_window_pattern' is '{}'; must be a number, or a word of the letters L and G", reader.where(),
        printable(word, 60));
  std::vector<std::int64_t> windows;
  for (std::int64_t layer = 0; layer < layers; ++layer)
    windows.push_back(word[static_cast<std::size_t>(layer) % word.size()] == 'L' ? window : 0);
  return windows;
}

/// Reads the windows from `layer_types`, and from a number or a word in `sliding_window_pattern`.
std::vector<std::int64_t> parse_windows(ConfigReader& reader, std::int64_t layers) {
  const Json* pattern = reader.find_non_null("sliding_window_pattern");
  if (pattern == nullptr || !pattern->is_string()) {
    const std::int64_t interval = pattern == nullptr ? 4 : reader.integer("sliding_window_pattern", 1, 4096);
    return parse_alternating_windows(reader, layers, interval, 4096);
  }
  const std::int64_t window = parse_window(reader, 4096);
  const std::vector<std::int64_t> listed = windows_by_type(reader, layers, window, "sliding_window is null; set it");
  const std::vector<std::int64_t> spelled =
      windows_by_word(reader, pattern->get_ref<const std::string&>(), layers, window);
  // Some programs give the last layer no window, whatever its letter.
  CHECK(!listed.empty() || spelled.back() == 0,
        "{}: 'sliding_window_pattern' is {}, by which the last of {} layers may or may not have a window; give "
        "'layer_types'",
        reader.where(), brief(*pattern), layers);
  CHECK(listed.empty() || std::equal(listed.begin(), listed.end() - 1, spelled.begin()),
        "{}: 'sliding_window_pattern' is {} and 'layer_types' is {}; they mean the same and must agree", reader.where(),
        brief(*pattern), brief(*reader.find("layer_types")));
  return listed.empty() ? spelled : listed;
}

DecoderConfig parse(ConfigReader& reader) {
  DecoderConfig config =
      parse_common(reader, {.max_positions = 2048, .kv_heads = 32, .bos_token = 0, .norm_epsilon = 1e-5});
  config.pre_norm = false;
  config.post_norm = true;
  config.qk_norm = QkNorm::head;
  config.window = parse_windows(reader, config.layers);
  require_value(reader, "reorder_qk_norm", true, "queries and keys are normalised after their projections");
  // In a model with a window, only the layers that have it rotate.
  if (parse_window(reader, 4096) > 0) {
    for (const std::int64_t window : config.window) config.unrotated.push_back(window == 0);
  }
  return config;
}

TensorNames names() {
  TensorNames names;
  names.attention_post_norm = "post_attention_layernorm";
  names.mlp_post_norm = "post_feedforward_layernorm";
  return names;
}

void complete(GgufConfig& gguf) {
  if (gguf.find("attention.sliding_window") == nullptr) {
    gguf.config["sliding_window"] = nullptr;
  } else if (!copy_window_pattern(gguf)) {
    gguf.fill("sliding_window_pattern", 4,
              "not in the file; in the models of the family that have a window each fourth layer is global");
  }
}

}  // namespace exaone4_family

Family exaone4() {
  using namespace exaone4_family;
  return {.name = "exaone4",
          .title = "EXAONE 4",
          .examples = "EXAONE 4.0 1.2B and 32B",
          .classes = {"Exaone4"},
          .parse = parse,
          .tensors = names(),
          .inert_keys = {"cache_implementation"},
          .gguf = {.architecture = "exaone4",
                   .tensors = gguf_names(),
                   .keys = {{"attention.sliding_window", "sliding_window"}},
                   .complete = complete}};
}

}  // namespace gainlens::models
