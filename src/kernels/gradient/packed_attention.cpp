#include "kernels/gradient/packed_attention.h"

#include "core/check.h"
#include "kernels/gradient/packed_rows.h"
#include "kernels/gradient/selected_rows.h"
#include "kernels/gradient_tracking.h"
#include "kernels/row_alignment.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <limits>
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

  std::int64_t longest() const {
    std::int64_t longest = 0;
    for (std::size_t i = 1; i < begin.size(); ++i) longest = std::max(longest, begin[i] - begin[i - 1]);
    return longest;
  }
};

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

/// Calls visit(head rows, sequence's first position, head, room) for each sequence and head. `room` has three rows of
/// as many numbers as the longest sequence has positions, aligned.
template <typename Visit>
void for_each_head(const Call& call, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                   const Visit& visit) {
  const std::int64_t sequences = static_cast<std::int64_t>(call.begin.size()) - 1, heads = query.size(1);
  const std::int64_t width = padded<float>(call.longest());
  at::parallel_for(0, sequences, 8, [&](std::int64_t first, std::int64_t last) {
    const at::Tensor room = at::empty({3, width}, at::kFloat);
    for (std::int64_t sequence = first; sequence < last; ++sequence) {
      const std::int64_t begin = call.begin[static_cast<std::size_t>(sequence)];
      const std::int64_t positions = call.begin[static_cast<std::size_t>(sequence) + 1] - begin;
      for (std::int64_t head = 0; head < heads; ++head) {
        const PackedHead rows{rows_of(query, begin, head),
                              rows_of(key, begin, head),
                              rows_of(value, begin, head),
                              positions,
                              query.size(2),
                              static_cast<float>(call.scale)};
        visit(rows, begin, head, room.mutable_data_ptr<float>(), width);
      }
    }
  });
}

at::Tensor attended(const Call& call, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  const at::Tensor output = at::empty(query.sizes(), query.options());
  const std::int64_t heads = query.size(1);
  const PackedRows& kernels = packed_rows();
  for_each_head(call, query, key, value,
                [&](const PackedHead& rows, std::int64_t begin, std::int64_t head, float* room, std::int64_t width) {
                  const HeadGradients out = gradients_of(output, begin, head);
                  float* const factors = room + width;
                  for (std::int64_t i = 0; i < rows.positions; ++i) {
                    const std::int64_t keys = call.causal ? i + 1 : rows.positions;
                    kernels.weights(rows, i, keys, room);
                    if (call.dropout.rate != 0) {
                      fill_factors(call, (call.dropout.first_row + begin + i) * heads + head, keys, factors);
                      for (std::int64_t j = 0; j < keys; ++j) room[j] *= factors[j];
                    }
                    kernels.mix(rows, keys, room, out.data + i * out.stride);
                  }
                });
  return output;
}

struct PackedAttentionNode : torch::autograd::Function<PackedAttentionNode> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& query, const at::Tensor& key,
                            const at::Tensor& value, const PackedBounds& begin, double scale, bool causal, double rate,
                            std::int64_t dropout_key, std::int64_t first_row) {
    const at::Tensor q = with_contiguous_dims(query), k = with_contiguous_dims(key), v = with_contiguous_dims(value);
    context->save_for_backward({q, k, v});
    context->saved_data["begin"] = begin;
    context->saved_data["scale"] = scale;
    context->saved_data["causal"] = causal;
    context->saved_data["rate"] = rate;
    context->saved_data["key"] = dropout_key;
    context->saved_data["first_row"] = first_row;
    return attended({begin, scale, causal, {rate, static_cast<std::uint64_t>(dropout_key), first_row}}, q, k, v);
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
         context->saved_data["first_row"].toInt()}};
    const at::Tensor upstream = with_contiguous_dims(gradients[0]);
    const at::Tensor of_query = at::empty(saved[0].sizes(), saved[0].options());
    const at::Tensor of_key = at::zeros(saved[1].sizes(), saved[1].options()),
                     of_value = at::zeros(saved[2].sizes(), saved[2].options());
    const std::int64_t heads = saved[0].size(1);
    const PackedRows& kernels = packed_rows();
    for_each_head(call, saved[0], saved[1], saved[2],
                  [&](const PackedHead& rows, std::int64_t first, std::int64_t head, float* room, std::int64_t width) {
                    const HeadRows upstream_rows = rows_of(upstream, first, head);
                    const HeadGradients dq = gradients_of(of_query, first, head);
                    float* const factors = room + width;
                    for (std::int64_t i = 0; i < rows.positions; ++i) {
                      const std::int64_t keys = call.causal ? i + 1 : rows.positions;
                      kernels.weights(rows, i, keys, room);
                      fill_factors(call, (call.dropout.first_row + first + i) * heads + head, keys, factors);
                      kernels.gradients(rows, i, keys, room, factors, upstream_rows.data + i * upstream_rows.stride,
                                        room + 2 * width, dq.data + i * dq.stride, gradients_of(of_key, first, head),
                                        gradients_of(of_value, first, head));
                    }
                  });
    return {of_query, of_key, of_value, {}, {}, {}, {}, {}, {}};
  }
};

