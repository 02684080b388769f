#pragma once

#include "tokenizers/json_node.h"

#include <memory>
#include <string>

namespace gainlens::tokenizers {

struct NormalizedText {
  std::string text;
  bool at_start = true;  ///< whether it starts where the whole text starts; false after its start was cut off
};

/// Rewrites a text before it is cut into words. The Unicode tables are those of ICU and PCRE2. Their Unicode version
/// may be later or earlier than that of another implementation of the same tokenizer.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  /// @param from  valid UTF-8
  /// @throws InvalidArgument  a text of 2 GiB or more, if ICU is needed; a pattern reaches its match limit
  virtual NormalizedText apply(NormalizedText from) const = 0;
};

/// The `normalizer` of tokenizer.json: NFC, NFD, NFKC, NFKD (ICU), Prepend, Replace, Strip, StripAccents, Lowercase,
/// ByteLevel, Sequence.
/// @return null for a null node
/// @throws InvalidArgument  another type or field, named together with `--tokens`
std::unique_ptr<Normalizer> make_normalizer(const JsonNode& node);

}  // namespace gainlens::tokenizers
