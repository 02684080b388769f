#pragma once

#include "models/decoder/decoder_config.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// What stands in the place of a gate: docs/analyses/prediction-3.md.

namespace gainlens::interventions {

/// K is that of docs/method.md with lambda = 1, K' has a lambda for each head.
enum class GateArm {
  native,       ///< the model as it is
  constant,     ///< the gate's mean over calibration text
  gain,         ///< K' = lambda_obs / (lambda_lh + lambda_obs), with the gate's mean over calibration text
  scaled_gain,  ///< c K, with the gate's energy over calibration text: c^2 = E|g e|^2 / E|K e|^2
  modulated,    ///< g K / K_cal, K_cal the mean of K over calibration text; without a gate K / K_cal
  permuted,     ///< `gain` with its queries permuted within each head; without a gate `modulated`
  position,     ///< the mean of `gain` over calibration text at each position; without a gate of `modulated`
  raw,          ///< K
  one           ///< 1
};

/// "scaled-gain"
std::string_view name_of(GateArm arm);

/// The arms that a model can have, `native` first. A model without gates has native, modulated, permuted and position.
std::vector<GateArm> possible_arms(models::Gate gate);

/// @throws InvalidArgument  another name (nearest match named); an arm that needs a gate, and the model has none; no
///     arm but native
/// @returns  `native`, then the others in the order of the enumeration; without names all that are possible
std::vector<GateArm> gate_arms(const std::vector<std::string>& names, models::Gate gate);

/// Whether each dimension of a head has a gate of its own. A model without gates is changed by dimension.
bool by_dimension(models::Gate gate);

/// The stream of the seed by which GateArm::permuted orders the queries of a layer: one for each document, number of
/// tokens of the context, and layer. Source of this and of query_orders(): docs/analyses/prediction-3.md.
std::uint64_t permutation_draw(std::size_t document, std::int64_t tokens, std::int64_t layer);

/// The orders of GateArm::permuted, [head][query]: a query gets what stood at the query that it names. The same on
/// every machine.
std::vector<std::vector<std::int64_t>> query_orders(std::int64_t heads, std::int64_t queries, std::uint64_t seed,
                                                    std::uint64_t draw);

/// What calibration text says of one layer. G is 1, or the dimensions of a head where each has its own gate.
struct LayerCalibration {
  at::Tensor gate_mean;       ///< [head, G] float64; undefined without gates
  at::Tensor gain_mean;       ///< [head, G] float64, mean of K
  std::vector<double> scale;  ///< [head] c of GateArm::scaled_gain; empty without gates
  /// [head] lambda of K'. None: no lambda gives the gate's mean, and the head keeps its gate. Empty without gates.
  std::vector<std::optional<double>> lambda;
  at::Tensor by_position;  ///< [head, position, G] float64, of GateArm::position; undefined if it is not asked for
};

/// lambda_obs / (lambda + lambda_obs) of every query, with one lambda for each head.
/// @param precision  [head, query, dimension] lambda_obs
/// @param lambda     [head]
/// @param mean       whether it is averaged over the dimensions of a head
/// @returns [head, query, G] float64
at::Tensor gain_of(const at::Tensor& precision, const at::Tensor& lambda, bool mean);

/// What the gate's place holds for the queries of one document.
/// @param arm        not native
/// @param precision  [head, query, dimension] lambda_obs of the layer in this pass
/// @param gate       [head, query, G] float64, what the model has there; undefined without gates
/// @param draw       of `permuted`: the stream of the seed that belongs to document, context and layer
/// @returns [head, query, G] float64; without gates the factors of attention's result
at::Tensor gate_of_arm(GateArm arm, const at::Tensor& precision, const at::Tensor& gate,
                       const LayerCalibration& calibration, std::uint64_t seed, std::uint64_t draw);

}  // namespace gainlens::interventions
