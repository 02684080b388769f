#include "cli/inspect_parts.h"
#include "core/available_memory.h"
#include "core/error.h"
#include "core/number_ranges.h"
#include "core/quantity.h"
#include "models/checkpoint/checkpoint_source.h"
#include "models/checkpoint/compute_dtype.h"
#include "models/checkpoint/describe.h"
#include "models/checkpoint/memory_needed.h"
#include "models/checkpoint/model_size.h"
#include "models/checkpoint/stored_tensors.h"
#include "models/decoder/attention_layout.h"
#include "models/decoder/rope_frequencies.h"
#include "tokenizers/tokenizer.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace gainlens::cli {
namespace {

std::string gate_name(models::Gate gate) {
  return gate == models::Gate::none ? "none" : gate == models::Gate::headwise ? "headwise" : "elementwise";
}

std::string count_of_parameters(std::int64_t count) {
  const auto number = static_cast<double>(count);
  if (number < 1e6) return fmt::format("{:.3g} thousand", number / 1e3);
  return number < 1e9 ? fmt::format("{:.3g} million", number / 1e6) : fmt::format("{:.3g} billion", number / 1e9);
}

/// Features that most models do not have. They get a line only if the model has them.
void add_particulars(const models::DecoderConfig& config, Findings& findings) {
  if (config.filter) {
    const auto& filter = *config.filter;
    const OrderedJson options = knobs_to_json(bft::filter_knobs(), filter);
    const bft::ArmParts& arm = config.armed_filter().parts();
    if (!config.armed_filter().has_gain()) findings.add("arm", fmt::format("{}: {}", arm.name, arm.help), arm.name);
    findings.add("filter",
                 fmt::format("Bayesian; estimator {}, predict {}, Jacobian {}, initial precision {}",
                             options["estimator"].get<std::string>(), options["predict"].get<std::string>(),
                             options["jacobian"].get<std::string>(), options["initial_precision"].get<std::string>()),
                 Json(options));
  }
  if (config.sink_logits) {
    std::int64_t layers = 0;
    for (std::int64_t layer = 0; layer < config.layers; ++layer) layers += config.has_sink_logits(layer) ? 1 : 0;
    const std::string where = layers == config.layers ? "" : fmt::format(", in {} of {} layers", layers, config.layers);
    findings.add("sink logits", "one learned logit a head" + where, true);
  }
  if (config.value_scale != 1) findings.add("value scale", fmt::format("{}", config.value_scale), config.value_scale);
  if (config.attention_soft_cap > 0) {
    findings.add("score soft cap", fmt::format("{}", config.attention_soft_cap), config.attention_soft_cap);
  }
  if (config.logit_soft_cap > 0)
    findings.add("logit soft cap", fmt::format("{}", config.logit_soft_cap), config.logit_soft_cap);
  if (config.experts.count > 0) {
    findings.add("experts",
                 fmt::format("{}, of which each token uses {}{}", config.experts.count, config.experts.per_token,
                             config.experts.shared_width > 0 ? ", and one that every token uses" : ""),
                 {{"count", config.experts.count},
                  {"per_token", config.experts.per_token},
                  {"shared", config.experts.shared_width > 0}});
  }
  if (const auto& latent = config.latent; config.has_latent()) {
    const std::string query_text =
        latent.query_rank > 0 ? fmt::format(", queries from {}", latent.query_rank) : std::string();
    findings.add("latent attention",
                 fmt::format("keys and values of every head from {} numbers a position{}; {} dimensions are rotated",
                             latent.key_rank, query_text, latent.rotated),
                 {{"key_rank", latent.key_rank}, {"query_rank", latent.query_rank}, {"rotated", latent.rotated}});
  }
  if (const auto& delta = config.delta; !delta.layers.empty()) {
    findings.add(
        "linear attention",
        fmt::format("{} of {} layers, by the gated delta rule: {} key heads of {} dimensions, {} value heads of "
                    "{}; they have no attention weights, and a sweep does not measure them",
                    config.layers - config.attention_layers(config.layers), config.layers, delta.key_heads,
                    delta.key_dim, delta.value_heads, delta.value_dim),
        {{"layers", config.layers - config.attention_layers(config.layers)},
         {"key_heads", delta.key_heads},
         {"key_dim", delta.key_dim},
         {"value_heads", delta.value_heads},
         {"value_dim", delta.value_dim},
         {"kernel", delta.kernel}});
  }
  if (const auto& convolution = config.convolution; !convolution.layers.empty()) {
    const std::int64_t layers = config.layers - config.attention_layers(config.layers);
    findings.add("short convolutions",
                 fmt::format("{} of {} layers, over {} positions; they have no attention weights, and a sweep does not "
                             "measure them",
                             layers, config.layers, convolution.kernel),
                 {{"layers", layers}, {"kernel", convolution.kernel}});
  }
}

void add_positions(const models::DecoderConfig& config, Findings& findings) {
  Json kinds = Json::object();
  for (const auto& [kind, text] : models::position_encodings(config)) {
    findings.add_line("positions", kind == "all layers" ? text : fmt::format("{}: {}", kind, text));
    kinds[kind] = text;
  }
  findings.add_json("positions", kinds);
  findings.add("context limit", fmt::format("{} tokens", config.max_positions), config.max_positions);
}

void add_config(const models::DecoderConfig& config, Findings& findings) {
  findings.add("family", config.family);
  findings.add("layers", fmt::format("{}", config.layers), config.layers);
  const auto kinds = models::attention_layout(config).kinds();
  findings.add("attention", models::layer_runs_text(kinds), kinds);
  findings.add("width", fmt::format("{}", config.width), config.width);
  const std::string value_size = config.value_head_dim ? fmt::format(", values of {}", config.value_dim()) : "";
  const std::vector<std::int64_t>& by_layer = config.layer_kv_heads;
  findings.add("heads",
               fmt::format("{} query, {} key/value, of {} dimensions{}", config.heads,
                           either_number(by_layer.empty() ? std::vector{config.kv_heads} : by_layer), config.head_dim,
                           value_size),
               {{"query", config.heads},
                {"kv", config.kv_heads},
                {"head_dim", config.head_dim},
                {"value_dim", config.value_dim()}});
  findings.add("gate", gate_name(config.gate));
  add_particulars(config, findings);
  add_positions(config, findings);
  findings.add("vocabulary", fmt::format("{}", config.vocabulary), config.vocabulary);
  const auto parameters = models::parameter_count(config);
  findings.add("parameters", count_of_parameters(parameters), parameters);
}

/// Refuses angles that a forward pass would refuse.
void check_rope(const models::DecoderConfig& config) {
  if (config.positions != models::Positions::rotary) return;
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    models::rope_frequencies(config.rope_of(layer), config.rotary_dim(), config.max_positions);
}

void add_files(const models::CheckpointSource& source, Findings& findings) {
  const auto found = models::describe_checkpoint(source);
  findings.add("format", found.format);
  findings.add(
      "size on disk",
      fmt::format("{} in {} file{}", format_bytes(found.bytes_on_disk), found.files, found.files == 1 ? "" : "s"),
      found.bytes_on_disk);
  std::vector<std::string> kinds;
  Json json = Json::object();
  for (const auto& [dtype, share] : found.dtypes) {
    kinds.push_back(fmt::format("{} {} ({})", format_bytes(share.bytes), dtype, share.tensors));
    json[dtype] = {{"tensors", share.tensors}, {"bytes", share.bytes}};
  }
  findings.add("weights", fmt::format("{} tensors: {}", found.tensors, fmt::join(kinds, ", ")), json);
  for (const std::string& remark : source.remarks) findings.add_line("filled in", remark);
  findings.add_json("filled_in", source.remarks);
  for (const std::string& note : source.notes) findings.add_line("note", note);
  if (!source.notes.empty()) findings.add_json("notes", source.notes);
}

void add_tokenizer(const std::filesystem::path& path, Findings& findings) {
  try {
    const auto tokenizer = tokenizers::open_tokenizer(path);
    const auto bos = tokenizer->bos_token();
    const std::string doubt = tokenizer->bos_doubt();
    const std::string placed = !doubt.empty() ? "in doubt" : tokenizer->adds_bos() ? "put first" : "not put first";
    Json json = {{"description", tokenizer->description()},
                 {"tokens", tokenizer->vocabulary_size()},
                 {"bos", bos ? Json(*bos) : Json(nullptr)},
                 {"puts_bos_first", doubt.empty() ? Json(tokenizer->adds_bos()) : Json(nullptr)}};
    if (!doubt.empty()) json["bos_doubt"] = doubt;
    findings.add("tokenizer",
                 fmt::format("{}; BOS {}{}", tokenizer->description(), bos ? fmt::format("{} ", *bos) : "", placed),
                 json);
    if (!doubt.empty()) findings.add_line("note", doubt + "; a sweep needs --bos always or --bos never");
  } catch (const InvalidArgument& error) {
    const std::string text = std::string("none that can be used: ") + error.what();  // --tokens works without one
    findings.add("tokenizer", text, {{"unusable", error.what()}});
  }
}

void add_time(const models::DecoderConfig& config, const MemoryQuestion& question,
              const InspectComputations& computations, Findings& findings) {
  if (!question.length.empty()) {
    computations.add_time(config, question, findings);
  } else {
    findings.add_line("time", fmt::format("not estimated; --length {} measures the speed of this machine",
                                          format_count(inspected_length(config, question))));
  }
}

/// What follows from the configuration beside add_config(): what cannot be tested, and the memory.
void add_use(const models::DecoderConfig& config, const MemoryQuestion& question, Findings& findings) {
  if (const std::string doubt = sink_test_doubt(config); !doubt.empty()) {
    findings.add_line("sink-vs-k", doubt);
    findings.add_json("sink_vs_k_doubt", doubt);
  }
  add_memory(config, question, available_memory(), findings);
  check_rope(config);
}

/// Opens the checkpoint. If the weights cannot be opened, or there are none yet, adds what follows from the
/// configuration before it throws.
models::CheckpointSource open_or_say_the_rest(const std::filesystem::path& path, const MemoryQuestion& question,
                                              const InspectComputations& computations, Findings& findings) {
  try {
    return models::open_checkpoint(path, question.ignored_config_keys);
  } catch (const InvalidArgument&) {
    try {
      const models::DecoderConfig config = models::read_decoder_config(path, question.ignored_config_keys);
      add_config(config, findings);
      add_use(config, question, findings);
      add_time(config, question, computations, findings);
    } catch (const InvalidArgument&) {  // the configuration is wrong too, or lies in the same broken file
    }
    throw;
  }
}

using models::ComputeDtype;

/// Another way to run the sweep, as its options say it.
struct Remedy {
  std::string options;
  std::string key;  ///< of its bytes in the JSON object
  std::uint64_t bytes;
};

std::vector<Remedy> remedies(const models::DecoderConfig& config, models::MemoryOptions options) {
  std::vector<Remedy> all;
  const auto add = [&](const std::string& words, const std::string& key) {
    all.push_back({words, key, memory_needed(config, options).total()});
  };
  const bool wide = models::bytes_of(options.dtype) > 2;
  const ComputeDtype asked = options.dtype;
  if (wide) {
    options.dtype = ComputeDtype::bfloat16;
    add("--dtype bfloat16", "bfloat16_bytes");
    options.dtype = asked;
  }
  options.stream_weights = true;
  add("--stream-weights", "streamed_bytes");
  if (wide) {
    options.dtype = ComputeDtype::bfloat16;
    add("--dtype bfloat16 --stream-weights", "streamed_bfloat16_bytes");
  }
  return all;
}

/// What makes a sweep fit that needs more memory than there is.
std::string how_it_fits(std::uint64_t needed, std::uint64_t available, const std::string& dtype,
                        const std::vector<Remedy>& all) {
  std::vector<std::string> enough;
  for (const Remedy& remedy : all) {
    const bool both = remedy.key == all.back().key && all.size() > 1;
    if (remedy.bytes <= available && (!both || enough.empty()))
      enough.push_back(fmt::format("{} (about {})", remedy.options, format_bytes(remedy.bytes)));
  }
  const std::string problem = fmt::format("{} needs {} of {}", dtype, format_bytes(needed), format_bytes(available));
  if (enough.empty()) {
    return fmt::format("elsewhere; here {}, and {} with {}: give shorter --lengths, or use a machine with more memory",
                       problem, format_bytes(all.back().bytes), all.back().options);
  }
  const bool narrow = all.front().key == "bfloat16_bytes" && all.front().bytes <= available;
  return fmt::format("{}; {}: give {}", narrow ? "in bfloat16" : "with other options", problem,
                     fmt::join(enough, " or "));
}

}  // namespace

