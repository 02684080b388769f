#include "cli/commands.h"

#include "core/console.h"
#include "core/error.h"
#include "core/json.h"
#include "models/checkpoint/checkpoint.h"
#include "models/decoder/decoder_sites.h"

#include <fmt/ranges.h>

#include <memory>

namespace gainlens::cli {
namespace {

void list_sites(const std::string& model, bool json) {
  const auto sites = models::decoder_sites(models::read_decoder_config(model));
  if (json) {
    Json list = Json::array();
    for (const auto& site : sites)
      list.push_back({{"name", site.site.name}, {"shape", site.shape}, {"on_request", site.on_request}});
    print_result("{}\n", list.dump());
    return;
  }
  for (const auto& site : sites) {
    print_result("{:<40} [{}]{}\n", site.site.name, fmt::join(site.shape, ", "), site.on_request ? "  on request" : "");
  }
}

}  // namespace

void add_hooks(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* command =
      add_subcommand(app, "hooks", "List the hook sites of a model with their shapes", "gainlens hooks MODEL");
  auto model = std::make_shared<std::string>();
  command->add_option("model", *model, "Checkpoint folder; only its config.json is read")->required();
  command->callback([model, &global, &action] { action = [model, &global] { list_sites(*model, global.json); }; });
}

}  // namespace gainlens::cli
