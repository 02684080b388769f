#pragma once

#include "core/ranking_metrics.h"
#include "data/changed_histories.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Synthetic histories of which everything is known, and the best that a filter can do with them.
//
// A user has a state x of some dimensions, each of variance 1. Before each click but the first it moves:
// x' = a x + drift w, a^2 = 1 - drift^2, w standard normal. A click is a measurement of the state: first a level of
// noise is drawn, all with the same probability and whatever the state is, then an item z of that level. Items of the
// level r lie at random places z ~ N(0, 1 + r^2), and are drawn with the probability
//     p(z | x, r) ~ N(z; x, r^2) / N(z; 0, 1 + r^2)
// among those that the user has not clicked yet. Dividing by the density of the items makes the sum over the items
// about the same at every x. With many items the likelihood of x is then N(z; x, r^2) alone, and the Kalman filter
// with the true parameters is the right filter: an item of little noise moves it much, one of much noise little.

namespace gainlens::data {

/// Standard deviations of noise that are taken, beside a state of 1. Far below or above them the likelihoods of a click
/// differ by more than a double holds.
inline constexpr double min_noise = 0.001, max_noise = 100;

struct WalkOptions {
  std::int64_t users = 2000;
  std::int64_t items = 500;
  std::int64_t shortest = 5, longest = 20;  ///< interactions of a user: uniform between them
  std::int64_t dimensions = 2;              ///< of the state
  std::vector<double> noise = {0.3, 1.5};   ///< standard deviations; item i has level (i - 1) mod their number
  double drift = 0.25;                      ///< standard deviation of a step of the state
  std::uint64_t seed = 0;
};

/// @throws InvalidArgument  no noise, a noise out of its range, a drift outside [0, 1), lengths below 3 or that do not
///     rise, too few items of a level for the longest history, too many numbers
void check(const WalkOptions& options);

struct LatentWalk {
  Sequences sequences;
  std::vector<double> noise;     ///< [item id - 1] standard deviation
  std::vector<double> position;  ///< [item id - 1, dimension]
};

/// The same numbers on every machine whose library rounds exp and log alike.
/// @throws InvalidArgument  see check()
LatentWalk latent_walk(const WalkOptions& options);

/// What knows the walk: its items, their places, how states move. They differ in what they know of the noise.
enum class WalkFilter {
  exact,     ///< the Kalman filter: the noise of every item
  alike,     ///< the Kalman filter that takes every item for one of the mean variance: it knows how many, not which
  constant,  ///< one gain for all clicks: that with the least expected squared error over all histories
};
std::string_view name_of(WalkFilter filter);

/// What a filter reaches on the test items.
struct WalkRanking {
  WalkFilter filter;
  double gain;                ///< of `constant`; else its mean over the clicks before the test items
  std::vector<double> ranks;  ///< [user] of the test item
};

/// Each filter follows the clicks of every user but the last, predicts, and ranks the items by their probability. As in
/// the evaluation of recommenders, items that the user has are no candidates, nor is an item that nobody has; equal
/// scores share ranks.
/// @param options  those that made `walk`
std::vector<WalkRanking> rank_walk(const LatentWalk& walk, const WalkOptions& options);

/// "item,noise,position_1,...": a line for each item.
std::string item_table(const LatentWalk& walk);

}  // namespace gainlens::data
