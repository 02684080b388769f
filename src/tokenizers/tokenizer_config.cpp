#include "tokenizers/tokenizer_config.h"

#include "core/error.h"
#include "formats/gzip.h"
#include "tokenizers/json_node.h"
#include "tokenizers/tokenizer_files.h"

namespace gainlens::tokenizers {

std::optional<bool> TokenizerConfig::adds_bos() const {
  if (add_bos_token || !tokenizer_class) return add_bos_token;
  for (const std::string_view family : {"LlamaTokenizer", "CodeLlamaTokenizer", "GemmaTokenizer"}) {
    if (*tokenizer_class == family || *tokenizer_class == std::string(family) + "Fast") return true;
  }
  return std::nullopt;
}

TokenizerConfig read_tokenizer_config(const std::filesystem::path& folder) {
  const auto path = folder / tokenizer_config_file;
  TokenizerConfig config;
  if (!is_there(path)) return config;
  const std::string where = printable(path.string());
  const Json document = parse_json(formats::read_plain_or_gzip(path, largest_tokenizer_file), where);
  const JsonNode root(document, where + ":");
  if (root.has("add_bos_token")) config.add_bos_token = root.at("add_bos_token").boolean();
  if (root.has("tokenizer_class")) config.tokenizer_class = root.at("tokenizer_class").text();
  if (root.has("bos_token")) {
    const JsonNode bos = root.at("bos_token");  // a text, or an added token in full
    config.bos_token = (bos.is_object() ? bos.at("content") : bos).text();
  }
  config.add_prefix_space = root.at("add_prefix_space").boolean_or(false);
  return config;
}

}  // namespace gainlens::tokenizers
