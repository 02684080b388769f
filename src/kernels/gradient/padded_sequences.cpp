#include "kernels/gradient/padded_sequences.h"

#include "kernels/gradient/selected_rows.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

namespace gainlens::kernels {

PaddedSequences::PaddedSequences(const PackedBounds& begin, at::Device device)
    : sequences_(static_cast<std::int64_t>(begin.size()) - 1) {
  for (std::size_t i = 1; i < begin.size(); ++i) lengths_.push_back(begin[i] - begin[i - 1]);
  for (const std::int64_t length : lengths_) longest_ = std::max(longest_, length);
  std::vector<std::int64_t> row_of_place(static_cast<std::size_t>(sequences_ * longest_), 0), place_of_row;
  place_of_row.reserve(static_cast<std::size_t>(begin.back()));
  for (std::int64_t sequence = 0; sequence < sequences_; ++sequence) {
    for (std::int64_t i = 0; i < lengths_[static_cast<std::size_t>(sequence)]; ++i) {
      row_of_place[static_cast<std::size_t>(sequence * longest_ + i)] = begin[static_cast<std::size_t>(sequence)] + i;
      place_of_row.push_back(sequence * longest_ + i);
    }
  }
  rows_ = at::tensor(row_of_place, at::kLong).to(device);
  places_ = at::tensor(place_of_row, at::kLong).to(device);
}

at::Tensor PaddedSequences::padded(const at::Tensor& x) const {
  return selected_rows(x, rows_).view({sequences_, longest_, x.size(1), x.size(2)}).transpose(1, 2);
}

at::Tensor PaddedSequences::packed(const at::Tensor& x) const {
  return selected_rows(x.transpose(1, 2).flatten(0, 1), places_);
}

at::Tensor PaddedSequences::hidden_keys(bool causal, const at::TensorOptions& options) const {
  at::Tensor bias = at::zeros({sequences_, 1, longest_, longest_}, at::kFloat);
  auto* number = bias.mutable_data_ptr<float>();
  for (const std::int64_t length : lengths_) {
    for (std::int64_t query = 0; query < longest_; ++query) {
      const std::int64_t keys = query >= length ? longest_ : causal ? query + 1 : length;
      std::fill(number + keys, number + longest_, -std::numeric_limits<float>::infinity());
      number += longest_;
    }
  }
  return bias.to(options);
}

at::Tensor padded_scores(const PaddedSequences& sequences, const at::Tensor& query, const at::Tensor& key, double scale,
                         const PackedAttentionOptions& options) {
  at::Tensor scores = at::matmul(sequences.padded(query), sequences.padded(key).transpose(2, 3)) * scale;
  if (options.key_bias.defined())
    scores = scores + sequences.padded(options.key_bias.view({-1, 1, 1})).transpose(2, 3).to(scores.scalar_type());
  if (options.distance_slope.defined()) {
    const at::Tensor place = at::arange(sequences.longest(), scores.options());
    const at::Tensor slope = options.distance_slope.view({-1, 1, 1});  // [1, 1, 1] or [head, 1, 1]
    scores = scores + (place.unsqueeze(1) - place).abs() * slope;
  }
  return scores + sequences.hidden_keys(options.causal, scores.options());
}

at::Tensor padded_dropout(const PaddedSequences& sequences, const Dropout& dropout, const at::Tensor& weights) {
  const std::int64_t heads = weights.size(1);
  const at::Tensor rows = sequences.rows(), head = at::arange(heads, rows.options()).unsqueeze(1);
  const at::Tensor row = (rows.unsqueeze(1) + dropout.first_row) * heads + head;
  return dropout_factors({dropout.rate, dropout.key, 0}, row, sequences.longest(), weights);
}

}  // namespace gainlens::kernels
