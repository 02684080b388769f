#pragma once

#include "tokenizers/json_node.h"

#include <memory>
#include <string>

namespace gainlens::tokenizers {

struct NormalizedText {
  std::string text;
  bool at_start = true;       ///< whether it starts where the whole text starts; false after its start was cut off
  bool continues = false;     ///< whether it starts at a cut (Normalizer::cut): nothing is put before it
  std::size_t max_bytes = 0;  ///< how long the steps of a normaliser may make it; 0: the first one says
};

/// Rewrites a text before it is cut into words. The Unicode tables are those of ICU and PCRE2. Their Unicode version
/// may be later or earlier than that of another implementation of the same tokenizer.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  /// @param from  valid UTF-8
  /// @throws InvalidArgument  a text of 2 GiB or more, if ICU is needed; a pattern reaches its match limit; the text
  ///     becomes more than 64 times as long
  virtual NormalizedText apply(NormalizedText from) const = 0;
  /// Normalises what stands on both sides of a place in a text, if the text can be cut there: if the normalised text
  /// is, whatever stands around them, that of everything before the place, and then that of the rest as one that
  /// continues.
  /// @param left   the text before the place, from an ASCII character (or the start of the text) on
  /// @param right  the text behind the place, up to an ASCII character, which is left out
  /// @return false if the text cannot be cut there, or it is not known; then both are of no use
  virtual bool cut(std::string& left, std::string& right) const;

 private:
  /// Whether the place before `right` is such a place, for a normaliser that looks at single characters or at a
  /// character with the marks on it.
  virtual bool cuts_before(std::string_view /*right*/) const { return false; }
};

/// The `normalizer` of tokenizer.json: NFC, NFD, NFKC, NFKD (ICU), Prepend, Replace, Strip, StripAccents, Lowercase,
/// ByteLevel, Sequence.
/// @return null for a null node
/// @throws InvalidArgument  another type or field, named together with `--tokens`
std::unique_ptr<Normalizer> make_normalizer(const JsonNode& node);

}  // namespace gainlens::tokenizers
