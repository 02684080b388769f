#include "core/check.h"
#include "data/chunks.h"
#include "runfile/bos_words.h"

namespace gainlens::data {
namespace {

/// The tokenizer's own BOS, or else the one in the checkpoint's config. The tokenizer's BOS goes first because the
/// tokenizer encodes the text.
std::optional<tokenizers::TokenId> known_bos(const tokenizers::Tokenizer* tokenizer,
                                             std::optional<tokenizers::TokenId> config_bos) {
  if (tokenizer != nullptr && tokenizer->bos_token()) return tokenizer->bos_token();
  return config_bos;
}

BosDecision prepend(tokenizers::TokenId token, std::string_view reason, std::span<const tokenizers::TokenId> tokens) {
  CHECK(tokens.empty() || tokens.front() != token,
        "--bos: the tokens already start with the BOS {}, a second one would be put before it; use --bos never or take "
        "it out of the text",
        token);
  return {token, fmt::format("BOS {} at position 0 of every chunk ({})", token, reason)};
}

}  // namespace

BosDecision decide_bos(BosPolicy policy, const tokenizers::Tokenizer* tokenizer,
                       std::optional<tokenizers::TokenId> config_bos, std::span<const tokenizers::TokenId> tokens) {
  const auto bos = known_bos(tokenizer, config_bos);
  switch (policy) {
    case BosPolicy::never:
      if (tokenizer != nullptr && tokenizer->bos_doubt().empty() && tokenizer->adds_bos())
        return {std::nullopt, fmt::format("no BOS (--bos never; {}", runfile::bos_left_out)};
      return {std::nullopt, "no BOS (--bos never)"};
    case BosPolicy::always:
      CHECK(bos.has_value(),
            "--bos always: neither the tokenizer nor the checkpoint's config names a BOS token; use --bos never");
      return prepend(*bos, "--bos always", tokens);
    case BosPolicy::automatic:
      if (tokenizer == nullptr)
        return {std::nullopt, "no BOS (--bos auto with --tokens: the ids are taken as they are)"};
      CHECK(tokenizer->bos_doubt().empty(), "--bos auto: {}; decide with --bos always or --bos never",
            tokenizer->bos_doubt());
      if (!tokenizer->adds_bos())
        return {std::nullopt, "no BOS (--bos auto: the tokenizer's own configuration adds none)"};
      CHECK(bos.has_value(),
            "--bos auto: the tokenizer is configured to add a BOS, but names none and the config has none; use --bos "
            "never");
      return prepend(*bos, "--bos auto: the tokenizer's own configuration adds it", tokens);
  }
  ASSERT(false, "BOS policy {}", static_cast<int>(policy));
}

}  // namespace gainlens::data
