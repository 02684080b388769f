#include "reports/sweep/head_means.h"

#include "analyses/cells.h"
#include "reports/sweep/sections.h"

namespace gainlens::reports {
namespace {

constexpr runfile::HeadQuantity sink_mass{"sink_mass",
                                          "",
                                          runfile::Presence::statistics,
                                          "sink mass",
                                          "1",
                                          "1",
                                          runfile::Window::second_half,
                                          runfile::Stored::nowhere,
                                          4,
                                          "attention weight of the keys with a column mean of at least 1/sqrt(n), "
                                          "or 0.1 from n = 100 on"};

}  // namespace

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
  if (!analyses::has_sink_keys(reader) || run.of(sink_keys_of).first_keys_only) return means;
  HeadMeans::Quantity mass{sink_mass, {}};
  for (const analyses::Length& length : means.lengths) {
    for (std::size_t layer = 0; layer < means.layers; ++layer) {
      for (std::size_t head = 0; head < means.heads; ++head)
        mass.values.push_back(run.of(sink_keys_of).mass_of(length, layer, head).value);
    }
  }
  means.quantities.push_back(std::move(mass));
  return means;
}

}  // namespace gainlens::reports
