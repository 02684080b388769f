#include "sweep/chunk_reducer.h"

#include "core/check.h"
#include "kernels/query_fields.h"
#include "runfile/schema.h"
#include "sweep/moments.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

namespace gainlens::sweep {
namespace {

/// A contiguous copy in double on the CPU, so that its rows can be read as spans.
at::Tensor as_rows(const at::Tensor& tensor) {
  return tensor.to(at::kCPU, at::kDouble).contiguous();
}

std::span<const double> row_span(const at::Tensor& rows, std::int64_t row) {
  const std::int64_t width = rows.numel() / rows.size(0);
  return {rows.const_data_ptr<double>() + row * width, static_cast<std::size_t>(width)};
}

}  // namespace

ChunkReducer::ChunkReducer(std::vector<std::int64_t> layers, const hooks::AttentionLayout& layout, std::int64_t length,
                           bool per_query)
    : layers_(std::move(layers)),
      layout_(layout),
      length_(length),
      per_query_(per_query),
      has_sink_logits_(std::ranges::any_of(layers_, [&](std::int64_t layer) { return layout.has_sink_logits(layer); })),
      added_(layers_.size(), false) {}

std::size_t ChunkReducer::row_of(std::int64_t layer) const {
  const auto found = std::find(layers_.begin(), layers_.end(), layer);
  ASSERT(found != layers_.end(), "layer {} is not among the layers of this sweep", layer);
  return static_cast<std::size_t>(found - layers_.begin());
}

double* ChunkReducer::cell(std::map<std::string, runfile::Array>& group, const std::string& name, std::size_t row,
                           std::int64_t heads, std::vector<std::int64_t> tail) {
  std::int64_t width = heads;
  for (const std::int64_t size : tail) width *= size;
  runfile::Array& array = group[name];
  if (array.shape.empty()) {
    array.shape = {static_cast<std::int64_t>(layers_.size()), heads};
    array.shape.insert(array.shape.end(), tail.begin(), tail.end());
    array.values.assign(layers_.size() * static_cast<std::size_t>(width), std::numeric_limits<double>::quiet_NaN());
  }
  return array.values.data() + row * static_cast<std::size_t>(width);
}

/// The schema (runfile/schema.h) decides which datasets the numbers go to.
void ChunkReducer::add_scalar(const std::string& name, std::size_t row, const at::Tensor& by_query) {
  const runfile::HeadQuantity& stored = runfile::head_quantity(name);
  const auto begin = static_cast<std::size_t>(runfile::window_begin(stored.window, length_));
  const at::Tensor rows = as_rows(by_query);
  for (std::int64_t head = 0; head < layout_.heads; ++head) {
    const auto queries = row_span(rows, head);
    const Moments found = moments(queries.subspan(begin));
    cell(result_.summary, name, row, layout_.heads, {})[head] = found.mean;
    if (stored.has_variance()) cell(result_.summary, name + "_var", row, layout_.heads, {})[head] = found.variance;
    if (stored.has_profile()) {
      std::ranges::copy(bin_means(queries),
                        cell(result_.profile, name, row, layout_.heads, {runfile::bins}) + head * runfile::bins);
    }
    if (stored.has_queries() && per_query_) {
      std::ranges::copy(queries, cell(result_.queries, name, row, layout_.heads, {length_}) + head * length_);
    }
  }
}

void ChunkReducer::add_by_key(const std::string& name, std::size_t row, const at::Tensor& by_query) {
  const at::Tensor rows = as_rows(by_query.transpose(1, 2));  // [head, key, query]
  const auto half = static_cast<std::size_t>(second_half_begin(length_));
  double* means = cell(result_.summary, name, row, layout_.heads, {runfile::first_keys});
  for (std::int64_t series = 0; series < layout_.heads * runfile::first_keys; ++series) {
    const std::span<const double> queries(rows.const_data_ptr<double>() + series * length_,
                                          static_cast<std::size_t>(length_));
    means[series] = moments(queries.subspan(half)).mean;
  }
  if (per_query_) {
    const at::Tensor kept = as_rows(by_query);
    std::copy_n(kept.const_data_ptr<double>(), kept.numel(),
                cell(result_.queries, name, row, layout_.heads, {length_, runfile::first_keys}));
  }
}

void ChunkReducer::add_sink_bound(std::size_t row, std::int64_t head, const SinkRows& queries, double first_norm,
                                  double min_norm) {
  const auto half = static_cast<std::size_t>(second_half_begin(length_));
  const SinkRows second_half{queries.first_weight.subspan(half), queries.estimate_norm.subspan(half),
                             queries.gained_estimate_norm.subspan(half), queries.without_first_norm.subspan(half)};
  const SinkBoundSummary found = summarise_sink_bound(second_half, first_norm, min_norm);
  const auto put = [&](const char* name, double value) {
    cell(result_.summary, name, row, layout_.heads, {})[head] = value;
  };
  put("sink_bound", found.bound);
  put("sink_bound_gain", found.gain_bound);
  put("sink_bound_vacuous", found.vacuous);
  put("sink_bound_gain_violated", found.gain_violated);
  put("sink_bound_slack", found.slack);
  put("sink_bound_slack_min", found.slack_min);
  put("sink_alignment", found.alignment);
}

void ChunkReducer::add_values(std::size_t row, const kernels::QueryStatistics& statistics, const at::Tensor& value) {
  // A layer with fewer KV heads than others stores each where the query heads look that read it.
  const std::int64_t repeats = layout_.kv_heads / value.size(0);
  const auto stored = [repeats](const at::Tensor& own) { return as_rows(own.repeat_interleave(repeats, 0)); };
  const at::Tensor norms = stored(value.to(at::kDouble).norm(2, -1));  // [kv_head, key]
  const at::Tensor variance = stored(statistics.value_variance.to(at::kDouble).mean(-1));
  // The lemma is about the weights of the keys. They sum to one if a learned sink logit is left out.
  const at::Tensor weights =
      as_rows(statistics.first_weight.defined() ? statistics.first_weight : statistics.first_mass.select(-1, 0));
  const at::Tensor estimates = as_rows(statistics.estimate_norm), gained = as_rows(statistics.gained_estimate_norm),
                   others = as_rows(statistics.without_first_norm);
  const std::int64_t group = layout_.heads / layout_.kv_heads;
  for (std::int64_t kv_head = 0; kv_head < layout_.kv_heads; ++kv_head) {
    const auto keys = row_span(norms, kv_head);
    const auto means = bin_means(keys);
    std::copy(means.begin(), means.end(),
              cell(result_.values, "norm", row, layout_.kv_heads, {runfile::bins}) + kv_head * runfile::bins);
    double* first = cell(result_.values, "first_norm", row, layout_.kv_heads, {runfile::first_keys}) +
                    kv_head * runfile::first_keys;
    std::copy_n(keys.begin(), std::min<std::size_t>(keys.size(), runfile::first_keys), first);
    const double least = *std::min_element(keys.begin() + 1, keys.end());
    cell(result_.values, "min_norm", row, layout_.kv_heads, {})[kv_head] = least;
    cell(result_.values, "variance", row, layout_.kv_heads, {})[kv_head] = variance.const_data_ptr<double>()[kv_head];
    for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      add_sink_bound(
          row, head,
          {row_span(weights, head), row_span(estimates, head), row_span(gained, head), row_span(others, head)},
          keys.front(), least);
    }
  }
}

