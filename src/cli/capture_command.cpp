#include "cli/application.h"

#include "cli/command_options.h"
#include "cli/given_run.h"
#include "cli/model_options.h"
#include "core/check.h"
#include "core/checked.h"
#include "core/console.h"
#include "core/json.h"
#include "core/progress.h"
#include "core/quantity.h"
#include "core/sha256.h"
#include "data/text.h"
#include "formats/hub_cache.h"
#include "formats/tensor_file.h"
#include "hooks/hooks.h"
#include "hooks/site.h"
#include "kernels/compute_device.h"
#include "models/checkpoint/torch_dtype.h"
#include "sweep/one_sequence.h"

#include <ATen/ATen.h>
#include <ATen/core/Tensor.h>
#include <c10/core/InferenceMode.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gainlens::cli {
namespace {

constexpr const char* position_axis = "position";

/// Collects the tensors at sites over several prompts: one tensor for each site, [prompt, ..]. A dimension that counts
/// positions has the size of the longest prompt; what a shorter prompt does not have is NaN.
class CapturedTensors {
 public:
  /// @param sites     of the model
  /// @param lengths   tokens of each prompt
  /// @param position  the only position that is kept, from 0, or -1 for the last one of each prompt; absent: all. The
  ///                  tensors then have no dimension for it
  CapturedTensors(const std::vector<hooks::SiteShape>& sites, std::vector<std::int64_t> lengths,
                  std::optional<std::int64_t> position);

  /// Keeps what the pass over this prompt shows at a site.
  /// @param seen  [1, ..]
  void keep(const hooks::Site& site, const at::Tensor& seen, std::size_t prompt);

  std::map<std::string, at::Tensor>& tensors() { return tensors_; }

 private:
  std::map<std::string, std::vector<std::string>> shapes_;  ///< of the sites, with names for sizes that vary
  std::vector<std::int64_t> lengths_;
  std::optional<std::int64_t> position_;
  std::map<std::string, at::Tensor> tensors_;
};

CapturedTensors::CapturedTensors(const std::vector<hooks::SiteShape>& sites, std::vector<std::int64_t> lengths,
                                 std::optional<std::int64_t> position)
    : lengths_(std::move(lengths)), position_(position) {
  for (const hooks::SiteShape& site : sites) shapes_[site.site.name] = site.shape;
}

void CapturedTensors::keep(const hooks::Site& site, const at::Tensor& seen, std::size_t prompt) {
  std::vector<std::string> names = shapes_.at(site.name);
  at::Tensor own = seen[0];  // of one prompt, so the dimension of the batch goes
  names.erase(names.begin());
  ASSERT(std::ssize(names) == own.dim(), "{} has {} dimensions, and is described with {}", site.name, own.dim(),
         names.size());
  const std::int64_t length = lengths_[prompt];
  if (position_) {
    const auto first = std::ranges::find(names, position_axis);
    CHECK(first != names.end(), "--position: {} has no positions; leave the option out, or the site", site.name);
    own = own.select(first - names.begin(), *position_ < 0 ? length - 1 : *position_);
    names.erase(first);
  }
  std::vector<std::int64_t> sizes{std::ssize(lengths_)};
  for (std::size_t i = 0; i < names.size(); ++i)
    sizes.push_back(names[i] == position_axis ? std::ranges::max(lengths_) : own.size(static_cast<std::int64_t>(i)));
  at::Tensor& all = tensors_[site.name];
  if (!all.defined()) all = at::full(sizes, std::numeric_limits<double>::quiet_NaN(), own.options());
  at::Tensor place = all[static_cast<std::int64_t>(prompt)];
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == position_axis) place = place.slice(static_cast<std::int64_t>(i), 0, length);
  place.copy_(own);
}

