#pragma once

#include "core/error.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace gainlens::kernels {

/// How many of the first keys have their mass reported (`first_mass`, `column_mean`).
inline constexpr std::int64_t first_keys = 8;

/// Which implementation computes. All give the same fields; they differ in speed, rounding and where they run.
enum class AttentionBackend {
  automatic,   ///< streaming on the CPU, composed on a GPU
  streaming,   ///< tiles with our own vector code, CPU
  composed,    ///< library calls over blocks of queries, any device
  fused_cuda,  ///< one CUDA kernel, sm_80 and newer; only where it was compiled
};

/// Positions [begin, end) that form one text: queries see keys of their own sequence only.
struct Sequence {
  std::int64_t begin;
  std::int64_t end;

  bool operator==(const Sequence&) const = default;
};

/// Which fields of QueryStatistics are wanted. What is not wanted stays undefined and, where it costs something, is not
/// computed. `n_eff`, `residual`, `observation_precision`, `kalman_gain` and `value_variance` are always there.
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

  bool operator==(const ReturnedFields&) const = default;
};

/// What attention is computed, and which priors its statistics use.
struct AttentionOptions {
  double scale = 0;    ///< factor on q.k; 0 means 1/sqrt(head_dim)
  bool causal = true;  ///< query t sees keys j <= t
  std::optional<std::int64_t>
      window;  ///< query t sees only keys with |t - j| < window (the query itself counts); at least 1
  std::vector<Sequence>
      sequences;  ///< texts packed one after another, ascending, disjoint; positions in none are padding: neither
                  /// < keys nor queries. Empty: one sequence of all positions. "Key 0" is a sequence's first
  std::int64_t first_query = 0;  ///< earlier positions are keys but no queries: their rows are those of padding. Not
                                 ///< together with `sequences`
  double soft_cap = 0;           ///< score s becomes soft_cap tanh(s / soft_cap), before the biases; 0: none
  at::Tensor key_bias;           ///< added to the scores: [key] or [head, key]; undefined: none. -inf hides a key
  at::Tensor
      distance_bias;      ///< added to the scores at distance |t - j|: [position] or [head, position]; undefined: none
  at::Tensor sink_logit;  ///< learned sink logit, [head]; undefined: none
  double prior_strength = 1;                ///< nu, in pseudo-observations (Eq. reml)
  std::optional<double> prior_variance;     ///< sigma0^2, in values squared; default 1/head_dim
  double prior_precision = 1;               ///< lambda of the residual stream, the same for every dimension
  at::Tensor prior_precision_by_dimension;  ///< lambda instead as [head_dim], [head, head_dim] or [head, query,
                                            ///< head_dim]; undefined: none
  ReturnedFields returned;
  AttentionBackend backend = AttentionBackend::automatic;
};

/// Statistics of every query of every head. Scalars are means over the head_dim dimensions, taken after the nonlinear
/// step. [head, query] tensors are float64 for float64 inputs, else float32. A query that sees no key, or is padding,
/// has output 0 and NaN statistics. All lie on the device of the inputs. Definitions: method.md "Statistics of one
/// query"; with a sink logit of mass p_s, n_eff, entropy, residual use p/(1-p_s).
struct QueryStatistics {
  at::Tensor output;                     ///< [head, query, head_dim], dtype of the inputs: (1 - p_s) sum_j p_j v_j
  at::Tensor n_eff;                      ///< 1 / sum p^2, in [1, visible keys]
  at::Tensor entropy;                    ///< -sum p ln p, nats
  at::Tensor residual;                   ///< S = sum p (v - e)^2, mean over dimensions
  at::Tensor observation_precision;      ///< (n_eff + nu) / (S + nu sigma0^2) (Eq. reml), mean over dimensions
  at::Tensor log_observation_precision;  ///< mean over dimensions of its natural log
  at::Tensor kalman_gain;                ///< lambda_obs / (lambda + lambda_obs), mean over dimensions
  at::Tensor
      kalman_gain_scaled;  ///< the same with S / value_variance for S and sigma0^2 = 1; a dimension whose values are
                           /// < all equal has S / value_variance = 0. Values times a constant leave it as it is
  at::Tensor
      without_first_n_eff;  ///< as the fields above, over the keys other than key 0; NaN where key 0 is alone. A query
  at::Tensor without_first_residual;  ///< that does not see key 0 has the plain values
  at::Tensor without_first_observation_precision;
  at::Tensor without_first_kalman_gain;
  at::Tensor estimate_norm;  ///< ||e||, L2 over the dimensions, e = sum_j p_j v_j; with a sink logit over p/(1-p_s)
  at::Tensor gained_estimate_norm;  ///< ||K o e||, K of each dimension at the plan's lambda
  at::Tensor
      without_first_norm;  ///< ||e'||, e' over the keys other than key 0; NaN and plain values as without_first_n_eff
  at::Tensor first_mass;   ///< [head, query, first_masses] p of keys 0.. (over keys and sink); 0 where hidden or absent
  at::Tensor sink_logit_mass;  ///< [head, query] p_s, NaN where no key is seen; undefined without a sink logit
  at::Tensor
      first_weight;  ///< [head, query] weight of key 0 among the keys, p_0 / (1 - p_s) without that division; NaN where
                     ///< no key is seen; undefined without a sink logit, where it is `first_mass` of key 0
  at::Tensor column_mean;  ///< [head, first_masses] mean over queries i >= m of p_im (Gu et al.), those that see no key
                           ///< left out; NaN without any. Queries and keys count from the start of their sequence
  at::Tensor value_variance;  ///< [kv_head, head_dim] population variance of the values over all keys; [sequence,
                              ///< kv_head, head_dim] where `sequences` are given
  at::Tensor residual_by_dimension;               ///< [head, query, head_dim] S, on request
  at::Tensor observation_precision_by_dimension;  ///< [head, query, head_dim] lambda_obs, on request
  std::int64_t queries_without_keys = 0;          ///< over all heads, padding apart
};