/// -infinity where a query does not see a key, else 0: [sequence, 1, query, key], on the CPU. Queries of padding see
/// all keys: their rows are not used, and a row without any key would bring NaN into the gradients.
at::Tensor hidden_keys(const Call& call, const std::vector<std::int64_t>& lengths, std::int64_t longest) {
  at::Tensor bias = at::zeros({std::ssize(lengths), 1, longest, longest}, at::kFloat);
  auto* number = bias.mutable_data_ptr<float>();
  for (const std::int64_t length : lengths) {
    for (std::int64_t query = 0; query < longest; ++query) {
      const std::int64_t keys = query >= length ? longest : call.causal ? query + 1 : length;
      std::fill(number + keys, number + longest, -std::numeric_limits<float>::infinity());
      number += longest;
    }
  }
  return bias;
}

/// The same by library calls over padded sequences: [sequence, longest].
at::Tensor padded_attention(const Call& call, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  const std::int64_t sequences = static_cast<std::int64_t>(call.begin.size()) - 1, longest = call.longest();
  std::vector<std::int64_t> row_of_place(static_cast<std::size_t>(sequences * longest), 0), place_of_row, lengths;
  for (std::int64_t sequence = 0; sequence < sequences; ++sequence) {
    const std::int64_t begin = call.begin[static_cast<std::size_t>(sequence)];
    lengths.push_back(call.begin[static_cast<std::size_t>(sequence) + 1] - begin);
    for (std::int64_t i = 0; i < lengths.back(); ++i) {
      row_of_place[static_cast<std::size_t>(sequence * longest + i)] = begin + i;
      place_of_row.push_back(sequence * longest + i);
    }
  }
  const auto index = [&](const std::vector<std::int64_t>& numbers) {
    return at::tensor(numbers, at::kLong).to(query.device());
  };
  const at::Tensor rows = index(row_of_place), places = index(place_of_row);
  const auto padded_heads = [&](const at::Tensor& x) {  // [sequence, head, longest, head_dim]
    return selected_rows(x, rows).view({sequences, longest, x.size(1), x.size(2)}).transpose(1, 2);
  };
  const at::Tensor scores = at::matmul(padded_heads(query), padded_heads(key).transpose(2, 3)) * call.scale;
  at::Tensor weights = (scores + hidden_keys(call, lengths, longest).to(scores.options())).softmax(-1);
  if (call.dropout.rate != 0) {
    const std::int64_t heads = query.size(1);
    const at::Tensor head = at::arange(heads, rows.options()).unsqueeze(1);
    const at::Tensor row = (rows.view({sequences, 1, longest}) + call.dropout.first_row) * heads + head;
    weights = weights * dropout_factors({call.dropout.rate, call.dropout.key, 0}, row, longest, weights);
  }
  return selected_rows(at::matmul(weights, padded_heads(value)).transpose(1, 2).flatten(0, 1), places);
}

}  // namespace

at::Tensor packed_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            const PackedBounds& begin, const PackedAttentionOptions& options) {
  ASSERT(query.dim() == 3 && query.sizes() == key.sizes() && query.sizes() == value.sizes(),
         "packed attention: queries, keys and values of different shapes");
  ASSERT(!begin.empty() && begin.front() == 0 && begin.back() == query.size(0) &&
             std::is_sorted(begin.begin(), begin.end()),
         "packed attention: bounds that do not cover {} positions", query.size(0));
  const double scale = options.scale != 0 ? options.scale : 1 / std::sqrt(static_cast<double>(query.size(2)));
  if (query.numel() == 0) return at::zeros_like(query);
  if (!query.is_cpu() || query.scalar_type() != at::kFloat)
    return padded_attention({begin, scale, options.causal, options.dropout}, query, key, value);
  return PackedAttentionNode::apply(query, key, value, begin, scale, options.causal, options.dropout.rate,
                                    static_cast<std::int64_t>(options.dropout.key), options.dropout.first_row);
}

}  // namespace gainlens::kernels
