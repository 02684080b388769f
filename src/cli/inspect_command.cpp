#include "cli/commands.h"

#include "core/error.h"
#include "core/json.h"
#include "core/quantity.h"
#include "data/tokenizer.h"
#include "formats/tensor_file.h"
#include "models/checkpoint.h"
#include "models/dtype.h"
#include "models/model_size.h"
#include "runfile/run_reader.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>

namespace gainlens::cli {
namespace {

struct InspectArguments {
  std::string path;
  std::string length;
  std::string dtype = "float32";
};

/// What was found, in order, for the terminal and as JSON.
class Findings {
 public:
  void add(const std::string& name, const std::string& text, const Json& value) {
    lines_.emplace_back(name, text);
    json_[name] = value;
  }
  void add(const std::string& name, const std::string& text) { add(name, text, text); }
  void print(bool json) const {
    if (json) {
      fmt::print("{}\n", json_.dump(2));
      return;
    }
    for (const auto& [name, text] : lines_) fmt::print("{:<18} {}\n", name, text);
  }

 private:
  std::vector<std::pair<std::string, std::string>> lines_;
  OrderedJson json_ = OrderedJson::object();
};

/// "28 global", or "5 window:512, 1 global" where kinds differ.
std::string attention_summary(const models::DecoderConfig& config) {
  std::map<std::int64_t, std::int64_t> layers;
  for (const std::int64_t window : config.window) ++layers[window];
  std::vector<std::string> kinds;
  for (const auto& [window, count] : layers)
    kinds.push_back(window == 0 ? fmt::format("{} global", count) : fmt::format("{} window:{}", count, window));
  return fmt::format("{}", fmt::join(kinds, ", "));
}

std::string gate_name(models::Gate gate) {
  return gate == models::Gate::none ? "none" : gate == models::Gate::headwise ? "headwise" : "elementwise";
}

void describe_config(const models::DecoderConfig& config, Findings& findings) {
  findings.add("family", config.family);
  findings.add("layers", fmt::format("{} ({})", config.layers, attention_summary(config)), config.layers);
  findings.add("width", fmt::format("{}", config.width), config.width);
  findings.add("heads", fmt::format("{} query, {} key/value, of {} dimensions", config.heads, config.kv_heads, config.head_dim),
               {{"query", config.heads}, {"kv", config.kv_heads}, {"head_dim", config.head_dim}});
  findings.add("gate", gate_name(config.gate));
  findings.add("vocabulary", fmt::format("{}", config.vocabulary), config.vocabulary);
  findings.add("positions", fmt::format("{}", config.max_positions), config.max_positions);
  const auto parameters = models::parameter_count(config);
  findings.add("parameters", fmt::format("{:.3g} million", static_cast<double>(parameters) / 1e6), parameters);
}

void describe_weights(const std::filesystem::path& folder, Findings& findings) {
  const auto directory = formats::TensorDirectory::open(folder);
  std::map<std::string, std::uint64_t> bytes;
  for (const auto& [name, entry] : directory.entries()) bytes[std::string(formats::name_of(entry.dtype))] += entry.bytes.size();
  std::vector<std::string> kinds;
  for (const auto& [dtype, size] : bytes) kinds.push_back(fmt::format("{} {}", format_bytes(size), dtype));
  findings.add("weights",
               fmt::format("{} tensors in {} file(s): {}", directory.entries().size(), directory.files().size(), fmt::join(kinds, ", ")),
               bytes);
}

void describe_tokenizer(const std::filesystem::path& folder, Findings& findings) {
  try {
    const auto tokenizer = data::open_tokenizer(folder);
    findings.add("tokenizer", fmt::format("{}; BOS {}", tokenizer->description(), tokenizer->adds_bos() ? "put first" : "not put first"));
  } catch (const InvalidArgument& error) {
    findings.add("tokenizer", std::string("none that can be used: ") + error.what());  // --tokens is the way round
  }
}

void describe_checkpoint(const InspectArguments& arguments, Findings& findings) {
  const auto folder = formats::resolve_checkpoint_folder(arguments.path);
  findings.add("kind", "checkpoint");
  const auto config = models::read_decoder_config(folder);
  describe_config(config, findings);
  describe_weights(folder, findings);
  describe_tokenizer(folder, findings);
  const std::int64_t length = arguments.length.empty() ? config.max_positions : parse_count(arguments.length, "--length");
  const auto memory = models::memory_needed(config, models::parse_dtype(arguments.dtype), length);
  findings.add(fmt::format("memory at {}", format_count(length)), fmt::format("about {} in {}", format_bytes(memory), arguments.dtype),
               memory);
  models::check_checkpoint(folder);
}

void describe_run(const std::filesystem::path& path, Findings& findings) {
  const auto run = runfile::RunReader::open(path);
  findings.add("kind", "run");
  const auto& request = run.request();
  findings.add("family", request.family);
  std::vector<std::string> lengths;
  for (const std::int64_t length : run.lengths()) lengths.push_back(format_count(length));
  findings.add("lengths", fmt::format("{}", fmt::join(lengths, ", ")), run.lengths());
  std::int64_t complete = 0;
  for (std::size_t i = 0; i < run.lengths().size(); ++i) {
    for (std::int64_t sample = 0; sample < run.samples(); ++sample) complete += run.complete(i, sample) ? 1 : 0;
  }
  const std::int64_t chunks = std::ssize(run.lengths()) * run.samples();
  findings.add("chunks",
               fmt::format("{} of {} complete ({} samples a length{})", complete, chunks, run.samples(), request.nested ? ", nested" : ""),
               {{"complete", complete}, {"of", chunks}});
  findings.add("layers", fmt::format("{}", run.layers().size()), run.layers());
  findings.add("heads", fmt::format("{} query, {} key/value, of {} dimensions", run.heads(), run.kv_heads(), request.head_dim),
               {{"query", run.heads()}, {"kv", run.kv_heads()}, {"head_dim", request.head_dim}});
  findings.add("gate", request.gated ? "stored" : "none");
  findings.add("dtype", request.dtype);
  findings.add("BOS", request.bos_policy);
  findings.add("statistics", request.statistics ? (request.per_query ? "all, per query too" : "all") : "none");
  CHECK(complete > 0, "{}: no chunk is complete; run the sweep again to finish it", path.string());
}

bool looks_like_run(const std::filesystem::path& path) {
  return path.extension() == ".h5" || std::filesystem::exists(path / "run.h5") || std::filesystem::exists(path / "request.json");
}

void inspect(const InspectArguments& arguments, bool json) {
  CHECK(std::filesystem::exists(arguments.path), "{}: no such file or folder", printable(arguments.path));
  Findings findings;
  try {
    if (looks_like_run(arguments.path)) {
      describe_run(arguments.path, findings);
    } else {
      describe_checkpoint(arguments, findings);
    }
  } catch (const InvalidArgument& error) {
    findings.add("usable", std::string("no: ") + error.what());
    findings.print(json);
    throw;
  }
  findings.add("usable", "yes");
  findings.print(json);
}

}  // namespace

void add_inspect(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* command = add_subcommand(app, "inspect", "What a checkpoint or a run holds, and whether it can be used (exit 2 if not)",
                                     "gainlens inspect MODEL --length 8k");
  auto arguments = std::make_shared<InspectArguments>();
  command->add_option("path", arguments->path, "Checkpoint folder, run folder or run.h5")->required();
  command->add_option("--length", arguments->length,
                      "Context length to estimate memory at, in tokens (default: all of the model's positions)");
  command->add_option("--dtype", arguments->dtype, "Compute dtype to estimate memory in")->capture_default_str();
  command->callback([arguments, &global, &action] { action = [arguments, &global] { inspect(*arguments, global.json); }; });
}

}  // namespace gainlens::cli
