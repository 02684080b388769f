#include "sweep/sink_collector.h"

#include "core/check.h"
#include "sweep/moments.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace gainlens::sweep {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr const char* sink_integers[] = {"position", "token", "queries", "stream_dimension"};
constexpr const char* sink_numbers[] = {"column_mean",      "second_half_mean",   "last_quarter_mean",
                                        "value_norm_ratio", "key_norm_ratio",     "key_query_cosine",
                                        "stream_ratio",     "stream_ratio_after", "stream_cosine"};
constexpr const char* stream_integers[] = {"position", "token", "dimension"};

runfile::Array filled(std::vector<std::int64_t> shape, double value) {
  std::size_t elements = 1;
  for (const std::int64_t size : shape) elements *= static_cast<std::size_t>(size);
  return {std::move(shape), std::vector<double>(elements, value)};
}

/// Mean of the two middle entries if their number is even.
double median_of(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

std::vector<double> to_vector(const at::Tensor& tensor) {
  const at::Tensor rows = tensor.to(at::kCPU, at::kDouble).contiguous();
  return {rows.const_data_ptr<double>(), rows.const_data_ptr<double>() + rows.numel()};
}

/// Some positions of the stream at a time, so that copies of them are small.
constexpr std::int64_t positions_at_a_time = 512;

struct Candidate {
  double mean;
  std::int64_t key;
};

/// The keys of one head that are stored, the largest column mean first.
std::vector<Candidate> largest_keys(const at::Tensor& means, const at::Tensor& queries) {
  std::vector<Candidate> found;
  const std::vector<double> mean = to_vector(means.select(1, 0)), seen = to_vector(queries);
  const auto fewest = static_cast<double>(
      runfile::fewest_sink_queries(static_cast<std::int64_t>(*std::max_element(seen.begin(), seen.end()))));
  for (std::size_t key = 0; key < mean.size(); ++key) {
    if (mean[key] >= runfile::min_stored_mean && seen[key] >= fewest)
      found.push_back({mean[key], static_cast<std::int64_t>(key)});
  }
  std::stable_sort(found.begin(), found.end(), [](const Candidate& a, const Candidate& b) { return a.mean > b.mean; });
  if (std::ssize(found) > runfile::stored_sinks) found.resize(runfile::stored_sinks);
  return found;
}

/// Norms of the rows [position] of one head, with their median.
struct Norms {
  std::vector<double> of;
  double median;

  explicit Norms(const at::Tensor& rows) : of(to_vector(rows.to(at::kDouble).norm(2, -1))), median(median_of(of)) {}
  double ratio(std::int64_t position) const { return of[static_cast<std::size_t>(position)] / median; }
};

}  // namespace

SinkCollector::SinkCollector(std::vector<std::int64_t> layers, std::int64_t heads,
                             std::span<const tokenizers::TokenId> tokens)
    : layers_(std::move(layers)), heads_(heads), tokens_(tokens) {
  const std::int64_t count = std::ssize(layers_);
  const std::vector<std::int64_t> per_rank = {count, heads, runfile::stored_sinks};
  for (const char* name : sink_integers) sinks_[name] = filled(per_rank, -1);
  for (const char* name : sink_numbers) sinks_[name] = filled(per_rank, nan);
  for (const char* name : stream_integers) stream_[name] = filled({count, runfile::largest_positions}, -1);
  stream_["value"] = filled({count, runfile::largest_positions}, nan);
  stream_["median"] = filled({count}, nan);
}

std::size_t SinkCollector::row_of(std::int64_t layer) const {
  const auto found = std::find(layers_.begin(), layers_.end(), layer);
  ASSERT(found != layers_.end(), "layer {} is not among the layers of this sweep", layer);
  return static_cast<std::size_t>(found - layers_.begin());
}