void inspect_checkpoint(const std::filesystem::path& path, const MemoryQuestion& question,
                        const InspectComputations& computations, Findings& findings) {
  findings.add("kind", "checkpoint");
  const models::CheckpointSource source = open_or_say_the_rest(path, question, computations, findings);
  add_config(source.config, findings);
  add_files(source, findings);
  add_tokenizer(source.path, findings);
  add_use(source.config, question, findings);
  models::check_tensors(source);
  add_time(source.config, question, computations, findings);
}

// The folder of such a training holds its checkpoint.
const RunInspection language_training_inspection = nullptr;

std::int64_t inspected_length(const models::DecoderConfig& config, const MemoryQuestion& question) {
  return question.length.empty() ? config.max_positions : parse_count(question.length, "--length");
}

void add_memory(const models::DecoderConfig& config, const MemoryQuestion& question,
                std::optional<std::uint64_t> available, Findings& findings) {
  const std::int64_t length = inspected_length(config, question);
  const auto dtype = models::parse_compute_dtype(question.dtype, "--dtype");
  const models::MemoryOptions options{.dtype = dtype, .positions = length};
  const std::uint64_t needed = memory_needed(config, options).total();
  const std::string name(models::name_of(dtype));
  const std::vector<Remedy> others = remedies(config, options);
  const bool too_large = available && needed > *available;
  const auto streamed = std::ranges::find(others, "--stream-weights", &Remedy::options);
  findings.add_line(
      fmt::format("memory at {}", format_count(length)),
      fmt::format(
          "about {} in {}{}{}{}", format_bytes(needed), name,
          length > config.max_positions ? "; beyond the context limit, for --allow-extrapolation" : "",
          available ? fmt::format("; {} available", format_bytes(*available)) : "",
          too_large ? fmt::format(": does not fit; --stream-weights needs {}", format_bytes(streamed->bytes)) : ""));
  Json json = {{"length", length},
               {"dtype", name},
               {"bytes", needed},
               {"available", available ? Json(*available) : Json(nullptr)},
               {"fits", available ? Json(needed <= *available) : Json(nullptr)}};
  for (const Remedy& remedy : others) json[remedy.key] = remedy.bytes;
  findings.add_json("memory", json);
  if (too_large) findings.usable_how(how_it_fits(needed, *available, name, others));
}

std::string sink_test_doubt(const models::DecoderConfig& config) {
  if (config.kv_heads > 1) return "";
  return "one KV head a layer: no permutation test can decide whether sink heads have the larger K, so sink-vs-k will "
         "say 'not decidable'";
}

}  // namespace gainlens::cli
