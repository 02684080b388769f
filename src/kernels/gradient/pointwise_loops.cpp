#include "kernels/gradient/pointwise_loops.h"

#include "kernels/gradient/pointwise_rows.h"
#include "kernels/gradient_tracking.h"
#include "kernels/row_alignment.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace gainlens::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Sequences whose gradients of shared biases are added up together: sums in one order, whatever the threads.
constexpr std::int64_t sequences_at_once = 16;

/// Everything but queries, keys and values. Tensors are contiguous.
struct PointwiseCall {
  PackedBounds begin;
  PointwiseAttentionOptions options;  // its tensors have no gradients here

  std::int64_t sequences() const { return static_cast<std::int64_t>(begin.size()) - 1; }
  std::int64_t blocks() const { return (sequences() + sequences_at_once - 1) / sequences_at_once; }
  std::int64_t length_of(std::int64_t sequence) const {
    return begin[static_cast<std::size_t>(sequence) + 1] - begin[static_cast<std::size_t>(sequence)];
  }
  std::int64_t longest() const {
    std::int64_t longest = 0;
    for (std::int64_t i = 0; i < sequences(); ++i) longest = std::max(longest, length_of(i));
    return longest;
  }
  double slope_of(std::int64_t head) const {
    const at::Tensor& slope = options.distance_slope;
    return slope.numel() == 0 ? 0 : slope.const_data_ptr<double>()[slope.numel() == 1 ? 0 : head];
  }
};

/// Finds the bucket of a time.
class Buckets {
 public:
  explicit Buckets(std::int64_t count) {
    for (std::int64_t i = 1; i < count; ++i) begins_.push_back(std::exp(static_cast<double>(i) * time_bucket_width));
  }
  std::int64_t of(double seconds) const {
    return std::upper_bound(begins_.begin(), begins_.end(), seconds) - begins_.begin();
  }

 private:
  std::vector<double> begins_;  // of bucket 1, 2, ..
};

/// One query of one head of a sequence, with the memory of its loop: rows as long as the longest sequence, aligned.
struct QueryVisit {
  PackedHead rows;
  std::int64_t block, sequence, begin, head, query, keys;
  std::int64_t number;  // of the row among results
  const std::int32_t* buckets;
  float *weights, *slopes, *factors, *weight_gradients, *score_gradients, *shares, *mean, *room;
};

HeadRows pointwise_head_of(const at::Tensor& x, std::int64_t position, std::int64_t head) {
  return {x.const_data_ptr<float>() + position * x.stride(0) + head * x.stride(1), x.stride(0)};
}

float* row_of(const at::Tensor& x, std::int64_t row, std::int64_t head) {
  return x.mutable_data_ptr<float>() + row * x.stride(0) + head * x.stride(1);
}

/// Calls visit(QueryVisit) for each query, with its weights and their slopes.
template <typename Function>
void for_each_query(const PointwiseCall& call, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                    const Function& visit) {
  const PointwiseAttentionOptions& options = call.options;
  const std::int64_t heads = query.size(1), dims = query.size(2), width = padded<float>(call.longest());
  const PointwiseRows& kernels = pointwise_rows();
  const bool timed = options.time_bias.numel() > 0, biased = options.key_bias.numel() > 0;
  const bool has_factor = options.multiplicative && (biased || options.distance_slope.numel() > 0);
  const Buckets buckets(options.time_bias.numel());
  const auto* const place_bias = options.place_bias.const_data_ptr<float>();
  const double scale = options.scale != 0 ? options.scale : 1 / std::sqrt(static_cast<double>(dims));
  at::parallel_for(0, call.blocks(), 1, [&](std::int64_t first, std::int64_t last) {
    const at::Tensor room = at::zeros({9 * width + 2 * padded<float>(dims)}, at::kFloat);
    auto* const numbers = room.mutable_data_ptr<float>();
    const auto row = [&](std::int64_t i) { return numbers + i * width; };
    float *const added = row(0), *const factor = row(1), *const mean = row(9),
                 *const spare = mean + padded<float>(dims);
    std::vector<std::int32_t> pair_bins(static_cast<std::size_t>(call.longest() * call.longest()));
    for (std::int64_t sequence = first * sequences_at_once;
         sequence < std::min(last * sequences_at_once, call.sequences()); ++sequence) {
      const std::int64_t begin = call.begin[static_cast<std::size_t>(sequence)], positions = call.length_of(sequence);
      const std::int64_t first_query = options.last_queries ? positions - 1 : 0;
      for (std::int64_t i = first_query; timed && i < positions; ++i) {
        const double at = options.query_times.const_data_ptr<double>()[begin + i];
        for (std::int64_t j = 0; j <= i; ++j)
          pair_bins[static_cast<std::size_t>(i * positions + j)] = static_cast<std::int32_t>(
              buckets.of(std::abs(at - options.key_times.const_data_ptr<double>()[begin + j])));
      }
      for (std::int64_t head = 0; head < heads; ++head) {
        const HeadRows queries = options.last_queries ? HeadRows{pointwise_head_of(query, sequence, head).data, 0}
                                                      : pointwise_head_of(query, begin, head);
        const PackedHead rows{queries,
                              pointwise_head_of(key, begin, head),
                              pointwise_head_of(value, begin, head),
                              positions,
                              dims,
                              static_cast<float>(scale)};
        const double slope = call.slope_of(head);
        for (std::int64_t i = first_query; i < positions; ++i) {
          const std::int32_t* const own = pair_bins.data() + i * positions;
          for (std::int64_t j = 0; j <= i; ++j) {
            float key_sum = slope == 0 ? 0 : static_cast<float>(slope * static_cast<double>(i - j));
            if (biased) key_sum += options.key_bias.const_data_ptr<float>()[begin + j];
            added[j] = place_bias[i - j];
            if (timed) added[j] += options.time_bias.const_data_ptr<float>()[own[j]];
            if (has_factor) {
              factor[j] = std::exp(key_sum);
            } else {
              added[j] += key_sum;
            }
          }
          kernels.weights(rows, i, i + 1, added, has_factor ? factor : nullptr, static_cast<float>(options.length),
                          row(2), row(3));
          visit(QueryVisit{rows, sequence / sequences_at_once, sequence, begin, head, i, i + 1,
                           options.last_queries ? sequence : begin + i, own, row(2), row(3), row(4), row(5), row(6),
                           row(7), mean, spare});
        }
      }
    }
  });
}

