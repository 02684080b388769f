#include "analyses/value_norms.h"

#include "analyses/bins.h"
#include "analyses/statistics.h"
#include "core/check.h"

#include <cmath>

namespace gainlens::analyses {
namespace {

std::vector<double> read_last_axis(const Cells& cells, const Length& length, std::size_t layer, std::size_t head) {
  std::size_t ignored = 0;  // empty bins are NaN in every chunk and do not count
  std::vector<double> values;
  for (std::size_t i = 0; i < cells.last(); ++i)
    values.push_back(mean_over_samples(cells, length, layer, head, i, ignored));
  return values;
}

void describe_ratios(ValueNormsResult& result) {
  std::vector<double> ratios;
  for (const ValueNorms& head : result.heads) {
    if (!std::isfinite(head.first.front()) || !(head.rest > 0)) continue;
    ratios.push_back(head.first.front() / head.rest);
    result.shorter += ratios.back() < 1 ? 1 : 0;
  }
  result.ratios = ratios.size();
  if (!ratios.empty()) result.median_ratio = median(ratios);
}

}  // namespace

double mean_of_rest(const std::vector<double>& first, const std::vector<double>& bin_means, std::int64_t tokens) {
  const auto bins = static_cast<std::int64_t>(bin_means.size());
  double sum = 0;
  for (std::int64_t bin = 0; bin < bins; ++bin) {
    const std::int64_t keys = bin_start(bin + 1, bins, tokens) - bin_start(bin, bins, tokens);
    if (keys > 0) sum += static_cast<double>(keys) * bin_means[static_cast<std::size_t>(bin)];
  }
  for (const double value : first) sum -= value;
  return sum / static_cast<double>(tokens - static_cast<std::int64_t>(first.size()));
}

Maybe<ValueNormsResult> value_norms(const runfile::RunReader& reader) {
  const auto binned = Cells::read(reader, "values/norm");
  const auto first = Cells::read(reader, "values/first_norm");
  if (!binned || !first) return Maybe<ValueNormsResult>::none(binned ? first.reason() : binned.reason());
  CHECK(binned->heads() == first->heads(), "values/norm has {} KV heads and values/first_norm {}; they must agree",
        binned->heads(), first->heads());
  ValueNormsResult result{
      usable_lengths(reader).back(), reader.layers(), {}, 0, Measured::none("no head has a ratio"), 0, 0};
  if (std::cmp_less_equal(result.length.tokens, first->last())) {
    return Maybe<ValueNormsResult>::none(
        fmt::format("chunks of {} tokens hold no key beyond the first {}", result.length.tokens, first->last()));
  }
  for (const std::size_t layer : all_layers(reader)) {
    for (std::int64_t head = 0; head < reader.kv_heads(layer); ++head) {
      const auto stored = static_cast<std::size_t>(head * reader.kv_repeats(layer));
      ValueNorms norms{layer, reader.layers()[layer],
                       head,  read_last_axis(*first, result.length, layer, stored),
                       0,     read_last_axis(*binned, result.length, layer, stored)};
      norms.rest = mean_of_rest(norms.first, norms.profile, result.length.tokens);
      if (std::isfinite(norms.rest)) {
        result.heads.push_back(std::move(norms));
      } else {
        ++result.left_out;
      }
    }
  }
  if (result.heads.empty())
    return Maybe<ValueNormsResult>::none("values/norm has no finite value at the longest length");
  describe_ratios(result);
  return result;
}

OrderedJson to_json(const ValueNormsResult& result) {
  OrderedJson json;
  json["tokens"] = result.length.tokens;
  json["chunks"] = result.length.samples.size();
  put(json, "median_ratio_of_key_0_to_later_keys", result.median_ratio);
  json["heads_with_a_shorter_key_0"] = result.shorter;
  json["heads_with_a_ratio"] = result.ratios;
  json["heads"] = OrderedJson::array();
  for (const ValueNorms& head : result.heads) {
    json["heads"].push_back(
        {{"layer", head.layer}, {"kv_head", head.kv_head}, {"first_norm", head.first}, {"rest_norm", head.rest}});
  }
  json["heads_left_out"] = result.left_out;
  return json;
}

}  // namespace gainlens::analyses