void ChunkReducer::add(std::int64_t layer, const kernels::QueryStatistics& statistics, const at::Tensor& value) {
  const std::size_t row = row_of(layer);
  added_[row] = true;
  for (const runfile::HeadQuantity& quantity : runfile::head_quantities()) {
    if (!quantity.source.empty())
      add_scalar(std::string(quantity.name), row, statistics.*kernels::query_field(quantity.source).tensor);
  }
  add_scalar("bos_mass", row, statistics.first_mass.select(-1, 0));
  if (has_sink_logits_) {  // in a layer without them nothing takes a share
    const bool own = statistics.sink_logit_mass.defined();
    add_scalar("sink_logit_mass", row, own ? statistics.sink_logit_mass : at::zeros_like(statistics.n_eff));
  }
  add_by_key("first_mass", row, statistics.first_mass);
  const at::Tensor columns = as_rows(statistics.column_mean);
  std::copy_n(columns.const_data_ptr<double>(), columns.numel(),
              cell(result_.summary, "column_mean", row, layout_.heads, {runfile::first_keys}));
  add_values(row, statistics, value);
  queries_without_keys_ += statistics.queries_without_keys;
  const at::Tensor& precision = statistics.observation_precision;
  queries_undefined_ += at::isnan(precision).sum().item<std::int64_t>() - statistics.queries_without_keys;
}

void ChunkReducer::add_gate(std::int64_t layer, const at::Tensor& gate) {
  const at::Tensor by_head = gate.dim() == 3 ? gate.to(at::kDouble).mean(-1) : gate;  // [position, head]
  add_scalar("gate", row_of(layer), by_head.transpose(0, 1));
}

void ChunkReducer::add_without_sinks(std::int64_t layer, const at::Tensor& n_eff, const at::Tensor& kalman_gain) {
  add_scalar("without_sinks_n_eff", row_of(layer), n_eff);
  add_scalar("without_sinks_kalman_gain", row_of(layer), kalman_gain);
}

void ChunkReducer::add_nll(double mean_nll) {
  result_.summary["nll"] = {{}, {mean_nll}};
}

runfile::ShardResult ChunkReducer::finish() && {
  for (std::size_t row = 0; row < layers_.size(); ++row) ASSERT(added_[row], "layer {} was not measured", layers_[row]);
  return std::move(result_);
}

}  // namespace gainlens::sweep
