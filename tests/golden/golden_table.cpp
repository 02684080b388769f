// Measures the error of every golden checkpoint in each dtype and prints one table. Given a file name, also writes the
// page of supported models with the largest errors and the support map, and errors.csv in the folder of the page's name
// with those of every family:
//
//     build/tests/golden/golden_table docs/models.md
#include "core/atomic_file.h"
#include "core/error.h"
#include "golden/golden.h"
#include "golden/models_page.h"
#include "golden/support_map.h"

#include <cstdio>
#include <exception>
#include <filesystem>
#include <vector>

namespace gainlens::golden {
namespace {

void print(const std::vector<Row>& rows) {
  fmt::print(
      "| checkpoint | dtype | logits | logits, fused | tolerance | worst statistic | its error | tolerance | within "
      "|\n");
  fmt::print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const Row& row : rows) {
    fmt::print("| {} | {} | {:.1e} | {:.1e} | {:.1e} | {} | {:.1e} | {:.1e} | {} |\n", row.checkpoint, row.dtype,
               row.logits, row.fused_logits, row.logits_tolerance, row.worst, row.worst_error, row.worst_tolerance,
               row.within ? "yes" : "NO");
  }
}

int run(int count, char** arguments) {
  const std::vector<Row> rows = measure_all();
  print(rows);
  for (const Row& row : rows) {
    if (!row.within) return 1;
  }
  if (count == 1) return 0;
  const SupportMap support = measure_support();
  for (const std::string& complaint : support.complaints) fmt::print(stderr, "gainlens: {}\n", complaint);
  if (!support.complaints.empty()) return 1;
  const std::filesystem::path page = arguments[1], folder = page.parent_path() / page.stem();
  std::filesystem::create_directories(folder);
  write_file_atomically(folder / "errors.csv", errors_csv(rows));
  write_file_atomically(page, models_page(rows, support_section(support)));
  return 0;
}

}  // namespace
}  // namespace gainlens::golden

int main(int count, char** arguments) {
  try {
    return gainlens::golden::run(count, arguments);
  } catch (const std::exception& error) {
    fmt::print(stderr, "gainlens: error: {}\n", error.what());
    return 2;
  }
}
