#include "sweep/run_sweep.h"

#include "core/available_memory.h"
#include "core/check.h"
#include "core/counted.h"
#include "core/listener.h"
#include "core/progress.h"
#include "core/quantity.h"
#include "models/checkpoint/checkpoint_source.h"
#include "models/checkpoint/load_decoder.h"
#include "models/checkpoint/model_size.h"
#include "models/checkpoint/torch_dtype.h"
#include "models/decoder/attention_layout.h"
#include "runfile/checksums.h"
#include "runfile/run_folder.h"
#include "runfile/shared_run.h"
#include "sweep/measured_model.h"
#include "sweep/memory_warning.h"
#include "sweep/moments.h"
#include "sweep/sweep_chunk.h"

#include <fmt/ranges.h>

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <unordered_map>

namespace gainlens::sweep {
namespace {

/// The N of the layers [0, N) that run.
std::int64_t layers_to_run(const SweepOptions& options, const models::DecoderConfig& config) {
  const std::int64_t stop = options.stop_at_layer.value_or(config.layers);
  CHECK(stop >= 1 && stop <= config.layers, "--stop-at-layer: {}; the model has {}, and at least 1 must run", stop,
        counted(config.layers, "layer"));
  return stop;
}

std::vector<std::int64_t> measured_layers(const SweepOptions& options, const models::DecoderConfig& config) {
  const std::int64_t stop = layers_to_run(options, config);
  const auto [begin, end] = options.layers.value_or(std::pair<std::int64_t, std::int64_t>{0, stop});
  CHECK(0 <= begin && begin < end && end <= config.layers, "--layers: {}:{}; the model has layers 0:{} (half-open)",
        begin, end, config.layers);
  CHECK(end <= stop, "--layers: {}:{} goes beyond --stop-at-layer {}; only layers that run can be measured", begin, end,
        stop);
  std::vector<std::int64_t> layers, attending;
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    if (!config.attends(layer)) continue;
    attending.push_back(layer);
    if (begin <= layer && layer < end) layers.push_back(layer);
  }
  CHECK(!layers.empty(),
        "{}: layers {}:{} have {} and no attention weights to measure; layers with "
        "attention weights: {}",
        options.layers          ? "--layers"
        : options.stop_at_layer ? "--stop-at-layer"
                                : "model",
        begin, end, config.without_attention(),
        attending.empty() ? "none" : fmt::format("{}", fmt::join(attending, ", ")));
  return layers;
}

/// The output head needs the stream after the last layer.
bool has_likelihood(const SweepOptions& options, const models::DecoderConfig& config) {
  return options.nll && layers_to_run(options, config) == config.layers;
}

runfile::Notice notice(const SweepOptions& options) {
  if (options.quiet) return {};
  return [](const std::string& text) { tell_note("{}", text); };
}

/// The lengths that were asked for, or the default ones.
std::vector<std::int64_t> lengths_of(const SweepOptions& options, const models::DecoderConfig& config) {
  if (!options.lengths.empty()) return options.lengths;
  return default_lengths(options.allow_extrapolation ? std::nullopt : std::optional(config.max_positions));
}

/// Says why the default lengths are not all of default_lengths(nullopt).
void tell_of_lengths(const SweepOptions& options, const std::vector<std::int64_t>& lengths, const std::string& why) {
  const auto tell = notice(options);
  if (!tell || options.group.rank != 0 || lengths == default_lengths(std::nullopt)) return;
  std::vector<std::string> names(lengths.size());
  std::transform(lengths.begin(), lengths.end(), names.begin(), format_count);
  tell(fmt::format("{}, so the lengths are {} (choose others with --lengths)", why, fmt::join(names, ", ")));
}

/// Says which layers are left out, because they have no attention weights.
void tell_of_layers_without_attention(const SweepOptions& options, const models::DecoderConfig& config,
                                      const std::vector<std::int64_t>& measured) {
  const auto tell = notice(options);
  const std::int64_t run = layers_to_run(options, config), without = run - config.attention_layers(run);
  if (!tell || options.group.rank != 0 || without == 0 || !options.statistics) return;
  tell(
      fmt::format("{} of {} layers have {} and no attention weights: they are "
                  "computed and not measured. Measured {} {}",
                  without, run, config.without_attention(), measured.size() == 1 ? "is layer" : "are layers",
                  fmt::join(measured, ", ")));
}

void check_lengths(const std::vector<std::int64_t>& lengths, const SweepOptions& options,
                   const models::DecoderConfig& config) {
  for (const std::int64_t length : lengths) {
    check_least(length, std::to_string(length), "--lengths", min_length);
    CHECK(length <= config.max_positions || options.allow_extrapolation,
          "--lengths: {} exceeds the model's {} positions; use shorter contexts, or --allow-extrapolation to go beyond "
          "them",
          length, config.max_positions);
  }
  CHECK(options.samples >= 1, "--samples: {}; must be at least 1", options.samples);
}

/// A number roughly proportional to the time that a chunk takes: products with the weights, and attention.
double cost_of(std::int64_t length, const models::DecoderConfig& config) {
  const auto tokens = static_cast<double>(length);
  const auto width = static_cast<double>(config.heads * config.head_dim);
  return tokens * static_cast<double>(models::parameter_count(config)) +
         static_cast<double>(config.attention_layers(config.layers)) * width * tokens * tokens;
}

/// Everything that determines the numbers, read and checked before any work is done. Only the checksums of the weights
/// are computed later.
struct Job {
  std::filesystem::path checkpoint;  ///< folder or GGUF file
  std::vector<std::filesystem::path> files;
  std::vector<std::string> notes;  ///< what the user should know about the files
  runfile::WatchedFiles inputs;    ///< those files and the tokenizer's
  models::DecoderConfig config;
  std::vector<std::int64_t> lengths;
  TokenSource source;
  std::vector<data::Chunk> chunks;
  std::optional<std::int64_t> spread;  ///< tokens of the text, where the chunks are spread over it
  SweepPlan plan;
};

/// Whether every process that opens the path reads the whole of it. Nothing is a path too.
bool is_read_again(const std::filesystem::path& path) {
  std::error_code error;
  return path.empty() || std::filesystem::is_regular_file(path, error) ||
         (path != "-" && !std::filesystem::exists(path, error));
}

SweepPlan plan_of(const SweepOptions& options, const models::DecoderConfig& config) {
  return {.layers = measured_layers(options, config),
          .statistics = options.statistics,
          .nll = has_likelihood(options, config),
          .per_query = options.per_query,
          .allow_extrapolation = options.allow_extrapolation,
          .kernel = kernels::chosen_backend(options.kernel, options.device, options.estimator),
          .estimator = options.estimator};
}

/// Shortens default lengths, of which the text has too few chunks, as if it were the model that is too short.
/// @param plan  of the lengths that the model has positions for
void fit_lengths_to_text(const SweepOptions& options, const data::ChunkPlan& plan, Job& job) {
  const std::int64_t tokens = std::ssize(job.source.tokens), longest = plan.lengths.back();
  // If not all tokens were read, those that were are enough.
  const std::int64_t fits = job.source.whole ? longest_length(tokens, plan, longest) : longest;
  if (fits == longest || fits < shortest_length) {  // cut() refuses a text that is too short for every length
    tell_of_lengths(options, job.lengths, fmt::format("the model has {} positions", job.config.max_positions));
    return;
  }
  job.lengths = default_lengths(fits);
  tell_of_lengths(options, job.lengths,
                  fmt::format("the text has {} for {} of each length", counted(tokens, "token"),
                              counted(options.samples, "sample")));
}

/// The texts of the tokens of some chunks, without the tokenizer.
std::function<std::string(tokenizers::TokenId)> texts_of_tokens(const tokenizers::Tokenizer& tokenizer,
                                                                const std::vector<data::Chunk>& chunks) {
  std::unordered_map<tokenizers::TokenId, std::string> texts;
  for (const data::Chunk& chunk : chunks) {
    for (const tokenizers::TokenId id : chunk.tokens) {
      if (!texts.contains(id)) texts.emplace(id, tokenizer.token_text(id));
    }
  }
  return [texts = std::move(texts)](tokenizers::TokenId id) { return texts.at(id); };
}

/// A sweep takes no length below shortest_length.
data::ChunkAdvice sweep_advice() {
  data::ChunkAdvice advice;
  advice.lengths = [](std::int64_t most) {
    return most >= shortest_length ? data::ChunkAdvice::give_lengths(most) : std::string();
  };
  return advice;
}

void read_chunks(const SweepOptions& options, Job& job) {
  // Each process would take a part of what the others need.
  CHECK(options.group.size == 1 || (is_read_again(options.source.text) && is_read_again(options.source.token_ids)),
        "--text: a pipe can be read only once, and {} processes share this run; give a file", options.group.size);
  const auto plan = [&](std::optional<tokenizers::TokenId> bos) {
    return data::ChunkPlan{job.lengths, options.samples, options.nested, options.spread, bos, sweep_advice()};
  };
  job.source = read_tokens(options.source, job.checkpoint, job.config.vocabulary, job.config.bos_token, [&](bool bos) {
    return data::tokens_needed(plan(bos ? std::optional<tokenizers::TokenId>(0) : std::nullopt));
  });
  if (options.lengths.empty()) fit_lengths_to_text(options, plan(job.source.bos.token), job);
  job.chunks = data::cut(job.source.tokens, plan(job.source.bos.token));
  if (options.spread) job.spread = std::ssize(job.source.tokens);
  job.source.tokens = {};
  if (job.source.tokenizer != nullptr) job.plan.token_text = texts_of_tokens(*job.source.tokenizer, job.chunks);
  job.source.tokenizer = nullptr;  // a vocabulary takes memory that the model needs
}

Job read_job(const SweepOptions& options) {
  Job job;
  models::CheckpointSource checkpoint = models::open_checkpoint(options.model, options.ignored_config_keys);
  job.checkpoint = checkpoint.path;
  job.files = std::move(checkpoint.files);
  job.notes = std::move(checkpoint.notes);
  job.config = std::move(checkpoint.config);
  std::vector<std::filesystem::path> inputs = job.files;
  if (options.source.token_ids.empty() && !options.source.text.empty()) {  // else no tokenizer is opened
    const auto tokenizer = tokenizers::tokenizer_files(job.checkpoint);
    inputs.insert(inputs.end(), tokenizer.begin(), tokenizer.end());
  }
  job.inputs = runfile::WatchedFiles(inputs);
  job.lengths = lengths_of(options, job.config);
  check_lengths(job.lengths, options, job.config);
  job.plan = plan_of(options, job.config);
  tell_of_layers_without_attention(options, job.config, job.plan.layers);
  read_chunks(options, job);
  return job;
}

/// The kind of device, and the kernel where it is not the usual one there.
std::string device_text(const at::Device& device, kernels::AttentionBackend kernel) {
  const std::string kind = at::DeviceTypeName(device.type(), /*lower_case=*/true);
  if (device.is_cpu() && kernel == kernels::AttentionBackend::composed) return kind + ":composed";
  return kernel == kernels::AttentionBackend::fused_cuda ? kind + ":fused" : kind;
}

runfile::Request make_request(const SweepOptions& options, const Job& job,
                              std::map<std::string, std::string> fingerprint) {
  runfile::Request request{measured_model(job.config.family, models::attention_layout(job.config), job.plan.layers)};
  request.model = std::move(fingerprint);
  request.tokenizer = job.source.tokenizer_sha256;
  request.text = job.source.text_sha256;
  request.lengths = job.lengths;
  const std::set<std::string> ignored(options.ignored_config_keys.begin(), options.ignored_config_keys.end());
  request.ignored_config_keys.assign(ignored.begin(), ignored.end());
  request.samples = options.samples;
  request.nested = options.nested;
  request.spread = job.spread;
  if (job.source.bos.token) request.bos = *job.source.bos.token;
  request.bos_policy = job.source.bos.explanation;
  request.dtype = models::dtype_name(options.dtype);
  // Kernels agree only up to rounding. The request names the kernel, so that a run uses one kernel from start to end.
  request.estimator = job.plan.estimator;
  request.device = device_text(options.device, job.plan.kernel);
  request.threads = at::get_num_threads();
  request.nll = job.plan.nll;  // --stop-at-layer changes only this and the layers above
  request.statistics = job.plan.statistics;
  request.per_query = job.plan.per_query;
  request.allow_extrapolation = job.plan.allow_extrapolation;
  return request;
}

/// Most tokens that go through the layers together if weights are streamed. It is large enough that reading the weights
/// takes less time than the products. It is small enough that the residual streams stay small (4 GiB at a width of 8192
/// in float32, for a moment twice as much) and that an interruption loses little.
constexpr std::int64_t group_tokens = std::int64_t{1} << 17;

/// Measures chunks and tells of progress. Loads the model before the first chunk is measured. Chunks are
/// measured one after the other. If weights are streamed, groups of chunks pass each layer together.
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
  std::int64_t queries_undefined() const { return queries_undefined_; }

