#include "interventions/prompts.h"

#include "core/check.h"
#include "core/checked.h"
#include "data/text.h"
#include "interventions/answer_tokens.h"

#include <algorithm>

namespace gainlens::interventions {
namespace {

namespace fs = std::filesystem;
using tokenizers::TokenId;
using tokenizers::Tokenizer;

/// Most bytes of a prompt.
constexpr std::uint64_t longest_prompt = std::uint64_t{1} << 20;

bool is_file(const std::string& given) {
  std::error_code error;
  return given.size() < 4096 && given.find('\n') == std::string::npos && fs::is_regular_file(given, error);
}

bool holds_ids(const std::string& given) {
  return given.ends_with(".json") && is_file(given);
}

/// A prompt that looks like the name of a file is one: a mistyped name must not become the prompt.
void check_file_exists(const std::string& given, const char* option) {
  std::error_code error;
  const bool one_word = given.size() < 4096 && given.find_first_of(" \n") == std::string::npos;
  const bool named = one_word && (given.find('/') != std::string::npos || given.ends_with(".json") ||
                                  given.ends_with(".txt") || fs::exists(given, error));
  CHECK(!named || is_file(given),
        "{}: '{}' is no file; give one that is there. A text that looks like a file's name can stand in a file", option,
        printable(given, 80));
}

std::string text_of(const std::string& given) {
  if (!is_file(given)) return given;
  std::string text = data::read_text(given, longest_prompt);
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  return text;
}

std::vector<TokenId> tokens_of(const std::string& given, const Tokenizer* tokenizer, std::int64_t vocabulary,
                               const char* option) {
  const std::vector<TokenId> ids =
      tokenizer == nullptr ? data::read_token_ids(given) : tokenizer->encode(text_of(given));
  CHECK(!ids.empty(), "{}: holds no token", option);
  const auto outside = std::ranges::find_if(ids, [&](TokenId id) { return id < 0 || id >= vocabulary; });
  CHECK(outside == ids.end(), "{}: token id {} at index {} lies outside the model's vocabulary of {}", option, *outside,
        outside - ids.begin(), vocabulary);
  return ids;
}

/// "0 'The'|'The'  1 ' cat'|' dog'": what stands at the same position of both.
std::string side_by_side(const PromptPair& prompts) {
  constexpr std::size_t most = 48;
  const std::size_t longer = std::max(prompts.clean.size(), prompts.corrupt.size());
  const auto at = [&](const std::vector<TokenId>& ids, std::size_t i) {
    return i < ids.size() ? shown_token(ids[i], prompts.tokenizer.get()) : std::string("-");
  };
  std::string text;
  for (std::size_t i = 0; i < std::min(longer, most); ++i)
    text += fmt::format("{}{} {}|{}", i == 0 ? "" : "  ", i, at(prompts.clean, i), at(prompts.corrupt, i));
  return longer > most ? text + "  .." : text;
}

}  // namespace

PromptPair read_prompts(const PromptOptions& options, const fs::path& folder, std::int64_t vocabulary,
                        std::optional<std::int64_t> config_bos) {
  CHECK(!options.clean.empty(), "--clean: is missing or empty; --clean and --corrupt go together");
  CHECK(!options.corrupt.empty(), "--corrupt: is missing or empty; --clean and --corrupt go together");
  check_file_exists(options.clean, "--clean");
  check_file_exists(options.corrupt, "--corrupt");
  const bool ids = holds_ids(options.clean);
  CHECK(ids == holds_ids(options.corrupt),
        "--clean and --corrupt: one holds token ids and the other text; give both "
        "in the same way");
  PromptPair prompts;
  prompts.tokenizer_sha256 = "tokens";
  if (!ids) {
    prompts.tokenizer = tokenizers::open_tokenizer(folder);
    prompts.tokenizer_sha256 = tokenizers::tokenizer_sha256(folder);
  }
  const Tokenizer* const tokenizer = prompts.tokenizer.get();
  prompts.clean = tokens_of(options.clean, tokenizer, vocabulary, "--clean");
  prompts.corrupt = tokens_of(options.corrupt, tokenizer, vocabulary, "--corrupt");
  std::optional<TokenId> bos;
  if (config_bos) bos = checked_cast<TokenId>(*config_bos, "bos_token_id");
  prompts.bos = data::decide_bos(options.bos, tokenizer, bos, prompts.clean);
  if (prompts.bos.token) {
    CHECK(*prompts.bos.token >= 0 && *prompts.bos.token < vocabulary,
          "bos token: id {} lies outside the model's vocabulary of {}", *prompts.bos.token, vocabulary);
    for (std::vector<TokenId>* const tokens : {&prompts.clean, &prompts.corrupt})
      tokens->insert(tokens->begin(), *prompts.bos.token);
  }
  CHECK(prompts.clean.size() == prompts.corrupt.size(),
        "--clean and --corrupt: {} and {} tokens; they must have equally many. Clean|corrupt by position: {}",
        prompts.clean.size(), prompts.corrupt.size(), side_by_side(prompts));
  CHECK(prompts.clean != prompts.corrupt, "--clean and --corrupt: are the same {} tokens; there is nothing to patch",
        prompts.clean.size());
  CHECK(prompts.clean.size() >= 2, "--clean and --corrupt: one token each; patching needs at least 2");
  return prompts;
}

}  // namespace gainlens::interventions