/// Factors of the dropout of one query's weights.
void fill_pointwise_factors(const Dropout& dropout, std::int64_t row, std::int64_t keys, float* factors) {
  if (dropout.rate == 0) {
    std::fill_n(factors, keys, 1.0F);
    return;
  }
  DropoutRow(dropout, row).factors(keys, factors);
}

/// The sum of the weights, raised where they cancel.
struct WeightSum {
  float sum = 0, size = 0;
  float raised_slope = 0;  // 0: not raised
};

WeightSum sum_of(const float* weights, std::int64_t keys, double min_share) {
  WeightSum found;
  for (std::int64_t j = 0; j < keys; ++j) {
    found.sum += weights[j];
    found.size += std::abs(weights[j]);
  }
  const float least = static_cast<float>(min_share) * found.size;
  if (std::abs(found.sum) < least) {
    found.raised_slope = static_cast<float>(std::signbit(found.sum) ? -min_share : min_share);
    found.sum = std::signbit(found.sum) ? -least : least;
  }
  return found;
}

/// Shares and mean of a query, for its variance.
WeightSum find_mean(const PointwiseCall& call, const QueryVisit& visit) {
  const WeightSum sum = sum_of(visit.weights, visit.keys, call.options.min_weight_share);
  std::fill_n(visit.shares, padded<float>(visit.keys), 0.0F);
  if (sum.size > 0) {
    for (std::int64_t j = 0; j < visit.keys; ++j) visit.shares[j] = visit.weights[j] / sum.sum;
  }
  packed_rows().mix(visit.rows, visit.keys, visit.shares, visit.mean);
  return sum;
}

PointwiseMoments attended_in_loops(const PointwiseCall& call, const at::Tensor& query, const at::Tensor& key,
                                   const at::Tensor& value, bool moments) {
  const std::int64_t heads = query.size(1), dims = query.size(2);
  PointwiseMoments out{at::empty(query.sizes(), query.options()), {}, {}};
  if (moments) {
    out.variance = at::empty(query.sizes(), query.options());
    out.balance = at::empty({query.size(0), heads}, query.options());
  }
  const Dropout& dropout = call.options.dropout;
  for_each_query(call, query, key, value, [&](const QueryVisit& visit) {
    if (moments) {
      const WeightSum sum = find_mean(call, visit);
      float* const variance = row_of(out.variance, visit.number, visit.head);
      pointwise_rows().variance(visit.rows, visit.keys, visit.shares, visit.mean, variance);
      float balance = 0;
      for (std::int64_t j = 0; j < visit.keys; ++j) balance += visit.weights[j];
      if (sum.size == 0) std::fill_n(variance, dims, std::numeric_limits<float>::quiet_NaN());
      out.balance.mutable_data_ptr<float>()[visit.number * heads + visit.head] =
          sum.size == 0 ? 0 : std::abs(balance) / sum.size;
    }
    if (dropout.rate != 0) {
      fill_pointwise_factors(dropout, (dropout.first_row + visit.number) * heads + visit.head, visit.keys,
                             visit.factors);
      for (std::int64_t j = 0; j < visit.keys; ++j) visit.weights[j] *= visit.factors[j];
    }
    packed_rows().mix(visit.rows, visit.keys, visit.weights, row_of(out.output, visit.number, visit.head));
  });
  return out;
}