 private:
  void begin(const std::vector<runfile::ShardKey>& missing, const std::vector<runfile::ShardKey>& own) {
    double total = 0;
    for (const auto& key : missing) total += cost_of(key.length, job_.config);
    to_measure_ = own;
    const bool quiet = options_.quiet || options_.group.rank > 0;
    if (missing.size() < job_.chunks.size() && !quiet)
      tell_note("{}: {} of {} were measured by an earlier call", printable(options_.out.string()),
                job_.chunks.size() - missing.size(), counted(job_.chunks.size(), "chunk"));
    if (options_.group.rank == 0) warn_of_memory();
    progress_.emplace("sweep", total, "tokens", quiet);
  }

  /// The numbers of several processes on one machine are not added.
  void warn_of_memory() const {
    if (to_measure_.empty()) return;
    models::MemoryOptions memory{.dtype = models::compute_dtype(options_.dtype),
                                 .stream_weights = options_.stream_weights,
                                 .stop_at_layer = job_.plan.stop_at_layer(),
                                 .statistics = options_.statistics,
                                 .composed = job_.plan.kernel == kernels::AttentionBackend::composed,
                                 .likelihood = job_.plan.nll,
                                 .per_query = options_.per_query,
                                 .measured_layers = std::ssize(job_.plan.layers),
                                 .threads = at::get_num_threads()};
    std::vector<std::int64_t> lengths;
    for (const runfile::ShardKey& key : to_measure_) {
      lengths.push_back(key.length);
      std::int64_t together = 0;
      for (const runfile::ShardKey& other : group_from(key)) together += other.length;
      memory.positions = std::max(memory.positions, key.length);
      memory.positions_together = std::max(memory.positions_together, together);
    }
    std::ranges::sort(lengths);
    lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
    if (const auto text = memory_warning(job_.config, memory, lengths, available_memory())) tell_warning("{}", *text);
  }

