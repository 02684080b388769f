#include "interventions/document_source.h"

#include "core/check.h"
#include "interventions/text_overlap.h"

#include <optional>
#include <utility>

namespace gainlens::interventions {

DocumentSource read_documents(const sweep::TokenSourceOptions& from, const models::CheckpointSource& checkpoint,
                              std::int64_t length, std::int64_t samples, const data::ChunkAdvice& advice) {
  const models::DecoderConfig& config = checkpoint.config;
  const auto plan = [&](std::optional<tokenizers::TokenId> bos) {
    return data::ChunkPlan{.lengths = {length}, .samples = samples, .bos = bos, .advice = advice};
  };
  DocumentSource read;
  read.source = sweep::read_tokens(from, checkpoint.path, config.vocabulary, config.bos_token, [&](bool bos) {
    return data::tokens_needed(plan(bos ? std::optional<tokenizers::TokenId>(0) : std::nullopt));
  });
  for (data::Chunk& chunk : data::cut(read.source.tokens, plan(read.source.bos.token)))
    read.documents.push_back(std::move(chunk.tokens));
  return read;
}

DocumentSource read_calibration(const sweep::TokenSourceOptions& test_from, const std::filesystem::path& calibration,
                                const models::CheckpointSource& checkpoint, std::int64_t length, std::int64_t samples,
                                const DocumentSource& test, const data::ChunkAdvice& advice) {
  sweep::TokenSourceOptions from = test_from;
  (from.text.empty() ? from.token_ids : from.text) = calibration;
  DocumentSource read;
  try {
    read = read_documents(from, checkpoint, length, samples, advice);
  } catch (const InvalidArgument& error) {
    throw_invalid("--calibration: {}", error.what());
  }
  check_disjoint(read.documents, test.documents, test.source.bos.token ? 1 : 0);
  return read;
}

}  // namespace gainlens::interventions
