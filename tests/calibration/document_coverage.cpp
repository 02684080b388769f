#include "analyses/inactive_heads.h"
#include "calibration/coverage.h"

#include "analyses/equivalence.h"
#include "analyses/statistics.h"
#include "calibration/normal.h"
#include "core/random.h"
#include "runfile/gate_arms_run.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace gainlens::testing {
namespace {

/// Counts an interval or a ruling: how often there is one, and how often it is right.
struct Judged {
  double given = 0, right = 0;

  void add(bool is_right) {
    ++given;
    right += is_right ? 1 : 0;
  }
  Coverage row(const std::string& method, const std::string& number, std::size_t units, double nominal,
               std::int64_t simulations) const {
    const auto all = static_cast<double>(simulations);
    return {method, number,  0,           units,
            0,      nominal, given / all, given > 0 ? right / given : std::numeric_limits<double>::quiet_NaN()};
  }
};

/// A number with mean 0 and deviation 1, with its long tail upwards.
double skewed(double sigma, NormalNumbers& normal) {
  if (sigma == 0) return normal.draw();
  const double variance = sigma * sigma;
  const double mean = std::exp(variance / 2), deviation = mean * std::sqrt(std::expm1(variance));
  return (std::exp(sigma * normal.draw()) - mean) / deviation;
}

}  // namespace

std::vector<Coverage> cover_rulings(std::size_t documents, double sigma, std::int64_t simulations, std::uint64_t seed) {
  constexpr double deviation = 0.02;  // of the change over documents
  const double margin = runfile::declared.margin;
  Judged alone[2], ruled[2];  // long tail downwards: worse by more than the margin; upwards: not worse by the margin
  Random random(seed);
  NormalNumbers normal(random);
  std::vector<double> changes(documents);
  for (std::int64_t i = 0; i < simulations; ++i) {
    for (const std::size_t upwards : {0u, 1u}) {
      for (double& change : changes) change = margin + (upwards == 1 ? deviation : -deviation) * skewed(sigma, normal);
      const bool right = upwards == 1 ? analyses::test_equivalence(changes, margin).interval->high >= margin
                                      : analyses::mean_interval(changes)->low <= margin;
      alone[upwards].add(right);
      if (std::abs(*analyses::skewness(changes)) <= analyses::max_skewness) ruled[upwards].add(right);
    }
  }
  std::vector<Coverage> rows;
  const std::string law = sigma == 0 ? "normal" : fmt::format("lognormal({:g})", sigma);
  const std::array<std::string, 2> numbers = {law + ", tail downwards: worse", law + ", tail upwards: not worse"};
  for (const std::size_t upwards : {0u, 1u}) {
    const double nominal = upwards == 1 ? 0.95 : 0.975;
    rows.push_back(alone[upwards].row("ruling over documents, Student alone (not used)", numbers[upwards], documents,
                                      nominal, simulations));
    rows.push_back(ruled[upwards].row("ruling over documents", numbers[upwards], documents, nominal, simulations));
  }
  return rows;
}

std::vector<Coverage> cover_random_heads(std::size_t draws, double hits, std::int64_t simulations, std::uint64_t seed) {
  constexpr double low = 0.05, spread = 0.02, cost = 1;  // of sets without a vital head; what such a head costs
  Random random(seed);
  NormalNumbers normal(random);
  const auto draw = [&] { return low + spread * normal.draw() + (random.uniform() < hits ? cost : 0); };
  const double truth = low + hits * cost;
  // A score in the middle of the lower mode, and one between the modes.
  const std::array<double, 2> numbers = {low, low + cost / 2};
  const std::array<double, 2> shares = {(1 - hits) / 2, 1 - hits};
  Judged mean, share[2], rank;
  for (std::int64_t i = 0; i < simulations; ++i) {
    std::vector<double> areas(draws);
    std::generate(areas.begin(), areas.end(), draw);
    const analyses::Interval student = *analyses::mean_interval(areas);
    mean.add(student.low <= truth && truth <= student.high);
    for (std::size_t k = 0; k < 2; ++k) {
      const analyses::Interval found = analyses::exceedance(numbers[k], areas).share;
      share[k].add(found.low <= shares[k] && shares[k] <= found.high);
    }
    const analyses::Measured p = analyses::exceedance(draw(), areas).p;
    if (p) rank.add(*p > 0.05);
  }
  const std::string law = hits == 0 ? "normal draws" : fmt::format("{:g}% of the draws hit a vital head", 100 * hits);
  return {
      mean.row("random heads: Student of their mean (not used)", law, draws, 0.95, simulations),
      share[0].row("random heads: share below a number", law + ", number in the lower mode", draws, 0.95, simulations),
      share[1].row("random heads: share below a number", law + ", number between the modes", draws, 0.95, simulations),
      rank.row("random heads: p of one among them", law, draws, 0.95, simulations)};
}

std::string claims_markdown(const std::vector<Coverage>& rows) {
  std::string text;
  for (const Coverage& row : rows) {
    if (!row.method.starts_with("ruling") && !row.method.starts_with("random heads")) continue;
    text += fmt::format("| {} | {} | {} | {:g} | {:.1f} | {} |\n", row.method, row.number, row.units, 100 * row.nominal,
                        100 * row.stated,
                        std::isfinite(row.covered) ? fmt::format("{:.1f}", 100 * row.stated * (1 - row.covered)) : "–");
  }
  return text;
}

}  // namespace gainlens::testing
