#include "sweep/run_sweep.h"

#include "core/error.h"
#include "core/progress.h"
#include "core/quantity.h"
#include "formats/tensor_file.h"
#include "models/checkpoint.h"
#include "models/dtype.h"
#include "models/load_decoder.h"
#include "models/model_size.h"
#include "runfile/hash_cache.h"
#include "runfile/run_folder.h"
#include "sweep/sweep_chunk.h"
#include "sweep/windows.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace gainlens::sweep {
namespace {

std::vector<std::int64_t> measured_layers(const SweepOptions& options, const models::DecoderConfig& config) {
  const auto [begin, end] = options.layers.value_or(std::pair<std::int64_t, std::int64_t>{0, config.layers});
  CHECK(0 <= begin && begin < end && end <= config.layers, "--layers: {}:{}; the model has layers 0:{} (half-open)", begin, end,
        config.layers);
  std::vector<std::int64_t> layers(static_cast<std::size_t>(end - begin));
  std::iota(layers.begin(), layers.end(), begin);
  return layers;
}

void check_lengths(const SweepOptions& options, const models::DecoderConfig& config) {
  CHECK(!options.lengths.empty(), "--lengths: none given");
  for (const std::int64_t length : options.lengths) {
    CHECK(length >= shortest_length, "--lengths: {}; must be at least {}, so that the last quarter holds a query", length, shortest_length);
    CHECK(length <= config.max_positions || options.allow_extrapolation,
          "--lengths: {} exceeds the model's {} positions; use shorter contexts, or --allow-extrapolation to go beyond them", length,
          config.max_positions);
  }
  CHECK(options.samples >= 1, "--samples: {}; must be at least 1", options.samples);
}

runfile::Request make_request(const SweepOptions& options, const models::DecoderConfig& config, const TokenSource& source,
                              std::map<std::string, std::string> fingerprint) {
  runfile::Request request;
  request.model = std::move(fingerprint);
  request.family = config.family;
  request.tokenizer = source.tokenizer_sha256;
  request.text = source.text_sha256;
  request.lengths = options.lengths;
  request.samples = options.samples;
  request.nested = options.nested;
  if (source.bos.token) request.bos = *source.bos.token;
  request.bos_policy = source.bos.explanation;
  request.layers = measured_layers(options, config);
  request.heads = config.heads;
  request.kv_heads = config.kv_heads;
  request.head_dim = config.head_dim;
  for (const std::int64_t layer : request.layers) {
    const std::int64_t window = config.window.at(static_cast<std::size_t>(layer));
    request.attention.push_back(window == 0 ? "global" : fmt::format("window:{}", window));
  }
  request.gated = config.gate != models::Gate::none;
  request.dtype = models::dtype_name(options.dtype);
  request.device = "cpu";
  request.threads = at::get_num_threads();
  request.nll = options.nll;
  request.statistics = options.statistics;
  request.per_query = options.per_query;
  request.allow_extrapolation = options.allow_extrapolation;
  request.max_positions = config.max_positions;
  return request;
}

/// config.json and every weight file by name and sha256.
std::map<std::string, std::string> fingerprint(const std::filesystem::path& folder, runfile::HashCache& hashes) {
  std::map<std::string, std::string> files{{"config.json", hashes.sha256(folder / "config.json")}};
  for (const auto& file : formats::TensorDirectory::open(folder).files()) files[file.filename().string()] = hashes.sha256(file);
  return files;
}

/// Roughly proportional to the time a chunk takes: products with the weights, and attention.
double cost_of(std::int64_t length, const models::DecoderConfig& config) {
  const auto tokens = static_cast<double>(length);
  const auto width = static_cast<double>(config.heads * config.head_dim);
  return tokens * static_cast<double>(models::parameter_count(config)) + static_cast<double>(config.layers) * width * tokens * tokens;
}

}  // namespace

SweepOutcome run_sweep(const SweepOptions& options) {
  const std::filesystem::path folder = formats::resolve_checkpoint_folder(options.model);
  const models::DecoderConfig config = models::read_decoder_config(folder);
  check_lengths(options, config);
  const TokenSource source = read_tokens(options.source, folder, config.vocabulary, config.bos_token);
  const data::ChunkPlan plan{options.lengths, options.samples, options.nested, source.bos.token};
  const std::vector<data::Chunk> chunks = data::cut(source.tokens, plan);

  auto hashes = runfile::HashCache::of_run(options.out);
  const runfile::Request request = make_request(options, config, source, fingerprint(folder, hashes));
  auto run = runfile::RunFolder::open_or_resume(options.out, request, options.log);
  run.remember(hashes);

  SweepOutcome outcome{options.out / "run.h5", std::ssize(chunks), 0, 0, source.bos.explanation};
  const std::vector<runfile::ShardKey> missing = run.missing();
  if (!missing.empty()) {
    models::LoadOptions load;
    load.dtype = options.dtype;
    const auto model = models::load_decoder(folder, load);
    const SweepPlan measure{request.layers, options.statistics, options.nll, options.per_query, options.allow_extrapolation};
    double total = 0;
    for (const auto& key : missing) total += cost_of(key.length, config);
    Progress progress("sweep", total, "tokens", options.quiet ? Progress::Style::quiet : Progress::Style::automatic);
    for (const data::Chunk& chunk : chunks) {
      const runfile::ShardKey key{chunk.length, chunk.sample};
      if (std::find(missing.begin(), missing.end(), key) == missing.end()) continue;
      const ChunkMeasurement measured = sweep_chunk(*model, chunk, measure);
      run.commit(key, measured.shard);
      outcome.queries_without_keys += measured.queries_without_keys;
      ++outcome.computed;
      progress.advance(cost_of(chunk.length, config), static_cast<double>(chunk.length),
                       fmt::format("T {} sample {}", format_count(chunk.length), chunk.sample));
    }
  }
  run.combine();
  return outcome;
}

}  // namespace gainlens::sweep