/// Gradients of the inputs; those of absent biases have no element.
struct PointwiseGradients {
  at::Tensor query, key, value, place_bias, time_bias, key_bias, distance_slope;
};

/// @param output_gradient, variance_gradient  [position, head, head_dim]; the variance's is undefined if it has none
PointwiseGradients gradients_in_loops(const PointwiseCall& call, const at::Tensor& query, const at::Tensor& key,
                                      const at::Tensor& value, const at::Tensor& output_gradient,
                                      const at::Tensor& variance_gradient) {
  const PointwiseAttentionOptions& options = call.options;
  const std::int64_t heads = query.size(1), slopes = options.distance_slope.numel();
  const auto blockwise = [&](std::int64_t size) { return at::zeros({call.blocks(), size}, at::kFloat); };
  PointwiseGradients out{
      at::empty(query.sizes(), query.options()),      at::zeros(key.sizes(), key.options()),
      at::zeros(value.sizes(), value.options()),      blockwise(options.place_bias.numel()),
      blockwise(options.time_bias.numel()),           at::zeros(options.key_bias.sizes(), at::kFloat),
      at::zeros({call.blocks(), slopes}, at::kDouble)};
  const bool timed = options.time_bias.numel() > 0, biased = options.key_bias.numel() > 0;
  for_each_query(call, query, key, value, [&](const QueryVisit& visit) {
    fill_pointwise_factors(options.dropout, (options.dropout.first_row + visit.number) * heads + visit.head, visit.keys,
                           visit.factors);
    VarianceGradients moment_gradients{};
    bool moved = variance_gradient.defined();
    if (moved) {
      const WeightSum sum = find_mean(call, visit);
      moment_gradients = {visit.shares, visit.mean, row_of(variance_gradient, visit.number, visit.head), sum.sum,
                          sum.raised_slope};
      moved = sum.size > 0;
    }
    const auto gradients = [&](const at::Tensor& x) {
      return HeadGradients{row_of(x, visit.begin, visit.head), x.stride(0)};
    };
    pointwise_rows().gradients(visit.rows, visit.query, visit.keys, visit.weights, visit.slopes, visit.factors,
                               row_of(output_gradient, visit.number, visit.head), moved ? &moment_gradients : nullptr,
                               visit.weight_gradients, visit.score_gradients, visit.room,
                               row_of(out.query, visit.number, visit.head), gradients(out.key), gradients(out.value));
    float* const place_gradients = out.place_bias.mutable_data_ptr<float>() + visit.block * options.place_bias.numel();
    float* const time_gradients = out.time_bias.mutable_data_ptr<float>() + visit.block * options.time_bias.numel();
    double slope = 0;
    for (std::int64_t j = 0; j < visit.keys; ++j) {
      const std::int64_t places = visit.query - j;
      place_gradients[places] += visit.score_gradients[j];
      if (timed) time_gradients[visit.buckets[j]] += visit.score_gradients[j];
      const float log_gradient =
          options.multiplicative ? visit.weight_gradients[j] * visit.weights[j] : visit.score_gradients[j];
      if (biased) out.key_bias.mutable_data_ptr<float>()[visit.begin + j] += log_gradient;
      slope += static_cast<double>(log_gradient) * static_cast<double>(places);
    }
    if (slopes > 0)
      out.distance_slope.mutable_data_ptr<double>()[visit.block * slopes + (slopes == 1 ? 0 : visit.head)] += slope;
  });
  out.place_bias = out.place_bias.sum(0);
  out.time_bias = out.time_bias.sum(0);
  out.distance_slope = out.distance_slope.sum(0).to(at::kFloat);
  return out;
}

at::Tensor with_contiguous_numbers(const at::Tensor& x) {
  return x.stride(2) == 1 ? x : x.contiguous();
}

