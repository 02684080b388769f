#include "cli/commands.h"

#include "cli/given_run.h"
#include "cli/ignored_keys.h"
#include "cli/open_model.h"
#include "cli/text_options.h"
#include "core/check.h"
#include "core/checked.h"
#include "core/console.h"
#include "core/json.h"
#include "core/quantity.h"
#include "data/text.h"
#include "formats/hub_cache.h"
#include "formats/tensor_file.h"
#include "hooks/hooks.h"
#include "kernels/compute_device.h"
#include "models/checkpoint/torch_dtype.h"
#include "sweep/one_sequence.h"

#include <fmt/ranges.h>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <limits>
#include <map>
#include <memory>

namespace gainlens::cli {
namespace {

struct CaptureArguments {
  std::string model;
  std::vector<std::string> ignored_config_keys;
  TextOptions text;
  std::string length;  ///< empty: the whole text
  std::string globs;
  std::string out;
  std::string dtype = "float32";
  std::string pattern_memory = "1";
  bool allow_extrapolation = false;
};

formats::DType stored_dtype(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return formats::DType::f64;
    case at::kFloat:
      return formats::DType::f32;
    case at::kHalf:
      return formats::DType::f16;
    case at::kBFloat16:
      return formats::DType::bf16;
    default:
      throw_invalid("capture: activations of type {} cannot be stored", c10::toString(type));
  }
}

/// Splits globs at commas. A comma inside braces belongs to its glob.
std::vector<hooks::Glob> parse_globs(const std::string& text) {
  std::vector<hooks::Glob> globs;
  std::string current;
  int depth = 0;
  for (const char c : text) {
    depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    if (c == ',' && depth == 0) {
      globs.emplace_back(current);
      current.clear();
    } else {
      current += c;
    }
  }
  globs.emplace_back(current);
  return globs;
}

/// How many tokens of the text are read: some more than can be run, to know whether it has more.
std::optional<std::int64_t> most_tokens(const CaptureArguments& arguments, const models::DecoderConfig& config) {
  if (!arguments.length.empty()) return parse_count(arguments.length, "--length");
  if (arguments.allow_extrapolation) return std::nullopt;
  return checked_add(config.max_positions, std::int64_t{1}, "positions of the model");
}

/// The number of tokens to run: --length, or all that there are.
/// @param available  tokens of the text that were read, with the BOS if there is one
/// @param whole      whether these are all tokens of the text
std::int64_t length_to_run(const CaptureArguments& arguments, const models::DecoderConfig& config,
                           std::int64_t available, bool has_bos, bool whole) {
  const auto text = [&] {
    return fmt::format("the text has {}{} tokens{}", whole ? "" : "at least ", available, has_bos ? " with BOS" : "");
  };
  const std::int64_t limit =
      arguments.allow_extrapolation ? std::numeric_limits<std::int64_t>::max() : config.max_positions;
  if (arguments.length.empty()) {
    CHECK(available <= limit, "--length: {}, and the model has {} positions; give --length {} or less", text(), limit,
          limit);
    return available;
  }
  const std::int64_t length = parse_count(arguments.length, "--length");
  CHECK(length <= available, "--length: {}; --length {} needs {}", text(), length, length);
  CHECK(length <= limit,
        "--length: {} exceeds the model's {} positions; give a smaller one, or --allow-extrapolation to go beyond them",
        length, limit);
  return length;
}

using Metadata = std::map<std::string, std::string>;

/// A name from the command line, as metadata hold it: UTF-8 without control characters.
std::string name_of(const std::string& path) {
  constexpr std::size_t longest = 4096;  // of a path
  return printable(path, longest);
}

/// The start of the text, as the first chunk of a sweep.
/// @param metadata  gets what the file says of the text
data::Chunk first_chunk(const CaptureArguments& arguments, const models::DecoderConfig& config,
                        const std::filesystem::path& folder, bool quiet, Metadata& metadata) {
  const sweep::TokenSource source =
      sweep::read_tokens(arguments.text.source(), folder, config.vocabulary, config.bos_token,
                         [&](bool) { return most_tokens(arguments, config); });
  const bool has_bos = source.bos.token.has_value();
  const std::int64_t available = std::ssize(source.tokens) + (has_bos ? 1 : 0);
  const std::int64_t length = length_to_run(arguments, config, available, has_bos, source.whole);
  if (length == available && !quiet) sweep::tell_of_line_end(source);
  metadata["text"] = name_of(arguments.text.text.empty() ? arguments.text.tokens : arguments.text.text);
  metadata["text_sha256"] = source.text_sha256;
  metadata["bos_policy"] = source.bos.explanation;
  data::Chunk chunk = data::cut(source.tokens, {.lengths = {length}, .bos = source.bos.token}).front();
  if (source.tokenizer != nullptr) {  // given ids have no tokenizer, and so no texts
    Json texts = Json::array();
    for (const tokenizers::TokenId id : chunk.tokens) texts.push_back(source.tokenizer->token_text(id));
    metadata["tokens_text"] = texts.dump();
  }
  return chunk;
}

/// The items of --tokens, for a recommender.
std::vector<std::int32_t> items_to_run(const CaptureArguments& arguments, Metadata& metadata) {
  CHECK(!arguments.text.tokens.empty() && arguments.text.text.empty(),
        "{}: is a recommender; give its items as --tokens, a JSON array of ids from 1", printable(arguments.model));
  auto items = data::read_token_ids(arguments.text.tokens);
  if (!arguments.length.empty()) {
    const std::int64_t length = parse_count(arguments.length, "--length");
    CHECK(length <= std::ssize(items), "--length: {}; there are {} items", length, items.size());
    items.resize(static_cast<std::size_t>(length));
  }
  metadata["text"] = name_of(arguments.text.tokens);
  return items;
}

/// What the model is to run over.
/// @param metadata  gets what the file says of it
hooks::Tokens tokens_to_run(const CaptureArguments& arguments, const OpenedModel& opened, bool quiet,
                            Metadata& metadata) {
  if (opened.recommender) return sweep::one_sequence(items_to_run(arguments, metadata));
  const models::CheckpointSource& checkpoint = *opened.decoder;
  for (const std::string& note : checkpoint.notes) print_notice("gainlens: warning: {}\n", note);
  return sweep::one_sequence(first_chunk(arguments, checkpoint.config, checkpoint.path, quiet, metadata).tokens);
}

struct Captured {
  std::map<std::string, at::Tensor> tensors;
  Metadata metadata;
};

Captured captured(const CaptureArguments& arguments, const GlobalOptions& global) {
  const auto globs = parse_globs(arguments.globs);
  OpenedModel opened = open_model(arguments.model, arguments.ignored_config_keys);
  Metadata metadata{{"family", opened.family()}};
  const hooks::Tokens tokens = tokens_to_run(arguments, opened, global.quiet, metadata);
  const at::ScalarType dtype = models::parse_dtype(arguments.dtype, "--dtype");
  const auto model = opened.load(dtype, kernels::compute_device(global.device));

  std::map<std::string, at::Tensor> tensors;
  hooks::Hooks hooks;
  hooks::select_sites(globs, model->sites());  // throws if a glob names no site
  for (const auto& glob : globs) {
    hooks.observe(glob, [&](const hooks::Site& site, const at::Tensor& tensor) {
      tensors[site.name] = tensor.contiguous().clone();
    });
  }
  const c10::InferenceMode inference;
  hooks::ForwardOptions options;
  options.allow_extrapolation = arguments.allow_extrapolation;
  options.pattern_memory_bytes =
      checked_mul<std::uint64_t>(static_cast<std::uint64_t>(parse_count(arguments.pattern_memory, "--pattern-memory")),
                                 std::uint64_t{1} << 30, "--pattern-memory");
  model->forward(tokens, options, hooks);
  tensors["tokens"] = tokens.ids;
  // "pt" is what the field's library writes; some readers ask for it.
  metadata.insert({{"format", "pt"},
                   {"gainlens_version", GAINLENS_VERSION},
                   {"model", name_of(arguments.model)},
                   {"dtype", std::string(models::dtype_name(dtype))}});
  return {std::move(tensors), std::move(metadata)};
}

std::uint64_t write(const std::filesystem::path& path, const Captured& captured) {
  std::vector<formats::TensorToWrite> entries;
  std::uint64_t bytes = 0;
  for (const auto& [name, tensor] : captured.tensors) {
    const auto dtype = name == "tokens" ? formats::DType::i64 : stored_dtype(tensor.scalar_type());
    entries.push_back(
        {name, dtype, tensor.sizes().vec(), {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()}});
    bytes += tensor.nbytes();
  }
  formats::write_tensors(path, entries, captured.metadata);
  return bytes;
}

void capture(const CaptureArguments& arguments, const GlobalOptions& global) {
  check_is_new_file("--out", arguments.out, safetensors_file);
  const Captured all = captured(arguments, global);
  const std::uint64_t bytes = write(arguments.out, all);
  const auto& tensors = all.tensors;
  if (global.json) {
    Json shapes = Json::object();
    for (const auto& [name, tensor] : tensors) shapes[name] = tensor.sizes().vec();
    print_result("{}\n", json_text({{"file", arguments.out}, {"bytes", bytes}, {"tensors", shapes}}));
    return;
  }
  for (const auto& [name, tensor] : tensors) print_result("{:<40} [{}]\n", name, fmt::join(tensor.sizes(), ", "));
  print_result("{}: {} tensors, {}\n", arguments.out, tensors.size(), format_bytes(bytes));
}

}  // namespace

