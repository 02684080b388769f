#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::tokenizers {

using TokenId = std::int32_t;

/// Turns text into token ids. encode() never adds BOS: the chunk plan does that (docs/method.md, "Sweep protocol").
///
/// A long text is encoded in parts, cut where no word and no merge can cross (TextEncoder). The ids are those of the
/// whole text.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  /// The ids of the text. Special tokens that are written in the text are treated as the tokenizer's own configuration
  /// says.
  /// @throws InvalidArgument  text that is not UTF-8 (names the byte offset), if the tokenizer needs UTF-8; text longer
  ///     than longest_text()
  std::vector<TokenId> encode(std::string_view text) const { return encode_from(text, 0); }
  /// The ids of text[begin, end), where `begin` is 0 or a cut.
  /// @param text  valid UTF-8; holds at least the character before `begin`
  /// @throws InvalidArgument  as encode
  virtual std::vector<TokenId> encode_from(std::string_view text, std::size_t begin) const = 0;
  /// The last place, begin < place < text.size(), where a text that starts with `text` can be cut: whatever follows
  /// `text`, the ids of the whole are those of text[begin, place), followed by those of encode_from(whole, place).
  /// @param text   valid UTF-8
  /// @param begin  as for encode_from
  /// @return `begin` if there is no such place, or none is found
  virtual std::size_t last_cut(std::string_view text, std::size_t begin) const = 0;
  /// Whether encode_from takes a `begin` other than 0. Without it only the text up to a cut can be encoded, from its
  /// start.
  virtual bool continues_at_cuts() const = 0;
  /// Bytes of the longest text that encode() takes.
  virtual std::size_t longest_text() const = 0;
  virtual std::int64_t vocabulary_size() const = 0;
  /// What the token stands for, as the vocabulary has it, in readable form: a piece of SentencePiece as it is ("▁the",
  /// where ▁ is a space), a token of a byte-level vocabulary as its bytes (" the"; a line feed is a line feed). Bytes
  /// that are no UTF-8 by themselves are written as "<0xE2>", and so is NUL. Always UTF-8, with any other control
  /// characters: printable() before it is shown.
  /// @return empty if the vocabulary has no such id
  virtual std::string token_text(TokenId id) const = 0;
  /// What the token adds to a text: its bytes, which may be part of a character. A piece of SentencePiece has spaces
  /// for its signs ▁; its control pieces add nothing, and unknown ones what the library writes for them. Added tokens
  /// are written as they are, special ones too.
  /// @return empty if the vocabulary has no such id
  virtual std::string token_bytes(TokenId id) const = 0;
  /// The text of these tokens, token by token, with any space that stands before the first word. Bytes that are no
  /// UTF-8 together are written as "<0xE2>", as in token_text().
  std::string decode(std::span<const TokenId> ids) const;
  virtual std::optional<TokenId> bos_token() const = 0;
  /// Whether the tokenizer's own configuration puts BOS first: the template of tokenizer.json, or where there is no
  /// tokenizer.json, add_bos_token.
  virtual bool adds_bos() const = 0;
  /// Why adds_bos() cannot be relied on: the tokenizer's own files contradict each other, or leave it open. Empty if
  /// they are clear.
  virtual std::string bos_doubt() const { return {}; }
  /// One line for people: "byte-level BPE, 50257 tokens (vocab.json + merges.txt)".
  virtual std::string description() const = 0;
};

/// Opens the tokenizer of a checkpoint. For a GGUF file, or a folder that holds a GGUF checkpoint, it is the tokenizer
/// inside that file: the file determines the model, whatever else the folder holds. Otherwise it is tokenizer.json,
/// else tokenizer.model, else vocab.json + merges.txt. An adapter (formats::find_adapter) without these has the
/// tokenizer of its base.
/// @param checkpoint  a folder or a .gguf file
/// @throws InvalidArgument  there is no tokenizer, it is broken, or a part of it is not supported; the message says to
///     give ids with `--tokens`
std::unique_ptr<Tokenizer> open_tokenizer(const std::filesystem::path& checkpoint);

/// Open one kind of tokenizer, for tests and for callers that know the kind. Any file may be gzipped.
std::unique_ptr<Tokenizer> open_sentencepiece(const std::filesystem::path& model);
std::unique_ptr<Tokenizer> open_tokenizer_json(const std::filesystem::path& file);
std::unique_ptr<Tokenizer> open_gpt2_bpe(const std::filesystem::path& vocabulary, const std::filesystem::path& merges);

/// The files that determine the tokens, for hashing. For a GGUF checkpoint: the file with its metadata (the first part
/// of a split one).
/// @throws InvalidArgument  as open_tokenizer, where there is none
std::vector<std::filesystem::path> tokenizer_files(const std::filesystem::path& checkpoint);

/// A checksum of everything that determines the tokens: names and contents of those files, or for a GGUF checkpoint all
/// keys `tokenizer.*` with their values. So another quantisation of a model has the same checksum, and no weights are
/// read.
/// @return 64 hex digits
/// @throws InvalidArgument  as open_tokenizer, where there is none
std::string tokenizer_sha256(const std::filesystem::path& checkpoint);

}  // namespace gainlens::tokenizers
