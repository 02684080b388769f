#include "recommend/arm.h"

namespace gainlens::recommend {

const std::vector<std::string>& arm_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> found;
    for (const ArmParts& parts : all_arms()) found.emplace_back(parts.name);
    found.insert(found.end(), {"popularity", "markov"});
    return found;
  }();
  return names;
}

}  // namespace gainlens::recommend
