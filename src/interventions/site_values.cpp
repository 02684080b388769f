#include "interventions/site_values.h"

#include "core/check.h"
#include "sweep/one_sequence.h"

#include <ATen/ATen.h>

namespace gainlens::interventions {
namespace {

/// Runs a pass and shows each of the sites to `see`.
void watch(hooks::HookedModel& model, std::span<const std::int32_t> tokens, const std::set<std::string>& sites,
           const hooks::ForwardOptions& options, const hooks::Observer& see) {
  hooks::Hooks hooks;
  for (const std::string& name : sites) hooks.observe(hooks::Site{name}, see);
  model.forward(sweep::one_sequence(tokens), options, hooks);
}

}  // namespace

SiteValues site_values(hooks::HookedModel& model, std::span<const std::int32_t> tokens,
                       const std::set<std::string>& sites, const hooks::ForwardOptions& options) {
  SiteValues values;
  if (sites.empty()) return values;
  watch(model, tokens, sites, options,
        [&](const hooks::Site& site, const at::Tensor& tensor) { values[site.name] = tensor; });
  return values;
}

SiteValues site_means(hooks::HookedModel& model, const std::vector<std::vector<std::int32_t>>& documents,
                      const std::set<std::string>& sites, const hooks::ForwardOptions& options) {
  SiteValues means;
  if (sites.empty()) return means;
  ASSERT(!documents.empty(), "a mean over no document");
  std::int64_t positions = 0;
  for (const std::vector<std::int32_t>& tokens : documents) {
    positions += std::ssize(tokens);
    watch(model, tokens, sites, options, [&](const hooks::Site& site, const at::Tensor& tensor) {
      const at::Tensor sum = tensor.sum(at::IntArrayRef{0, 1}, true, at::kDouble);
      at::Tensor& total = means[site.name];
      total = total.defined() ? total + sum : sum;
    });
  }
  for (auto& [name, total] : means) total = total / static_cast<double>(positions);
  return means;
}

}  // namespace gainlens::interventions
