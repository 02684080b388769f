#include "recommend/layer_weights.h"

#include "core/check.h"

#include <ATen/ATen.h>

#include <cstddef>
#include <limits>

namespace gainlens::recommend {

void SlotList::drawn(std::string name, at::Tensor& tensor, std::vector<std::int64_t> shape, WeightRole role) {
  slots_.push_back({std::move(name), std::move(shape), &tensor, role, std::nullopt});
}

void SlotList::add(std::string name, at::Tensor& tensor, std::vector<std::int64_t> shape, WeightRole role,
                   double start) {
  slots_.push_back({std::move(name), std::move(shape), &tensor, role, start});
}

void SlotList::norm(const std::string& name, NormWeights& norm, std::int64_t width) {
  add(name + ".weight", norm.weight, {width}, WeightRole::weight, 1);
  add(name + ".bias", norm.bias, {width}, WeightRole::weight, 0);
}

void SlotList::linear(const std::string& name, LinearWeights& linear, std::int64_t out, std::int64_t in) {
  drawn(name + ".weight", linear.weight, {out, in});
  add(name + ".bias", linear.bias, {out}, WeightRole::weight, 0);
}

void set_initial(const std::vector<WeightSlot>& slots, std::uint64_t seed, const at::Tensor& item_embedding,
                 const at::Tensor& position_embedding, double embedding_deviation) {
  for (const WeightSlot& slot : slots) {
    at::Tensor values = initial_values(slot, seed);
    const bool is_items = slot.tensor == &item_embedding, is_positions = slot.tensor == &position_embedding;
    if (is_items || is_positions) values.mul_(embedding_deviation / initial_deviation);
    if (is_items) values[0].zero_();
    *slot.tensor = values.set_requires_grad(slot.role != WeightRole::constant);
  }
}

void check_stored_filter(const bft::InitialPrecisionWeights& precision,
                         const std::vector<const bft::FilterWeights*>& layers, const std::string& where) {
  const auto check_range = [&](const at::Tensor& x, const std::string& name, double least, double most) {
    if (!x.defined()) return;
    CHECK(x.min().item<double>() >= least && x.max().item<double>() <= most,
          "{}: '{}' holds a number below {} or above {}; the file is damaged", where, name, least, most);
  };
  constexpr double none = std::numeric_limits<double>::infinity();
  check_range(precision.strength, "precision.strength", 0, 1);
  check_range(precision.base, "precision.base", 0, 1);
  check_range(precision.items, "precision.items", 0, none);
  for (std::size_t i = 0; i < layers.size(); ++i)
    check_range(layers[i]->stretch, fmt::format("layers.{}.filter.stretch", i), 1e-3, none);
}

}  // namespace gainlens::recommend
