#include "cli/application.h"

#include "analyses/attributions.h"
#include "analyses/intervention_effects.h"
#include "analyses/patching_effects.h"
#include "cli/command_options.h"
#include "cli/given_run.h"
#include "cli/interruption.h"
#include "cli/model_options.h"
#include "cli/run_kinds.h"
#include "core/atomic_file.h"
#include "core/check.h"
#include "core/console.h"
#include "core/counted.h"
#include "core/json.h"
#include "core/quantity.h"
#include "interventions/patching.h"
#include "interventions/run_interventions.h"
#include "reports/terminal/interventions_terminal.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <utility>

namespace gainlens::cli {
namespace {

struct InterveneArguments : ModelArguments {
  TextOptions text;
  std::string clean, corrupt;
  std::string calibration;
  std::string lengths;
  std::optional<std::int64_t> samples;
  std::string targets;
  std::string answer, foil;
  std::vector<std::string> set;
  std::string interventions;
  std::string heads;
  bool each_head = false;
  bool each_kv_head = false;
  bool each_layer = false;
  std::vector<std::string> modes;
  bool approximate = false;
  std::string out;
};

interventions::EveryUnit every_unit(const InterveneArguments& arguments) {
  interventions::EveryUnit every{
      .heads = arguments.each_head, .kv_heads = arguments.each_kv_head, .layers = arguments.each_layer};
  if (!arguments.heads.empty()) every.some_heads = interventions::parse_heads(arguments.heads, "--heads");
  CHECK(arguments.modes.empty() || every.any(),
        "--modes: belongs to --heads, --each-head, --each-kv-head or --each-layer");
  if (arguments.modes.empty()) return every;
  every.modes.clear();
  for (const std::string& name : arguments.modes) every.modes.push_back(interventions::parse_mode(name, "--modes"));
  return every;
}

/// The interventions that are given one by one.
std::vector<interventions::Intervention> given_ones(const InterveneArguments& arguments) {
  std::vector<interventions::Intervention> given;
  if (!arguments.interventions.empty()) given = interventions::read_interventions(arguments.interventions);
  for (const std::string& text : arguments.set) given.push_back(interventions::parse_intervention(text));
  return given;
}

/// --targets: the last N tokens, or those at positions START:STOP.
void add_targets(const std::string& text, interventions::InterveneOptions& options) {
  if (text.empty()) return;
  if (text.find(':') == std::string::npos) {
    options.targets = parse_count(text, "--targets");
  } else {
    options.target_positions = interventions::parse_index_range(text, "--targets: ");
  }
}

/// Where --approximate writes its table; empty: nowhere. Estimates are no run that could be continued.
std::filesystem::path table_of_estimates(const InterveneArguments& arguments) {
  const std::filesystem::path file = arguments.out;
  if (file.empty()) return file;
  CHECK(file.extension() == ".csv",
        "--out: '{}' must be a CSV file, FILE.csv: estimates of --approximate are one table, and no run folder",
        printable(arguments.out));
  check_is_new_file("--out", file, csv_file);
  return file;
}

interventions::InterveneOptions options_of(const InterveneArguments& arguments, const GlobalOptions& global) {
  interventions::InterveneOptions options;
  arguments.give(options, global, "intervene");
  options.source = arguments.text.source();
  options.calibration = arguments.calibration;
  CHECK(!arguments.lengths.empty(), "--lengths: is missing; give the tokens of a document");
  const std::vector<std::int64_t> lengths = parse_counts(arguments.lengths, "--lengths");
  CHECK(lengths.size() == 1, "--lengths: {} lengths; intervene takes one", lengths.size());
  options.length = lengths.front();
  options.samples = arguments.samples.value_or(5);
  CHECK(options.samples >= 1, "--samples: {}; must be at least 1", options.samples);
  add_targets(arguments.targets, options);
  options.answer = arguments.answer;
  options.foil = arguments.foil;
  options.given = given_ones(arguments);
  options.every = every_unit(arguments);
  options.allow_extrapolation = arguments.allow_extrapolation;
  options.seed = global.seed;
  if (!arguments.approximate) {
    check_can_be_run_folder(arguments.out);
    options.out = arguments.out;
  }
  return options;
}

interventions::PatchingOptions patching_options(const InterveneArguments& arguments, const GlobalOptions& global) {
  const std::pair<bool, const char*> text_options[] = {
      {!arguments.text.text.empty(), "--text"},
      {!arguments.text.tokens.empty(), "--tokens"},
      {!arguments.calibration.empty(), "--calibration"},
      {!arguments.lengths.empty(), "--lengths"},
      {arguments.samples.has_value(), "--samples"},
      {!arguments.targets.empty(), "--targets"},
      {every_unit(arguments).any(), "--heads, --each-head and its like"}};
  for (const auto& [given, option] : text_options)
    CHECK(!given, "{}: is for interventions on a text, and --clean and --corrupt are two prompts; leave it out",
          option);
  interventions::PatchingOptions options;
  arguments.give(options, global, "intervene");
  options.prompts = {arguments.clean, arguments.corrupt, arguments.text.policy()};
  options.answer = arguments.answer;
  options.foil = arguments.foil;
  options.given = given_ones(arguments);
  options.allow_extrapolation = arguments.allow_extrapolation;
  if (!arguments.approximate) {
    check_can_be_run_folder(arguments.out);
    options.out = arguments.out;
  }
  return options;
}

/// The number that changes, for the first lines.
std::string compared_number(const InterveneArguments& arguments) {
  return arguments.answer.empty() ? std::string("mean loss in nats per token")
                                  : fmt::format("logit of '{}' minus logit of '{}' at the last position",
                                                printable(arguments.answer, 60), printable(arguments.foil, 60));
}

void keep_estimates(const std::filesystem::path& file, std::span<const reports::NamedAttributions> all) {
  if (!file.empty()) write_file_atomically(file, reports::to_csv(reports::attributions_table(all)));
}

void approximate_prompts(const InterveneArguments& arguments, const GlobalOptions& global) {
  const std::filesystem::path file = table_of_estimates(arguments);
  const std::vector<Attribution> found =
      interventions::approximate_patching(patching_options(arguments, global), global.seed);
  std::vector<reports::NamedAttributions> all;
  for (const runfile::PatchDirection direction : runfile::patch_directions) {
    all.push_back(
        {std::string(name_of(direction)), analyses::attributions(found.at(static_cast<std::size_t>(direction)))});
  }
  keep_estimates(file, all);
  if (global.json) {
    OrderedJson json = OrderedJson::object();
    for (const auto& [name, made] : all) json[name] = to_json(made);
    print_result("{}\n", json_text(json));
    return;
  }
  for (const auto& [name, made] : all) {
    print_result("{}{}\n{}", &made == &all.front().estimates ? "" : "\n", name,
                 reports::print_attributions(made, compared_number(arguments)));
  }
}

void approximate(const InterveneArguments& arguments, const GlobalOptions& global) {
  const std::filesystem::path file = table_of_estimates(arguments);
  const reports::NamedAttributions made{
      "", analyses::attributions(interventions::approximate_interventions(options_of(arguments, global)))};
  keep_estimates(file, {&made, 1});
  print_result("{}", global.json ? json_text(to_json(made.estimates)) + "\n"
                                 : reports::print_attributions(made.estimates, compared_number(arguments)));
}

void patch_prompts(const InterveneArguments& arguments, const GlobalOptions& global) {
  if (arguments.approximate) return approximate_prompts(arguments, global);
  const runfile::PatchingRun run = interventions::run_patching(patching_options(arguments, global));
  const analyses::PatchingEffects effects = analyses::patching_effects(run);
  if (!arguments.out.empty())
    write_file_atomically(std::filesystem::path(arguments.out) / "patching.csv",
                          reports::to_csv(reports::patching_table(effects)));
  const std::string bos = run.request.at("bos_policy");
  if (global.json) {
    OrderedJson json = to_json(effects);
    json["bos_policy"] = bos;
    print_result("{}\n", json_text(json));
  } else {
    print_result("{}", reports::print_patching(effects, bos));
  }
}

void intervene(const InterveneArguments& arguments, const GlobalOptions& global) {
  const ScopedInterruption told(arguments.out, "every finished layer of every document");
  if (!arguments.clean.empty() || !arguments.corrupt.empty()) return patch_prompts(arguments, global);
  if (arguments.approximate) return approximate(arguments, global);
  const runfile::InterventionRun run = interventions::run_interventions(options_of(arguments, global));
  const analyses::InterventionEffects effects = analyses::intervention_effects(run);
  const auto length = run.request.at("length").get<std::int64_t>();
  const std::string bos = run.request.at("bos_policy");
  if (global.json) {
    OrderedJson json = to_json(effects);
    json["length"] = length;
    if (run.request.contains("targets")) json["targets"] = run.request["targets"];
    json["bos_policy"] = bos;
    print_result("{}\n", json_text(json));
    return;
  }
  print_result("{}",
               reports::print_interventions(effects, fmt::format("{}; {}", measured_tokens(run, arguments.out), bos)));
}

}  // namespace

void add_intervene(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* command = add_subcommand(
      app, subcommand_named("intervene"),
      "gainlens intervene MODEL --text wiki.txt --lengths 512 --samples 8 --set 'blocks.5.attn.hook_z[head=3]=zero'",
      "Each intervention acts alone. It is compared with the model as it is, document by document, on the same "
      "tokens.\n"
      "SITE is one site of `gainlens hooks MODEL`. [head=H] counts query heads, and KV heads at hook_k, hook_rot_k "
      "and\n"
      "hook_v. [position=P] is one position of each document. VALUE is\n"
      "  zero       0\n"
      "  mean       the mean of the site over the documents of --calibration, one number for each of its numbers\n"
      "  resample   what stands at the same place in another document, drawn with --seed\n"
      "  NUMBER     the native values times this factor: 0.3 scales a gate or a head\n"
      "  FILE       the tensor of this name in a safetensors file of `gainlens capture`, for the whole document\n"
      "  patch      what the other prompt of --clean and --corrupt has at the same place\n"
      "  knockout   at attn.hook_pattern[key=K]: queries no longer see key K (attention knockout)\n"
      "'A + B' makes both writes in one pass. A write that changes nothing, or no logit, is an error.\n"
      "Beside an intervention on heads stands its control: as many other heads of the layer, drawn with --seed.\n"
      "A text is cut into documents as in sweep. docs/analyses/intervention.md tells how to read the table.");
  auto arguments = std::make_shared<InterveneArguments>();
  add_model_option(*command, arguments->model);
  add_text_options(*command, arguments->text);
  command->add_option("--clean", arguments->clean,
                      "A prompt, as a text, a file with a text, or a file *.json with token ids. With --corrupt: "
                      "activation patching. Values of one run go into the other, in both directions");
  command->add_option("--corrupt", arguments->corrupt, "A prompt of as many tokens as --clean");
  command->add_option("--calibration", arguments->calibration,
                      "Text (or ids, with --tokens) for the means of mode mean: as many documents of the same length "
                      "as the test has. It may share no text with them");
  command->add_option("--lengths", arguments->lengths, "Tokens of a document, BOS included: one number; 1k is 1024");
  command->add_option("--samples", arguments->samples, "Number of documents (default: 5)");
  command->add_option("--targets", arguments->targets,
                      "Losses of these tokens alone: N, the last N of each document, or START:STOP, those at positions "
                      "START to STOP - 1 (default: all but the first)");
  command->add_option(
      "--answer", arguments->answer,
      "A token, as a text that is one token (' Paris') or as an id: the table shows how its logit minus "
      "that of --foil changes at the last position of each document");
  command->add_option("--foil", arguments->foil, "The token that --answer is compared with (' Rome')");
  command
      ->add_option("--set", arguments->set,
                   "An intervention, 'SITE[head=H][position=P]=VALUE'; may be given several times. 'head=1,2', "
                   "'position=41:81' (81 not included) and 'blocks.{5,11}.' write to several places in one pass")
      ->allow_extra_args(false);
  command->add_option("--interventions", arguments->interventions,
                      "JSON file with interventions, {\"interventions\": [\"..\", ..]}, as --out writes it");
  command->add_option("--heads", arguments->heads, "Query heads, LAYER.HEAD, each alone, at attn.hook_z: 5.1,11.2");
  command->add_flag("--each-head", arguments->each_head,
                    "Every query head of every layer, at attn.hook_z: the result of attention, before a gate");
  command->add_flag("--each-kv-head", arguments->each_kv_head,
                    "Every KV head of every layer, at attn.hook_v: the values that its group of query heads shares");
  command->add_flag("--each-layer", arguments->each_layer, "The attention and the MLP of every layer, whole");
  add_name_list(*command, "--modes", arguments->modes,
                "Modes of --heads and the --each options, separated by commas: zero, mean, resample (default: zero)");
  add_dtype_option(*command, arguments->dtype);
  command->add_flag("--approximate", arguments->approximate,
                    "Estimate all interventions at once by one backward pass of each document (attribution patching), "
                    "and measure 20 of each kind exactly: their rank correlation says how far to trust the others");
  add_stream_weights(*command, arguments->stream_weights);
  command->add_flag("--allow-extrapolation", arguments->allow_extrapolation,
                    "Allow a length above the model's number of positions");
  command->add_option("--out", arguments->out,
                      "Run folder that keeps the results and interventions.json. The same command called again "
                      "continues it, or prints it. With --approximate: a table, FILE.csv");
  add_ignored_keys(*command, arguments->ignored_config_keys);
  set_action(*command, action, [arguments, &global] { intervene(*arguments, global); });
}

}  // namespace gainlens::cli
