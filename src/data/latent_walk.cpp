#include "data/latent_walk.h"

#include "core/check.h"
#include "core/random.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace gainlens::data {
namespace {

/// Different streams of one seed, so that more users do not move the items.
constexpr std::uint64_t stream_of_items = 0, first_stream_of_users = 1;

std::size_t size(std::int64_t number) {
  return static_cast<std::size_t>(number);
}

/// A standard normal number, by Marsaglia's polar method. Its second number is not used, so that each call stands
/// alone.
double normal(Random& random) {
  for (;;) {
    const double x = 2 * random.uniform() - 1, y = 2 * random.uniform() - 1, square = x * x + y * y;
    if (square > 0 && square < 1) return x * std::sqrt(-2 * std::log(square) / square);
  }
}

/// The items of a walk as the formulas need them.
struct Catalogue {
  std::size_t dimensions, levels;
  std::span<const double> noise, position;

  std::size_t items() const { return noise.size(); }
  double variance(std::size_t item) const { return noise[item] * noise[item]; }
  std::span<const double> place(std::size_t item) const { return position.subspan(item * dimensions, dimensions); }

  /// log N(z; mean, variance) - log N(z; 0, 1 + r^2) of an item, without what all items of its level share.
  double log_share(std::size_t item, std::span<const double> mean, double variance) const {
    double near = 0, far = 0;
    for (std::size_t i = 0; i < dimensions; ++i) {
      const double z = place(item)[i];
      near += (z - mean[i]) * (z - mean[i]);
      far += z * z;
    }
    return -0.5 * near / variance + 0.5 * far / (1 + this->variance(item));
  }
};

/// Draws an item of a level that is not taken.
std::size_t drawn_item(const Catalogue& catalogue, std::size_t level, std::span<const double> state,
                       const std::vector<bool>& taken, Random& random) {
  std::vector<std::size_t> items;
  std::vector<double> weights;
  for (std::size_t item = level; item < catalogue.items(); item += catalogue.levels) {
    if (taken[item]) continue;
    items.push_back(item);
    weights.push_back(catalogue.log_share(item, state, catalogue.variance(item)));
  }
  const double largest = *std::ranges::max_element(weights);
  double sum = 0;
  for (double& weight : weights) sum += weight = std::exp(weight - largest);
  double left = random.uniform() * sum;
  for (std::size_t i = 0; i < items.size(); ++i) {
    left -= weights[i];
    if (left < 0) return items[i];
  }
  return items.back();
}

/// The error variance of a filter with one gain after each number of clicks, [click], from 1; of one dimension.
double constant_error(double gain, double observation, double kept, const std::vector<double>& users_left) {
  double variance = 1, sum = 0;
  for (const double users : users_left) {
    variance = (1 - gain) * (1 - gain) * variance + gain * gain * observation;
    variance = kept * kept * variance + 1 - kept * kept;
    sum += users * variance;
  }
  return sum;
}

/// The gain, in hundredths, with the least expected squared error of the predictions, over all clicks of all users.
/// The levels are drawn apart from everything else: so the mean variance of the noise is all that counts.
double best_constant_gain(const LatentWalk& walk, double observation, double kept) {
  std::vector<double> users_left;  // [click] users with a prediction after it
  for (const std::vector<ItemId>& sequence : walk.sequences) {
    users_left.resize(std::max(users_left.size(), sequence.size() - 1), 0);
    for (std::size_t click = 0; click + 1 < sequence.size(); ++click) ++users_left[click];
  }
  constexpr int steps = 100;
  double best = 0, least = std::numeric_limits<double>::infinity();
  for (int step = 0; step <= steps; ++step) {
    const double gain = static_cast<double>(step) / steps, error = constant_error(gain, observation, kept, users_left);
    if (error < least) {
      least = error;
      best = gain;
    }
  }
  return best;
}

/// One filter on its way through the histories.
class Follower {
 public:
  Follower(const Catalogue& catalogue, const LatentWalk& walk, const WalkOptions& options, WalkFilter filter)
      : catalogue_(catalogue), filter_(filter), kept_(std::sqrt(1 - options.drift * options.drift)) {
    for (const double level : options.noise)
      mean_variance_ += level * level / static_cast<double>(options.noise.size());
    if (filter == WalkFilter::constant) constant_ = best_constant_gain(walk, mean_variance_, kept_);
  }

  void start() {
    mean_.assign(catalogue_.dimensions, 0.0);
    variance_ = 1;
  }
  /// A click, and the move of the state after it.
  /// @returns  the gain
  double click(std::size_t item) {
    const double observation = filter_ == WalkFilter::exact ? catalogue_.variance(item) : mean_variance_;
    const double gain = filter_ == WalkFilter::constant ? constant_ : variance_ / (variance_ + observation);
    for (std::size_t i = 0; i < mean_.size(); ++i)
      mean_[i] = kept_ * (mean_[i] + gain * (catalogue_.place(item)[i] - mean_[i]));
    const double updated = (1 - gain) * (1 - gain) * variance_ + gain * gain * observation;
    variance_ = kept_ * kept_ * updated + 1 - kept_ * kept_;
    return gain;
  }
  /// The log of the probability of an item, up to a number that all items share.
  double score(std::size_t item) const {
    const double variance = variance_ + catalogue_.variance(item), own = 1 + catalogue_.variance(item);
    return catalogue_.log_share(item, mean_, variance) -
           0.5 * static_cast<double>(mean_.size()) * std::log(variance / own);
  }
  double rank(std::size_t target, const std::vector<bool>& candidates) const {
    const double reached = score(target);
    double rank = 1;
    for (std::size_t item = 0; item < candidates.size(); ++item) {
      if (item == target || !candidates[item]) continue;
      const double other = score(item);
      rank += other > reached ? 1 : other == reached ? 0.5 : 0;
    }
    return rank;
  }