SinkCollector::StreamPeaks SinkCollector::peaks_of(const at::Tensor& hidden) {
  StreamPeaks peaks;
  const at::Tensor rows = hidden.squeeze(0), first = rows[0].to(at::kDouble);
  const double first_norm = first.norm().item<double>();
  for (std::int64_t begin = 0; begin < rows.size(0); begin += positions_at_a_time) {
    const at::Tensor part = rows.slice(0, begin, begin + positions_at_a_time).to(at::kDouble);
    const auto [largest, dimension] = part.abs().max(1);
    const std::vector<double> values = to_vector(largest), places = to_vector(dimension),
                              norms = to_vector(part.norm(2, -1)), products = to_vector(at::mv(part, first));
    peaks.largest.insert(peaks.largest.end(), values.begin(), values.end());
    for (std::size_t i = 0; i < values.size(); ++i) {
      peaks.dimension.push_back(static_cast<std::int64_t>(places[i]));
      peaks.cosine.push_back(products[i] / (norms[i] * first_norm));
    }
  }
  peaks.median = median_of(peaks.largest);
  return peaks;
}

void SinkCollector::see_stream_before(const at::Tensor& hidden) {
  before_ = peaks_of(hidden);
}

void SinkCollector::see_attention(std::int64_t layer, const kernels::QueryStatistics& statistics,
                                  const hooks::Qkv& qkv) {
  const at::Tensor query = qkv.query.squeeze(0), key = qkv.key.squeeze(0), value = qkv.value.squeeze(0);
  const std::int64_t group = heads_ / key.size(0);
  for (std::int64_t kv_head = 0; kv_head < key.size(0); ++kv_head) {
    std::vector<std::vector<Candidate>> found;
    bool any = false;
    for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      found.push_back(largest_keys(statistics.key_mean[head], statistics.key_queries[head]));
      any = any || !found.back().empty();
    }
    if (!any) continue;
    const Norms keys(key[kv_head]), values(value[kv_head]);
    for (std::int64_t g = 0; g < group; ++g) {
      const std::int64_t head = kv_head * group + g;
      const std::vector<Candidate>& head_candidates = found[static_cast<std::size_t>(g)];
      if (head_candidates.empty()) continue;
      const at::Tensor mean_query = query[head].slice(0, second_half_begin(query.size(1))).mean(0, false, at::kDouble);
      const double query_norm = mean_query.norm().item<double>();
      for (std::size_t rank = 0; rank < head_candidates.size(); ++rank) {
        const std::int64_t position = head_candidates[rank].key;
        const auto place = static_cast<std::size_t>(position);
        const std::size_t cell = first_cell(layer, head) + rank;
        const at::Tensor means = statistics.key_mean[head][position].to(at::kDouble);
        sink("position", cell) = static_cast<double>(position);
        sink("token", cell) = tokens_[place];
        sink("queries", cell) = statistics.key_queries[head][position].item<double>();
        sink("column_mean", cell) = means[0].item<double>();
        sink("second_half_mean", cell) = means[1].item<double>();
        sink("last_quarter_mean", cell) = means[2].item<double>();
        sink("value_norm_ratio", cell) = values.ratio(position);
        sink("key_norm_ratio", cell) = keys.ratio(position);
        sink("key_query_cosine", cell) =
            key[kv_head][position].to(at::kDouble).dot(mean_query).item<double>() / (keys.of[place] * query_norm);
        sink("stream_ratio", cell) = before_.largest[place] / before_.median;
        sink("stream_dimension", cell) = static_cast<double>(before_.dimension[place]);
        sink("stream_cosine", cell) = before_.cosine[place];
      }
    }
  }
}