/// The oracle: float64, one query at a time, two passes, written to be read. O(T) memory per query, single-threaded.
///
/// @param query  [head, position, head_dim], float32, float64, float16 or bfloat16; any strides
/// @param key    [kv_head, position, head_dim]; head must be a multiple of kv_head; query head h uses kv head h / (head
///     / kv_head)
/// @param value  [kv_head, position, head_dim]
/// @returns      float64 fields, `output` included
/// @throws InvalidArgument  shapes or dtypes disagree, an option out of its range, NaN or +inf in key_bias or
///     sink_logit
/// @throws RunFailed        NaN or infinity in query, key or value (names which), or products that may overflow the
///     compute dtype
QueryStatistics attention_statistics_reference(const AttentionOptions& options, const at::Tensor& query,
                                               const at::Tensor& key, const at::Tensor& value);

/// Options and the workspace of the streaming backend, reused from call to call. Not to be shared between threads.
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

/// All statistics in one pass over blocks of the scores: O(T) memory, never a T x T tensor. The streaming backend's
/// workspace is tiles and the packed keys and values of a few heads at a time (3 to 4 times theirs).
///
/// float64 inputs are computed in float64, all others in float32 (fused_cuda: attention_fused.h).
///
/// **Error of S in float32**, per dimension, where the scores are exact, in units of M = max (v_j - c)^2 over the
/// visible keys, c the mean of the first 64 values: at most 4e-6 where the terms p (v - c) and p (v - c)^2 are nearly
/// equal, or vary as data do, and 1.6e-5 whatever they are. It does not grow with T. The analysis, with u = 2^-24, A1 =
/// sum p (v - c), A2 = sum p (v - c)^2, l = sum p and S = A2 / l - (A1 / l)^2, for the streaming backend:
/// - A1 and A2 are summed in float32 over chains of 64 keys, four chains make the sum of a tile of 256 keys, and tiles
///    are added up in float64. A sum of n equal terms is off by about n u / 4 of itself: each addition rounds by at
///    most half a unit in the last place of the sum so far. So A1 and A2 are off by (64 + 4) / 4 u = 17 u of
///    themselves, and l by 4 u (a lane of its vectors sums 16 keys of a tile with 64-byte vectors; 16 u with 16-byte
///    ones). Nearly equal terms round alike, and what one tile loses is lost 512 times in 128k: that is how a single
///    float32 sum drifts.
/// - S is off by (err A2 + 2 err A1 + err l) M and by 3 u M because v - c is itself rounded: 58 u M = 3.5e-6 M. (70 u,
///    4.2e-6 M, with 16-byte vectors if all were at their worst at once; A1 and A2 together were not seen above 48 u.)
/// - Whatever the terms, a sum of n is off by n u at most: 3 (64 + 4) u for A1 and A2, 64 u for l, 3 u for v - c,
///    1.6e-5 M in all. Input made for it comes to more than half of that: one key in each chain with nearly all the
///    weight, the others with weights of half a unit in the last place, just below it for A1 and just above it for A2.
///    Scores are rounded before: a score that is off by d changes its weight by a factor 1 + d, whatever the sums do.
///    The composed and gradient backends take the products of weights and values in float64; what is left there is the
///    weights' own rounding. Mass on key 0 does not spoil S: that key is added at the end.
///    tests/kernels/long_texts_test.cpp holds T up to 128k to the bound.
///
/// Values may be as small as they like: v - c is scaled by a power of two of its dimension before it is squared. Values
/// whose squares float32 cannot hold are refused.
///
/// Streaming: a query's bits depend on neither the number of threads nor, `kalman_gain_scaled`, `value_variance` and
/// `column_mean` apart, on later positions (as long as |v - c| of a dimension, and |v| of a head, stay within a factor
/// of 2^45: powers of two may come from later positions, and beyond that squares of the smallest lose digits).
///
/// Shapes and errors: as attention_statistics_reference; and
/// @throws InvalidArgument  a backend that does not compute on the inputs' device
/// @throws NotCompiled      fused_cuda in a build without CUDA
QueryStatistics attention_statistics(AttentionPlan& plan, const at::Tensor& query, const at::Tensor& key,
                                     const at::Tensor& value);

}  // namespace gainlens::kernels
