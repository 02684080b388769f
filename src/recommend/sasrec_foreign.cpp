#include "recommend/sasrec_foreign.h"

#include "core/check.h"
#include "core/nearest.h"
#include "data/item_names.h"
#include "models/checkpoint/tensor_values.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

namespace gainlens::recommend {

const formats::TensorEntry& ForeignTensors::at(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found != entries_.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, entry] : entries_) names.push_back(known);
  throw_invalid("{}: no tensor '{}' among its {}{}", where_, name, names.size(),
                printable(did_you_mean(name, names), 300));
}

const std::vector<std::int64_t>& ForeignTensors::shape(const std::string& name, std::size_t dimensions) const {
  const std::vector<std::int64_t>& shape = at(name).shape;
  CHECK(shape.size() == dimensions, "{}: '{}' has {} dimensions; must have {}", where_, name, shape.size(), dimensions);
  return shape;
}

at::Tensor ForeignTensors::read(const std::string& name, const std::vector<std::int64_t>& shape) {
  const formats::TensorEntry& entry = at(name);
  CHECK(entry.shape == shape, "{}: '{}' has shape [{}]; must have [{}]", where_, name, fmt::join(entry.shape, ", "),
        fmt::join(shape, ", "));
  read_[name] = true;
  return models::read_values(entry, at::kFloat, where_);
}

void ForeignTensors::check_all_read() const {
  for (const auto& [name, entry] : entries_)
    CHECK(read_.contains(name), "{}: '{}' is no tensor of this model", where_, printable(name, 100));
}

SasRecWeights foreign_weights(const SasRecConfig& config, const std::function<at::Tensor(const WeightSlot&)>& read) {
  SasRecWeights weights;
  for (const WeightSlot& slot : sasrec_slots(config, weights)) *slot.tensor = read(slot);
  return weights;
}

void order_items(SasRecWeights& weights, std::vector<std::string>& names) {
  const std::vector<std::uint32_t> order = data::order_of_names(names);
  std::vector<std::int64_t> rows{0};  // padding
  std::vector<std::string> ordered;
  for (const std::uint32_t place : order) {
    rows.push_back(place + 1);
    ordered.push_back(std::move(names[place]));
  }
  names = std::move(ordered);
  weights.item_embedding = weights.item_embedding.index_select(0, at::tensor(rows, at::kLong));
}

std::vector<std::string> named_items(const ForeignOptions& options, std::int64_t items, const std::string& where) {
  std::vector<std::string> names = data::read_item_ids(options.items);
  CHECK(std::ssize(names) == items, "{}: names {} items; {} has {}", printable(options.items.string()), names.size(),
        where, items);
  return names;
}

}  // namespace gainlens::recommend
