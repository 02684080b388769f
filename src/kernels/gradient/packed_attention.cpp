#include "kernels/gradient/packed_attention.h"

#include "core/check.h"
#include "kernels/gradient/packed_rows.h"
#include "kernels/gradient/padded_sequences.h"
#include "kernels/gradient_tracking.h"
#include "kernels/row_alignment.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

namespace gainlens::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Call {
  const PackedBounds& begin;
  double scale;
  bool causal;
  Dropout dropout;
  at::Tensor key_bias;                      // [position]; may be undefined
  std::vector<double> distance_slope = {};  // of one place: one for all heads, or one for each; empty: none
  bool last_queries = false;

  double slope_of(std::int64_t head) const {
    if (distance_slope.empty()) return 0;
    return distance_slope[distance_slope.size() == 1 ? 0 : static_cast<std::size_t>(head)];
  }

  std::int64_t longest() const {
    std::int64_t longest = 0;
    for (std::size_t i = 1; i < begin.size(); ++i) longest = std::max(longest, begin[i] - begin[i - 1]);
    return longest;
  }
  std::int64_t sequences() const { return static_cast<std::int64_t>(begin.size()) - 1; }
  std::int64_t keys_of(const PackedHead& head, std::int64_t query) const { return causal ? query + 1 : head.positions; }
};

/// @param x  float64, contiguous
std::vector<double> numbers_of(const at::Tensor& x) {
  return {x.const_data_ptr<double>(), x.const_data_ptr<double>() + x.numel()};
}

at::Tensor with_contiguous_dims(const at::Tensor& x) {
  return x.stride(2) == 1 ? x : x.contiguous();
}

HeadRows rows_of(const at::Tensor& x, std::int64_t position, std::int64_t head) {
  return {x.const_data_ptr<float>() + position * x.stride(0) + head * x.stride(1), x.stride(0)};
}

HeadGradients gradients_of(const at::Tensor& x, std::int64_t position, std::int64_t head) {
  return {x.mutable_data_ptr<float>() + position * x.stride(0) + head * x.stride(1), x.stride(0)};
}

/// Factors of the dropout of one query's weights.
void fill_factors(const Call& call, std::int64_t row, std::int64_t keys, float* factors) {
  if (call.dropout.rate == 0) {
    std::fill_n(factors, keys, 1.0F);
    return;
  }
  DropoutRow(call.dropout, row).factors(keys, factors);
}

/// One sequence of one head, with the memory of its loop.
struct Visit {
  PackedHead rows;
  std::int64_t sequence, begin, head;          // begin: the sequence's first position
  float *weights, *factors, *score_gradients;  // each as long as the longest sequence, aligned
};

/// Calls visit(Visit) for each sequence and head. The heads of a sequence are visited by one thread, one after another.
template <typename Function>
void for_each_head(const Call& call, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                   const Function& visit) {
  const std::int64_t heads = query.size(1), width = padded<float>(call.longest());
  const float* const bias = call.key_bias.defined() ? call.key_bias.const_data_ptr<float>() : nullptr;
  at::parallel_for(0, call.sequences(), 8, [&](std::int64_t first, std::int64_t last) {
    const at::Tensor room = at::empty({3, width}, at::kFloat);
    auto* const numbers = room.mutable_data_ptr<float>();
    for (std::int64_t sequence = first; sequence < last; ++sequence) {
      const std::int64_t begin = call.begin[static_cast<std::size_t>(sequence)];
      const std::int64_t positions = call.begin[static_cast<std::size_t>(sequence) + 1] - begin;
      for (std::int64_t head = 0; head < heads; ++head) {
        // One query stands at every position: it is read at the last one alone.
        const HeadRows queries =
            call.last_queries ? HeadRows{rows_of(query, sequence, head).data, 0} : rows_of(query, begin, head);
        const PackedHead rows{queries,
                              rows_of(key, begin, head),
                              rows_of(value, begin, head),
                              positions,
                              query.size(2),
                              static_cast<float>(call.scale),
                              bias == nullptr ? nullptr : bias + begin,
                              static_cast<float>(call.slope_of(head))};
        visit(Visit{rows, sequence, begin, head, numbers, numbers + width, numbers + 2 * width});
      }
    }
  });
}

/// Results of the forward pass; the moments are undefined if they are not asked for.
struct Attended {
  at::Tensor output, n_eff, residual;
  at::Tensor mean;  // sum p v, without dropout
};