struct CaptureArguments : ModelArguments {
  TextOptions text;
  PromptOptions prompts;
  std::string position;  ///< empty: all
  std::string length;    ///< empty: the whole text
  std::string globs;
  std::string out;
  std::string pattern_memory = "1";
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
std::optional<std::int64_t> max_tokens(const CaptureArguments& arguments, const models::DecoderConfig& config) {
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

/// What the model runs over.
struct PromptsToRun {
  std::vector<std::vector<std::int32_t>> tokens;
  Metadata metadata;  ///< what the file says of them
};

/// The tokens of one prompt, or the start of a text as the first chunk of a sweep.
std::vector<std::int32_t> tokens_of(const CaptureArguments& arguments, const sweep::TokenSource& source,
                                    const models::DecoderConfig& config, bool quiet) {
  const bool has_bos = source.bos.token.has_value();
  const std::int64_t available = std::ssize(source.tokens) + (has_bos ? 1 : 0);
  const std::int64_t length = length_to_run(arguments, config, available, has_bos, source.whole);
  if (length == available && !quiet) sweep::tell_of_line_end(source);
  std::vector<std::int32_t> tokens;
  if (has_bos) tokens.push_back(*source.bos.token);
  tokens.insert(tokens.end(), source.tokens.begin(), source.tokens.end());
  tokens.resize(static_cast<std::size_t>(length));
  return tokens;
}

/// The prompts of a decoder. All are read before the first one runs.
PromptsToRun prompts_to_run(const CaptureArguments& arguments, const models::DecoderConfig& config,
                            const std::filesystem::path& folder, bool quiet) {
  PromptsToRun prompts;
  Json texts = Json::array();
  for (const PromptSource& one : prompt_sources(arguments.prompts, arguments.text)) {
    naming_the_line(one, [&] {
      const sweep::TokenSource source = sweep::read_tokens(one.from, folder, config.vocabulary, config.bos_token,
                                                           [&](bool) { return max_tokens(arguments, config); });
      CHECK(!source.tokens.empty(), "the text holds no token");
      prompts.tokens.push_back(tokens_of(arguments, source, config, quiet));
      prompts.metadata["text_sha256"] = source.text_sha256;
      prompts.metadata["bos_policy"] = source.bos.explanation;
      if (source.tokenizer == nullptr) return;  // given ids have no tokenizer, and so no texts
      Json& prompt_tokens = texts.emplace_back(Json::array());
      for (const tokenizers::TokenId id : prompts.tokens.back())
        prompt_tokens.push_back(source.tokenizer->token_text(id));
    });
  }
  const std::string& batch = arguments.prompts.batch;
  if (!batch.empty()) prompts.metadata["text_sha256"] = sha256_file(batch);
  const std::string& file = arguments.text.text.empty() ? arguments.text.tokens : arguments.text.text;
  prompts.metadata["text"] = !batch.empty() ? name_of(batch) : arguments.prompts.prompt ? "--prompt" : name_of(file);
  if (!texts.empty()) prompts.metadata["tokens_text"] = batch.empty() ? texts.front().dump() : texts.dump();
  return prompts;
}

/// The items of --tokens, for a recommender.
PromptsToRun items_to_run(const CaptureArguments& arguments) {
  CHECK(!arguments.text.tokens.empty() && arguments.text.text.empty() && !arguments.prompts.prompt &&
            arguments.prompts.batch.empty(),
        "{}: is a recommender; give its items as --tokens, a JSON array of ids from 1", printable(arguments.model));
  CHECK(arguments.text.bos == "auto", "--bos: is for language models, and {} is a recommender; leave it out",
        printable(arguments.model));
  auto items = data::read_token_ids(arguments.text.tokens);
  if (!arguments.length.empty()) {
    const std::int64_t length = parse_count(arguments.length, "--length");
    CHECK(length <= std::ssize(items), "--length: {}; there are {} items", length, items.size());
    items.resize(static_cast<std::size_t>(length));
  }
  return {{std::move(items)}, {{"text", name_of(arguments.text.tokens)}}};
}

/// --position: -1 for the last one.
std::optional<std::int64_t> position_of(const CaptureArguments& arguments, const PromptsToRun& prompts) {
  if (arguments.position.empty()) return std::nullopt;
  if (arguments.position == "last") return -1;
  const std::string& text = arguments.position;
  std::int64_t position = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), position);
  CHECK(error == std::errc() && end == text.data() + text.size() && position >= 0,
        "--position: '{}'; must be last, or a position from 0", printable(text, 40));
  for (std::size_t i = 0; i < prompts.tokens.size(); ++i)
    CHECK(position < std::ssize(prompts.tokens[i]), "--position: {}; {} has positions 0 to {}", position,
          arguments.prompts.batch.empty() ? std::string("the prompt") : fmt::format("prompt {}", i + 1),
          prompts.tokens[i].size() - 1);
  return position;
}

/// The ids of all prompts, [prompt, position]; -1 beyond the end of a prompt.
at::Tensor padded_ids(const PromptsToRun& prompts, std::int64_t longest) {
  at::Tensor ids = at::full({std::ssize(prompts.tokens), longest}, -1, at::kLong);
  for (std::size_t i = 0; i < prompts.tokens.size(); ++i) {
    const hooks::Tokens one = sweep::one_sequence(prompts.tokens[i]);
    ids[static_cast<std::int64_t>(i)].slice(0, 0, one.ids.size(1)).copy_(one.ids[0]);
  }
  return ids;
}

struct Captured {
  std::map<std::string, at::Tensor> tensors;
  Metadata metadata;
};

