#pragma once

#include "hooks/hooks.h"
#include "hooks/site.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::cli {

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

}  // namespace gainlens::cli
