#pragma once

#include "tokenizers/gguf_vocabulary.h"
#include "tokenizers/tokenizer.h"

#include <memory>

namespace gainlens::tokenizers {

/// The tokenizer inside a GGUF file, by `tokenizer.ggml.model`: "llama" (SentencePiece pieces) or "gpt2" (byte-level
/// BPE with the pre-tokenizer that `tokenizer.ggml.pre` names). `tokenizer.ggml.add_bos_token` says whether BOS is put
/// first. Without this key, the default of the kind is used.
/// @throws InvalidArgument  no vocabulary, an inconsistent one, another kind or pre-tokenizer (names the known ones);
///     the message says to give ids with `--tokens`
std::unique_ptr<Tokenizer> open_gguf_tokenizer(const formats::GgufFile& file);

/// The tokenizer of a vocabulary of type "llama". Piece types mean the same as in SentencePiece, so control pieces are
/// never found in a text.
std::unique_ptr<Tokenizer> make_gguf_sentencepiece(const formats::GgufMetadata& metadata,
                                                   const GgufVocabulary& vocabulary);
/// The tokenizer of a vocabulary of type "gpt2". Tokens of the types control, unknown and user-defined are looked for
/// in the text itself.
std::unique_ptr<Tokenizer> make_gguf_byte_level_bpe(const formats::GgufMetadata& metadata,
                                                    const GgufVocabulary& vocabulary);

}  // namespace gainlens::tokenizers
