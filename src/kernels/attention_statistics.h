#pragma once

#include "core/error.h"
#include "core/estimator.h"
#include "core/query_scalars.h"
#include "kernels/fixed_sizes.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace gainlens::kernels {

/// Most keys of a query that `top_key` and `top_weight` hold.
inline constexpr std::int64_t max_top_keys = 64;

/// Which implementation computes. All give the same fields. They differ in speed, in rounding and in the devices they
/// run on.
enum class AttentionBackend {
  automatic,   ///< streaming on the CPU, composed on a GPU and for each estimator other than reml
  streaming,   ///< tiles with our own vector code, CPU
  composed,    ///< library calls over blocks of queries, any device
  fused_cuda,  ///< one CUDA kernel for sm_80 and newer; only in builds with CUDA
};

/// Positions [begin, end) that form one text. Queries see keys of their own sequence only.
struct Sequence {
  std::int64_t begin;
  std::int64_t end;

  bool operator==(const Sequence&) const = default;
};

/// Of which keys the means over queries are wanted (`key_mean`).
enum class KeyMeans {
  none,
  above,  ///< of the keys whose column mean is at least `min_key_mean`; the others have NaN
  all
};

/// Which fields of QueryStatistics are wanted. A field that is not wanted stays undefined; it is not computed if
/// computing it costs time. `n_eff`, `residual`, `observation_precision`, `kalman_gain` and `value_variance` are always
/// returned.
struct ReturnedFields {
  bool output = true;
  bool entropy = true;
  bool log_observation_precision = true;
  bool kalman_gain_scaled = true;
  bool without_first = true;               ///< `without_first_n_eff`, `without_first_kalman_gain`, `without_first_norm`
  bool without_first_moments = true;       ///< `without_first_residual`, `without_first_observation_precision`
  bool norms = true;                       ///< `estimate_norm`, `gained_estimate_norm`
  bool per_dimension = false;              ///< `residual_by_dimension`, `observation_precision_by_dimension`
  std::int64_t first_masses = first_keys;  ///< keys in `first_mass` and `column_mean`, 0..first_keys; 0: neither
  KeyMeans key_means = KeyMeans::none;     ///< of `key_mean` and `key_queries`
  double min_key_mean = 0.1;               ///< with KeyMeans::above; between 1e-4 and 1
  std::int64_t top_keys = 0;               ///< keys in `top_key` and `top_weight`, 0..max_top_keys; 0: neither

  bool operator==(const ReturnedFields&) const = default;
};

/// n_eff, the residual, K and the precision of each query, without what takes more time. Others switch on what they
/// need besides.
inline constexpr ReturnedFields moments_alone{.output = false,
                                              .entropy = false,
                                              .log_observation_precision = false,
                                              .kalman_gain_scaled = false,
                                              .without_first = false,
                                              .without_first_moments = false,
                                              .norms = false,
                                              .first_masses = 0};

/// What attention is computed, and the priors of its statistics.
struct AttentionOptions {
  double scale = 0;    ///< factor on q.k; 0 means 1/sqrt(key_dim)
  bool causal = true;  ///< query t sees keys j <= t
  /// Query t sees only keys with |t - j| < window, itself included. At least 1; empty: no window.
  std::optional<std::int64_t> window;
  /// Texts packed one after another, ascending and disjoint. Positions outside of all sequences are padding: they are
  /// neither keys nor queries. Empty: all positions form one sequence. "Key 0" is the first key of a sequence.
  std::vector<Sequence> sequences;
  /// Earlier positions are keys but not queries. Their rows hold the same as rows of padding. Not together with
  /// `sequences`.
  std::int64_t first_query = 0;
  double soft_cap = 0;  ///< score s becomes soft_cap tanh(s / soft_cap), before the biases; 1e-30 to 1e30, or 0: no cap
  at::Tensor key_bias;  ///< added to the scores: [key] or [head, key]; -inf hides a key; undefined: no bias
  /// Added to the scores at distance |t - j|: [position] or [head, position]; undefined: no bias.
  at::Tensor distance_bias;
  at::Tensor sink_logit;  ///< learned sink logit, [head]; undefined: no sink logit
  // No prior, nor the product of strength and variance, may exceed 1e30: float32 could not hold it.
  double prior_strength = 1;             ///< nu, in pseudo-observations (the paper, eq. (6))
  std::optional<double> prior_variance;  ///< sigma0^2, in values squared; default 1/value_dim
  double prior_precision = 1;            ///< lambda of the residual stream, the same for every dimension
  /// Replaces `prior_precision`: lambda as [value_dim], [head, value_dim] or [head, query, value_dim]; undefined:
  /// not used.
  at::Tensor prior_precision_by_dimension;
  ReturnedFields returned;
  /// What lambda_obs, its log and K are computed from. All but reml need the composed backend: without a prior they
  /// divide by numbers that float32 sums do not hold.
  ChosenEstimator estimator;
  AttentionBackend backend = AttentionBackend::automatic;
};

