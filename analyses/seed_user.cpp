#include "analyses/seed_user.h"

#include "core/check.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

namespace gainlens::analyses {
namespace {

/// What a user adds to the linear form of a gain: weight of its candidate value, and of its baseline value.
struct ArmWeights {
  double candidate, baseline;
};

/// Sums over the users of a group, of each run. They are divided once, at the end: sums of hits are exact.
struct GroupSums {
  std::vector<double> candidate, baseline, difference;  // [seed]
  double users;
};

GroupSums group_sums(const PairedUsers& users, const SignedGroup& group) {
  GroupSums sums{{}, {}, {}, static_cast<double>(group.users.size())};
  for (std::size_t seed = 0; seed < users.seeds; ++seed) {
    double candidate = 0, baseline = 0, difference = 0;
    for (const std::size_t user : group.users) {
      const double after = users.candidate[seed * users.users + user],
                   before = users.baseline[seed * users.users + user];
      candidate += after;
      baseline += before;
      difference += after - before;
    }
    sums.candidate.push_back(candidate);
    sums.baseline.push_back(baseline);
    sums.difference.push_back(difference);
  }
  return sums;
}

double total(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

/// Numbers 0, 1, ... for the units of the users in the groups.
class UnitNumbers {
 public:
  explicit UnitNumbers(std::span<const std::size_t> unit) : unit_(unit) {}
  std::size_t of(std::size_t user) {
    return numbers_.try_emplace(unit_.empty() ? user : unit_[user], numbers_.size()).first->second;
  }
  std::size_t count() const { return numbers_.size(); }

 private:
  std::span<const std::size_t> unit_;
  std::unordered_map<std::size_t, std::size_t> numbers_;
};

/// Units of each user of each group, and the number of units in the smallest group.
struct GroupUnits {
  std::vector<std::vector<std::size_t>> unit;  // [group][position in the group]
  std::vector<std::size_t> count;              // [group]
  std::size_t total = 0;

  std::size_t smallest() const { return *std::min_element(count.begin(), count.end()); }
};

GroupUnits group_units(std::span<const SignedGroup> groups, std::span<const std::size_t> unit) {
  UnitNumbers numbers(unit);
  GroupUnits found;
  for (const SignedGroup& group : groups) {
    UnitNumbers own(unit);
    found.unit.emplace_back();
    for (const std::size_t user : group.users) {
      found.unit.back().push_back(numbers.of(user));
      own.of(user);
    }
    found.count.push_back(own.count());
  }
  found.total = numbers.count();
  return found;
}

/// The linear form of a contrast: its value in each run, and the influence of each unit.
struct LinearForm {
  std::vector<double> by_seed;    // [seed]
  std::vector<double> influence;  // [seed, unit]
  double scale = 0;               // size of the terms of a value
};

void add_influence(LinearForm& form, const PairedUsers& users, const SignedGroup& group, const ArmWeights& weights,
                   const std::vector<std::size_t>& unit, std::size_t group_unit_count) {
  const std::size_t units = form.influence.size() / users.seeds;
  const auto size = static_cast<double>(group.users.size()), own_units = static_cast<double>(group_unit_count);
  const double unbiased = std::sqrt(own_units / (own_units - 1));
  std::vector<double> values(group.users.size());
  for (std::size_t seed = 0; seed < users.seeds; ++seed) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t at = seed * users.users + group.users[i];
      values[i] = weights.candidate * users.candidate[at] - weights.baseline * users.baseline[at];
    }
    const double middle = mean(values);
    for (std::size_t i = 0; i < values.size(); ++i)
      form.influence[seed * units + unit[i]] += group.sign * unbiased * (values[i] - middle) / size;
  }
}

void check_groups(const PairedUsers& users, std::span<const SignedGroup> groups) {
  ASSERT(!groups.empty() && users.baseline.size() == users.seeds * users.users &&
             users.candidate.size() == users.baseline.size(),
         "{} groups; {} and {} values of {} users", groups.size(), users.baseline.size(), users.candidate.size(),
         users.users);
  std::vector<bool> seen(users.users, false);
  for (const SignedGroup& group : groups) {
    for (const std::size_t user : group.users) {
      ASSERT(user < users.users && !seen[user], "user {} of {}, or twice", user, users.users);
      seen[user] = true;
    }
  }
}

}  // namespace

SignedGroup all_users(const PairedUsers& users) {
  SignedGroup group{std::vector<std::size_t>(users.users), 1};
  std::iota(group.users.begin(), group.users.end(), std::size_t{0});
  return group;
}

Maybe<CrossedEstimate> crossed_gain(const PairedUsers& users, std::span<const SignedGroup> groups, GainScale scale,
                                    std::span<const std::size_t> unit) {
  using Result = Maybe<CrossedEstimate>;
  check_groups(users, groups);
  ASSERT(unit.empty() || unit.size() == users.users, "{} unit numbers for {} users", unit.size(), users.users);
  const GroupUnits units = group_units(groups, unit);
  if (units.smallest() < 2) return Result::none("an error over users needs at least 2 users in each group");
  LinearForm form{std::vector<double>(users.seeds, 0.0), std::vector<double>(users.seeds * units.total, 0.0)};
  const auto seeds = static_cast<double>(users.seeds);
  double value = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const double sign = groups[g].sign;
    const GroupSums sums = group_sums(users, groups[g]);
    const double candidate = total(sums.candidate) / (seeds * sums.users),
                 baseline = total(sums.baseline) / (seeds * sums.users);
    const bool ratio = scale == GainScale::log_ratio;
    if (ratio && !(candidate > 0 && baseline > 0)) return Result::none("a mean is 0: there is no ratio");
    const ArmWeights weights = ratio ? ArmWeights{1 / candidate, 1 / baseline} : ArmWeights{1, 1};
    value += sign * (ratio ? std::log(candidate / baseline) : total(sums.difference) / (seeds * sums.users));
    for (std::size_t seed = 0; seed < users.seeds; ++seed) {
      const double weighted = ratio ? weights.candidate * sums.candidate[seed] - weights.baseline * sums.baseline[seed]
                                    : sums.difference[seed];
      form.by_seed[seed] += sign * weighted / sums.users;
    }
    form.scale += std::abs(weights.candidate * candidate) + std::abs(weights.baseline * baseline);
    add_influence(form, users, groups[g], weights, units.unit[g], units.count[g]);
  }
  return crossed_estimate(value, form.by_seed, form.influence, static_cast<double>(units.smallest() - 1), form.scale);
}

}  // namespace gainlens::analyses
