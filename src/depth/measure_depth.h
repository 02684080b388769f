#pragma once

#include "data/chunks.h"
#include "depth/carried_variance.h"
#include "hooks/hooked_model.h"
#include "models/decoder/decoder_config.h"
#include "runfile/depth_run.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace gainlens::depth {

struct DepthOptions {
  std::int64_t layers = 0;           ///< the first ones; all of them run
  std::int64_t queries = 256;        ///< at most so many of the last quarter, evenly spaced
  std::int64_t truth_queries = 64;   ///< of these, at most so many beside the diagonal rule: see truth_products
  double truth_products = 1e12;      ///< a layer for which so many queries need more products has fewer, at least 1
  std::int64_t draws = 16;           ///< of the errors of tokens
  double perturbation = 0.01;        ///< share of the embedding's deviation by which tokens are perturbed
  bool truth = true;                 ///< whether the truth beside the rules is measured
  bool allow_extrapolation = false;  ///< as hooks::ForwardOptions
};

/// The weights of one layer, in float64.
using LayerLoader = std::function<models::LayerWeights(std::int64_t layer)>;

/// What one forward pass shows.
struct DepthReadings {
  at::Tensor start;                  ///< [width] variance of the stream that enters layer 0, over positions
  std::vector<LayerReading> layers;  ///< [layer]
};

/// The positions that are measured: evenly spaced in the last quarter. int64 [query]
at::Tensor measured_queries(std::int64_t length, std::int64_t most);

/// Runs the model over a chunk.
/// @throws InvalidArgument, RunFailed  as HookedModel::forward
DepthReadings read_layers(hooks::HookedModel& model, const hooks::Tokens& tokens, const at::Tensor& queries,
                          const DepthOptions& options);

/// Carries the variance of the stream through the layers, and measures beside it what the model does to drawn errors.
/// The same call gives the same numbers.
/// @param config  of the model, as check_carries() lets it pass
/// @throws InvalidArgument, RunFailed  as HookedModel::forward; K is not defined somewhere (names the layer)
runfile::DepthChunk measure_depth(hooks::HookedModel& model, const models::DecoderConfig& config,
                                  const LayerLoader& weights, const data::Chunk& chunk, const DepthOptions& options);

}  // namespace gainlens::depth