  runfile::ShardResult measure(const runfile::ShardKey& key) {
    if (!model_) {
      models::LoadOptions load;
      load.dtype = options_.dtype;
      load.device = options_.device;
      load.stream = options_.stream_weights;
      load.first_layers = job_.plan.stop_at_layer();
      load.ignored_keys = options_.ignored_config_keys;
      model_ = models::load_decoder(job_.checkpoint, load);
    }
    if (!measured_.contains(key)) {
      measure_group(group_from(key));
      job_.inputs.check();
    }
    ChunkMeasurement measured = std::move(measured_.extract(key).mapped());
    queries_without_keys_ += measured.queries_without_keys;
    queries_undefined_ += measured.queries_undefined;
    return std::move(measured.shard);
  }

  /// `key` and the keys after it: the chunks that go through the layers together.
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
    chunks.reserve(group.size());
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
  std::int64_t queries_undefined_ = 0;
};

/// The work of rank 0, or of a process alone: opens the folder, stores the request, measures its share, and combines
/// all shards into the run.
runfile::FilledRun lead(const SweepOptions& options, const Job& job, const runfile::Measuring& measuring) {
  std::unique_ptr<runfile::LeadingRank> others;
  if (options.group.size > 1) {
    runfile::prepare_run_folder(options.out);
    others =
        std::make_unique<runfile::LeadingRank>(options.out, options.group, runfile::start_patience, notice(options));
  }
  const runfile::Request request = make_request(options, job, runfile::HashCache::for_user().sha256_by_name(job.files));
  auto run = runfile::RunFolder::open_or_resume(options.out, request, options.log);
  return runfile::fill_run(run, others.get(), measuring);
}

