#pragma once

#include "runfile/run_folder.h"
#include "runfile/run_reader.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::testing {

/// The place of a number in a synthetic run. `layer` is a position on the layer axis. `last` is a key or bin, or 0 if
/// there is no such axis.
struct CellKey {
  std::string_view name;  ///< "summary/n_eff", "values/norm", ...
  std::int64_t length;
  std::int64_t sample;
  std::int64_t layer;
  std::int64_t head;
  std::int64_t last;  ///< the place of a sink in /sinks; in /stream that is `head`
};

/// A run with planted structure: n_eff grows as sqrt(T), the middle layers have one strong and one weaker sink head,
/// key 0 has small values and is the only sink, and the gate hardly changes. Within each head, K follows exactly from
/// n_eff and S.
struct SyntheticRun {
  std::vector<std::int64_t> lengths = {1024, 2048, 4096, 8192};
  std::int64_t samples = 3;
  std::int64_t layers = 8;
  std::int64_t first_layer = 0;  ///< the model's own number of the first of them
  std::int64_t heads = 4;
  std::int64_t kv_heads = 2;
  std::vector<std::int64_t> layer_kv_heads;  ///< empty: kv_heads in every layer
  std::int64_t head_dim = 64;
  std::int64_t max_positions = 32768;
  std::vector<std::string> attention;  ///< empty: all global
  bool gated = true;
  bool statistics = true;
  bool nested = false;
  std::optional<std::int64_t> spread;
  std::optional<std::int64_t> bos = 1;
  std::string bos_policy = "auto: the tokenizer puts token 1 first";
  std::string family = "synthetic";
  char weights = 'b';  ///< used for every digit of the checksum of the weights
  std::int64_t version = runfile::statistics_version;
  /// The text of the token at a position that is a sink.
  std::function<std::string(const runfile::ShardKey&, std::int64_t)> text = [](const runfile::ShardKey&,
                                                                               std::int64_t position) {
    return position == 0 ? std::string("<s>") : std::string("\u2581");
  };
  std::set<runfile::ShardKey> missing;  ///< chunks that the run lacks
  /// Gives a number that replaces the planted one, or nothing.
  std::function<std::optional<double>(const CellKey&)> value;
};

/// The planted number of one cell.
double planted(const SyntheticRun& run, const CellKey& key);

runfile::Request request_of(const SyntheticRun& run);

/// Writes the run through RunFolder and opens it. Numbers are stored as float64.
runfile::RunReader write_run(const std::filesystem::path& folder, const SyntheticRun& run);

/// The smallest run that fills every section of a report: 3 layers of 2 heads on one KV head, 64 and 128 tokens.
SyntheticRun report_run(std::int64_t samples = 2);

}  // namespace gainlens::testing