Captured captured(const CaptureArguments& arguments, const GlobalOptions& global) {
  const auto globs = parse_globs(arguments.globs);
  OpenedModel opened = open_model(arguments.model, arguments.ignored_config_keys);
  if (opened.decoder)
    for (const std::string& note : opened.decoder->notes) print_notice("gainlens: warning: {}\n", note);
  PromptsToRun prompts = opened.recommender
                             ? items_to_run(arguments)
                             : prompts_to_run(arguments, opened.decoder->config, opened.decoder->path, global.quiet);
  const std::optional<std::int64_t> position = position_of(arguments, prompts);
  const at::ScalarType dtype = models::parse_dtype(arguments.dtype, "--dtype");
  const std::string family = opened.family();  // load() takes what tells it
  const auto model = opened.load(dtype, kernels::compute_device(global.device));

  std::vector<std::int64_t> lengths;
  for (const auto& tokens : prompts.tokens) lengths.push_back(std::ssize(tokens));
  const std::vector<hooks::SiteShape> sites = model->sites();
  hooks::select_sites(globs, sites);  // throws if a glob names no site
  CapturedTensors captured(sites, lengths, position);
  std::size_t place = 0;
  hooks::Hooks hooks;
  for (const auto& glob : globs)
    hooks.observe(glob, [&](const hooks::Site& site, const at::Tensor& tensor) { captured.keep(site, tensor, place); });
  const c10::InferenceMode inference;
  hooks::ForwardOptions options;
  options.allow_extrapolation = arguments.allow_extrapolation;
  options.pattern_memory_bytes =
      checked_mul<std::uint64_t>(static_cast<std::uint64_t>(parse_count(arguments.pattern_memory, "--pattern-memory")),
                                 std::uint64_t{1} << 30, "--pattern-memory");
  Progress progress("capture", static_cast<double>(lengths.size()), "prompts", global.quiet || lengths.size() == 1);
  for (; place < prompts.tokens.size(); ++place) {
    model->forward(sweep::one_sequence(prompts.tokens[place]), options, hooks);
    progress.advance(1, 1, fmt::format("prompt {}", place + 1));
  }
  progress.finish();
  std::map<std::string, at::Tensor> tensors = std::move(captured.tensors());
  tensors["tokens"] = padded_ids(prompts, std::ranges::max(lengths));
  if (!arguments.prompts.batch.empty()) tensors["lengths"] = at::tensor(lengths, at::kLong);
  // "pt" is what the field's library writes; some readers ask for it.
  prompts.metadata.insert({{"format", "pt"},
                           {"family", family},
                           {"gainlens_version", GAINLENS_VERSION},
                           {"model", name_of(arguments.model)},
                           {"dtype", std::string(models::dtype_name(dtype))}});
  if (position) prompts.metadata["position"] = arguments.position;
  return {std::move(tensors), std::move(prompts.metadata)};
}

std::uint64_t write(const std::filesystem::path& path, const Captured& captured) {
  std::vector<formats::TensorToWrite> entries;
  std::uint64_t bytes = 0;
  for (const auto& [name, tensor] : captured.tensors) {
    const bool counts = name == "tokens" || name == "lengths";
    const auto dtype = counts ? formats::DType::i64 : stored_dtype(tensor.scalar_type());
    entries.push_back(
        {name, dtype, tensor.sizes().vec(), {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()}});
    bytes += tensor.nbytes();
  }
  formats::write_tensors(path, entries, captured.metadata);
  return bytes;
}

void capture(const CaptureArguments& arguments, const GlobalOptions& global) {
  CHECK(arguments.length.empty() || arguments.prompts.batch.empty(), "--length: is of one text; leave --batch out");
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
      "policy; 'tokens_text' is a JSON array of the tokens' texts, absent where ids were given with --tokens.\n"
      "With --batch the first dimension of every tensor counts prompts, and 'lengths' holds their tokens. Beyond the\n"
      "end of a prompt stands NaN, and -1 in 'tokens'.");
  auto arguments = std::make_shared<CaptureArguments>();
  add_model_option(*command, arguments->model);
  add_prompt_options(*command, arguments->prompts, "the tensors get a row for each");
  add_text_options(*command, arguments->text);
  command
      ->add_option("--hooks", arguments->globs,
                   "Sites, as globs (* ? [ab] {q,k}) separated by commas; `gainlens hooks MODEL` lists the sites")
      ->required();
  command->add_option("--out", arguments->out, "File to write; must not exist yet")->required();
  command->add_option("--length", arguments->length,
                      "Number of tokens to run, from the start of the text, BOS included; 1k is 1024 (default: all)");
  command->add_option("--position", arguments->position,
                      "Keep this position alone, from 0, or last: that of the last token of each prompt");
  add_dtype_option(*command, arguments->dtype);
  command
      ->add_option(
          "--pattern-memory", arguments->pattern_memory,
          "Most memory for the hook_pattern of one layer, and for hook_logits, in GiB; a larger one is refused")
      ->capture_default_str();
  command->add_flag("--allow-extrapolation", arguments->allow_extrapolation,
                    "Allow a length above the model's number of positions");
  add_ignored_keys(*command, arguments->ignored_config_keys);
  set_action(*command, action, [arguments, &global] {
    arguments->model = formats::locate_checkpoint(arguments->model);
    capture(*arguments, global);
  });
}

}  // namespace gainlens::cli
