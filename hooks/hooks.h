#pragma once

#include "hooks/site.h"

#include <ATen/core/Tensor.h>

#include <functional>
#include <utility>
#include <vector>

namespace gainlens::hooks {

/// Sees the tensor at a site; must not write to it.
using Observer = std::function<void(const Site&, const at::Tensor&)>;
/// Returns the tensor that the model goes on with; same shape, dtype and device, or InvalidArgument names the site.
using Intervention = std::function<at::Tensor(const Site&, const at::Tensor&)>;

/// What a caller attaches to a forward pass. Interventions run in the order they were added, then observers see the
/// result. Observers never change a result.
class Hooks {
 public:
  void observe(Glob glob, Observer observer);
  void replace(Glob glob, Intervention intervention);

  /// Called by the model at each site: the tensor to go on with.
  at::Tensor at(const Site& site, at::Tensor tensor) const;
  /// Is anything attached to this site? Sites `on_request` are computed only then.
  bool wants(const Site& site) const;
  /// Is an intervention attached to this site?
  bool replaces(const Site& site) const;
  /// A hook that would never fire is a mistake: called by the model before it runs.
  /// @throws InvalidArgument  a glob that matches none of `sites` (names the nearest)
  void check_served_by(const std::vector<SiteShape>& sites) const;

 private:
  std::vector<std::pair<Glob, Observer>> observers_;
  std::vector<std::pair<Glob, Intervention>> interventions_;
};

}  // namespace gainlens::hooks