void add_capture(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* command = add_subcommand(
      app, subcommand_named("capture"),
      "gainlens capture MODEL --text wiki.txt --length 256 --hooks 'blocks.*.attn.hook_{q,k}' --out qk.safetensors",
      "The file holds the ids as the tensor 'tokens'. Its metadata name model, text (with its sha256), dtype and BOS\n"
      "policy; 'tokens_text' is a JSON array of the tokens' texts, absent where ids were given with --tokens.");
  auto arguments = std::make_shared<CaptureArguments>();
  add_model_option(*command, arguments->model);
  add_text_options(*command, arguments->text);
  command
      ->add_option("--hooks", arguments->globs,
                   "Sites, as globs (* ? [ab] {q,k}) separated by commas; `gainlens hooks MODEL` lists the sites")
      ->required();
  command->add_option("--out", arguments->out, "File to write; must not exist yet")->required();
  command->add_option("--length", arguments->length,
                      "Number of tokens to run, from the start of the text, BOS included; 1k is 1024 (default: all)");
  add_dtype_option(*command, arguments->dtype);
  command
      ->add_option(
          "--pattern-memory", arguments->pattern_memory,
          "Most memory for the hook_pattern of one layer, and for hook_logits, in GiB; a larger one is refused")
      ->capture_default_str();
  command->add_flag("--allow-extrapolation", arguments->allow_extrapolation,
                    "Allow a length above the model's number of positions");
  add_ignored_keys(*command, arguments->ignored_config_keys);
  command->callback([arguments, &global, &action] {
    action = [arguments, &global] {
      arguments->model = formats::locate_checkpoint(arguments->model);
      capture(*arguments, global);
    };
  });
}

}  // namespace gainlens::cli
