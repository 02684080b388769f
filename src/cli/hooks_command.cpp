#include "cli/application.h"

#include "cli/command_options.h"
#include "cli/model_options.h"
#include "core/console.h"
#include "core/error.h"
#include "core/json.h"

#include <fmt/ranges.h>

#include <memory>

namespace gainlens::cli {
namespace {

struct HooksArguments {
  std::string model;
  std::vector<std::string> ignored_config_keys;
};

void list_sites(const HooksArguments& arguments, bool json) {
  const auto sites = sites_of_model(arguments.model, arguments.ignored_config_keys);
  if (json) {
    Json list = Json::array();
    for (const auto& site : sites)
      list.push_back({{"name", site.site.name}, {"shape", site.shape}, {"on_request", site.on_request}});
    print_result("{}\n", json_text(list));
    return;
  }
  for (const auto& site : sites) {
    print_result("{:<40} [{}]{}\n", site.site.name, fmt::join(site.shape, ", "),
                 site.on_request ? "  computed only if --hooks matches it" : "");
  }
}

}  // namespace

void add_hooks(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* command = add_subcommand(
      app, subcommand_named("hooks"), "gainlens hooks MODEL",
      "The names are those of TransformerLens. What a name does not tell:\n"
      "  hook_normalized      after the division by the norm, before its weight and bias (TransformerLens' LayerNorm\n"
      "                       takes it after them); ln1_post and ln2_post are norms of the results\n"
      "  hook_q, hook_k       as projected, before their own norm and the rotation\n"
      "  hook_rot_q, _rot_k   after both; only in models with rotary position embedding\n"
      "  hook_z, hook_gate    the result of attention before the gate; the gate that multiplies it\n"
      "  hook_result          what each head adds to the stream, without bias\n"
      "  hook_logits          after the final norm, the output head, the scale of the logits and their soft cap\n"
      "capture computes some sites only if its --hooks matches them ('*' does): they cost memory or time.");
  auto arguments = std::make_shared<HooksArguments>();
  command->add_option("model", arguments->model, "Checkpoint folder or GGUF file, or a recommender of train recommend")
      ->required();
  add_ignored_keys(*command, arguments->ignored_config_keys);
  set_action(*command, action, [arguments, &global] { list_sites(*arguments, global.json); });
}

}  // namespace gainlens::cli
