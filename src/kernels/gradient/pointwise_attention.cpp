#include "kernels/gradient/pointwise_attention.h"

#include "core/check.h"
#include "kernels/gradient/padded_sequences.h"
#include "kernels/gradient/pointwise_loops.h"
#include "kernels/gradient/selected_rows.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace gainlens::kernels {
namespace {

double scale_of(const at::Tensor& query, const PointwiseAttentionOptions& options) {
  return options.scale != 0 ? options.scale : 1 / std::sqrt(static_cast<double>(query.size(2)));
}

/// How many places each key lies before each query, at least 0: int64 [query, key].
at::Tensor places_before(const PaddedSequences& sequences, at::Device device) {
  const at::Tensor place = at::arange(sequences.longest(), at::TensorOptions(at::kLong).device(device));
  return (place.unsqueeze(1) - place).clamp_min(0);
}

/// [sequence, query, key] of a float64 [position].
at::Tensor time_buckets(const PaddedSequences& sequences, const PointwiseAttentionOptions& options) {
  const auto padded = [&](const at::Tensor& times) {
    return sequences.padded(times.view({-1, 1, 1})).view({sequences.sequences(), -1});
  };
  const at::Tensor apart = (padded(options.query_times).unsqueeze(2) - padded(options.key_times).unsqueeze(1)).abs();
  return (apart.clamp_min(1).log() / time_bucket_width)
      .floor()
      .clamp_max(static_cast<double>(options.time_bias.numel() - 1))
      .to(at::kLong);
}

/// [sequence, head, query, key], 0 at hidden keys.
at::Tensor padded_weights(const PaddedSequences& sequences, const at::Tensor& query, const at::Tensor& key,
                          const PointwiseAttentionOptions& options) {
  at::Tensor scores =
      at::matmul(sequences.padded(query), sequences.padded(key).transpose(2, 3)) * scale_of(query, options);
  const at::Tensor places = places_before(sequences, query.device());
  scores = scores + selected_rows(options.place_bias.unsqueeze(1), places.flatten()).view(places.sizes());
  if (options.time_bias.defined()) {
    const at::Tensor buckets = time_buckets(sequences, options);
    scores =
        scores + selected_rows(options.time_bias.unsqueeze(1), buckets.flatten()).view(buckets.sizes()).unsqueeze(1);
  }
  at::Tensor log_factor;
  if (options.key_bias.defined())
    log_factor = sequences.padded(options.key_bias.view({-1, 1, 1})).transpose(2, 3).to(scores.scalar_type());
  if (options.distance_slope.defined()) {
    const at::Tensor decay = places.to(scores.scalar_type()) * options.distance_slope.view({-1, 1, 1});
    log_factor = log_factor.defined() ? log_factor + decay : decay;
  }
  if (log_factor.defined() && !options.multiplicative) scores = scores + log_factor;
  at::Tensor weights = at::silu(scores) / options.length;
  if (log_factor.defined() && options.multiplicative) weights = weights * log_factor.exp();
  return at::where(sequences.hidden_keys(/*causal=*/true, scores.options()) == 0, weights, 0);
}

/// Moments of weights of padded sequences, packed.
PointwiseMoments packed_moments(const PaddedSequences& sequences, const at::Tensor& weights, const at::Tensor& values,
                                double min_share) {
  const at::Tensor size = weights.abs().sum(-1, /*keepdim=*/true), sum = weights.sum(-1, /*keepdim=*/true);
  const at::Tensor any = size > 0, least = min_share * size;
  const at::Tensor raised = at::where(sum.abs() < least, at::where(at::signbit(sum), -least, least), sum);
  const at::Tensor shares = weights / at::where(any, raised, at::ones_like(sum));
  // About a value of the sequence, which every query sees, sums of squares cancel less.
  const at::Tensor centre = values.detach().narrow(2, 0, 1), offsets = values - centre;
  const at::Tensor mean = at::matmul(shares, offsets) + centre * (shares.sum(-1, /*keepdim=*/true) - 1);
  const at::Tensor squares = shares.square();
  const at::Tensor variance = (at::matmul(squares, offsets.square()) - 2 * mean * at::matmul(squares, offsets) +
                               mean.square() * squares.sum(-1, /*keepdim=*/true))
                                  .clamp_min(0);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const at::Tensor balance = at::where(any, sum.detach().abs() / size.detach(), 0);
  return {{}, sequences.packed(at::where(any, variance, nan)), sequences.packed(balance).squeeze(2)};
}

PointwiseMoments pointwise_of_padded(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                     const PackedBounds& begin, const PointwiseAttentionOptions& options,
                                     bool moments) {
  const PaddedSequences sequences(begin, query.device());
  const at::Tensor values = sequences.padded(value), weights = padded_weights(sequences, query, key, options);
  at::Tensor dropped = weights;
  if (options.dropout.rate != 0) dropped = weights * padded_dropout(sequences, options.dropout, weights);
  PointwiseMoments found;
  if (moments) found = packed_moments(sequences, weights, values, options.min_weight_share);
  found.output = sequences.packed(at::matmul(dropped, values));
  return found;
}

/// All queries, of which those but the last of each sequence are 0.
PointwiseMoments pointwise_of_last(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                   const PackedBounds& begin, const PointwiseAttentionOptions& options, bool moments) {
  std::vector<std::int64_t> last;
  for (std::size_t i = 1; i < begin.size(); ++i) last.push_back(begin[i] - 1);
  const at::Tensor rows = at::tensor(last, at::kLong).to(query.device());
  const PointwiseMoments all =
      pointwise_of_padded(at::zeros_like(key).index_copy(0, rows, query), key, value, begin, options, moments);
  if (!moments) return {all.output.index_select(0, rows), {}, {}};
  return {all.output.index_select(0, rows), all.variance.index_select(0, rows), all.balance.index_select(0, rows)};
}

void check_request(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const PackedBounds& begin,
                   const PointwiseAttentionOptions& options) {
  const std::int64_t positions = key.size(0);
  ASSERT(query.dim() == 3 && key.sizes() == value.sizes() && query.sizes().slice(1) == key.sizes().slice(1) &&
             (options.last_queries || query.size(0) == positions),
         "pointwise attention: queries, keys and values of different shapes");
  ASSERT(
      !begin.empty() && begin.front() == 0 && begin.back() == positions && std::is_sorted(begin.begin(), begin.end()),
      "pointwise attention: bounds that do not cover {} positions", positions);
  ASSERT(!options.last_queries || (query.size(0) + 1 == std::ssize(begin) && options.dropout.rate == 0 &&
                                   std::ranges::adjacent_find(begin) == begin.end()),
         "pointwise attention: last queries that are not one of each sequence, or with dropout");
  std::int64_t longest = 0;
  for (std::size_t i = 1; i < begin.size(); ++i) longest = std::max(longest, begin[i] - begin[i - 1]);
  ASSERT(options.place_bias.defined() && options.place_bias.dim() == 1 && options.place_bias.numel() >= longest,
         "pointwise attention: a sequence of {} positions, and fewer biases of places", longest);
  const auto fits = [&](const at::Tensor& times) {
    return times.defined() && times.scalar_type() == at::kDouble && times.sizes() == at::IntArrayRef({positions});
  };
  ASSERT(!options.time_bias.defined() || (options.time_bias.dim() == 1 && options.time_bias.numel() > 0 &&
                                          fits(options.query_times) && fits(options.key_times)),
         "pointwise attention: a bias of times without times");
  ASSERT(!options.key_bias.defined() || options.key_bias.sizes() == at::IntArrayRef({positions}),
         "pointwise attention: the key bias needs a number for each position");
  ASSERT(!options.distance_slope.defined() ||
             (options.distance_slope.dim() == 1 &&
              (options.distance_slope.numel() == 1 || options.distance_slope.numel() == query.size(1))),
         "pointwise attention: the distance slope is one number, or one for each head");
}

PointwiseMoments checked_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                   const PackedBounds& begin, const PointwiseAttentionOptions& options, bool moments) {
  check_request(query, key, value, begin, options);
  if (query.numel() == 0) {
    const at::Tensor empty = at::zeros_like(query);
    return {empty, empty, empty.sum(2)};
  }
  if (query.is_cpu() && query.scalar_type() == at::kFloat)
    return pointwise_loops(query, key, value, begin, options, moments);
  return (options.last_queries ? pointwise_of_last : pointwise_of_padded)(query, key, value, begin, options, moments);
}

}  // namespace

at::Tensor pointwise_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                               const PackedBounds& begin, const PointwiseAttentionOptions& options) {
  return checked_attention(query, key, value, begin, options, /*moments=*/false).output;
}

PointwiseMoments pointwise_attention_moments(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                             const PackedBounds& begin, const PointwiseAttentionOptions& options) {
  return checked_attention(query, key, value, begin, options, /*moments=*/true);
}

at::Tensor pointwise_pattern(const at::Tensor& query, const at::Tensor& key, const PackedBounds& begin,
                             const PointwiseAttentionOptions& options) {
  check_request(query, key, key, begin, options);
  return padded_weights(PaddedSequences(begin, query.device()), query, key, options);
}

PointwiseMoments pointwise_moments_of(const at::Tensor& pattern, const at::Tensor& value, const PackedBounds& begin,
                                      double min_weight_share) {
  const PaddedSequences sequences(begin, value.device());
  const at::Tensor values = sequences.padded(value);
  PointwiseMoments found = packed_moments(sequences, pattern, values, min_weight_share);
  found.output = sequences.packed(at::matmul(pattern, values));
  return found;
}

}  // namespace gainlens::kernels
