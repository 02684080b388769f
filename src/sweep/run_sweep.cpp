#include "sweep/run_sweep.h"

#include "core/console.h"
#include "core/error.h"
#include "core/progress.h"
#include "core/quantity.h"
#include "models/checkpoint/checkpoint_source.h"
#include "models/checkpoint/compute_dtype.h"
#include "models/checkpoint/load_decoder.h"
#include "models/checkpoint/model_size.h"
#include "models/decoder/attention_layout.h"
#include "runfile/fill_run.h"
#include "runfile/hash_cache.h"
#include "runfile/run_folder.h"
#include "runfile/shared_run.h"
#include "sweep/measured_model.h"
#include "sweep/sweep_chunk.h"
#include "sweep/windows.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <numeric>

namespace gainlens::sweep {
namespace {

/// Layers [0, N) run.
std::int64_t layers_to_run(const SweepOptions& options, const models::DecoderConfig& config) {
  const std::int64_t stop = options.stop_at_layer.value_or(config.layers);
  CHECK(stop >= 1 && stop <= config.layers,
        "--stop-at-layer: {}; the model has {} layers, of which at least 1 must run", stop, config.layers);
  return stop;
}

std::vector<std::int64_t> measured_layers(const SweepOptions& options, const models::DecoderConfig& config) {
  const std::int64_t stop = layers_to_run(options, config);
  const auto [begin, end] = options.layers.value_or(std::pair<std::int64_t, std::int64_t>{0, stop});
  CHECK(0 <= begin && begin < end && end <= config.layers, "--layers: {}:{}; the model has layers 0:{} (half-open)",
        begin, end, config.layers);
  CHECK(end <= stop, "--layers: {}:{} goes beyond --stop-at-layer {}; measure layers that run", begin, end, stop);
  std::vector<std::int64_t> layers(static_cast<std::size_t>(end - begin));
  std::iota(layers.begin(), layers.end(), begin);
  return layers;
}

/// The output head reads the stream behind the last layer.
bool has_likelihood(const SweepOptions& options, const models::DecoderConfig& config) {
  return options.nll && layers_to_run(options, config) == config.layers;
}

void check_lengths(const SweepOptions& options, const models::DecoderConfig& config) {
  CHECK(!options.lengths.empty(), "--lengths: none given");
  for (const std::int64_t length : options.lengths) {
    CHECK(length >= shortest_length, "--lengths: {}; must be at least {}, so that the last quarter holds a query",
          length, shortest_length);
    CHECK(length <= config.max_positions || options.allow_extrapolation,
          "--lengths: {} exceeds the model's {} positions; use shorter contexts, or --allow-extrapolation to go beyond "
          "them",
          length, config.max_positions);
  }
  CHECK(options.samples >= 1, "--samples: {}; must be at least 1", options.samples);
}

/// Every file that determines the numbers of the model, by name and sha256.
std::map<std::string, std::string> fingerprint(const std::vector<std::filesystem::path>& files,
                                               runfile::HashCache& hashes) {
  std::map<std::string, std::string> sums;
  for (const auto& file : files) sums[file.filename().string()] = hashes.sha256(file);
  return sums;
}

/// Roughly proportional to the time a chunk takes: products with the weights, and attention.
double cost_of(std::int64_t length, const models::DecoderConfig& config) {
  const auto tokens = static_cast<double>(length);
  const auto width = static_cast<double>(config.heads * config.head_dim);
  return tokens * static_cast<double>(models::parameter_count(config)) +
         static_cast<double>(config.layers) * width * tokens * tokens;
}

/// Everything that determines the numbers, read and checked before any work is done; only the checksums of the weights
/// are still to come.
struct Job {
  std::filesystem::path checkpoint;  ///< folder or GGUF file
  std::vector<std::filesystem::path> files;
  models::DecoderConfig config;
  TokenSource source;
  std::vector<data::Chunk> chunks;
  SweepPlan plan;
};

SweepPlan plan_of(const SweepOptions& options, const models::DecoderConfig& config) {
  return {.layers = measured_layers(options, config),
          .statistics = options.statistics,
          .nll = has_likelihood(options, config),
          .per_query = options.per_query,
          .allow_extrapolation = options.allow_extrapolation,
          .kernel = options.kernel};
}

Job read_job(const SweepOptions& options) {
  Job job;
  models::CheckpointSource checkpoint = models::open_checkpoint(options.model);
  job.checkpoint = checkpoint.path;
  job.files = std::move(checkpoint.files);
  job.config = std::move(checkpoint.config);
  check_lengths(options, job.config);
  job.plan = plan_of(options, job.config);
  job.source = read_tokens(options.source, job.checkpoint, job.config.vocabulary, job.config.bos_token);
  job.chunks = data::cut(job.source.tokens,
                         {options.lengths, options.samples, options.nested, options.spread, job.source.bos.token});
  return job;
}

runfile::Request make_request(const SweepOptions& options, const Job& job,
                              std::map<std::string, std::string> fingerprint) {
  runfile::Request request{measured_model(job.config.family, models::attention_layout(job.config), job.plan.layers)};
  request.model = std::move(fingerprint);
  request.tokenizer = job.source.tokenizer_sha256;
  request.text = job.source.text_sha256;
  request.lengths = options.lengths;
  request.samples = options.samples;
  request.nested = options.nested;
  if (options.spread) request.spread = std::ssize(job.source.tokens);
  if (job.source.bos.token) request.bos = *job.source.bos.token;
  request.bos_policy = job.source.bos.explanation;
  request.dtype = models::dtype_name(options.dtype);
  // Kernels agree up to rounding only: a run keeps to the one it was begun with.
  request.device = job.plan.kernel == kernels::AttentionBackend::composed ? "cpu:composed" : "cpu";
  request.threads = at::get_num_threads();
  request.nll = job.plan.nll;  // with the layers above this is all that --stop-at-layer changes
  request.statistics = job.plan.statistics;
  request.per_query = job.plan.per_query;
  request.allow_extrapolation = job.plan.allow_extrapolation;
  return request;
}

/// Tokens that go through the layers together where weights are streamed: enough to hide the reading behind the
/// products, few enough that their residual streams stay small (4 GiB at a width of 8192 in float32, twice that for a
/// moment) and an interruption loses little.
constexpr std::int64_t group_tokens = std::int64_t{1} << 17;

/// Measures chunks with progress on stderr; loads the model when there is something to measure. One after the other, or
/// where weights are streamed in groups that pass each layer together.
class ChunkMeter {
 public:
  ChunkMeter(const SweepOptions& options, const Job& job) : options_(options), job_(job) {}

