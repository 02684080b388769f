#pragma once

#include "tokenizers/gguf_vocabulary.h"
#include "tokenizers/tokenizer.h"

#include <memory>

namespace gainlens::tokenizers {

/// The tokenizer inside a GGUF file, by `tokenizer.ggml.model`: "llama" (SentencePiece pieces) or "gpt2" (byte-level
/// BPE with the pre-tokenizer that `tokenizer.ggml.pre` names). BOS is put first as `tokenizer.ggml.add_bos_token`
/// says, else as is usual for the kind.
/// @throws InvalidArgument  no vocabulary, an inconsistent one, another kind or pre-tokenizer (names those there are);
///                          the message names `--tokens` as the way round
std::unique_ptr<Tokenizer> open_gguf_tokenizer(const formats::GgufFile& file);

/// The two kinds. A vocabulary of type "llama": piece types as in SentencePiece, so control pieces are never found in a
/// text.
std::unique_ptr<Tokenizer> make_gguf_sentencepiece(const formats::GgufMetadata& metadata,
                                                   const GgufVocabulary& vocabulary);
/// Type "gpt2": tokens of the types control, unknown and user-defined are found in the text as it is written.
std::unique_ptr<Tokenizer> make_gguf_byte_level_bpe(const formats::GgufMetadata& metadata,
                                                    const GgufVocabulary& vocabulary);

}  // namespace gainlens::tokenizers
