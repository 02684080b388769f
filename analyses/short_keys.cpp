#include "analyses/short_keys.h"

#include "analyses/sink_keys.h"
#include "runfile/shard.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace gainlens::analyses {
namespace {

/// Of the keys of one head in one chunk, the strongest with a short value; null if there is none.
using Strongest = std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>, const SinkKey*>;

Strongest strongest_short_keys(const SinkKeys& sinks) {
  Strongest strongest;  // by layer, head, length, sample
  for (const SinkKey& key : sinks.keys) {
    if (!(key.value_norm_ratio <= short_value_ratio)) continue;
    const SinkKey*& best = strongest[{key.layer, key.head, key.length, key.sample}];
    if (best == nullptr || key.column_mean > best->column_mean) best = &key;
  }
  return strongest;
}

}  // namespace

Maybe<std::vector<ShortKey>> short_keys(const runfile::RunReader& reader, const Options& options) {
  if (!has_sink_keys(reader)) {
    return Maybe<std::vector<ShortKey>>::none(
        "the run has no /sinks: it was swept with an earlier statistics version, or without statistics");
  }
  const std::vector<Length> lengths = sink_lengths(reader, options);
  std::vector<std::int64_t> tokens;
  std::int64_t all_chunks = 0;
  for (const Length& length : lengths) {
    tokens.push_back(length.tokens);
    all_chunks += std::ssize(length.samples);
  }
  const SinkKeys sinks = sink_keys(reader, runfile::min_stored_mean, tokens);
  std::vector<ShortKey> heads;
  std::map<std::string, std::int64_t> names;
  const auto finish = [&] {
    if (heads.empty()) return;
    ShortKey& head = heads.back();
    head.mass /= static_cast<double>(head.chunks);
    head.value_norm_ratio /= static_cast<double>(head.chunks);
    head.token = std::max_element(names.begin(), names.end(), [](const auto& a, const auto& b) {
                   return a.second < b.second;
                 })->first;
    names.clear();
  };
  for (const auto& [place, key] : strongest_short_keys(sinks)) {
    if (heads.empty() || std::pair(heads.back().layer, heads.back().head) != std::pair(key->layer, key->head)) {
      finish();
      heads.push_back({key->layer, key->head, 0, all_chunks, 0, "", 0, 0});
    }
    ShortKey& head = heads.back();
    ++head.chunks;
    head.elsewhere += key->position != 0 ? 1 : 0;
    head.mass += key->second_half_mean;
    head.value_norm_ratio += key->value_norm_ratio;
    ++names[label_of(key->text, key->token)];
  }
  finish();
  return heads;
}

OrderedJson to_json(const ShortKey& key) {
  return {{"layer", key.layer},
          {"head", key.head},
          {"chunks", key.chunks},
          {"all_chunks", key.all_chunks},
          {"chunks_at_another_key_than_0", key.elsewhere},
          {"token", key.token},
          {"mass", key.mass},
          {"value_norm_ratio", key.value_norm_ratio}};
}

}  // namespace gainlens::analyses
