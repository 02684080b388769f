#include "recommend/weight_slot.h"

#include "core/sha256.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>

#include <charconv>

namespace gainlens::recommend {
namespace {

/// Seed of one weight: another for each name.
std::uint64_t seed_of(std::uint64_t seed, const std::string& name) {
  const std::string digits = sha256_hex(fmt::format("{} {}", seed, name)).substr(0, 16);
  std::uint64_t found = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), found, 16);
  return found;
}

}  // namespace

std::vector<models::NamedTensor> parameters_of(std::span<const WeightSlot> slots, WeightRole role) {
  std::vector<models::NamedTensor> parameters;
  for (const WeightSlot& slot : slots) {
    if (slot.role == role) parameters.push_back({slot.name, *slot.tensor});
  }
  return parameters;
}

at::Tensor initial_values(const WeightSlot& slot, std::uint64_t seed) {
  if (slot.start) return at::full(slot.shape, *slot.start, at::kFloat);
  return at::empty(slot.shape, at::kFloat)
      .normal_(0, initial_deviation, at::make_generator<at::CPUGeneratorImpl>(seed_of(seed, slot.name)));
}

}  // namespace gainlens::recommend
