#include "interventions/arm_units.h"

#include <fmt/format.h>

namespace gainlens::interventions {

ArmUnits::ArmUnits(const std::vector<Arm>& arms) : arms_(arms) {
  for (std::size_t i = 0; i < arms.size(); ++i) units_[arms[i].start()].push_back(i);
}

std::vector<const Arm*> ArmUnits::arms(std::int64_t layer) const {
  std::vector<const Arm*> found;
  for (const std::size_t place : places(layer)) found.push_back(&arms_[place]);
  return found;
}

std::set<std::string> ArmUnits::sites(Mode mode, const std::set<std::int64_t>& layers) const {
  std::set<std::string> found;
  for (const Arm& arm : arms_)
    if (layers.empty() || layers.contains(arm.start())) found.merge(arm.sites(mode));
  return found;
}

double ArmUnits::work(const std::set<std::int64_t>& layers) const {
  double work = 0;
  for (const std::int64_t layer : layers) work += static_cast<double>(places(layer).size());
  return work;
}

std::string unit_words(std::int64_t layer) {
  return layer < 0 ? "embedding" : fmt::format("layer {}", layer);
}

}  // namespace gainlens::interventions
