#include "tokenizers/gguf_tokenizer.h"

#include "core/check.h"
#include "tokenizers/tokens_hint.h"

namespace gainlens::tokenizers {
namespace {

std::unique_ptr<Tokenizer> read_gguf_tokenizer(const formats::GgufMetadata& metadata) {
  constexpr const char* model_key = "tokenizer.ggml.model";
  CHECK(metadata.has(model_key), "{}: no {}; the file has no tokenizer", metadata.where(), model_key);
  const std::string model = metadata.text(model_key);
  if (model == "llama") return make_gguf_sentencepiece(metadata, read_gguf_vocabulary(metadata));
  if (model == "gpt2") return make_gguf_byte_level_bpe(metadata, read_gguf_vocabulary(metadata));
  throw_invalid("{}: {} '{}' is not supported; 'llama' and 'gpt2' are", metadata.where(), model_key, printable(model));
}

}  // namespace

std::unique_ptr<Tokenizer> open_gguf_tokenizer(const formats::GgufFile& file) {
  return with_tokens_hint([&] { return read_gguf_tokenizer(file.metadata()); });
}

}  // namespace gainlens::tokenizers
