#pragma once

#include "recommend/recommender_checkpoint.h"
#include "recommend/sasrec.h"
#include "recommend/sasrec_weights.h"

#include <filesystem>

namespace gainlens::recommend {

/// A checkpoint of a SASRec, with its own types.
inline StoredSasRec load_sasrec(const std::filesystem::path& folder) {
  const RecommenderCheckpoint checkpoint = open_recommender(folder);
  const auto& model = dynamic_cast<const SasRec&>(*checkpoint.model);
  return {model.config(), model.weights()};
}

}  // namespace gainlens::recommend