SinkCollector::WithoutSinks SinkCollector::without_sinks(std::int64_t layer, const kernels::QueryStatistics& statistics,
                                                         const hooks::Qkv& qkv,
                                                         const kernels::AttentionOptions& options) const {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const std::int64_t length = qkv.query.size(2), kv_heads = qkv.key.size(1), group = heads_ / kv_heads;
  WithoutSinks found{statistics.n_eff.clone(), statistics.kalman_gain.clone()};
  const auto &mean = sinks_.at("column_mean").values, &position = sinks_.at("position").values;
  for (std::int64_t kv_head = 0; kv_head < kv_heads; ++kv_head) {
    const std::int64_t first = kv_head * group;
    at::Tensor hidden = at::zeros({group, length}, at::kDouble);  // added to the scores of each key
    std::vector<std::int64_t> others;                             // heads with a sink besides key 0
    for (std::int64_t head = first; head < first + group; ++head) {
      bool first_key = false, other_key = false;
      for (std::size_t cell = first_cell(layer, head); cell < first_cell(layer, head) + runfile::stored_sinks; ++cell) {
        if (!(mean[cell] >= runfile::sink_threshold)) break;  // NaN: there are no more
        const auto key = static_cast<std::int64_t>(position[cell]);
        hidden[head - first][key] = -infinity;
        (key == 0 ? first_key : other_key) = true;
      }
      if (other_key) others.push_back(head);
      if (other_key || !first_key) continue;
      found.n_eff[head].copy_(statistics.without_first_n_eff[head]);
      found.kalman_gain[head].copy_(statistics.without_first_kalman_gain[head]);
    }
    if (others.empty()) continue;

    const auto own_rows = [&](const at::Tensor& rows) {
      return rows.defined() && rows.dim() > 1 && rows.size(0) == heads_ ? rows.narrow(0, first, group) : rows;
    };
    kernels::AttentionOptions own = options;
    hidden = hidden.to(qkv.query.device());
    own.key_bias = options.key_bias.defined() ? own_rows(options.key_bias).to(at::kDouble) + hidden : hidden;
    own.distance_bias = own_rows(options.distance_bias);
    own.prior_precision_by_dimension = own_rows(options.prior_precision_by_dimension);
    own.sink_logit = at::Tensor();  // it takes weight from all keys alike
    own.returned = kernels::moments_alone;
    kernels::AttentionPlan plan(own);
    const kernels::QueryStatistics rest =
        kernels::attention_statistics(plan, qkv.query[0].narrow(0, first, group), qkv.key[0].narrow(0, kv_head, 1),
                                      qkv.value[0].narrow(0, kv_head, 1));
    for (const std::int64_t head : others) {
      found.n_eff[head].copy_(rest.n_eff[head - first]);
      found.kalman_gain[head].copy_(rest.kalman_gain[head - first]);
    }
  }
  return found;
}

void SinkCollector::see_stream_after(std::int64_t layer, const at::Tensor& hidden) {
  const StreamPeaks after = peaks_of(hidden);
  const std::size_t row = row_of(layer);
  const std::size_t cells = static_cast<std::size_t>(heads_) * runfile::stored_sinks;
  for (std::size_t cell = row * cells; cell < (row + 1) * cells; ++cell) {
    const double position = sink("position", cell);
    if (position >= 0)
      sink("stream_ratio_after", cell) = after.largest[static_cast<std::size_t>(position)] / after.median;
  }
  std::vector<std::size_t> order(after.largest.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto count = std::min<std::size_t>(order.size(), runfile::largest_positions);
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](std::size_t a, std::size_t b) {
                      return after.largest[a] != after.largest[b] ? after.largest[a] > after.largest[b] : a < b;
                    });
  for (std::size_t rank = 0; rank < count; ++rank) {
    const std::size_t cell = row * runfile::largest_positions + rank, place = order[rank];
    stream_.at("position").values[cell] = static_cast<double>(place);
    stream_.at("token").values[cell] = tokens_[place];
    stream_.at("dimension").values[cell] = static_cast<double>(after.dimension[place]);
    stream_.at("value").values[cell] = after.largest[place];
  }
  stream_.at("median").values[row] = after.median;
}

void SinkCollector::finish(const std::function<std::string(tokenizers::TokenId)>& text_of,
                           runfile::ShardResult& shard) && {
  for (const double token : sinks_.at("token").values)
    shard.sink_text.push_back(token < 0 ? "" : text_of(static_cast<tokenizers::TokenId>(token)));
  shard.sinks = std::move(sinks_);
  shard.stream = std::move(stream_);
}

}  // namespace gainlens::sweep
