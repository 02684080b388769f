#include "language/lora.h"

#include "core/check.h"
#include "core/checked.h"
#include "language/finetune_memory.h"
#include "models/checkpoint/model_size.h"

#include <algorithm>
#include <cmath>

namespace gainlens::language {

void check_lora(const LoraSettings& settings) {
  CHECK(settings.rank >= 0, "--lora-rank: {}; must be 0 (all weights are trained) or more", settings.rank);
  CHECK(settings.rank > 0 || settings == LoraSettings{},
        "--lora-alpha, --lora-targets and --lora-merge change nothing without --lora-rank, which is 0: all weights are "
        "trained; give a rank, such as 8");
  CHECK(!settings.alpha || (*settings.alpha >= 1e-6 && *settings.alpha <= 1e6), "--lora-alpha: {}; must be 1e-6 to 1e6",
        *settings.alpha);
}

std::optional<models::LoraOptions> trained_lora(const LoraSettings& settings, const models::CheckpointSource& source) {
  check_lora(settings);
  if (settings.rank == 0) return std::nullopt;
  CHECK(!source.adapter,
        "{}: is an adapter, and --lora-rank asks for another one on top, which PEFT could not open; give the model "
        "itself",
        source.where());
  const double alpha = settings.alpha.value_or(2 * static_cast<double>(settings.rank));
  models::LoraOptions options{.rank = settings.rank, .alpha = alpha, .targets = settings.targets};
  models::lora_parameter_count(models::lora_modules(source.config, options.targets), options.rank);
  return options;
}

Json to_json(const LoraSettings& settings, const models::LoraOptions& options) {
  return {{"rank", options.rank}, {"alpha", options.alpha}, {"targets", options.targets}, {"merge", settings.merge}};
}

std::string name_of_base(const std::filesystem::path& model) {
  const std::filesystem::path path = std::filesystem::weakly_canonical(std::filesystem::absolute(model));
  // CACHE/models--organisation--name/snapshots/commit
  const std::string folder = path.parent_path().parent_path().filename().string();
  constexpr std::string_view start = "models--", between = "--";
  if (path.parent_path().filename() != "snapshots" || !folder.starts_with(start)) return path.string();
  const std::string_view name = std::string_view(folder).substr(start.size());
  const std::size_t at = name.find(between);
  if (at == std::string_view::npos) return path.string();
  return fmt::format("{}/{}", name.substr(0, at), name.substr(at + between.size()));
}

std::uint64_t lora_bytes(const models::DecoderConfig& config, const models::LoraOptions& options,
                         const LoraHolding& holding) {
  const std::vector<models::LoraModule> modules = models::lora_modules(config, options.targets);
  std::int64_t changed = 0;
  for (const models::LoraModule& module : modules) changed += checked_elements(module.slot.shape, module.name);
  const std::int64_t base = models::parameter_count(config);
  const std::int64_t trained = models::lora_parameter_count(modules, options.rank) + holding.filter_parameters;
  const auto held_for_training = trained_bytes(trained, holding.processes) +
                                 static_cast<std::uint64_t>(holding.bfloat16 ? 2 * base + 4 * trained : 4 * base);
  if (holding.writes_whole)
    return held_for_training + static_cast<std::uint64_t>(holding.bfloat16 ? 4 * base : 4 * changed);
  return std::max(held_for_training, static_cast<std::uint64_t>(4 * base));
}

}  // namespace gainlens::language
