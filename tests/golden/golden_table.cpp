// Prints how far every golden checkpoint is from the reference in each dtype, as one table: what the documentation quotes.

#include "core/error.h"
#include "golden/golden.h"
#include "models/dtype.h"

#include <cstdio>
#include <exception>
#include <map>
#include <string>

namespace gainlens::golden {
namespace {

/// Prints one row; false where an error is over its tolerance. The worst statistic is the one nearest to its tolerance.
bool print_row(const Golden& golden, at::ScalarType dtype) {
  const std::map<std::string, double> errors = measure(golden, dtype);
  bool within = true;
  double worst_share = -1;
  std::string worst;
  for (const auto& [name, error] : errors) {
    const double share = error / tolerance(golden, dtype, name);
    within = within && share <= 1;
    if (name.starts_with("statistics.") && !(share <= worst_share)) {
      worst_share = share;
      worst = name;
    }
  }
  fmt::print("| {} | {} | {:.1e} | {:.1e} | {:.1e} | {} | {:.1e} | {:.1e} | {} |\n", golden.name, models::dtype_name(dtype),
             errors.at("logits"), errors.at("logits.fused"), tolerance(golden, dtype, "logits"), worst.substr(worst.find('.') + 1),
             errors.at(worst), tolerance(golden, dtype, worst), within ? "yes" : "NO");
  return within;
}

bool print_table() {
  fmt::print("| checkpoint | dtype | logits | logits, fused | tolerance | worst statistic | its error | tolerance | within |\n");
  fmt::print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  bool within = true;
  for (const std::string& name : golden_names()) {
    const Golden golden = read_golden(name);
    if (!golden.checkpoint) {
      fmt::print("| {} | | shared data absent | | | | | | |\n", name);
      continue;
    }
    for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kBFloat16}) within = print_row(golden, dtype) && within;
  }
  return within;
}

}  // namespace
}  // namespace gainlens::golden

int main() {
  try {
    return gainlens::golden::print_table() ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "gainlens: error: {}\n", error.what());
    return 2;
  }
}
