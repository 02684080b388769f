#include "tokenizers/gguf_vocabularies.h"

#include "core/json.h"
#include "formats/gzip.h"
#include "support/shared_data.h"
#include "tokenizers/gguf_tokenizer.h"

#include <sentencepiece_processor.h>

#include <sstream>
#include <stdexcept>

namespace gainlens::testing {
namespace {

GgufBytes vocabulary_gguf(const std::string& model, const std::vector<std::string>& tokens,
                          const std::vector<std::int32_t>& types) {
  GgufBytes gguf;
  gguf.add("tokenizer.ggml.model", model)
      .add_list("tokenizer.ggml.tokens", tokens)
      .add_list("tokenizer.ggml.token_type", types);
  return gguf;
}

}  // namespace

GgufBytes gpt2_gguf(const std::vector<std::string>& tokens, const std::vector<std::int32_t>& types,
                    const std::vector<std::string>& merges, const std::string& pre) {
  return vocabulary_gguf("gpt2", tokens, types)
      .add_list("tokenizer.ggml.merges", merges)
      .add("tokenizer.ggml.pre", pre);
}

GgufBytes llama_gguf(const std::vector<std::string>& tokens, const std::vector<float>& scores,
                     const std::vector<std::int32_t>& types) {
  return vocabulary_gguf("llama", tokens, types).add_list("tokenizer.ggml.scores", scores);
}

GgufBytes gpt2_gguf(const std::filesystem::path& vocabulary, const std::filesystem::path& merges) {
  const Json ids = parse_json(formats::read_plain_or_gzip(vocabulary, 64 << 20), vocabulary.string());
  std::vector<std::string> tokens(ids.size());
  for (const auto& [token, id] : ids.items()) tokens.at(id.get<std::size_t>()) = token;
  std::vector<std::int32_t> types(tokens.size(), normal_token);
  types.back() = control_token;  // <|endoftext|>
  std::vector<std::string> lines;
  std::istringstream content(formats::read_plain_or_gzip(merges, 64 << 20));
  for (std::string line; std::getline(content, line);) {
    if (!line.starts_with("#version")) lines.push_back(line);
  }
  return gpt2_gguf(tokens, types, lines, "gpt-2")
      .add("tokenizer.ggml.bos_token_id", static_cast<std::uint32_t>(tokens.size() - 1));
}

GgufBytes llama_gguf(const std::filesystem::path& model) {
  sentencepiece::SentencePieceProcessor processor;
  if (!processor.Load(model.string()).ok()) throw std::runtime_error("cannot load " + model.string());
  std::vector<std::string> tokens;
  std::vector<float> scores;
  std::vector<std::int32_t> types;
  for (int id = 0; id < processor.GetPieceSize(); ++id) {
    tokens.push_back(processor.IdToPiece(id));
    scores.push_back(processor.GetScore(id));
    types.push_back(processor.IsUnknown(id)   ? unknown_token
                    : processor.IsControl(id) ? control_token
                    : processor.IsUnused(id)  ? unused_token
                    : processor.IsByte(id)    ? byte_token
                                              : normal_token);
  }
  return llama_gguf(tokens, scores, types)
      .add("tokenizer.ggml.bos_token_id", static_cast<std::uint32_t>(processor.bos_id()))
      .add("tokenizer.ggml.eos_token_id", static_cast<std::uint32_t>(processor.eos_id()))
      .add("tokenizer.ggml.unknown_token_id", static_cast<std::uint32_t>(processor.unk_id()));
}

std::unique_ptr<tokenizers::Tokenizer> open_tokenizer(const GgufBytes& gguf) {
  const TemporaryFolder folder;
  return tokenizers::open_gguf_tokenizer(formats::GgufFile::open(gguf.write(folder.path() / "model.gguf")));
}

}  // namespace gainlens::testing