Attended attended(const Call& call, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                  bool moments) {
  const std::int64_t heads = query.size(1);
  Attended out{at::empty(query.sizes(), query.options()), {}, {}, {}};
  if (moments) {
    out.n_eff = at::empty({query.size(0), heads}, query.options());
    out.residual = at::empty(query.sizes(), query.options());
    out.mean = at::empty(query.sizes(), query.options());
  }
  const PackedRows& kernels = packed_rows();
  for_each_head(call, query, key, value, [&](const Visit& visit) {
    for (std::int64_t i = call.last_queries ? visit.rows.positions - 1 : 0; i < visit.rows.positions; ++i) {
      const std::int64_t keys = call.keys_of(visit.rows, i),
                         number = call.last_queries ? visit.sequence : visit.begin + i;
      const auto row = [&](const at::Tensor& x) { return gradients_of(x, number, visit.head).data; };
      float* const output = row(out.output);
      kernels.weights(visit.rows, i, keys, visit.weights);
      if (moments) {
        float* const mean = row(out.mean);
        kernels.mix(visit.rows, keys, visit.weights, mean);
        const float squares = kernels.moments(visit.rows, keys, visit.weights, mean, row(out.residual));
        out.n_eff.mutable_data_ptr<float>()[number * heads + visit.head] = std::max(1.0F, 1 / squares);
        if (call.dropout.rate == 0) std::copy_n(mean, visit.rows.dims, output);
      }
      if (call.dropout.rate != 0) {
        fill_factors(call, (call.dropout.first_row + number) * heads + visit.head, keys, visit.factors);
        for (std::int64_t j = 0; j < keys; ++j) visit.weights[j] *= visit.factors[j];
      }
      if (!moments || call.dropout.rate != 0) kernels.mix(visit.rows, keys, visit.weights, output);
    }
  });
  return out;
}

/// Gradients with respect to the inputs.
struct InputGradients {
  at::Tensor query, key, value, key_bias, distance_slope;
};

/// The backward pass.
/// @param upstream  gradients of output, n_eff and residual; the moments are undefined if they have none. `mean`: as
///     attended() returned it
InputGradients input_gradients(const Call& call, const at::Tensor& query, const at::Tensor& key,
                               const at::Tensor& value, const Attended& upstream, const at::Tensor& n_eff) {
  const std::int64_t heads = query.size(1);
  const bool moments = upstream.residual.defined();
  InputGradients out{at::empty(query.sizes(), query.options()),
                     at::zeros(key.sizes(), key.options()),
                     at::zeros(value.sizes(), value.options()),
                     {},
                     {}};
  if (call.key_bias.defined()) out.key_bias = at::zeros(call.key_bias.sizes(), call.key_bias.options());
  // Summed in one order, whatever the threads.
  const auto own_slopes = static_cast<std::int64_t>(call.distance_slope.size());
  const at::Tensor slopes = at::zeros({call.sequences(), own_slopes}, at::kDouble);
  const PackedRows& kernels = packed_rows();
  for_each_head(call, query, key, value, [&](const Visit& visit) {
    const auto row = [&](const at::Tensor& x, std::int64_t i) {
      const HeadRows rows = rows_of(x, visit.begin, visit.head);
      return rows.data + i * rows.stride;
    };
    const HeadGradients dq = gradients_of(out.query, visit.begin, visit.head);
    double slope = 0;
    for (std::int64_t i = 0; i < visit.rows.positions; ++i) {
      const std::int64_t keys = call.keys_of(visit.rows, i), number = (visit.begin + i) * heads + visit.head;
      kernels.weights(visit.rows, i, keys, visit.weights);
      fill_factors(call, call.dropout.first_row * heads + number, keys, visit.factors);
      MomentGradients moment_gradients{};
      if (moments) {
        // n_eff = 1 / sum p^2 changes by -n_eff^2 for each unit of sum p^2.
        const float effective = n_eff.const_data_ptr<float>()[number];
        moment_gradients = {row(upstream.mean, i), row(upstream.residual, i),
                            -upstream.n_eff.const_data_ptr<float>()[number] * effective * effective};
      }
      kernels.gradients(visit.rows, i, keys, visit.weights, visit.factors, row(upstream.output, i),
                        moments ? &moment_gradients : nullptr, visit.score_gradients, dq.data + i * dq.stride,
                        gradients_of(out.key, visit.begin, visit.head),
                        gradients_of(out.value, visit.begin, visit.head));
      if (out.key_bias.defined()) {
        float* const bias_gradients = out.key_bias.mutable_data_ptr<float>() + visit.begin;
        for (std::int64_t j = 0; j < keys; ++j) bias_gradients[j] += visit.score_gradients[j];
      }
      for (std::int64_t j = 0; j < keys && own_slopes > 0; ++j)
        slope += visit.score_gradients[j] * static_cast<float>(std::abs(i - j));
    }
    if (own_slopes == 0) return;
    const std::int64_t place = own_slopes == 1 ? 0 : visit.head;
    slopes.mutable_data_ptr<double>()[visit.sequence * own_slopes + place] += slope;
  });
  if (own_slopes > 0) out.distance_slope = slopes.sum(0).to(at::kFloat);
  return out;
}

