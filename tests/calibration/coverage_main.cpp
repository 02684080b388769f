// Coverage of every interval over chunks and layers, measured on simulated chunks and layers.
//
//   gainlens_coverage [OUT = .] [SIMULATIONS = 2000]
//
// writes OUT/coverage.csv and prints it as tables; docs/analyses/coverage.md shows a part. Every run gives the same
// numbers and takes a minute or two.

#include "calibration/coverage.h"
#include "core/atomic_file.h"
#include "core/error.h"
#include "core/quantity.h"

#include <cstdio>
#include <filesystem>

int main(int argc, char** argv) {
  try {
    const std::filesystem::path out = argc > 1 ? argv[1] : ".";
    const auto rows =
        gainlens::testing::coverage_table(argc > 2 ? gainlens::parse_count(argv[2], "simulations") : 2000);
    std::filesystem::create_directories(out);
    gainlens::write_file_atomically(out / "coverage.csv", gainlens::testing::coverage_csv(rows));
    fmt::print("{}", gainlens::testing::coverage_markdown(rows));
  } catch (const std::exception& error) {
    fmt::print(stderr, "gainlens_coverage: error: {}\n", error.what());
    return 1;
  }
  return 0;
}
