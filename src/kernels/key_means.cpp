#include "kernels/key_means.h"

#include "core/query_windows.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace gainlens::kernels {
namespace {

/// Of the distances 0..d, how many a query sees: [head or 1, length + 1], beginning with 0 of none.
at::Tensor seen_distances(const at::Tensor& distance_bias) {
  const at::Tensor seen = at::isneginf(at::atleast_2d(distance_bias)).logical_not().to(at::kLong);
  return at::constant_pad_nd(seen.cumsum(1), {1, 0});
}

}  // namespace

std::array<std::int64_t, key_windows> key_window_begins(std::int64_t length) {
  return {0, second_half_begin(length), last_quarter_begin(length)};
}

at::Tensor queries_of_keys(const AttentionOptions& options, const AttentionShape& shape, const at::Device& device) {
  std::vector<std::int64_t> begins, ends;
  for (std::int64_t key = 0; key < shape.length; ++key) {
    const KeyRange queries = seeing_queries(options, shape.length, key);
    begins.push_back(queries.begin);
    ends.push_back(std::max(queries.begin, queries.end));
  }
  const at::Tensor keys = at::arange(shape.length, at::kLong), begin = at::tensor(begins), end = at::tensor(ends);
  at::Tensor counts = (end - begin).unsqueeze(0);
  if (options.distance_bias.defined()) {
    const at::Tensor seen = seen_distances(options.distance_bias.cpu());
    const auto up_to = [&](const at::Tensor& count) { return seen.index_select(1, count.clamp_min(0)); };
    // Queries at the key or after it lie at distances t - key, those before it at key - t. Distance 0 counts once.
    const at::Tensor after = up_to(end - keys) - up_to(at::maximum(begin - keys, at::zeros_like(keys)));
    const at::Tensor before = up_to(keys - begin + 1) - up_to(at::maximum(keys - end + 1, at::ones_like(keys)));
    counts = after + before.clamp_min(0);
  }
  counts = counts.expand({shape.heads, shape.length}).clone();
  if (options.key_bias.defined()) counts.masked_fill_(at::isneginf(at::atleast_2d(options.key_bias.cpu())), 0);
  return counts.to(device);
}

void finish_key_means(const ReturnedFields& returned, const at::Tensor& sums, const at::Tensor& counts,
                      QueryStatistics& result) {
  const at::Tensor seeing = at::isnan(result.n_eff).logical_not();
  std::vector<at::Tensor> means = {sums.select(1, 0) / counts};
  const auto begins = key_window_begins(sums.size(2));
  for (std::int64_t window = 1; window < key_windows; ++window) {
    const at::Tensor queries = seeing.slice(1, begins[static_cast<std::size_t>(window)]).sum(1, /*keepdim=*/true);
    means.push_back(sums.select(1, window) / queries);
  }
  at::Tensor left_out = counts.eq(0);
  if (returned.key_means == KeyMeans::above) left_out = left_out.logical_or(means.front().lt(returned.least_key_mean));
  result.key_mean.copy_(at::stack(means, 2));
  result.key_mean.masked_fill_(left_out.unsqueeze(2), std::numeric_limits<double>::quiet_NaN());
  result.key_queries.copy_(counts);
}

}  // namespace gainlens::kernels
