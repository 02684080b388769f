#include "sweep/token_source.h"

#include "core/check.h"
#include "core/checked.h"
#include "core/sha256.h"
#include "data/text.h"

#include <algorithm>
#include <memory>
#include <span>

namespace gainlens::sweep {
namespace {

std::string sha256_of_ids(std::span<const tokenizers::TokenId> ids) {
  return sha256_hex({reinterpret_cast<const char*>(ids.data()), ids.size_bytes()});
}

}  // namespace

TokenSource read_tokens(const TokenSourceOptions& options, const std::filesystem::path& folder, std::int64_t vocabulary,
                        std::optional<std::int64_t> config_bos) {
  CHECK(options.text.empty() != options.token_ids.empty(), "{}; give either --text FILE or --tokens FILE.json",
        options.text.empty() ? "--text: there is no text, and there are no token ids"
                             : "--text: there are token ids too (--tokens)");
  TokenSource source;
  std::unique_ptr<tokenizers::Tokenizer> tokenizer;
  std::filesystem::path origin = options.token_ids;
  if (options.text.empty()) {
    source.tokens = data::read_token_ids(options.token_ids);
    source.tokenizer_sha256 = "tokens";
    source.text_sha256 = sha256_of_ids(source.tokens);
    source.tokenizer_description = "token ids given";
  } else {
    origin = options.text;
    tokenizer = tokenizers::open_tokenizer(folder);
    const std::string text = data::read_text(options.text, tokenizer->longest_text());
    source.tokens = tokenizer->encode(text);
    source.tokenizer_sha256 = tokenizers::tokenizer_sha256(folder);
    source.text_sha256 = sha256_hex(text);
    source.tokenizer_description = tokenizer->description();
  }
  const auto outside = std::find_if(source.tokens.begin(), source.tokens.end(),
                                    [&](tokenizers::TokenId id) { return id < 0 || id >= vocabulary; });
  CHECK(outside == source.tokens.end(),
        "{}: token id {} at index {} lies outside the model's vocabulary of {}; is this the model's own tokenizer?",
        origin.string(), *outside, outside - source.tokens.begin(), vocabulary);

  std::optional<tokenizers::TokenId> bos;
  if (config_bos) bos = checked_cast<tokenizers::TokenId>(*config_bos, "bos_token_id");
  source.bos = data::decide_bos(options.bos, tokenizer.get(), bos, source.tokens);
  CHECK(!source.bos.token || (*source.bos.token >= 0 && *source.bos.token < vocabulary),
        "bos token: id {} lies outside the model's vocabulary of {}", *source.bos.token, vocabulary);
  return source;
}

}  // namespace gainlens::sweep