  runfile::Measuring measuring() {
    return {[this](const runfile::ShardKey& key) { return measure(key); },
            [this](const runfile::ShardKey& key) { return cost_of(key.length, job_.config); },
            [this](const std::vector<runfile::ShardKey>& missing, const std::vector<runfile::ShardKey>& own) {
              begin(missing, own);
            },
            [this](const runfile::ShardKey& key) { show(key); }};
  }
  std::int64_t queries_without_keys() const { return queries_without_keys_; }

 private:
  void begin(const std::vector<runfile::ShardKey>& missing, const std::vector<runfile::ShardKey>& own) {
    double total = 0;
    for (const auto& key : missing) total += cost_of(key.length, job_.config);
    to_measure_ = own;
    const bool quiet = options_.quiet || options_.group.rank > 0;
    progress_.emplace("sweep", total, "tokens", quiet ? Progress::Style::quiet : Progress::Style::automatic);
  }

  runfile::ShardResult measure(const runfile::ShardKey& key) {
    if (!model_) {
      models::LoadOptions load;
      load.dtype = options_.dtype;
      load.stream = options_.stream_weights;
      model_ = models::load_decoder(job_.checkpoint, load);
    }
    if (!measured_.contains(key)) measure_group(group_from(key));
    ChunkMeasurement measured = std::move(measured_.extract(key).mapped());
    queries_without_keys_ += measured.queries_without_keys;
    return std::move(measured.shard);
  }

