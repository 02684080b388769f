// Level, power and coverage of the statistics of recommenders, measured on simulated runs and users.
//
//   gainlens_seed_coverage [OUT = .] [SIMULATIONS = 1000] [QUESTION = all]
//
// writes OUT/seed-coverage.csv and prints it as tables; docs/analyses/seed-coverage.md shows a part. Every run gives
// the same numbers and takes about ten minutes. A QUESTION, such as "few items", makes its rows alone.

#include "calibration/seed_coverage.h"
#include "core/atomic_file.h"
#include "core/error.h"
#include "core/quantity.h"

#include <cstdio>
#include <filesystem>

int main(int argc, char** argv) {
  try {
    const std::filesystem::path out = argc > 1 ? argv[1] : ".";
    const auto rows = gainlens::testing::seed_coverage_table(
        argc > 2 ? gainlens::parse_count(argv[2], "simulations") : 1000, argc > 3 ? argv[3] : "");
    std::filesystem::create_directories(out);
    gainlens::write_file_atomically(out / "seed-coverage.csv", gainlens::testing::seed_coverage_csv(rows));
    fmt::print("{}", gainlens::testing::seed_coverage_markdown(rows));
  } catch (const std::exception& error) {
    fmt::print(stderr, "gainlens_seed_coverage: error: {}\n", error.what());
    return 1;
  }
  return 0;
}
