#include "core/check.h"
#include "formats/gzip.h"
#include "tokenizers/pipeline_tokenizer.h"
#include "tokenizers/tokenizer_config.h"
#include "tokenizers/tokenizer_files.h"
#include "tokenizers/tokens_hint.h"

#include <algorithm>

namespace gainlens::tokenizers {
namespace {

/// A merge is "a b" in older files and ["a", "b"] in newer ones.
Bpe::Merge read_merge(const JsonNode& node) {
  if (node.json().is_array()) {
    const auto sides = node.items();
    CHECK(sides.size() == 2, "{}: {} parts; a merge has two", node.where(), sides.size());
    return {sides[0].text(), sides[1].text()};
  }
  return parse_merge(node.text(), node.where());
}

std::unique_ptr<Bpe> read_model(const JsonNode& node, const std::string& file) {
  // Old files have no type; only BPE has merges.
  const std::string type = node.has("type") ? node.at("type").text() : node.has("merges") ? "BPE" : "without a type";
  if (type != "BPE") node.unsupported(fmt::format("model '{}'", printable(type)));
  node.allow_only({"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
                   "byte_fallback", "ignore_merges", "vocab", "merges"});
  if (node.has("dropout") && node.at("dropout").json() != Json(0.0)) node.unsupported("dropout (random merges)");
  for (const std::string_view affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (node.has(affix) && !node.at(affix).text().empty())
      node.at(affix).unsupported(fmt::format("'{}'", printable(node.at(affix).text())));
  }
  BpeOptions options;
  if (node.has("unk_token")) options.unknown_token = node.at("unk_token").text();
  options.fuse_unknown = node.at("fuse_unk").boolean_or(false);
  options.byte_fallback = node.at("byte_fallback").boolean_or(false);
  options.ignore_merges = node.at("ignore_merges").boolean_or(false);
  std::vector<Bpe::Merge> merges;
  for (const JsonNode& merge : node.at("merges").items()) merges.push_back(read_merge(merge));
  return std::make_unique<Bpe>(read_vocabulary(node.at("vocab")), merges, std::move(options), file);
}

AddedToken read_added_token(const JsonNode& node) {
  node.allow_only({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
  AddedToken token;
  token.content = node.at("content").text();
  const std::int64_t id = node.at("id").integer();
  CHECK(id >= 0 && id <= Vocabulary::largest_id, "{}: id {}; ids are from 0 to {}", node.where(), id,
        Vocabulary::largest_id);
  token.id = static_cast<TokenId>(id);
  token.special = node.at("special").boolean_or(false);
  token.normalized = node.at("normalized").boolean_or(!token.special);
  token.single_word = node.at("single_word").boolean_or(false);
  token.left_strip = node.at("lstrip").boolean_or(false);
  token.right_strip = node.at("rstrip").boolean_or(false);
  return token;
}

/// The token that a template puts before a single text, if there is one.
std::optional<TokenId> first_of_template(const JsonNode& node) {
  node.allow_only({"type", "single", "pair", "special_tokens"});
  const auto pieces = node.at("single").items();
  if (pieces.empty() || !pieces.front().has("SpecialToken")) return std::nullopt;
  const std::string name = pieces.front().at("SpecialToken").at("id").text();
  const JsonNode entry = node.at("special_tokens").at(name);
  CHECK(!entry.is_null(), "{}: the template names '{}', which special_tokens does not have", node.where(),
        printable(name));
  const auto ids = entry.at("ids").items();
  if (ids.size() != 1) entry.unsupported(fmt::format("a special token of {} ids", ids.size()));
  const std::int64_t id = ids.front().integer();
  CHECK(id >= 0 && id <= Vocabulary::largest_id, "{}: id {}; ids are from 0 to {}", ids.front().where(), id,
        Vocabulary::largest_id);
  return static_cast<TokenId>(id);
}

std::optional<TokenId> template_bos(const JsonNode& node) {
  if (node.is_null()) return std::nullopt;
  const std::string type = node.at("type").text();
  if (type == "TemplateProcessing") return first_of_template(node);
  if (type == "ByteLevel") return std::nullopt;  // changes only offsets
  if (type != "Sequence") node.unsupported(fmt::format("post-processor '{}'", printable(type)));
  node.allow_only({"type", "processors"});
  std::optional<TokenId> bos;
  for (const JsonNode& item : node.at("processors").items()) {
    const auto found = template_bos(item);
    if (found && bos) item.unsupported("a second template");
    if (found) bos = found;
  }
  return bos;
}

/// The template decides in transformers 5. In transformers 4, tokenizer_config.json decides for some classes (Llama's,
/// Gemma's) and not for others (Qwen 2's, PreTrainedTokenizerFast). So nothing is certain where the two differ.
std::string bos_doubt(bool in_template, const TokenizerConfig& config) {
  if (config.adds_bos().value_or(in_template) == in_template) return {};
  const std::string says = config.add_bos_token ? fmt::format("says add_bos_token: {}", *config.add_bos_token)
                                                : fmt::format("names {}, which adds a BOS unless told otherwise",
                                                              printable(*config.tokenizer_class, 40));
  return fmt::format(
      "the post_processor of {} puts {} first, but {} {}; transformers 5 follows the former, transformers "
      "4 often the latter",
      tokenizer_json_file, in_template ? "a BOS" : "no BOS", tokenizer_config_file, says);
}

bool mentions_byte_level(const Json& part) {
  if (part.is_array() || part.is_object()) return std::any_of(part.begin(), part.end(), mentions_byte_level);
  return part == "ByteLevel";
}

TokenBytes token_bytes(const JsonNode& root) {
  if (mentions_byte_level(root.at("pre_tokenizer").json()) || mentions_byte_level(root.at("normalizer").json()))
    return TokenBytes::byte_level;
  return root.at("model").at("byte_fallback").boolean_or(false) ? TokenBytes::byte_fallback : TokenBytes::text;
}

std::string describe(const JsonNode& root) {
  std::string text = token_bytes(root) == TokenBytes::byte_level ? "byte-level BPE" : "BPE";
  if (root.at("model").at("byte_fallback").boolean_or(false)) text += " with byte fallback";
  text += ", {} tokens (tokenizer.json";
  // These settings are for batches of short inputs. As in transformers, they do not apply to a text that is encoded
  // whole.
  for (const std::string_view setting : {"truncation", "padding"}) {
    if (root.has(setting)) text += fmt::format("; its {} is not applied", setting);
  }
  return text + ")";
}

std::optional<TokenId> find_token(const TokenizerParts& parts, const std::string& content) {
  for (const AddedToken& token : parts.added_tokens) {
    if (token.content == content) return token.id;
  }
  return parts.model->vocabulary().find(content);
}

std::unique_ptr<Tokenizer> read_tokenizer_json(const std::filesystem::path& file) {
  const std::string where = printable(file.string());
  const Json document = parse_json(formats::read_plain_or_gzip(file, largest_tokenizer_file), where);
  const JsonNode root(document, where + ":");
  root.allow_only({"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor",
                   "decoder", "model"});

  TokenizerParts parts;
  parts.model = read_model(root.at("model"), where);
  if (root.has("added_tokens")) {
    for (const JsonNode& item : root.at("added_tokens").items()) parts.added_tokens.push_back(read_added_token(item));
  }
  parts.normalizer = make_normalizer(root.at("normalizer"));
  parts.pre_tokenizer = make_pre_tokenizer(root.at("pre_tokenizer"));

  const TokenizerConfig config = read_tokenizer_config(file.parent_path());
  parts.bos = template_bos(root.at("post_processor"));
  parts.adds_bos = parts.bos.has_value();
  parts.bos_doubt = bos_doubt(parts.adds_bos, config);
  if (!parts.bos && config.bos_token) parts.bos = find_token(parts, *config.bos_token);
  parts.token_bytes = token_bytes(root);
  parts.description = describe(root);
  return make_pipeline(std::move(parts), where);
}

}  // namespace

std::unique_ptr<Tokenizer> open_tokenizer_json(const std::filesystem::path& file) {
  return with_tokens_hint([&] { return read_tokenizer_json(file); });
}

}  // namespace gainlens::tokenizers
