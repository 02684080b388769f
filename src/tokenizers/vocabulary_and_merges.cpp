#include "core/error.h"
#include "formats/gzip.h"
#include "tokenizers/pipeline_tokenizer.h"
#include "tokenizers/tokenizer_config.h"
#include "tokenizers/tokenizer_files.h"
#include "tokenizers/tokens_hint.h"

#include <algorithm>

namespace gainlens::tokenizers {
namespace {

constexpr const char* end_of_text = "<|endoftext|>";

/// One merge per line, "a b". A line "#version: 0.2" is skipped.
std::vector<Bpe::Merge> read_merges(const std::filesystem::path& path) {
  const std::string where = printable(path.string());
  const std::string content = formats::read_plain_or_gzip(path, largest_tokenizer_file);
  std::vector<Bpe::Merge> merges;
  std::size_t number = 0;
  for (std::size_t start = 0; start < content.size();) {
    const std::size_t end = std::min(content.find('\n', start), content.size());
    std::string_view line = std::string_view(content).substr(start, end - start);
    start = end + 1;
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with("#version") || (line.empty() && start >= content.size())) continue;
    merges.push_back(parse_merge(line, fmt::format("{}: line {}", where, number)));
  }
  return merges;
}

Vocabulary read_vocabulary_file(const std::filesystem::path& path) {
  const std::string where = printable(path.string());
  const Json document = parse_json(formats::read_plain_or_gzip(path, largest_tokenizer_file), where);
  return read_vocabulary(JsonNode(document, where + ":"));
}

/// Other tokenizers with patterns of their own (Qwen's, CLIP's) use the same pair of files. They need their
/// tokenizer.json.
void check_class(const TokenizerConfig& config, const std::filesystem::path& folder) {
  if (!config.tokenizer_class || *config.tokenizer_class == "GPT2Tokenizer" ||
      *config.tokenizer_class == "GPT2TokenizerFast")
    return;
  throw_invalid(
      "{}: tokenizer_class '{}' with vocab.json and merges.txt alone is not supported; save its tokenizer.json beside "
      "them, or give ids with --tokens FILE.json",
      printable((folder / tokenizer_config_file).string()), printable(*config.tokenizer_class));
}

std::unique_ptr<Tokenizer> read_gpt2_bpe(const std::filesystem::path& vocabulary, const std::filesystem::path& merges) {
  const TokenizerConfig config = read_tokenizer_config(vocabulary.parent_path());
  check_class(config, vocabulary.parent_path());
  TokenizerParts parts;
  parts.model = std::make_unique<Bpe>(read_vocabulary_file(vocabulary), read_merges(merges), BpeOptions{},
                                      printable(merges.string()));
  if (const auto id = parts.model->vocabulary().find(end_of_text)) {
    AddedToken token;
    token.content = end_of_text;
    token.id = *id;
    token.special = true;
    parts.added_tokens.push_back(std::move(token));
  }
  parts.pre_tokenizer = make_byte_level(config.add_prefix_space, true);
  parts.token_bytes = TokenBytes::byte_level;
  parts.bos = parts.model->vocabulary().find(config.bos_token.value_or(end_of_text));
  parts.adds_bos = config.adds_bos().value_or(false);
  parts.description = "byte-level BPE, {} tokens (vocab.json + merges.txt)";
  return make_pipeline(std::move(parts), printable(vocabulary.string()));
}

}  // namespace

std::unique_ptr<Tokenizer> open_gpt2_bpe(const std::filesystem::path& vocabulary, const std::filesystem::path& merges) {
  return with_tokens_hint([&] { return read_gpt2_bpe(vocabulary, merges); });
}

}  // namespace gainlens::tokenizers
