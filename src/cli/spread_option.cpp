#include "cli/spread_option.h"

#include "core/check.h"

namespace gainlens::cli {

void add_spread_option(CLI::App& command, std::string& spread) {
  command
      .add_option("--spread", spread,
                  "What several processes share (torchrun, srun): batches (each works on a part of every batch), or "
                  "seeds (each does whole trainings)")
      ->capture_default_str();
}

experiment::Spread parse_spread(const std::string& spread) {
  CHECK(spread == "batches" || spread == "seeds", "--spread: '{}'; must be batches or seeds", printable(spread, 60));
  return spread == "seeds" ? experiment::Spread::seeds : experiment::Spread::batches;
}

}  // namespace gainlens::cli
