#pragma once

#include "hooks/site.h"

#include <ATen/core/Tensor.h>

#include <functional>
#include <utility>
#include <vector>

namespace gainlens::hooks {

/// Sees the tensor at a site, on the CPU; must not write to it.
using Observer = std::function<void(const Site&, const at::Tensor&)>;
/// Returns the tensor that the model continues with, on the CPU too. It must have the same shape and dtype; otherwise
/// InvalidArgument names the site.
using Intervention = std::function<at::Tensor(const Site&, const at::Tensor&)>;

/// What a caller attaches to a forward pass. Interventions run in the order they were added, then observers see the
/// result. Observers never change a result.
class Hooks {
 public:
  void observe(Glob glob, Observer observer);
  /// One site alone.
  void observe(const Site& site, Observer observer) { observe(Glob(site.name), std::move(observer)); }
  void replace(Glob glob, Intervention intervention);

  /// The model calls it at each site. Returns the tensor to continue with.
  at::Tensor at(const Site& site, at::Tensor tensor) const;
  /// Whether nothing is attached to any site.
  bool empty() const { return observers_.empty() && interventions_.empty(); }
  /// Whether anything is attached to this site. Sites `on_request` are computed only then.
  bool wants(const Site& site) const;
  /// Whether an intervention is attached to this site.
  bool replaces(const Site& site) const;
  /// Refuses a hook that would never be called. The model calls this before it runs.
  /// @throws InvalidArgument  a glob that matches none of `sites` (names the nearest)
  void check_served_by(const std::vector<SiteShape>& sites) const;

 private:
  std::vector<std::pair<Glob, Observer>> observers_;
  std::vector<std::pair<Glob, Intervention>> interventions_;
};

}  // namespace gainlens::hooks