/// @param key_bias, distance_slope  without elements: none (autograd takes no undefined tensors)
struct PackedAttentionNode : torch::autograd::Function<PackedAttentionNode> {
  static variable_list forward(AutogradContext* context, const at::Tensor& query, const at::Tensor& key,
                               const at::Tensor& value, const at::Tensor& key_bias, const at::Tensor& distance_slope,
                               const PackedBounds& begin, double scale, bool causal, const Dropout& dropout,
                               bool moments) {
    const at::Tensor q = with_contiguous_dims(query), k = with_contiguous_dims(key), v = with_contiguous_dims(value);
    const at::Tensor bias = key_bias.numel() > 0 ? key_bias.contiguous() : at::Tensor();
    const at::Tensor slope = distance_slope.to(at::kDouble).contiguous();
    const Attended found = attended({begin, scale, causal, dropout, bias, numbers_of(slope)}, q, k, v, moments);
    context->save_for_backward({q, k, v, bias, found.mean, found.n_eff, slope});
    context->saved_data["begin"] = begin;
    context->saved_data["scale"] = scale;
    context->saved_data["causal"] = causal;
    context->saved_data["rate"] = dropout.rate;
    context->saved_data["key"] = static_cast<std::int64_t>(dropout.key);
    context->saved_data["first_row"] = dropout.first_row;
    if (!moments) return {found.output};
    return {found.output, found.n_eff, found.residual};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    check_first_derivative("packed_attention");
    const variable_list saved = context->get_saved_variables();
    const PackedBounds begin = context->saved_data["begin"].toIntVector();
    const Call call{
        begin,
        context->saved_data["scale"].toDouble(),
        context->saved_data["causal"].toBool(),
        {context->saved_data["rate"].toDouble(), static_cast<std::uint64_t>(context->saved_data["key"].toInt()),
         context->saved_data["first_row"].toInt()},
        saved[3],
        numbers_of(saved[6])};
    const auto of = [&](std::size_t i, at::IntArrayRef sizes) {
      return gradients[i].defined() ? gradients[i] : at::zeros(sizes, saved[0].options());
    };
    Attended upstream{with_contiguous_dims(of(0, saved[0].sizes())), {}, {}, saved[4]};
    if (gradients.size() > 1 && (gradients[1].defined() || gradients[2].defined())) {
      upstream.n_eff = of(1, saved[5].sizes()).contiguous();
      upstream.residual = with_contiguous_dims(of(2, saved[0].sizes()));
    }
    const InputGradients found = input_gradients(call, saved[0], saved[1], saved[2], upstream, saved[5]);
    return {found.query, found.key, found.value, found.key_bias, found.distance_slope, {}, {}, {}, {}, {}};
  }
};

/// The same by library calls over padded sequences.
PackedMoments padded_attention(double scale, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                               const PackedBounds& begin, const PackedAttentionOptions& options, bool moments) {
  const PaddedSequences sequences(begin, query.device());
  const at::Tensor values = sequences.padded(value);
  const at::Tensor weights = padded_scores(sequences, query, key, scale, options).softmax(-1);
  at::Tensor dropped = weights;
  if (options.dropout.rate != 0) dropped = weights * padded_dropout(sequences, options.dropout, weights);
  PackedMoments found{sequences.packed(at::matmul(dropped, values)), {}, {}};
  if (!moments) return found;
  const at::Tensor offsets = values - values.mean(2, /*keepdim=*/true), mean = at::matmul(weights, offsets);
  found.residual = sequences.packed((at::matmul(weights, offsets.square()) - mean.square()).clamp_min(0));
  found.n_eff = sequences.packed(weights.square().sum(-1, /*keepdim=*/true).reciprocal()).squeeze(2);
  return found;
}

