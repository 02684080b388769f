#include "kernels/attention_sequences.h"

#include "core/check.h"
#include "kernels/query_fields.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace gainlens::kernels {

namespace {

/// The number of queries that count for each column m, [head, m]: queries at m or later that see a key.
at::Tensor queries_of_columns(const QueryStatistics& statistics) {
  const at::Tensor seen = at::isnan(statistics.first_mass).logical_not();  // [head, query, key]
  std::vector<at::Tensor> counts;
  for (std::int64_t key = 0; key < seen.size(2); ++key) counts.push_back(seen.select(2, key).slice(1, key).sum(1));
  return at::stack(counts, 1);
}

}  // namespace

const QueryField& query_field(std::string_view name) {
  const auto found = std::find_if(query_fields.begin(), query_fields.end(),
                                  [&](const QueryField& field) { return field.name == name; });
  ASSERT(found != query_fields.end(), "the kernels compute no scalar {}", name);
  return *found;
}

void copy_positions(const QueryStatistics& part, std::int64_t begin, QueryStatistics& whole) {
  const auto copy = [&](at::Tensor QueryStatistics::*tensor) {
    if ((part.*tensor).defined()) (whole.*tensor).narrow(1, begin, (part.*tensor).size(1)).copy_(part.*tensor);
  };
  for (const QueryField& field : query_fields) copy(field.tensor);
  for (const StatisticsTensor& other : other_tensors) {
    if (other.by_position) copy(other.tensor);
  }
}

AttentionOptions options_of(const AttentionOptions& options, const Sequence& sequence) {
  AttentionOptions own = options;
  own.sequences.clear();
  const std::int64_t length = sequence.end - sequence.begin;
  if (own.key_bias.defined()) own.key_bias = own.key_bias.narrow(-1, sequence.begin, length);
  if (own.distance_bias.defined()) own.distance_bias = own.distance_bias.narrow(-1, 0, length);
  if (own.prior_precision_by_dimension.defined() && own.prior_precision_by_dimension.dim() == 3) {
    own.prior_precision_by_dimension = own.prior_precision_by_dimension.narrow(1, sequence.begin, length);
  }
  return own;
}

QueryStatistics over_sequences(const AttentionOptions& options, const at::Tensor& query, const at::Tensor& key,
                               const at::Tensor& value, const SequenceKernel& kernel) {
  if (options.sequences.empty()) return kernel(options, shape_of(options, query, key, value), query, key, value);

  QueryStatistics whole;
  at::Tensor column_sums, column_counts;
  std::vector<at::Tensor> value_variances;
  for (const Sequence& sequence : options.sequences) {
    const std::int64_t length = sequence.end - sequence.begin;
    const auto part = [&](const at::Tensor& tensor) { return tensor.narrow(1, sequence.begin, length); };
    const AttentionOptions own = options_of(options, sequence);
    const QueryStatistics statistics =
        kernel(own, shape_of(own, part(query), key, value), part(query), part(key), part(value));
    if (!whole.n_eff.defined())
      whole = allocate_statistics(options, shape_of(options, query, key, value), statistics.n_eff.scalar_type(), query);
    copy_positions(statistics, sequence.begin, whole);
    if (statistics.first_mass.defined()) {
      const at::Tensor counts = queries_of_columns(statistics);
      const at::Tensor sums = at::nan_to_num(statistics.column_mean.to(at::kDouble), 0.0) * counts;
      column_sums = column_sums.defined() ? column_sums + sums : sums;
      column_counts = column_counts.defined() ? column_counts + counts : counts;
    }
    whole.queries_without_keys += statistics.queries_without_keys;
    value_variances.push_back(statistics.value_variance);
  }
  whole.value_variance = at::stack(value_variances);
  if (column_sums.defined()) whole.column_mean = (column_sums / column_counts).to(whole.column_mean.scalar_type());
  return whole;
}

}  // namespace gainlens::kernels
