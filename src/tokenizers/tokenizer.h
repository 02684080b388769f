#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::tokenizers {

using TokenId = std::int32_t;

/// Turns text into token ids. BOS is never added by encode: the chunk plan does that (method.md, `--bos`).
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  /// Ids of the text, special tokens written in the text parsed as the tokenizer's own configuration says.
  /// @throws InvalidArgument  text that is not UTF-8 (names the byte offset) where the tokenizer needs it to be
  virtual std::vector<TokenId> encode(std::string_view text) const = 0;
  virtual std::int64_t vocabulary_size() const = 0;
  virtual std::optional<TokenId> bos_token() const = 0;
  /// Does the tokenizer's own configuration put BOS first? (tokenizer.json template, then add_bos_token of
  /// tokenizer_config.json)
  virtual bool adds_bos() const = 0;
  /// One line for people: "byte-level BPE, 50257 tokens (vocab.json + merges.txt)".
  virtual std::string description() const = 0;
};

/// Opens the tokenizer of a checkpoint: the one inside a GGUF file, or in a folder that one's own where it holds a GGUF
/// checkpoint (since that one determines the model, whatever lies beside it), else tokenizer.json, else
/// tokenizer.model, else vocab.json + merges.txt.
/// @param checkpoint  a folder or a .gguf file
/// @throws InvalidArgument  none there, broken, or a part that is not supported; the message names `--tokens` as the
///     way round
std::unique_ptr<Tokenizer> open_tokenizer(const std::filesystem::path& checkpoint);

/// Single kinds, for tests and for callers that know what they have. Any file may be gzipped.
std::unique_ptr<Tokenizer> open_sentencepiece(const std::filesystem::path& model);
std::unique_ptr<Tokenizer> open_tokenizer_json(const std::filesystem::path& file);
std::unique_ptr<Tokenizer> open_gpt2_bpe(const std::filesystem::path& vocabulary, const std::filesystem::path& merges);

/// The files that determine the tokens, for hashing; of a GGUF checkpoint the file with its metadata (the first part of
/// a split one).
/// @throws InvalidArgument  as open_tokenizer, where there is none
std::vector<std::filesystem::path> tokenizer_files(const std::filesystem::path& checkpoint);

/// A checksum of what determines the tokens: names and contents of those files, or of a GGUF checkpoint all its keys
/// `tokenizer.*` with their values. So another quantisation of a model has the same one, and no weight is read for it.
/// @return 64 hex digits
/// @throws InvalidArgument  as open_tokenizer, where there is none
std::string tokenizer_sha256(const std::filesystem::path& checkpoint);

}  // namespace gainlens::tokenizers
