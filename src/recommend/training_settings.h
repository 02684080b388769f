#pragma once

#include "core/knobs.h"

#include <cstdint>
#include <vector>

namespace gainlens::recommend {

/// What the training minimises at each position.
enum class LossKind {
  full,     ///< cross-entropy over all items
  sampled,  ///< cross-entropy over the target and sampled items, with log-Q correction
};

/// How a recommender of whatever backbone and arm is trained. Each member is a knob.
struct TrainingSettings {
  double dropout = 0.5;
  double attention_dropout = 0.5;
  LossKind loss = LossKind::full;
  std::int64_t negatives = 1024;  ///< sampled: number of items drawn for each step
  double negative_exponent = 1;   ///< sampled: items are drawn in proportion to (training count)^this
  double learning_rate = 1e-3;
  double precision_learning_rate = 100;  ///< factor on the learning rate of the parameters of precision
  double beta2 = 0.999;
  double weight_decay = 0;          ///< of matrices and embeddings, decoupled
  double max_gradient_norm = 0;     ///< 0: no clipping
  std::int64_t batch = 256;         ///< users of a step
  std::int64_t epochs = 200;        ///< at most
  std::int64_t patience = 20;       ///< epochs without a better validation NDCG@10 before training stops; 0: never
  std::int64_t save_every = 5;      ///< epochs between saved states
  bool permute_popularity = false;  ///< tau_base is permuted over the items, at random from the seed: a placebo
  bool keep_seen = false;           ///< items that a user has seen stay candidates in every ranking
};

/// The members with their keys.
const std::vector<Knob<TrainingSettings>>& training_knobs();

}  // namespace gainlens::recommend
