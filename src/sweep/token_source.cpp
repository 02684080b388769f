#include "sweep/token_source.h"

#include "core/check.h"
#include "core/checked.h"
#include "core/counted.h"
#include "core/listener.h"
#include "core/sha256.h"
#include "core/utf8.h"
#include "data/text.h"
#include "tokenizers/text_encoder.h"

#include <algorithm>
#include <span>
#include <utility>

namespace gainlens::sweep {
namespace {

std::string sha256_of_ids(std::span<const tokenizers::TokenId> ids) {
  return sha256_hex({reinterpret_cast<const char*>(ids.data()), ids.size_bytes()});
}

/// A text up to this size is a prompt, of which people want to know every token.
constexpr std::size_t longest_prompt = std::size_t{16} << 10;

/// The start of a text, as far as it may be a prompt.
class Prompt {
 public:
  void add(std::string_view text) {
    whole_ = whole_ && text_.size() + text.size() <= longest_prompt;
    if (whole_) text_ += text;
  }
  void describe(const tokenizers::Tokenizer& tokenizer, TokenSource& source) const {
    if (!whole_ || !source.whole || text_.size() < 2 || !text_.ends_with('\n')) return;
    const std::size_t end = text_.size() - (text_.ends_with("\r\n") ? 2 : 1);
    source.without_line_end = std::ssize(tokenizer.encode(std::string_view(text_).substr(0, end)));
    source.one_line = text_.find('\n') == text_.size() - 1;
  }

 private:
  std::string text_;
  bool whole_ = true;
};

/// @param needed  tokens from the start of the text
void read_text(const std::filesystem::path& path, const tokenizers::Tokenizer& tokenizer,
               std::optional<std::int64_t> needed, TokenSource& source) {
  data::TextReader text(path);
  tokenizers::TextEncoder::Options options{.where = text.where(), .enough = {}};
  if (needed) options.enough = static_cast<std::size_t>(std::max<std::int64_t>(*needed, 1));
  tokenizers::TextEncoder encoder(tokenizer, options);
  Prompt prompt;
  for (std::string_view part = text.next(); !part.empty(); part = text.next()) {
    prompt.add(part);
    encoder.add(part);
  }
  source.whole = encoder.finish();
  source.tokens = encoder.take();
  source.text_sha256 = text.sha256();
  prompt.describe(tokenizer, source);
}

}  // namespace

TokenSource read_tokens(const TokenSourceOptions& options, const std::filesystem::path& folder, std::int64_t vocabulary,
                        std::optional<std::int64_t> config_bos, const TokensNeeded& needed) {
  CHECK(!options.prompt || (options.text.empty() && options.token_ids.empty()),
        "--prompt: there is a file too ({}); give one of the two", options.text.empty() ? "--tokens" : "--text");
  CHECK(options.prompt || options.text.empty() != options.token_ids.empty(),
        "{}; give either --text FILE or --tokens FILE.json",
        options.text.empty() ? "--text: there is no text, and there are no token ids"
                             : "--text: there are token ids too (--tokens)");
  std::optional<tokenizers::TokenId> bos;
  if (config_bos) bos = checked_cast<tokenizers::TokenId>(*config_bos, "bos_token_id");
  TokenSource source;
  std::shared_ptr<const tokenizers::Tokenizer> tokenizer;
  std::filesystem::path origin = options.token_ids;
  if (options.prompt) {
    CHECK(!options.prompt->empty(), "--prompt: is empty");
    const auto invalid = first_invalid_utf8(*options.prompt);
    CHECK(!invalid, "--prompt: not UTF-8 at byte {}", invalid.value_or(0));
    tokenizer = tokenizers::open_tokenizer(folder);
    source.tokens = tokenizer->encode(*options.prompt);
    source.tokenizer_sha256 = tokenizers::tokenizer_sha256(folder);
    source.text_sha256 = sha256_hex(*options.prompt);
    source.tokenizer_description = tokenizer->description();
    origin = "--prompt";
  } else if (options.text.empty()) {
    source.tokens = data::read_token_ids(options.token_ids);
    source.tokenizer_sha256 = "tokens";
    source.text_sha256 = sha256_of_ids(source.tokens);
    source.tokenizer_description = "token ids given";
  } else {
    origin = options.text;
    tokenizer = tokenizers::open_tokenizer(folder);
    const bool has_bos = data::decide_bos(options.bos, tokenizer.get(), bos, {}).token.has_value();
    read_text(options.text, *tokenizer, needed(has_bos), source);
    source.tokenizer_sha256 = tokenizers::tokenizer_sha256(folder);
    source.tokenizer_description = tokenizer->description();
  }
  const auto outside = std::find_if(source.tokens.begin(), source.tokens.end(),
                                    [&](tokenizers::TokenId id) { return id < 0 || id >= vocabulary; });
  CHECK(outside == source.tokens.end(),
        "{}: token id {} at index {} lies outside the model's vocabulary of {}; is this the model's own tokenizer?",
        printable(origin.string()), *outside, outside - source.tokens.begin(), vocabulary);

  source.bos = data::decide_bos(options.bos, tokenizer.get(), bos, source.tokens);
  source.tokenizer = std::move(tokenizer);
  CHECK(!source.bos.token || (*source.bos.token >= 0 && *source.bos.token < vocabulary),
        "bos token: id {} lies outside the model's vocabulary of {}", *source.bos.token, vocabulary);
  return source;
}

std::optional<std::int64_t> all_tokens(bool /*bos*/) {
  return std::nullopt;
}

void tell_of_line_end(const TokenSource& source) {
  if (!source.without_line_end) return;
  const std::int64_t tokens = std::ssize(source.tokens);
  tell_note(
      "the text ends in a line end, which is a part of its {}; without it there {} (printf '%s' writes "
      "none)",
      gainlens::counted(tokens, "token"),
      *source.without_line_end == 1 ? "is 1" : fmt::format("are {}", *source.without_line_end));
}

}  // namespace gainlens::sweep