/// The backend that runs: `automatic` is replaced by the choice for the device and the estimator.
/// @throws InvalidArgument  the wanted backend does not run on the device, or does not know the estimator
AttentionBackend chosen_backend(AttentionBackend wish, const at::Device& device, const ChosenEstimator& estimator);

/// Statistics of every query of every head. S, lambda_obs, its log and K are means over the
/// value_dim dimensions, taken after the nonlinear step; n_eff, entropy and the norms are one number for each query.
/// [head, query] tensors are float64 for float64 inputs, else float32. A query that sees no key, or is padding, has
/// output 0 and NaN statistics. All tensors are on the device of the inputs. With a sink logit of mass p_s, n_eff,
/// entropy and residual use p / (1 - p_s) for p. Definitions: docs/method.md, "Statistics of one query".
///
/// With an estimator other than reml, lambda_obs and K are NaN where it is not defined (reml_naive at n_eff = 1). With
/// reml_naive and sandwich, lambda_obs and its log are NaN too if V of a dimension is below min_variance
/// (core/estimator.h), or below what the sums resolve; K is 1 there, within 1e-9. "Scaled" divides every square of
/// values by value_variance and takes sigma0^2 = 1.
struct QueryStatistics {
  at::Tensor output;  ///< [head, query, value_dim], dtype of the inputs: (1 - p_s) sum_j p_j v_j
  // The scalars of core/query_scalars.h, [head, query] each: n_eff, entropy, residual, observation_precision,
  // log_observation_precision, kalman_gain, kalman_gain_scaled, without_first_n_eff, without_first_residual,
  // without_first_observation_precision, without_first_kalman_gain, estimate_norm, gained_estimate_norm,
  // without_first_norm. In a dimension whose values are all equal, the scaled gain takes S / value_variance as 0.
#define GAINLENS_FIELD(name, ...) at::Tensor name;
  GAINLENS_QUERY_SCALARS(GAINLENS_FIELD)
#undef GAINLENS_FIELD
  /// [head, query, first_masses] p of keys 0, 1, ... (over keys and sink); 0 if the key is hidden or does not exist.
  at::Tensor first_mass;
  at::Tensor sink_logit_mass;  ///< [head, query] p_s, NaN if the query sees no key; undefined without a sink logit
  /// [head, query] weight of key 0 among the keys: p_0 / (1 - p_s), computed without that division. NaN if the query
  /// sees no key. Undefined without a sink logit: then `first_mass` of key 0 is the same number.
  at::Tensor first_weight;
  /// [head, first_masses] mean of p_im over the queries i >= m that see a key (Gu et al.); NaN if there is no such
  /// query. Queries and keys are counted from the start of their sequence.
  at::Tensor column_mean;
  /// [head, key, 3] mean weight p of each key (over keys and sink). First the column mean: over the queries that see
  /// the key (Gu et al.). Then over the queries of the second half that see any key, and over those of the last
  /// quarter; a query that does not see this key counts with 0. So the sums of the second and third numbers over keys
  /// are shares of all attention. NaN: no query sees the key, or its column mean is not wanted. With `sequences`,
  /// positions and windows are those of the key's own sequence.
  at::Tensor key_mean;
  /// [head, query, top_keys] int64: the keys with the largest scores, the largest first; of equal scores (in the type
  /// of the computation) the earlier key. -1 where the query sees fewer keys. Counted from the start of their sequence.
  at::Tensor top_key;
  at::Tensor top_weight;   ///< [head, query, top_keys] p of these keys (over keys and sink); NaN where there is no key
  at::Tensor key_queries;  ///< [head, key] int64: the queries that see the key; undefined without `key_mean`
  /// [kv_head, value_dim] population variance of the values over all keys; [sequence, kv_head, value_dim] if
  /// `sequences` are given.
  at::Tensor value_variance;
  at::Tensor residual_by_dimension;               ///< [head, query, value_dim] S, on request
  at::Tensor observation_precision_by_dimension;  ///< [head, query, value_dim] lambda_obs, on request
  std::int64_t queries_without_keys = 0;          ///< number over all heads; padding does not count
};

