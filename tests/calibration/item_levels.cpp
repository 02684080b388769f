#include "analyses/seed_unit.h"
#include "calibration/normal.h"
#include "calibration/seed_coverage.h"
#include "core/check.h"
#include "core/random.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace gainlens::testing {
namespace {

using analyses::CrossedEstimate;
using analyses::Maybe;
using analyses::PairedUnits;

constexpr std::size_t users = 1000, items = 300;

double effective_number(const std::vector<double>& sizes) {
  const double all = std::accumulate(sizes.begin(), sizes.end(), 0.0);
  return all * all / std::inner_product(sizes.begin(), sizes.end(), sizes.begin(), 0.0);
}

/// Users of each item: 1 / rank^exponent of them, and one at least.
std::vector<double> item_sizes(double exponent) {
  std::vector<double> sizes(items);
  double sum = 0;
  for (std::size_t i = 0; i < items; ++i) sum += sizes[i] = std::pow(static_cast<double>(i + 1), -exponent);
  for (double& size : sizes) size = std::max(1.0, std::round(size / sum * static_cast<double>(users)));
  return sizes;
}

/// Sizes with this effective number of items.
std::vector<double> sizes_of(double effective) {
  double low = 0, high = 4;
  for (int i = 0; i < 50; ++i) {
    const double middle = (low + high) / 2;
    (effective_number(item_sizes(middle)) > effective ? low : high) = middle;
  }
  return item_sizes(low);  // with as many at least
}

double own_gain(ItemGains gains, NormalNumbers& normal, Random& random) {
  switch (gains) {
    case ItemGains::normal:
      return normal.draw();
    case ItemGains::uniform:
      return std::sqrt(3.0) * (2 * random.uniform() - 1);
    case ItemGains::two_values:
      return random.bits() & 1 ? 1 : -1;
  }
  ASSERT(false, "gains {}", static_cast<int>(gains));
}

/// The error that counts every item alike, with as many degrees of freedom as there are items, less 1.
Maybe<CrossedEstimate> with_items_alike(const PairedUnits& runs, const std::vector<std::size_t>& target) {
  std::vector<double> by_seed, influence(runs.seeds * items, 0.0);
  const double unbiased = std::sqrt(static_cast<double>(items) / static_cast<double>(items - 1));
  const auto count = static_cast<double>(runs.units);
  for (std::size_t seed = 0; seed < runs.seeds; ++seed) {
    const double* values = &runs.candidate[seed * runs.units];
    by_seed.push_back(std::accumulate(values, values + runs.units, 0.0) / count);
    for (std::size_t user = 0; user < runs.units; ++user)
      influence[seed * items + target[user]] += unbiased * (values[user] - by_seed.back()) / count;
  }
  const double value = std::accumulate(by_seed.begin(), by_seed.end(), 0.0) / static_cast<double>(runs.seeds);
  return analyses::crossed_estimate(value, by_seed, influence, static_cast<double>(items - 1), 1);
}

}  // namespace

std::string in_words(ItemGains gains) {
  return gains == ItemGains::normal ? "normal" : gains == ItemGains::uniform ? "uniform" : "two values";
}

std::vector<SeedCoverage> cover_items(double effective, ItemGains gains, std::size_t seeds, std::int64_t simulations,
                                      std::uint64_t seed) {
  constexpr double of_seed = 0.3, noise = 0.3;  // of the mean over users in one run; that of the items' gains is 1
  const std::vector<double> sizes = sizes_of(effective);
  std::vector<std::size_t> target;
  for (std::size_t item = 0; item < items; ++item)
    target.insert(target.end(), static_cast<std::size_t>(sizes[item]), item);
  const double of_item = std::sqrt(effective_number(sizes)),
               for_user = noise * std::sqrt(static_cast<double>(target.size()));
  std::array<double, 2> rejected{}, rejected_at_1{}, rejected_at_0_1{}, held{}, given{};
  Random random(seed);
  NormalNumbers normal(random);
  PairedUnits runs{seeds, target.size(), std::vector<double>(seeds * target.size(), 0.0),
                   std::vector<double>(seeds * target.size())};
  std::vector<double> own(items);
  const std::array everybody = {all_units(runs)};
  for (std::int64_t i = 0; i < simulations; ++i) {
    for (double& gain : own) gain = of_item * own_gain(gains, normal, random);
    for (std::size_t s = 0; s < seeds; ++s) {
      const double shared = of_seed * normal.draw();
      for (std::size_t user = 0; user < target.size(); ++user)
        runs.candidate[s * target.size() + user] = shared + own[target[user]] + for_user * normal.draw();
    }
    const std::array found = {with_items_alike(runs, target),
                              crossed_gain(runs, everybody, analyses::GainScale::difference, target)};
    for (std::size_t k = 0; k < 2; ++k) {
      if (!found[k] || !found[k]->p) continue;
      ++given[k];
      rejected[k] += *found[k]->p <= 0.05 ? 1 : 0;
      rejected_at_1[k] += *found[k]->p <= 0.01 ? 1 : 0;
      rejected_at_0_1[k] += *found[k]->p <= 0.001 ? 1 : 0;
      held[k] += found[k]->interval->low <= 0 && 0 <= found[k]->interval->high ? 1 : 0;
    }
  }
  std::vector<SeedCoverage> rows;
  const auto all = static_cast<double>(simulations);
  for (std::size_t k = 0; k < 2; ++k)
    rows.push_back({"few items", k == 0 ? "items alike (not used)" : "jackknife over items",
                    k == 1 && gains != ItemGains::two_values,
                    fmt::format("{} gains of items, {:g} effective", in_words(gains), effective), seeds, target.size(),
                    0, simulations, given[k] / all, rejected[k] / all, held[k] / given[k], rejected_at_1[k] / all,
                    rejected_at_0_1[k] / all});
  return rows;
}

}  // namespace gainlens::testing
