#include "analyses/sink_count.h"

#include "analyses/selection.h"

#include <cmath>

namespace gainlens::analyses {

void SinkCount::add(double column_mean) {
  cells += std::isfinite(column_mean) ? 1 : 0;
  sinks += column_mean > column_mean_threshold ? 1 : 0;
}

void SinkCount::add(const Cells& column_means, std::size_t length, std::int64_t sample,
                    const std::vector<std::size_t>& layers, std::size_t key) {
  for (const std::size_t layer : layers) {
    for (std::size_t head = 0; head < column_means.heads(); ++head)
      add(column_means.at(length, sample, layer, head, key));
  }
}

}  // namespace gainlens::analyses