/// The oracle: float64, one query at a time, two passes, written for readers. Single-threaded, O(T) memory for a query.
///
/// @param query  [head, position, key_dim], float32, float64, float16 or bfloat16; any strides
/// @param key    [kv_head, position, key_dim]; head must be a multiple of kv_head; query head h uses kv head h / (head
///     / kv_head)
/// @param value  [kv_head, position, value_dim]; value_dim may differ from key_dim
/// @returns      float64 fields, `output` included
/// @throws InvalidArgument  shapes or dtypes disagree; an option is out of its range; key_bias, distance_bias or
///     sink_logit holds NaN or +inf
/// @throws RunFailed        NaN or infinity in query, key or value (the message names which); products that may
///     overflow the compute dtype
QueryStatistics attention_statistics_reference(const AttentionOptions& options, const at::Tensor& query,
                                               const at::Tensor& key, const at::Tensor& value);

/// Options, and the workspace of the streaming backend, which later calls use again. Threads must not share a plan.
class AttentionPlan {
 public:
  explicit AttentionPlan(AttentionOptions options);
  ~AttentionPlan();
  AttentionPlan(AttentionPlan&&) noexcept;
  AttentionPlan& operator=(AttentionPlan&&) noexcept;

  const AttentionOptions& options() const { return options_; }
  struct Workspace;
  Workspace& workspace() { return *workspace_; }

 private:
  AttentionOptions options_;
  std::unique_ptr<Workspace> workspace_;
};

/// All statistics in one pass over blocks of the scores, with O(T) memory: a T x T tensor never exists. The workspace
/// of the streaming backend holds tiles, and the packed keys and values of a few heads at a time (3 to 4 times the
/// memory of their keys in the type of the computation).
///
/// float64 inputs are computed in float64, all others in float32 (fused_cuda: attention_fused.h).
///
/// **Error of S in float32**, per dimension, for exact scores. M is max (v_j - c)^2 over the visible keys, c the mean
/// of the first 64 values. The error is at most 4e-6 M if the terms p (v - c) and p (v - c)^2 are nearly equal or vary
/// as they do in data. It is at most 1.6e-5 M for any terms. It does not grow with T. The analysis for the streaming
/// backend uses u = 2^-24, A1 = sum p (v - c), A2 = sum p (v - c)^2, l = sum p and S = A2 / l - (A1 / l)^2:
/// - A1 and A2 are summed in float32 over chains of 64 keys. Four chains make the sum of a tile of 256 keys. The tiles
///   are added in float64.
/// - A sum of n equal terms has a relative error of about n u / 4: each addition rounds by at most half a unit in the
///   last place of the sum so far. So the relative error of A1 and A2 is (64 + 4) / 4 u = 17 u. That of l is 4 u with
///   vectors of 64 bytes, where each lane sums 16 keys of a tile, and 16 u with vectors of 16 bytes.
/// - Nearly equal terms round alike, so every tile makes the same error; there are 512 tiles in 128k tokens. A single
///   float32 sum would drift for this reason.
/// - The error of S is (err A2 + 2 err A1 + err l) M, plus 3 u M because v - c is itself rounded: 58 u M = 3.5e-6 M.
///   With vectors of 16 bytes it is 70 u M = 4.2e-6 M if all errors are at their worst at once. A1 and A2 together were
///   not observed above 48 u.
/// - For any terms, the relative error of a sum of n terms is at most n u: 3 (64 + 4) u for A1 and A2, 64 u for l and 3
///   u for v - c, in all 1.6e-5 M. An input made for this purpose reaches more than half of the bound: in each chain
///   one key has nearly all the weight; the others have weights of half a unit in the last place, just below it for A1
///   and just above it for A2.
/// - Scores are rounded before these sums: an error d of a score multiplies its weight by 1 + d. This error does not
///   depend on how the sums are formed.
/// - The composed and gradient backends multiply weights and values in float64. Their only remaining error is the
///   rounding of the weights.
/// - A large mass on key 0 does not make S less precise: that key is added at the end.
///
/// tests/kernels/long_texts_test.cpp checks the bound for T up to 128k.
///
/// Values may be arbitrarily small: in each dimension v - c is scaled by a power of two before it is squared. Values
/// whose squares float32 cannot hold are refused.
///
/// Streaming: the bits of a query do not depend on the number of threads, nor do those of a key. Except for
/// `kalman_gain_scaled`, `value_variance`, `column_mean` and `key_mean`, they do not depend on later positions either.
/// The second statement holds as long as |v - c| of a dimension, and |v| of a head, stay within a factor of 2^45. The
/// reason is that powers of two may come from later positions; beyond this range, squares of the smallest values lose
/// digits.
///
/// Shapes and errors: as attention_statistics_reference; in addition
/// @throws InvalidArgument  the backend does not compute on the inputs' device
/// @throws NotCompiled      fused_cuda in a build without CUDA
QueryStatistics attention_statistics(AttentionPlan& plan, const at::Tensor& query, const at::Tensor& key,
                                     const at::Tensor& value);

}  // namespace gainlens::kernels
