#pragma once

#include "runfile/run_folder.h"
#include "runfile/schema.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace gainlens::testing {

/// A small request: 2 layers, 4 heads, 2 KV heads, lengths 8 and 24, 2 samples, gated, with NLL and per-query numbers.
inline runfile::Request made_request() {
  runfile::Request request;
  request.model = {{"config.json", std::string(64, 'a')}, {"model.safetensors", std::string(64, 'b')}};
  request.family = "made";
  request.tokenizer = std::string(64, 'c');
  request.text = std::string(64, 'd');
  request.lengths = {8, 24};
  request.samples = 2;
  request.bos = 1;
  request.bos_policy = "always: token 1";
  request.layers = {3, 5};
  request.heads = 4;
  request.kv_heads = 2;
  request.head_dim = 16;
  request.attention = {"global", "window:512"};
  request.gated = true;
  request.dtype = "float32";
  request.device = "cpu";
  request.threads = 2;
  request.per_query = true;
  request.max_positions = 2048;
  return request;
}

/// The number at a place in a made shard: sample + length / 1000 + (index in the dataset) / 2^20, rounded to float32.
inline double made_value(const runfile::ShardKey& key, std::size_t index) {
  return static_cast<float>(static_cast<double>(key.sample) + static_cast<double>(key.length) / 1000 +
                            static_cast<double>(index) / (1 << 20));
}

/// The integer at a place in a made shard; -1 at every fifth.
inline double made_integer(const runfile::ShardKey& key, std::size_t index) {
  return index % 5 == 4 ? -1 : static_cast<double>((key.length + key.sample + static_cast<std::int64_t>(index)) % 8);
}

/// The text at a place in a made shard; none at every fifth.
inline std::string made_text(const runfile::ShardKey& key, std::size_t index) {
  return index % 5 == 4 ? "" : "▁" + std::to_string(key.length) + "." + std::to_string(key.sample + index);
}

inline bool is_integer(runfile::Group group, const std::string& name) {
  const auto& table = runfile::schema();
  return std::any_of(table.begin(), table.end(), [&](const runfile::DatasetInfo& info) {
    return info.group == group && info.name == name && info.kind == runfile::Kind::integer;
  });
}

inline runfile::ShardResult made_result(const runfile::Request& request, const runfile::ShardKey& key) {
  runfile::ShardResult result = runfile::blank_result(request, key.length);
  for (const runfile::Group group : runfile::groups) {
    for (auto& [name, array] : runfile::entries(result, group)) {
      const bool integers = is_integer(group, name);
      for (std::size_t i = 0; i < array.values.size(); ++i)
        array.values[i] = integers ? made_integer(key, i) : made_value(key, i);
    }
  }
  for (std::size_t i = 0; i < result.sink_text.size(); ++i) result.sink_text[i] = made_text(key, i);
  return result;
}

/// Does the same as `gainlens sweep`: opens or resumes the run, makes the missing shards, and combines them.
inline void make_run(const std::filesystem::path& folder, const runfile::Request& request) {
  auto run = runfile::RunFolder::open_or_resume(folder, request);
  for (const runfile::ShardKey& key : run.missing()) run.commit(key, made_result(run.request(), key));
  run.combine();
}

}  // namespace gainlens::testing
