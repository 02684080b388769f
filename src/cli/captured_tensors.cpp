#include "cli/captured_tensors.h"

#include "core/check.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace gainlens::cli {
namespace {

constexpr const char* position_axis = "position";

}  // namespace

CapturedTensors::CapturedTensors(const std::vector<hooks::SiteShape>& sites, std::vector<std::int64_t> lengths,
                                 std::optional<std::int64_t> position)
    : lengths_(std::move(lengths)), position_(position) {
  for (const hooks::SiteShape& site : sites) shapes_[site.site.name] = site.shape;
}

void CapturedTensors::keep(const hooks::Site& site, const at::Tensor& seen, std::size_t prompt) {
  std::vector<std::string> names = shapes_.at(site.name);
  at::Tensor own = seen[0];  // of one prompt, so the dimension of the batch goes
  names.erase(names.begin());
  ASSERT(std::ssize(names) == own.dim(), "{} has {} dimensions, and is described with {}", site.name, own.dim(),
         names.size());
  const std::int64_t length = lengths_[prompt];
  if (position_) {
    const auto first = std::ranges::find(names, position_axis);
    CHECK(first != names.end(), "--position: {} has no positions; leave the option out, or the site", site.name);
    own = own.select(first - names.begin(), *position_ < 0 ? length - 1 : *position_);
    names.erase(first);
  }
  std::vector<std::int64_t> sizes{std::ssize(lengths_)};
  for (std::size_t i = 0; i < names.size(); ++i)
    sizes.push_back(names[i] == position_axis ? std::ranges::max(lengths_) : own.size(static_cast<std::int64_t>(i)));
  at::Tensor& all = tensors_[site.name];
  if (!all.defined()) all = at::full(sizes, std::numeric_limits<double>::quiet_NaN(), own.options());
  at::Tensor place = all[static_cast<std::int64_t>(prompt)];
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == position_axis) place = place.slice(static_cast<std::int64_t>(i), 0, length);
  place.copy_(own);
}

}  // namespace gainlens::cli