  /// `key` and those that come after it, as many as go through the layers together.
  std::vector<runfile::ShardKey> group_from(const runfile::ShardKey& key) const {
    if (!options_.stream_weights) return {key};
    std::vector<runfile::ShardKey> group;
    std::int64_t tokens = 0;
    for (auto next = std::find(to_measure_.begin(), to_measure_.end(), key); next != to_measure_.end(); ++next) {
      if (!group.empty() && tokens + next->length > group_tokens) break;
      group.push_back(*next);
      tokens += next->length;
    }
    return group;
  }

  void measure_group(const std::vector<runfile::ShardKey>& group) {
    std::vector<data::Chunk> chunks;
    for (const runfile::ShardKey& key : group) chunks.push_back(chunk_of(key));
    std::vector<ChunkMeasurement> measurements = sweep_chunks(*model_, chunks, job_.plan);
    for (std::size_t i = 0; i < group.size(); ++i) measured_.emplace(group[i], std::move(measurements[i]));
  }

  const data::Chunk& chunk_of(const runfile::ShardKey& key) const {
    const auto chunk = std::find_if(job_.chunks.begin(), job_.chunks.end(), [&](const data::Chunk& candidate) {
      return candidate.length == key.length && candidate.sample == key.sample;
    });
    ASSERT(chunk != job_.chunks.end(), "no chunk of {} tokens, sample {}", key.length, key.sample);
    return *chunk;
  }

  void show(const runfile::ShardKey& key) {
    progress_->advance(cost_of(key.length, job_.config), static_cast<double>(key.length),
                       fmt::format("T {} sample {}", format_count(key.length), key.sample));
  }

  const SweepOptions& options_;
  const Job& job_;
  std::unique_ptr<hooks::HookedModel> model_;
  std::optional<Progress> progress_;
  std::vector<runfile::ShardKey> to_measure_;  // in the order they are asked for
  std::map<runfile::ShardKey, ChunkMeasurement> measured_;
  std::int64_t queries_without_keys_ = 0;
};

runfile::Notice notice(const SweepOptions& options) {
  if (options.quiet) return {};
  return [](const std::string& text) { print_notice("gainlens: {}\n", text); };
}

/// Rank 0, or a process alone: its folder, its request, its share, and the run made of all shards.
std::int64_t lead(const SweepOptions& options, const Job& job, const runfile::Measuring& measuring) {
  std::unique_ptr<runfile::LeadingRank> others;
  if (options.group.size > 1) {
    runfile::prepare_run_folder(options.out);
    others =
        std::make_unique<runfile::LeadingRank>(options.out, options.group, runfile::start_patience, notice(options));
  }
  auto hashes = runfile::HashCache::of_run(options.out);
  const runfile::Request request = make_request(options, job, fingerprint(job.files, hashes));
  auto run = runfile::RunFolder::open_or_resume(options.out, request, options.log);
  run.remember(hashes);
  return runfile::fill_run(run, others.get(), measuring);
}

std::int64_t follow(const SweepOptions& options, const Job& job, const runfile::Measuring& measuring) {
  runfile::prepare_run_folder(options.out);
  runfile::FollowingRank self(options.out, options.group, runfile::start_patience, notice(options));
  self.wait_for_share();
  auto hashes = runfile::HashCache::of_run(options.out);  // of rank 0: no file is hashed twice
  return runfile::fill_share(self, make_request(options, job, fingerprint(job.files, hashes)), measuring);
}

}  // namespace

SweepOutcome run_sweep(const SweepOptions& options) {
  const Job job = read_job(options);
  ChunkMeter meter(options, job);
  SweepOutcome outcome{options.out / "run.h5", std::ssize(job.chunks), 0, 0, job.source.bos.explanation};
  outcome.computed =
      options.group.rank == 0 ? lead(options, job, meter.measuring()) : follow(options, job, meter.measuring());
  outcome.queries_without_keys = meter.queries_without_keys();
  return outcome;
}

}  // namespace gainlens::sweep
