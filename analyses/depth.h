#pragma once

#include "analyses/measured.h"
#include "analyses/table.h"
#include "core/json.h"
#include "runfile/depth_run.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

// Precision through the depth: docs/analyses/depth.md.

namespace gainlens::analyses {

/// [reading][start], medians over coordinates and queries, means over chunks.
using DepthMedians = std::array<std::array<double, runfile::depth_starts.size()>, runfile::depth_readings.size()>;

/// One layer at one length. Variances are in the square of the unit of the stream.
struct DepthRow {
  std::int64_t layer = 0;
  DepthMedians variance = {};  ///< P that enters the layer; lambda = 1 / P
  DepthMedians gain = {};      ///< K
  double observed = 0;         ///< O, heads independent
  double bound = 0;            ///< O if all err together
  runfile::DepthQuantiles jacobian = {};
  std::optional<runfile::DepthTruth> truth = {};  ///< of the first chunk; absent if the run has another one alone
};

/// Means over the chunks of one length.
struct DepthAtLength {
  std::int64_t tokens = 0;
  std::int64_t samples = 0;
  std::vector<DepthRow> layers;
  DepthMedians last = {};  ///< P after the last layer
};

/// Every length, shortest first.
std::vector<DepthAtLength> depth_by_length(const runfile::DepthRun& run);

/// The layers of these lengths: depth-layers.csv. Readers see the numbers that start with the variance of the
/// embedding.
Table layers_of(std::span<const DepthAtLength> lengths);

/// What the last layers are left with at one length, and how that depends on the first P.
std::string last_layer_words(const DepthAtLength& length);

/// The entries of summary.json.
OrderedJson to_json(const std::vector<DepthAtLength>& lengths);

}  // namespace gainlens::analyses