/// The last query of each sequence, where there is no loop for it: all queries, of which the others are 0.
PackedMoments last_of_padded(double scale, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                             const PackedBounds& begin, const PackedAttentionOptions& options, bool moments) {
  std::vector<std::int64_t> last;
  for (std::size_t i = 1; i < begin.size(); ++i) last.push_back(begin[i] - 1);
  const at::Tensor rows = at::tensor(last, at::kLong).to(query.device());
  const PackedMoments all =
      padded_attention(scale, at::zeros_like(key).index_copy(0, rows, query), key, value, begin, options, moments);
  if (!moments) return {all.output.index_select(0, rows), {}, {}};
  return {all.output.index_select(0, rows), all.n_eff.index_select(0, rows), all.residual.index_select(0, rows)};
}

void check_last_queries(const at::Tensor& query, const PackedBounds& begin, const PackedAttentionOptions& options) {
  ASSERT(query.size(0) + 1 == std::ssize(begin) && std::ranges::adjacent_find(begin) == begin.end(),
         "packed attention: {} last queries of {} sequences, or a sequence without a position", query.size(0),
         std::ssize(begin) - 1);
  ASSERT(options.dropout.rate == 0, "packed attention: last queries are for evaluation, without dropout");
}

/// @returns the moments undefined, unless they are asked for
PackedMoments checked_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                const PackedBounds& begin, const PackedAttentionOptions& options, bool moments) {
  ASSERT(query.dim() == 3 && key.sizes() == value.sizes() && query.sizes().slice(1) == key.sizes().slice(1) &&
             (options.last_queries || query.size(0) == key.size(0)),
         "packed attention: queries, keys and values of different shapes");
  ASSERT(
      !begin.empty() && begin.front() == 0 && begin.back() == key.size(0) && std::is_sorted(begin.begin(), begin.end()),
      "packed attention: bounds that do not cover {} positions", key.size(0));
  if (options.last_queries) check_last_queries(query, begin, options);
  ASSERT(!options.key_bias.defined() || options.key_bias.sizes() == at::IntArrayRef({key.size(0)}),
         "packed attention: the key bias needs a number for each position");
  ASSERT(!options.distance_slope.defined() ||
             (options.distance_slope.dim() == 1 &&
              (options.distance_slope.numel() == 1 || options.distance_slope.numel() == query.size(1))),
         "packed attention: the distance slope is one number, or one for each head");
  const double scale = options.scale != 0 ? options.scale : 1 / std::sqrt(static_cast<double>(query.size(2)));
  if (query.numel() == 0) {
    const at::Tensor empty = at::zeros_like(query);
    return {empty, empty.sum(2), empty};
  }
  if (!query.is_cpu() || query.scalar_type() != at::kFloat)
    return (options.last_queries ? last_of_padded : padded_attention)(scale, query, key, value, begin, options,
                                                                      moments);
  if (options.last_queries) {
    const at::NoGradGuard no_gradients;
    const at::Tensor bias = options.key_bias.defined() ? options.key_bias.contiguous() : at::Tensor();
    const std::vector<double> slope = options.distance_slope.defined()
                                          ? numbers_of(options.distance_slope.to(at::kDouble).contiguous())
                                          : std::vector<double>();
    const Attended found =
        attended({begin, scale, options.causal, {}, bias, slope, /*last_queries=*/true}, with_contiguous_dims(query),
                 with_contiguous_dims(key), with_contiguous_dims(value), moments);
    return {found.output, found.n_eff, found.residual};
  }
  const auto given_or_empty = [&](const at::Tensor& x) { return x.defined() ? x : at::empty({0}, query.options()); };
  const variable_list found = PackedAttentionNode::apply(query, key, value, given_or_empty(options.key_bias),
                                                         given_or_empty(options.distance_slope), begin, scale,
                                                         options.causal, options.dropout, moments);
  if (!moments) return {found[0], {}, {}};
  return {found[0], found[1], found[2]};
}

}  // namespace

at::Tensor packed_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            const PackedBounds& begin, const PackedAttentionOptions& options) {
  return checked_attention(query, key, value, begin, options, /*moments=*/false).output;
}

PackedMoments packed_attention_moments(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                       const PackedBounds& begin, const PackedAttentionOptions& options) {
  return checked_attention(query, key, value, begin, options, /*moments=*/true);
}

}  // namespace gainlens::kernels