 private:
  const Catalogue& catalogue_;
  WalkFilter filter_;
  double kept_, mean_variance_ = 0, constant_ = 0;
  std::vector<double> mean_;
  double variance_ = 1;
};

std::size_t index_of(ItemId item) {
  return static_cast<std::size_t>(item) - 1;
}

}  // namespace

void check(const WalkOptions& options) {
  const auto at_least = [](const char* option, std::int64_t value, std::int64_t least, std::int64_t most) {
    CHECK(value >= least && value <= most, "{}: {}; must be {} to {}", option, value, least, most);
  };
  at_least("--users", options.users, 1, 10'000'000);
  at_least("--dimensions", options.dimensions, 1, 64);
  at_least("--shortest", options.shortest, 3, 100'000);
  at_least("--longest", options.longest, options.shortest, 100'000);
  CHECK(!options.noise.empty() && options.noise.size() <= 100, "--noise: {} levels; must be 1 to 100",
        options.noise.size());
  for (const double level : options.noise) {
    CHECK(level >= min_noise && level <= max_noise, "--noise: {}; must be {} to {}{}", level, min_noise, max_noise,
          level == 0 ? ": without noise there is nothing to filter" : "");
  }
  CHECK(options.drift >= 0 && options.drift < 1, "--drift: {}; must be at least 0, and below 1", options.drift);
  const std::int64_t levels = std::ssize(options.noise);
  CHECK(options.items <= 1'000'000 && options.items / levels >= options.longest,
        "--items: {}; must be {} to 1000000: a user may need {} different items of one level of noise, and there {} {}",
        options.items, levels * options.longest, options.longest, levels == 1 ? "is" : "are", levels);
}

std::string_view name_of(WalkFilter filter) {
  switch (filter) {
    case WalkFilter::exact:
      return "exact";
    case WalkFilter::alike:
      return "alike";
    case WalkFilter::constant:
      return "constant";
  }
  ASSERT(false, "not a member of WalkFilter");
  return {};
}

LatentWalk latent_walk(const WalkOptions& options) {
  check(options);
  const std::size_t dimensions = size(options.dimensions), levels = options.noise.size();
  LatentWalk walk;
  Random item_random(options.seed, stream_of_items);
  for (std::size_t item = 0; item < size(options.items); ++item) {
    const double noise = walk.noise.emplace_back(options.noise[item % levels]);
    for (std::size_t i = 0; i < dimensions; ++i)
      walk.position.push_back(std::sqrt(1 + noise * noise) * normal(item_random));
  }
  const Catalogue catalogue{dimensions, levels, walk.noise, walk.position};
  const double kept = std::sqrt(1 - options.drift * options.drift);
  for (std::int64_t user = 0; user < options.users; ++user) {
    Random random(options.seed, first_stream_of_users + static_cast<std::uint64_t>(user));
    const auto span = static_cast<std::uint64_t>(options.longest - options.shortest + 1);
    const std::size_t length = size(options.shortest) + static_cast<std::size_t>(random.below(span));
    std::vector<double> state(dimensions);
    for (double& x : state) x = normal(random);
    std::vector<bool> taken(catalogue.items(), false);
    std::vector<ItemId>& sequence = walk.sequences.emplace_back();
    for (std::size_t click = 0; click < length; ++click) {
      if (click > 0) {
        for (double& x : state) x = kept * x + options.drift * normal(random);
      }
      const auto level = static_cast<std::size_t>(random.below(levels));
      const std::size_t item = drawn_item(catalogue, level, state, taken, random);
      taken[item] = true;
      sequence.push_back(static_cast<ItemId>(item + 1));
    }
  }
  return walk;
}

std::vector<WalkRanking> rank_walk(const LatentWalk& walk, const WalkOptions& options) {
  const Catalogue catalogue{size(options.dimensions), options.noise.size(), walk.noise, walk.position};
  std::vector<bool> present(catalogue.items(), false);
  for (const std::vector<ItemId>& sequence : walk.sequences) {
    for (const ItemId item : sequence) present[index_of(item)] = true;
  }
  std::vector<WalkRanking> all;
  for (const WalkFilter filter : {WalkFilter::exact, WalkFilter::alike, WalkFilter::constant}) {
    WalkRanking& ranking = all.emplace_back(WalkRanking{filter, 0, {}});
    Follower follower(catalogue, walk, options, filter);
    double clicks = 0;
    for (const std::vector<ItemId>& sequence : walk.sequences) {
      std::vector<bool> candidates = present;
      follower.start();
      for (std::size_t click = 0; click + 1 < sequence.size(); ++click) {
        candidates[index_of(sequence[click])] = false;
        ranking.gain += follower.click(index_of(sequence[click]));
        ++clicks;
      }
      ranking.ranks.push_back(follower.rank(index_of(sequence.back()), candidates));
    }
    ranking.gain /= clicks;
  }
  return all;
}

std::string item_table(const LatentWalk& walk) {
  std::string text = "item,noise";
  const std::size_t dimensions = walk.position.size() / walk.noise.size();
  for (std::size_t i = 0; i < dimensions; ++i) text += fmt::format(",position_{}", i + 1);
  text += '\n';
  for (std::size_t item = 0; item < walk.noise.size(); ++item) {
    text += fmt::format("{},{}", item + 1, walk.noise[item]);
    for (std::size_t i = 0; i < dimensions; ++i) text += fmt::format(",{}", walk.position[item * dimensions + i]);
    text += '\n';
  }
  return text;
}

}  // namespace gainlens::data