/// The work of the other ranks: waits for rank 0 and measures its own share.
std::int64_t follow(const SweepOptions& options, const Job& job, const runfile::Measuring& measuring) {
  runfile::prepare_run_folder(options.out);
  runfile::FollowingRank self(options.out, options.group, runfile::start_patience, notice(options));
  self.wait_for_share();
  const auto hashes = runfile::HashCache::for_user();  // rank 0 of the same machine has filled it
  return runfile::fill_share(self, make_request(options, job, hashes.sha256_by_name(job.files)), measuring);
}

/// The work of this process. The model is in memory no longer than this.
void measure_chunks(const SweepOptions& options, const Job& job, SweepOutcome& outcome) {
  ChunkMeter meter(options, job);
  if (options.group.rank == 0) {
    const runfile::FilledRun filled = lead(options, job, meter.measuring());
    outcome.computed = filled.chunks;
    outcome.run_file_written = filled.run_file_written;
  } else {
    outcome.computed = follow(options, job, meter.measuring());
  }
  outcome.queries_without_keys = meter.queries_without_keys();
  outcome.queries_undefined = meter.queries_undefined();
}

}  // namespace

std::vector<std::int64_t> default_lengths(std::optional<std::int64_t> max_positions) {
  std::vector<std::int64_t> lengths = {1 << 10, 2 << 10, 4 << 10, 6 << 10, 8 << 10, 10 << 10};
  if (!max_positions) return lengths;
  std::erase_if(lengths, [&](std::int64_t length) { return length > *max_positions; });
  if (lengths.size() >= 3) return lengths;
  lengths.clear();
  for (const std::int64_t parts : {4, 2, 1}) {
    if (*max_positions / parts >= shortest_length) lengths.push_back(*max_positions / parts);
  }
  return lengths;
}

std::int64_t longest_length(std::int64_t tokens, data::ChunkPlan plan, std::int64_t limit) {
  plan.spread = false;  // spread chunks need as many tokens as consecutive ones
  std::int64_t fits = plan.bos ? 1 : 0, too_long = limit + 1;
  while (too_long - fits > 1) {
    const std::int64_t tried = std::midpoint(fits, too_long);
    plan.lengths = {tried};
    (*data::tokens_needed(plan) <= tokens ? fits : too_long) = tried;
  }
  return fits;
}

SweepOutcome run_sweep(const SweepOptions& options) {
  const Job job = read_job(options);
  if (options.group.rank == 0) {
    for (const std::string& note : job.notes) tell_warning("{}", note);
  }
  SweepOutcome outcome;
  outcome.run = options.out / "run.h5";
  outcome.shards = std::ssize(job.chunks);
  outcome.bos_policy = job.source.bos.explanation;
  measure_chunks(options, job, outcome);
  if (options.then && options.group.rank == 0) {
    options.then({job.checkpoint, job.chunks, layers_to_run(options, job.config)});
    job.inputs.check();
  }
  return outcome;
}

}  // namespace gainlens::sweep
