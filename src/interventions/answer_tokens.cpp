#include "interventions/answer_tokens.h"

#include "core/check.h"
#include "core/counted.h"
#include "core/utf8.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <vector>

namespace gainlens::interventions {
namespace {

using tokenizers::TokenId;
using tokenizers::Tokenizer;

/// A text of digits as a number; the largest number if there are too many.
std::optional<std::int64_t> digits(std::string_view text) {
  if (text.empty() || !std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; })) return std::nullopt;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? number : std::numeric_limits<std::int64_t>::max();
}

TokenId checked_id(std::int64_t id, std::int64_t vocabulary, std::string_view option) {
  CHECK(id < vocabulary, "{}: token id {} lies outside the model's vocabulary of {}", option, id, vocabulary);
  return static_cast<TokenId>(id);
}

/// Tokenizers that put a blank before every text read "Paris" as the token " Paris". Others need the blank.
std::string without_blank(std::string_view text, const Tokenizer& tokenizer) {
  const std::string other = text.starts_with(' ') ? std::string(text.substr(1)) : ' ' + std::string(text);
  const std::vector<TokenId> ids = other.empty() ? std::vector<TokenId>() : tokenizer.encode(other);
  if (ids.size() != 1) return {};
  return fmt::format("; '{}' is one token, {}", printable(other, 60), shown_token(ids.front(), &tokenizer));
}

TokenId token_of_text(std::string_view text, const Tokenizer* tokenizer, std::int64_t vocabulary,
                      std::string_view option) {
  CHECK(tokenizer != nullptr, "{}: '{}' is a text, and with token ids there is no tokenizer; give an id", option,
        printable(text, 60));
  const std::vector<TokenId> ids = tokenizer->encode(text);
  std::vector<std::string> shown;
  shown.reserve(ids.size());
  for (const TokenId id : ids) shown.push_back(shown_token(id, tokenizer));
  constexpr std::size_t most = 12;
  if (shown.size() > most) {
    shown.resize(most);
    shown.emplace_back("..");
  }
  CHECK(ids.size() == 1, "{}: '{}' is {} ({}); give a text that is one token, or an id{}", option, printable(text, 60),
        counted(ids.size(), "token"), fmt::join(shown, " "), without_blank(text, *tokenizer));
  return checked_id(ids.front(), vocabulary, option);
}

}  // namespace

TokenId token_of(std::string_view text, const Tokenizer* tokenizer, std::int64_t vocabulary, std::string_view option) {
  CHECK(!text.empty(), "{}: is empty; give a text that is one token, or an id", option);
  const auto invalid = first_invalid_utf8(text);
  CHECK(!invalid, "{}: '{}' is not UTF-8 at byte {}", option, printable(text, 60), invalid.value_or(0));
  if (text.starts_with("text:")) return token_of_text(text.substr(5), tokenizer, vocabulary, option);
  if (text.starts_with("id:")) {
    const auto id = digits(text.substr(3));
    CHECK(id, "{}: '{}'; after id: must stand a token id", option, printable(text, 60));
    return checked_id(*id, vocabulary, option);
  }
  const auto id = digits(text);
  if (!id) return token_of_text(text, tokenizer, vocabulary, option);
  if (tokenizer != nullptr) {
    const std::vector<TokenId> as_text = tokenizer->encode(text);
    CHECK(as_text.size() != 1 || as_text.front() == *id,
          "{}: {} may be the token id {} ({}) or the text '{}' (token id {}); write id:{} or text:{}", option, text,
          text, *id < vocabulary ? shown_token(static_cast<TokenId>(*id), tokenizer) : "none", text, as_text.front(),
          text, text);
  }
  return checked_id(*id, vocabulary, option);
}

AnswerPair answer_pair(std::string_view answer, std::string_view foil, const Tokenizer* tokenizer,
                       std::int64_t vocabulary) {
  const AnswerPair pair{token_of(answer, tokenizer, vocabulary, "--answer"),
                        token_of(foil, tokenizer, vocabulary, "--foil")};
  CHECK(pair.answer != pair.foil, "--foil: is the token of --answer ({}); give another one",
        shown_token(static_cast<TokenId>(pair.answer), tokenizer));
  return pair;
}

Json answer_request(const AnswerPair& pair, const Tokenizer* tokenizer) {
  const auto text = [&](std::int64_t id) { return shown_token(static_cast<TokenId>(id), tokenizer); };
  return {{"answer", pair.answer}, {"foil", pair.foil}, {"texts", {text(pair.answer), text(pair.foil)}}};
}

std::string shown_token(TokenId id, const Tokenizer* tokenizer) {
  const std::string text = tokenizer == nullptr ? std::string() : tokenizer->token_text(id);
  return text.empty() ? fmt::format("token {}", id) : fmt::format("'{}'", printable(text, 40));
}

}  // namespace gainlens::interventions
