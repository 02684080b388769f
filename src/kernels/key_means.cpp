#include "kernels/key_means.h"

#include "core/query_windows.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace gainlens::kernels {
namespace {

/// How many of the distances 0..d a query sees: [head or 1, length + 1], beginning with 0 of none.
at::Tensor seen_distances(const at::Tensor& distance_bias) {
  const at::Tensor seen = at::isneginf(at::atleast_2d(distance_bias)).logical_not().to(at::kLong);
  return at::constant_pad_nd(seen.cumsum(1), {1, 0});
}

}  // namespace

std::array<std::int64_t, key_windows> key_window_begins(std::int64_t length) {
  return {0, second_half_begin(length), last_quarter_begin(length)};
}

at::Tensor queries_of_keys(const AttentionOptions& options, const AttentionShape& shape, const at::Device& device) {
  at::Tensor begin = at::empty({shape.length}, at::kLong), end = at::empty_like(begin);
  auto *begins = begin.mutable_data_ptr<std::int64_t>(), *ends = end.mutable_data_ptr<std::int64_t>();
  for (std::int64_t key = 0; key < shape.length; ++key) {
    const KeyRange queries = seeing_queries(options, shape.length, key);
    begins[key] = queries.begin;
    ends[key] = std::max(queries.begin, queries.end);
  }
  at::Tensor counts = (end - begin).unsqueeze(0);
  if (options.distance_bias.defined()) {
    const at::Tensor seen = seen_distances(options.distance_bias.cpu());
    const auto up_to = [&](const at::Tensor& count) { return seen.index_select(1, count.clamp_min(0)); };
    // Queries at the key or after it lie at distances t - key, those before it at key - t. Distance 0 counts once.
    const at::Tensor keys = at::arange(shape.length, at::kLong);
    const at::Tensor after = up_to(end - keys) - up_to((begin - keys).clamp_min(0));
    const at::Tensor before = up_to(keys - begin + 1) - up_to((keys - end + 1).clamp_min(1));
    counts = after + before.clamp_min(0);
  }
  if (options.key_bias.defined()) {
    const at::Tensor hidden = at::isneginf(at::atleast_2d(options.key_bias.cpu()));
    counts = counts.masked_fill(hidden, 0);
  }
  return counts.expand({shape.heads, shape.length}).to(device);
}

namespace {

/// Writes the means of keys that are wanted; the others keep their NaN.
template <typename Real>
void write_means(const ReturnedFields& returned, const at::Tensor& sums, const at::Tensor& counts,
                 const at::Tensor& n_eff, at::Tensor& key_mean) {
  const std::int64_t length = sums.size(2);
  const auto begins = key_window_begins(length);
  const double least = returned.key_means == KeyMeans::above ? returned.min_key_mean : 0;
  const auto sum = sums.accessor<double, 3>();
  const auto count = counts.accessor<std::int64_t, 2>();
  const auto seen = n_eff.accessor<Real, 2>();
  auto mean = key_mean.accessor<Real, 3>();
  for (std::int64_t head = 0; head < sums.size(0); ++head) {
    std::array<std::int64_t, key_windows> queries{};  // of each window, those that see a key
    for (std::size_t window = 1; window < begins.size(); ++window) {
      for (std::int64_t query = begins[window]; query < length; ++query)
        queries[window] += std::isnan(seen[head][query]) ? 0 : 1;
    }
    for (std::int64_t key = 0; key < length; ++key) {
      if (count[head][key] == 0) continue;
      const double column_mean = sum[head][0][key] / static_cast<double>(count[head][key]);
      if (column_mean < least) continue;
      mean[head][key][0] = static_cast<Real>(column_mean);
      for (std::int64_t window = 1; window < key_windows; ++window) {
        mean[head][key][window] =
            static_cast<Real>(sum[head][window][key] / static_cast<double>(queries[static_cast<std::size_t>(window)]));
      }
    }
  }
}

}  // namespace

void finish_key_means(const ReturnedFields& returned, const at::Tensor& sums, const at::Tensor& counts,
                      QueryStatistics& result) {
  result.key_queries.copy_(counts);
  at::Tensor mean = result.key_mean.cpu();  // the tensor itself if it is on the CPU
  if (mean.scalar_type() == at::kDouble) {
    write_means<double>(returned, sums.cpu(), counts.cpu(), result.n_eff.cpu(), mean);
  } else {
    write_means<float>(returned, sums.cpu(), counts.cpu(), result.n_eff.cpu(), mean);
  }
  if (!result.key_mean.is_cpu()) result.key_mean.copy_(mean);
}

}  // namespace gainlens::kernels
