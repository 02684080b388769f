#include "reports/sweep/head_means.h"

#include "analyses/cells.h"

namespace gainlens::reports {

HeadMeans head_means(const SweepRun& run) {
  const runfile::RunReader& reader = run.reader();
  HeadMeans means{
      analyses::usable_lengths(reader), {}, reader.layers().size(), static_cast<std::size_t>(reader.heads())};
  for (const runfile::HeadQuantity& info : runfile::head_quantities()) {
    const auto cells = analyses::Cells::read(reader, fmt::format("summary/{}", info.name));
    if (!cells) continue;
    HeadMeans::Quantity quantity{info, {}};
    std::size_t left_out = 0;
    for (const analyses::Length& length : means.lengths) {
      for (std::size_t layer = 0; layer < means.layers; ++layer) {
        for (std::size_t head = 0; head < means.heads; ++head)
          quantity.values.push_back(analyses::mean_over_samples(*cells, length, layer, head, 0, left_out));
      }
    }
    means.quantities.push_back(std::move(quantity));
  }
  return means;
}

}  // namespace gainlens::reports
