#include "models/decoder/cached_attention.h"

#include "core/check.h"
#include "kernels/attention_inputs.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

namespace gainlens::models {
namespace {

/// Weights of a block of queries that are in memory at a time.
constexpr std::int64_t weights_per_block = 1 << 22;

/// The queries of one segment with every key that they may see. The queries are the last positions of the keys.
struct Extended {
  hooks::Qkv qkv;  ///< [1, head, row, head_dim] and [1, kv_head, key, head_dim]
  kernels::AttentionOptions options;
  hooks::PrecisionBias bias;
  bool whole = false;               ///< the sequence begins with these rows
  bool has_forgotten_some = false;  ///< the first keys of the sequence

  std::int64_t rows() const { return qkv.query.size(2); }
  std::int64_t keys() const { return qkv.key.size(2); }

  /// The queries [begin, end) with the keys up to the last of them.
  Extended block(std::int64_t begin, std::int64_t end) const {
    const std::int64_t later = rows() - end, seen = keys() - later;
    Extended part = *this;
    part.qkv = {qkv.query.slice(2, begin, end), qkv.key.slice(2, 0, seen), qkv.value.slice(2, 0, seen)};
    if (options.key_bias.defined()) part.options.key_bias = options.key_bias.slice(-1, 0, seen);
    if (options.distance_bias.defined()) part.options.distance_bias = options.distance_bias.slice(-1, 0, seen);
    if (bias.key.defined()) part.bias.key = bias.key.slice(1, 0, seen);
    return part;
  }
};

at::Tensor appended(GrowingRows& held, const at::Tensor& rows) {
  held.append(rows);
  return held.view().unsqueeze(0);
}

Extended extended(const CachedSegment& segment, std::int64_t layer, const hooks::Qkv& qkv,
                  const kernels::AttentionOptions& options, const hooks::PrecisionBias& bias) {
  KeyValueCache::Layer& held = segment.cache->layer(layer);
  const auto own = [&segment](const at::Tensor& t, std::int64_t dim) {
    return t.narrow(dim, segment.first_row, segment.rows);
  };
  Extended found;
  found.whole = segment.past() == 0;
  found.qkv = {own(qkv.query, 2), appended(held.keys, own(qkv.key, 2)[0]), appended(held.values, own(qkv.value, 2)[0])};
  found.options = options;
  found.bias = bias;
  if (bias.key.defined()) found.bias.key = appended(held.key_bias, own(bias.key, 1)[0].unsqueeze(1)).squeeze(2);
  // A window has forgotten the first keys: biases by position are those of the others.
  const std::int64_t length = segment.past() + segment.rows, keys = found.keys();
  if (options.key_bias.defined()) found.options.key_bias = options.key_bias.slice(-1, length - keys, length);
  if (options.distance_bias.defined()) found.options.distance_bias = options.distance_bias.slice(-1, 0, keys);
  found.has_forgotten_some = keys < length;
  return found;
}

/// The statistics of the last query over every key that it may see, by the kernel that a sweep uses.
LastQuery last_query(const Extended& all, std::int64_t sequence, std::int64_t layer) {
  const std::int64_t keys = all.keys();
  kernels::AttentionOptions options = options_of_sequence(all.options, all.bias, 0, keys);
  options.first_query = keys - 1;
  options.returned = kernels::moments_alone;
  options.returned.entropy = true;
  options.returned.first_masses = 1;
  kernels::AttentionPlan plan(std::move(options));
  // Earlier rows are no queries and their content does not matter: the last one stands in all of them.
  const at::Tensor query = all.qkv.query[0].narrow(1, all.rows() - 1, 1).expand({-1, keys, -1});
  const kernels::QueryStatistics seen = kernels::attention_statistics(plan, query, all.qkv.key[0], all.qkv.value[0]);
  const auto last = [keys](const at::Tensor& field) { return field.select(1, keys - 1).cpu(); };
  at::Tensor bos_mass = last(seen.first_mass.select(2, 0));
  if (all.has_forgotten_some) bos_mass = bos_mass * 0;  // key 0 of the cache is another token; NaN stays
  return {sequence, layer, last(seen.n_eff), last(seen.kalman_gain), last(seen.entropy), bos_mass};
}

/// Forgets the keys that no later query sees.
void forget_hidden(const CachedSegment& segment, std::int64_t layer, const kernels::AttentionOptions& options) {
  if (!options.window) return;
  KeyValueCache::Layer& held = segment.cache->layer(layer);
  for (GrowingRows* rows : {&held.keys, &held.values, &held.key_bias}) rows->keep_last(*options.window - 1);
}

/// Runs `compute` on blocks of queries, and joins what it gives.
template <typename Compute>
auto in_blocks(const Extended& all, const Compute& compute) {
  std::vector<decltype(compute(all))> parts;
  const std::int64_t step = std::max<std::int64_t>(1, weights_per_block / (all.qkv.query.size(1) * all.keys()));
  for (std::int64_t begin = 0; begin < all.rows(); begin += step)
    parts.push_back(compute(all.block(begin, std::min(begin + step, all.rows()))));
  return parts;
}

void check_products(const Extended& all) {
  kernels::check_products("attention", all.options.scale, all.qkv.query, all.qkv.key);
}

hooks::ObservedAttention joined(const std::vector<hooks::ObservedAttention>& parts) {
  std::vector<at::Tensor> outputs, n_effs, residuals;
  for (const hooks::ObservedAttention& part : parts) {
    outputs.push_back(part.output);
    n_effs.push_back(part.n_eff);
    residuals.push_back(part.residual);
  }
  return {at::cat(outputs, 2), at::cat(n_effs, 2), at::cat(residuals, 2)};
}

}  // namespace

at::Tensor CachedAttention::run(std::int64_t layer, const hooks::Qkv& qkv, const kernels::AttentionOptions& options) {
  UsualAttention usual;
  std::vector<at::Tensor> outputs;
  for (const CachedSegment& segment : segments_) {
    const Extended all = extended(segment, layer, qkv, options, {});
    if (all.whole) {
      outputs.push_back(usual.run(layer, all.qkv, all.options));
    } else {
      check_products(all);
      outputs.push_back(at::cat(in_blocks(all,
                                          [](const Extended& part) {
                                            return apply_pattern(attention_pattern(part.qkv, part.options),
                                                                 part.qkv.value);
                                          }),
                                2));
    }
    if (see_) see_(last_query(all, std::ssize(outputs) - 1, layer));
    forget_hidden(segment, layer, options);
  }
  return outputs.size() == 1 ? outputs[0] : at::cat(outputs, 2);
}

hooks::ObservedAttention CachedAttention::run_with_moments(std::int64_t layer, const hooks::Qkv& qkv,
                                                           const kernels::AttentionOptions& options,
                                                           const hooks::PrecisionBias& bias) {
  UsualAttention usual;
  std::vector<hooks::ObservedAttention> found;
  for (const CachedSegment& segment : segments_) {
    const Extended all = extended(segment, layer, qkv, options, bias);
    if (all.whole) {
      found.push_back(usual.run_with_moments(layer, all.qkv, all.options, all.bias));
    } else {
      check_products(all);
      found.push_back(joined(in_blocks(all, [](const Extended& part) {
        return observed_by_pattern(attention_pattern(part.qkv, part.options, part.bias), part.qkv.value);
      })));
    }
    if (see_) see_(last_query(all, std::ssize(found) - 1, layer));
    forget_hidden(segment, layer, options);
  }
  return joined(found);
}

}  // namespace gainlens::models
