#include "reports/words/counts.h"

namespace gainlens::reports {

std::string layers_in_words(const std::vector<std::int64_t>& layers) {
  return (layers.size() == 1 ? "layer " : "layers ") + number_ranges(layers);
}

}  // namespace gainlens::reports