/// The call with tensors that the loops can read. Absent ones become empty.
PointwiseCall readable(const PackedBounds& begin, const PointwiseAttentionOptions& options) {
  PointwiseCall call{begin, options};
  const auto read = [](at::Tensor& x, at::ScalarType type) {
    x = x.defined() ? x.detach().to(type).contiguous() : at::empty({0}, type);
  };
  read(call.options.place_bias, at::kFloat);
  read(call.options.time_bias, at::kFloat);
  read(call.options.key_bias, at::kFloat);
  read(call.options.distance_slope, at::kDouble);
  read(call.options.query_times, at::kDouble);
  read(call.options.key_times, at::kDouble);
  return call;
}

/// @param time_bias, key_bias, distance_slope  without elements: none (autograd takes no undefined tensors)
struct PointwiseNode : torch::autograd::Function<PointwiseNode> {
  static variable_list forward(AutogradContext* context, const at::Tensor& query, const at::Tensor& key,
                               const at::Tensor& value, const at::Tensor& place_bias, const at::Tensor& time_bias,
                               const at::Tensor& key_bias, const at::Tensor& distance_slope, const PackedBounds& begin,
                               PointwiseAttentionOptions options, bool moments) {
    options.place_bias = place_bias;
    options.time_bias = time_bias;
    options.key_bias = key_bias;
    options.distance_slope = distance_slope;
    const PointwiseCall call = readable(begin, options);
    const at::Tensor q = with_contiguous_numbers(query), k = with_contiguous_numbers(key),
                     v = with_contiguous_numbers(value);
    const PointwiseMoments found = attended_in_loops(call, q, k, v, moments);
    const PointwiseAttentionOptions& read = call.options;
    context->save_for_backward({q, k, v, read.place_bias, read.time_bias, read.key_bias, read.distance_slope,
                                read.query_times, read.key_times});
    context->saved_data["begin"] = begin;
    context->saved_data["scale"] = options.scale;
    context->saved_data["length"] = options.length;
    context->saved_data["rate"] = options.dropout.rate;
    context->saved_data["key"] = static_cast<std::int64_t>(options.dropout.key);
    context->saved_data["first_row"] = options.dropout.first_row;
    context->saved_data["multiplicative"] = options.multiplicative;
    context->saved_data["least_weight_share"] = options.min_weight_share;
    if (!moments) return {found.output};
    context->mark_non_differentiable({found.balance});
    return {found.output, found.variance, found.balance};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    check_first_derivative("pointwise_attention");
    const variable_list saved = context->get_saved_variables();
    auto& data = context->saved_data;
    PointwiseCall call{data["begin"].toIntVector(), {}};
    call.options = {.scale = data["scale"].toDouble(),
                    .length = data["length"].toDouble(),
                    .dropout = {data["rate"].toDouble(), static_cast<std::uint64_t>(data["key"].toInt()),
                                data["first_row"].toInt()},
                    .place_bias = saved[3],
                    .time_bias = saved[4],
                    .query_times = saved[7],
                    .key_times = saved[8],
                    .key_bias = saved[5],
                    .distance_slope = saved[6],
                    .multiplicative = data["multiplicative"].toBool(),
                    .min_weight_share = data["least_weight_share"].toDouble()};
    const at::Tensor output_gradient =
        gradients[0].defined() ? with_contiguous_numbers(gradients[0]) : at::zeros_like(saved[0]);
    const bool variance_gradient = gradients.size() > 1 && gradients[1].defined();
    const PointwiseGradients found =
        gradients_in_loops(call, saved[0], saved[1], saved[2], output_gradient,
                           variance_gradient ? with_contiguous_numbers(gradients[1]) : at::Tensor());
    const auto given = [](const at::Tensor& x) { return x.numel() > 0 ? x : at::Tensor(); };
    return {found.query,
            found.key,
            found.value,
            found.place_bias,
            given(found.time_bias),
            given(found.key_bias),
            given(found.distance_slope),
            {},
            {},
            {}};
  }
};

}  // namespace

PointwiseMoments pointwise_loops(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                 const PackedBounds& begin, const PointwiseAttentionOptions& options, bool moments) {
  if (options.last_queries) {
    const at::NoGradGuard no_gradients;
    return attended_in_loops(readable(begin, options), with_contiguous_numbers(query), with_contiguous_numbers(key),
                             with_contiguous_numbers(value), moments);
  }
  const auto given_or_empty = [&](const at::Tensor& x) { return x.defined() ? x : at::empty({0}, query.options()); };
  const variable_list found = PointwiseNode::apply(query, key, value, options.place_bias,
                                                   given_or_empty(options.time_bias), given_or_empty(options.key_bias),
                                                   given_or_empty(options.distance_slope), begin, options, moments);
  if (!moments) return {found[0], {}, {}};
  return {found[0], found[1], found[2]};
}

}  // namespace gainlens::kernels
