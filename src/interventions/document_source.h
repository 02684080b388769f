#pragma once

#include "data/chunks.h"
#include "models/checkpoint/checkpoint_source.h"
#include "sweep/token_source.h"

#include <cstdint>
#include <filesystem>
#include <vector>

namespace gainlens::interventions {

/// Documents of one length, cut from the start of a text one after another, and where they come from.
struct DocumentSource {
  sweep::TokenSource source;
  std::vector<std::vector<std::int32_t>> documents;  ///< a BOS included, if there is one
};

/// @param advice  for a text that is too short
/// @throws InvalidArgument  as sweep::read_tokens() and data::cut()
DocumentSource read_documents(const sweep::TokenSourceOptions& from, const models::CheckpointSource& checkpoint,
                              std::int64_t length, std::int64_t samples, const data::ChunkAdvice& advice = {});

/// The same from the text (or ids, where the test has ids) of --calibration, which messages name. Its documents may
/// share no text with those of the test.
/// @throws InvalidArgument  as read_documents(); as check_disjoint()
DocumentSource read_calibration(const sweep::TokenSourceOptions& test_from, const std::filesystem::path& calibration,
                                const models::CheckpointSource& checkpoint, std::int64_t length, std::int64_t samples,
                                const DocumentSource& test, const data::ChunkAdvice& advice = {});

}  // namespace gainlens::interventions
