#include "hooks/hooked_model.h"

namespace gainlens::hooks {

std::string AttentionLayout::kind(std::int64_t layer) const {
  const std::int64_t visible = window.at(static_cast<std::size_t>(layer));
  return visible == 0 ? "global" : "window:" + std::to_string(visible);
}

std::vector<std::string> AttentionLayout::kinds() const {
  std::vector<std::string> all;
  for (std::int64_t layer = 0; layer < std::ssize(window); ++layer) all.push_back(kind(layer));
  return all;
}

}  // namespace gainlens::hooks
