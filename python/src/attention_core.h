#pragma once

#include "kernels/streaming/row_kernels.h"

#include <array>
#include <cstdint>
#include <functional>
#include <string>

// The streaming kernel behind pointers and strides, without libtorch: the vector code of src/kernels/streaming, and
// what the Python package needs around it. Each query says which keys it sees, so that padding, packed texts, caches
// and every mask that is a range of keys are the same case.

namespace gainlens::python {

enum class ElementType { float32, float64, float16, bfloat16 };

/// A tensor [batch, head, position, dimension] of somebody else's memory.
struct TensorView {
  const void* data;
  ElementType type;
  std::array<std::int64_t, 4> sizes;
  std::array<std::int64_t, 4> strides;  ///< in elements
};

/// The keys [begin, end) that one query sees, and the key that is "key 0" of its text. A negative origin: key 0 is not
/// among the keys, and the first one given is key -origin of the text. begin >= end: the query is padding, its scalars
/// are NaN and its output is 0.
struct KeysOfQuery {
  std::int64_t begin;
  std::int64_t end;
  std::int64_t origin;
};

struct AttentionCall {
  TensorView query, key, value;
  const KeysOfQuery* keys_of_query;  ///< [batch, query]
  const double* sink_logit;          ///< [head], or null
  double scale;                      ///< factor on q.k
  double soft_cap;                   ///< 0: none
  kernels::GainPriors priors;
  double prior_precision;  ///< lambda
  kernels::Summary summary;
  std::int64_t first_masses;  ///< 0..first_keys
  std::int64_t top_keys;      ///< 0: none
};

/// Names of the rows of `scalars`, in order, separated by spaces: the scalars of core/query_scalars.h, then max_logit,
/// lse, sink_logit_mass and first_weight.
std::string scalar_names();
std::int64_t scalar_count();

/// Where the results go. Real is double for float64 inputs, else float. All are contiguous and preset by the caller:
/// `output` 0, `top_key` -1, all others NaN.
template <typename Real>
struct AttentionResult {
  Real* output;           ///< [batch, query, head, value_dim]
  Real* scalars;          ///< [scalar, batch, head, query]
  Real* first_mass;       ///< [batch, head, query, first_masses]
  std::int64_t* top_key;  ///< [batch, head, query, top_keys], counted from the origin
  Real* top_weight;       ///< as top_key
};

/// Runs task(worker, index) for each index below `count`, on several threads. Tasks of one worker do not overlap.
struct Threads {
  std::int64_t workers;
  std::function<void(std::int64_t count, const std::function<void(std::int64_t worker, std::int64_t index)>& task)> run;
};

/// Computes attention and its statistics with O(T) memory.
/// @throws std::runtime_error  NaN or infinity in an input that a query sees, or products that may overflow Real
template <typename Real>
void attention_statistics(const AttentionCall& call, const Threads& threads, const AttentionResult<Real>& result);

}  // namespace gainlens::python
