#include "cli/commands.h"

#include "analyses/intervention_effects.h"
#include "cli/given_run.h"
#include "cli/ignored_keys.h"
#include "cli/name_list.h"
#include "cli/text_options.h"
#include "core/check.h"
#include "core/console.h"
#include "core/counted.h"
#include "core/json.h"
#include "core/quantity.h"
#include "formats/hub_cache.h"
#include "interventions/run_interventions.h"
#include "models/checkpoint/torch_dtype.h"
#include "recommend/recommender_files.h"
#include "reports/terminal/interventions_terminal.h"

#include <memory>

namespace gainlens::cli {
namespace {

struct InterveneArguments {
  std::string model;
  std::vector<std::string> ignored_config_keys;
  TextOptions text;
  std::string calibration;
  std::string lengths;
  std::int64_t samples = 5;
  std::vector<std::string> set;
  std::string interventions;
  bool each_head = false;
  bool each_kv_head = false;
  bool each_layer = false;
  std::vector<std::string> modes;
  std::string dtype = "float32";
  bool stream_weights = false;
  bool allow_extrapolation = false;
  std::string out;
};

interventions::EveryUnit every_unit(const InterveneArguments& arguments) {
  interventions::EveryUnit every{
      .heads = arguments.each_head, .kv_heads = arguments.each_kv_head, .layers = arguments.each_layer};
  CHECK(arguments.modes.empty() || every.any(), "--modes: belongs to --each-head, --each-kv-head or --each-layer");
  if (arguments.modes.empty()) return every;
  every.modes.clear();
  for (const std::string& name : arguments.modes) every.modes.push_back(interventions::parse_mode(name, "--modes"));
  return every;
}

interventions::InterveneOptions options_of(const InterveneArguments& arguments, const GlobalOptions& global) {
  interventions::InterveneOptions options;
  options.model = formats::locate_checkpoint(arguments.model);
  refuse_run_for_checkpoint(options.model);
  CHECK(!recommend::is_recommender(options.model), "{}: is a recommender; intervene takes language models",
        printable(arguments.model));
  options.ignored_config_keys = arguments.ignored_config_keys;
  options.source = arguments.text.source();
  options.calibration = arguments.calibration;
  const std::vector<std::int64_t> lengths = parse_counts(arguments.lengths, "--lengths");
  CHECK(lengths.size() == 1, "--lengths: {} lengths; intervene takes one", lengths.size());
  options.length = lengths.front();
  CHECK(arguments.samples >= 1, "--samples: {}; must be at least 1", arguments.samples);
  options.samples = arguments.samples;
  if (!arguments.interventions.empty()) options.given = interventions::read_interventions(arguments.interventions);
  for (const std::string& text : arguments.set) options.given.push_back(interventions::parse_intervention(text));
  options.every = every_unit(arguments);
  options.dtype = models::parse_dtype(arguments.dtype, "--dtype");
  options.stream_weights = arguments.stream_weights;
  options.allow_extrapolation = arguments.allow_extrapolation;
  options.seed = global.seed;
  options.out = arguments.out;
  options.quiet = global.quiet;
  return options;
}

void intervene(const InterveneArguments& arguments, const GlobalOptions& global) {
  const runfile::InterventionRun run = interventions::run_interventions(options_of(arguments, global));
  const analyses::InterventionEffects effects = analyses::intervention_effects(run);
  const auto length = run.request.at("length").get<std::int64_t>();
  const std::string bos = run.request.at("bos_policy");
  if (global.json) {
    OrderedJson json = to_json(effects);
    json["length"] = length;
    json["bos_policy"] = bos;
    print_result("{}\n", json_text(json));
    return;
  }
  print_result("{}",
               reports::print_interventions(effects, fmt::format("{} of {}; {}", counted(effects.documents, "document"),
                                                                 counted(length, "token"), bos)));
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
      "'A + B' makes both writes in one pass. A write that changes nothing, or no logit, is an error.\n"
      "Beside an intervention on heads stands its control: as many other heads of the layer, drawn with --seed.\n"
      "A text is cut into documents as in sweep. docs/analyses/intervention.md tells how to read the table.");
  auto arguments = std::make_shared<InterveneArguments>();
  add_model_option(*command, arguments->model);
  add_text_options(*command, arguments->text);
  command->add_option("--calibration", arguments->calibration,
                      "Text (or ids, with --tokens) for the means of mode mean: as many documents of the same length "
                      "as the test has. It may share no text with them");
  command->add_option("--lengths", arguments->lengths, "Tokens of a document, BOS included: one number; 1k is 1024")
      ->required();
  command->add_option("--samples", arguments->samples, "Number of documents")->capture_default_str();
  command
      ->add_option("--set", arguments->set,
                   "An intervention, 'SITE[head=H][position=P]=VALUE'; may be given several times")
      ->allow_extra_args(false);
  command->add_option("--interventions", arguments->interventions,
                      "JSON file with interventions, {\"interventions\": [\"..\", ..]}, as --out writes it");
  command->add_flag("--each-head", arguments->each_head,
                    "Every query head of every layer, at attn.hook_z: the result of attention, before a gate");
  command->add_flag("--each-kv-head", arguments->each_kv_head,
                    "Every KV head of every layer, at attn.hook_v: the values that its group of query heads shares");
  command->add_flag("--each-layer", arguments->each_layer, "The attention and the MLP of every layer, whole");
  add_name_list(*command, "--modes", arguments->modes,
                "Modes of the --each options, separated by commas: zero, mean, resample (default: zero)");
  add_dtype_option(*command, arguments->dtype);
  command->add_flag("--stream-weights", arguments->stream_weights,
                    "For models larger than memory: read each layer from the files when it runs. The numbers are the "
                    "same");
  command->add_flag("--allow-extrapolation", arguments->allow_extrapolation,
                    "Allow a length above the model's number of positions");
  command->add_option("--out", arguments->out,
                      "Run folder that keeps the results and interventions.json. The same command called again "
                      "continues it, or prints it");
  add_ignored_keys(*command, arguments->ignored_config_keys);
  command->callback(
      [arguments, &global, &action] { action = [arguments, &global] { intervene(*arguments, global); }; });
}

}  // namespace gainlens::cli
