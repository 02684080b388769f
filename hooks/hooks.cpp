#include "hooks/hooks.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <sstream>

#include "core/check.h"

namespace gainlens::hooks {
namespace {

template <typename Attached>
bool any_matches(const std::vector<std::pair<Glob, Attached>>& attached, const Site& site) {
  return std::any_of(attached.begin(), attached.end(), [&](const auto& entry) { return entry.first.matches(site); });
}

/// "float [2, 5] on cpu"
std::string description(const at::Tensor& tensor) {
  if (!tensor.defined()) return "undefined";
  std::ostringstream text;
  text << tensor.scalar_type() << " " << tensor.sizes() << " on " << tensor.device();
  return text.str();
}

void check_replacement(const Site& site, const at::Tensor& original, const at::Tensor& replacement) {
  const bool fits = replacement.defined() && replacement.sizes() == original.sizes() &&
                    replacement.scalar_type() == original.scalar_type() && replacement.device() == original.device();
  CHECK(fits, "hook {}: the replacement is {}; it must be {}, like the tensor it replaces", site.name,
        description(replacement), description(original));
}

}  // namespace

void Hooks::observe(Glob glob, Observer observer) {
  ASSERT(observer != nullptr, "observer of '{}' is empty", glob.text());
  observers_.emplace_back(std::move(glob), std::move(observer));
}

void Hooks::replace(Glob glob, Intervention intervention) {
  ASSERT(intervention != nullptr, "intervention on '{}' is empty", glob.text());
  interventions_.emplace_back(std::move(glob), std::move(intervention));
}

at::Tensor Hooks::at(const Site& site, at::Tensor tensor) const {
  // What is attached to a site sees it on the CPU, wherever the model computes. The model goes on with its own tensor
  // if nothing replaces it.
  at::Tensor seen;
  const auto on_cpu = [&]() -> const at::Tensor& { return seen.defined() ? seen : seen = tensor.cpu(); };
  bool replaced = false;
  for (const auto& [glob, intervention] : interventions_) {
    if (!glob.matches(site)) continue;
    at::Tensor replacement = intervention(site, on_cpu());
    check_replacement(site, seen, replacement);
    seen = std::move(replacement);
    replaced = true;
  }
  for (const auto& [glob, observer] : observers_) {
    if (glob.matches(site)) observer(site, on_cpu());
  }
  return replaced ? seen.to(tensor.device()) : tensor;
}

bool Hooks::wants(const Site& site) const {
  return any_matches(observers_, site) || any_matches(interventions_, site);
}

bool Hooks::replaces(const Site& site) const {
  return any_matches(interventions_, site);
}

void Hooks::check_served_by(const std::vector<SiteShape>& sites) const {
  std::vector<Glob> globs;
  for (const auto& entry : observers_) globs.push_back(entry.first);
  for (const auto& entry : interventions_) globs.push_back(entry.first);
  select_sites(globs, sites);
}

}  // namespace gainlens::hooks
