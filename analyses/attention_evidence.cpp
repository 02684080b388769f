#include "analyses/attention_evidence.h"

#include "analyses/crossed_estimate.h"
#include "analyses/on_threads.h"
#include "analyses/rank_correlation.h"
#include "core/check.h"
#include "core/random.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <utility>

namespace gainlens::analyses {
namespace {

constexpr double no_value = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t no_group = std::numeric_limits<std::size_t>::max();

/// Edges at these shares of the users: a history of Amazon's data is short, and those in the tail are the ones whose
/// evidence may be large.
std::vector<std::int64_t> length_edges(std::vector<std::int64_t> lengths) {
  std::ranges::sort(lengths);
  std::vector<std::int64_t> edges;
  for (const double share : {0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.98}) {
    const auto place = static_cast<std::size_t>(std::ceil(share * static_cast<double>(lengths.size()))) - 1;
    const std::int64_t edge = lengths[std::min(place, lengths.size() - 1)];
    if (edge < lengths.back() && (edges.empty() || edge > edges.back())) edges.push_back(edge);
  }
  return edges;
}

GroupedUsers grouped(const UserCounts& users, Strata strata, const std::vector<std::int64_t>* counts) {
  GroupedUsers found{std::move(strata), {}, {}};
  const std::size_t groups = found.strata.users.size();
  found.mean_length.assign(groups, 0);
  found.mean_count.assign(groups, counts != nullptr ? 0 : no_value);
  for (std::size_t user = 0; user < users.users(); ++user) {
    const auto stratum = static_cast<std::size_t>(found.strata.stratum[user]);
    const auto of = static_cast<double>(found.strata.users[stratum]);
    found.mean_length[stratum] += static_cast<double>(users.history_length[user]) / of;
    if (counts != nullptr) found.mean_count[stratum] += static_cast<double>((*counts)[user]) / of;
  }
  return found;
}

/// The users of a run as the analysis sees them.
struct Users {
  explicit Users(const runfile::AttentionRun& run, const AttentionOptions& options) {
    const UserCounts& users = run.users;
    const std::size_t count = users.users();
    std::vector<std::int64_t> last(count), target(count);
    for (std::size_t user = 0; user < count; ++user) {
      last[user] = run.last_count(user);
      target[user] = users.target_count(user);
    }
    UserCounts by_last = users, by_length = users;
    by_last.target = run.last_item;
    by_length.training_length = users.history_length;
    groupings = {grouped(users, by_user_activity(by_length, length_edges(users.history_length)), nullptr),
                 grouped(users, by_user_activity(users), nullptr), grouped(users, by_item_frequency(by_last), &last),
                 grouped(users, by_item_frequency(users), &target)};
    const std::vector<std::int64_t>* const known[] = {&users.history_length, &last, &target};
    for (const auto* values : known) traits.push_back(std::vector<double>(values->begin(), values->end()));
    if (count < fewest_attention_users) {
      no_interval = fmt::format("fewer than {} users", fewest_attention_users);
    } else {
      groups = std::min(count, static_cast<std::size_t>(options.groups));
    }
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    Random(options.seed).shuffle(order);
    group.resize(count);
    for (std::size_t i = 0; i < count; ++i) group[order[i]] = i % std::max<std::size_t>(groups, 1);
    for (std::size_t grouping = 0; grouping < user_groupings; ++grouping) {
      std::vector<std::set<std::size_t>> holding(groupings[grouping].strata.users.size());
      for (std::size_t user = 0; user < count; ++user)
        holding[static_cast<std::size_t>(groupings[grouping].strata.stratum[user])].insert(group[user]);
      for (const std::set<std::size_t>& stratum_users : holding) groups_of[grouping].push_back(stratum_users.size());
    }
  }

  std::array<GroupedUsers, user_groupings> groupings;
  std::vector<std::vector<double>> traits;                         // [trait][user]
  std::size_t groups = 0;                                          // that are left out
  std::string no_interval;                                         // why there is none
  std::vector<std::size_t> group;                                  // [user]
  std::array<std::vector<std::size_t>, user_groupings> groups_of;  // [stratum] that hold its users
};

/// Ranks of some of the values, in linear time: the values are sorted once.
class SortedOnce {
 public:
  explicit SortedOnce(std::span<const double> values) : place_(values.size()) {
    std::vector<double> different(values.begin(), values.end());
    std::ranges::sort(different);
    different.erase(std::unique(different.begin(), different.end()), different.end());
    for (std::size_t i = 0; i < values.size(); ++i)
      place_[i] =
          static_cast<std::size_t>(std::lower_bound(different.begin(), different.end(), values[i]) - different.begin());
    different_ = different.size();
  }

  CentredRanks without(std::span<const std::size_t> group, std::size_t left_out) const {
    std::vector<double> count(different_, 0);
    for (std::size_t i = 0; i < place_.size(); ++i) count[place_[i]] += group[i] != left_out ? 1 : 0;
    double before = 0;
    for (double& entry : count) {
      const double here = entry;
      entry = before + (here + 1) / 2;  // of ties: the mean of their ranks
      before += here;
    }
    std::vector<double> ranks;
    ranks.reserve(static_cast<std::size_t>(before));
    for (std::size_t i = 0; i < place_.size(); ++i)
      if (group[i] != left_out) ranks.push_back(count[place_[i]]);
    return CentredRanks::from_ranks(std::move(ranks));
  }

 private:
  std::vector<std::size_t> place_;  // of each value among the different ones
  std::size_t different_ = 0;
};

/// The traits of the users that are left, which are the same for all heads.
using Traits = std::vector<CentredRanks>;

/// [task] without each group, and last of all users.
std::vector<Traits> ranked_traits(const Users& users) {
  std::vector<Traits> all(users.groups + 1);
  for (const std::vector<double>& trait : users.traits) {
    const SortedOnce sorted(trait);
    for (std::size_t task = 0; task <= users.groups; ++task)
      all[task].push_back(sorted.without(users.group, task < users.groups ? task : no_group));
  }
  return all;
}

/// Every estimate of a number of one head in one model.
struct Estimates {
  double mean = no_value;
  std::array<double, user_traits> rho{}, given_length{};
  std::array<std::vector<double>, user_groupings> by;

  double change(std::size_t grouping) const { return by[grouping].back() - by[grouping].front(); }
};

/// [task] without each group of users, and last of all.
std::vector<Estimates> estimates_of(std::span<const double> values, const Users& users,
                                    const std::vector<Traits>& traits) {
  std::vector<Estimates> all(users.groups + 1);
  const auto means = [&](const auto& stratum_of, std::size_t strata) {
    const std::size_t groups = std::max<std::size_t>(users.groups, 1);
    std::vector<double> sum(strata * groups, 0), count(strata * groups, 0);
    for (std::size_t user = 0; user < values.size(); ++user) {
      const std::size_t cell = stratum_of(user) * groups + users.group[user];
      sum[cell] += values[user];
      count[cell] += 1;
    }
    std::vector<std::vector<double>> found(users.groups + 1, std::vector<double>(strata, no_value));
    for (std::size_t stratum = 0; stratum < strata; ++stratum) {
      const auto own = static_cast<std::ptrdiff_t>(stratum * groups), end = own + static_cast<std::ptrdiff_t>(groups);
      const double total = std::accumulate(sum.begin() + own, sum.begin() + end, 0.0),
                   number = std::accumulate(count.begin() + own, count.begin() + end, 0.0);
      for (std::size_t task = 0; task <= users.groups; ++task) {
        const bool without = task < users.groups;
        const double rest = number - (without ? count[stratum * groups + task] : 0);
        if (rest > 0) found[task][stratum] = (total - (without ? sum[stratum * groups + task] : 0)) / rest;
      }
    }
    return found;
  };
  const auto everybody = means([](std::size_t) { return std::size_t{0}; }, 1);
  for (std::size_t task = 0; task < all.size(); ++task) all[task].mean = everybody[task][0];
  for (std::size_t grouping = 0; grouping < user_groupings; ++grouping) {
    const Strata& strata = users.groupings[grouping].strata;
    auto found =
        means([&](std::size_t user) { return static_cast<std::size_t>(strata.stratum[user]); }, strata.users.size());
    for (std::size_t task = 0; task < all.size(); ++task) all[task].by[grouping] = std::move(found[task]);
  }
  const SortedOnce sorted(values);
  for (std::size_t task = 0; task < all.size(); ++task) {
    const CentredRanks own = sorted.without(users.group, task < users.groups ? task : no_group);
    const CentredRanks* const variables[] = {&own, &traits[task][0], &traits[task][1], &traits[task][2]};
    const RankCorrelations found{variables};
    const std::size_t length = 1;
    for (std::size_t trait = 0; trait < user_traits; ++trait) {
      all[task].rho[trait] = found.rho(0, trait + 1);
      all[task].given_length[trait] = trait == 0 ? no_value : found.partial(0, trait + 1, {&length, 1});
    }
  }
  return all;
}

/// A part of the users, on which an estimate depends.
struct Part {
  std::size_t groups = 0;  // that hold them; 0: all
  std::string no_interval = {};

  static Part stratum_users(const Users& users, std::size_t grouping, std::size_t stratum) {
    const auto count = static_cast<std::size_t>(users.groupings[grouping].strata.users[stratum]);
    return {std::max<std::size_t>(users.groups_of[grouping][stratum], 1), too_few_of_part(count)};
  }
  /// The smaller part of a difference, which is as uncertain as this part makes it.
  static Part smaller_of(const Part& a, const Part& b) {
    return {std::min(a.groups, b.groups), a.no_interval.empty() ? b.no_interval : a.no_interval};
  }
};

/// @param seeds  [seed][task]
/// @param of     what is wanted of an Estimates
template <typename Number>
SeedEstimate estimate(const std::vector<std::vector<Estimates>>& seeds, const Users& users, const std::string& missing,
                      double least, double most, const Number& of, const Part& part = {}) {
  Replicates found;
  found.entering = part.groups;
  for (const std::vector<Estimates>& seed : seeds) {
    found.values.push_back(of(seed.back()));
    std::vector<double>& without = found.without.emplace_back();
    for (std::size_t group = 0; group < users.groups; ++group) without.push_back(of(seed[group]));
  }
  return over_seeds(found, missing, users.no_interval.empty() ? part.no_interval : users.no_interval, least, most);
}

HeadNumber head_number(const std::vector<std::vector<Estimates>>& seeds, const Users& users,
                       const AttentionNumber& number) {
  const double reach = number.most - number.least;
  const std::string same = "it is the same for every user, or the other side is",
                    alone = "the history length determines one side";
  HeadNumber found;
  found.mean = estimate(seeds, users, "there is no user", number.least, number.most,
                        [](const Estimates& one) { return one.mean; });
  for (std::size_t trait = 0; trait < user_traits; ++trait) {
    found.rho[trait] = estimate(seeds, users, same, -1, 1, [&](const Estimates& one) { return one.rho[trait]; });
    if (trait > 0)
      found.given_length[trait] =
          estimate(seeds, users, alone, -1, 1, [&](const Estimates& one) { return one.given_length[trait]; });
  }
  for (std::size_t grouping = 0; grouping < user_groupings; ++grouping) {
    const std::size_t strata = users.groupings[grouping].strata.users.size();
    std::vector<Part> parts;
    for (std::size_t stratum = 0; stratum < strata; ++stratum) {
      parts.push_back(Part::stratum_users(users, grouping, stratum));
      found.by[grouping].push_back(estimate(
          seeds, users, "no user is in this group", number.least, number.most,
          [&](const Estimates& one) { return one.by[grouping][stratum]; }, parts.back()));
    }
    if (strata > 1)
      found.change[grouping] = estimate(
          seeds, users, "no user is in one of the groups", -reach, reach,
          [&](const Estimates& one) { return one.change(grouping); }, Part::smaller_of(parts.front(), parts.back()));
  }
  return found;
}

/// [user] of a number of a head; empty: the model has none.
std::vector<double> values_of(const UserAttention& model, std::string_view name, std::int64_t layer,
                              std::int64_t head) {
  std::vector<double> values;
  for (std::int64_t user = 0; user < model.users; ++user) values.push_back(model.at(name, user, layer, head));
  if (std::isnan(values.front())) values.clear();
  return values;
}

AttentionReading read_arm(const runfile::AttentionRun& run, std::size_t arm, const Users& users,
                          const std::vector<Traits>& traits, const AttentionOptions& options) {
  AttentionReading reading{run.arms[arm], {}, run.units.size(), users.groups, users.groupings, {}, options};
  std::vector<const UserAttention*> models;
  for (std::size_t seed = 0; seed < run.seeds.size(); ++seed) {
    if (!run.attention(arm, seed)) continue;
    reading.seeds.push_back(run.seeds[seed]);
    models.push_back(&*run.attention(arm, seed));
    CHECK(models.back()->layers == models.front()->layers && models.back()->heads == models.front()->heads,
          "arm {}: its models have different numbers of layers or heads; the file is damaged",
          printable(run.arms[arm], 60));
  }
  if (models.empty()) return reading;
  for (std::int64_t layer = 0; layer < models.front()->layers; ++layer) {
    for (std::int64_t head = 0; head < models.front()->heads; ++head)
      reading.heads.push_back(
          {layer, head,
           std::vector<Maybe<HeadNumber>>(attention_numbers.size(), Maybe<HeadNumber>::none("the model has none"))});
  }
  on_threads(reading.heads.size() * attention_numbers.size(), options.threads, [&](std::size_t task) {
    Head& head = reading.heads[task / attention_numbers.size()];
    const AttentionNumber& number = attention_numbers[task % attention_numbers.size()];
    std::vector<std::vector<Estimates>> seeds;
    for (const UserAttention* model : models) {
      const std::vector<double> values = values_of(*model, number.name, head.layer, head.head);
      if (values.empty()) return;  // what one model lacks is missing
      seeds.push_back(estimates_of(values, users, traits));
    }
    head.numbers[task % attention_numbers.size()] = head_number(seeds, users, number);
  });
  return reading;
}

/// The JSON without the numbers of each seed, of which there would be thousands.
OrderedJson short_json(const SeedEstimate& estimate) {
  OrderedJson json = OrderedJson::object();
  put(json, "value", estimate.value);
  put(json, "interval", estimate.interval);
  if (estimate.seeds.size() > 1) put(json, "seed_deviation", estimate.deviation);
  return json;
}

OrderedJson strata_json(const GroupedUsers& users) {
  OrderedJson json = {
      {"edges", users.strata.edges}, {"users", users.strata.users}, {"mean_history_length", users.mean_length}};
  if (!std::isnan(users.mean_count.front())) json["mean_training_count"] = users.mean_count;
  return json;
}

}  // namespace

const Maybe<HeadNumber>& Head::number(std::string_view name) const {
  const auto found = std::ranges::find(attention_numbers, name, &AttentionNumber::name);
  ASSERT(found != attention_numbers.end(), "heads have no number {}", name);
  return numbers[static_cast<std::size_t>(found - attention_numbers.begin())];
}

std::vector<AttentionReading> attention_evidence(const runfile::AttentionRun& run, const AttentionOptions& options) {
  check(options);
  const Users users(run, options);
  const std::vector<Traits> traits = ranked_traits(users);
  std::vector<AttentionReading> readings;
  for (std::size_t arm = 0; arm < run.arms.size(); ++arm) {
    AttentionReading reading = read_arm(run, arm, users, traits, options);
    if (!reading.seeds.empty()) readings.push_back(std::move(reading));
  }
  CHECK(!readings.empty(), "the sweep holds no model");
  return readings;
}

void check(const AttentionOptions& options) {
  CHECK(options.groups >= 20 && options.groups <= 10'000, "--groups: {}; must be 20 to 10000", options.groups);
}

OrderedJson to_json(const AttentionReading& reading) {
  OrderedJson json = {
      {"arm", reading.arm},
      {"seeds", reading.seeds},
      {"users", reading.users},
      {"groups", reading.groups},
      {"seed", reading.options.seed},
      {"interval_over", reading.seeds.size() >= fewest_crossed_seeds ? "trainings and users" : "users"}};
  for (std::size_t grouping = 0; grouping < user_groupings; ++grouping)
    json["groupings"][std::string(user_grouping_keys[grouping])] = strata_json(reading.groupings[grouping]);
  json["heads"] = OrderedJson::array();
  for (const Head& head : reading.heads) {
    OrderedJson& head_json = json["heads"].emplace_back(OrderedJson{{"layer", head.layer}, {"head", head.head}});
    for (std::size_t i = 0; i < attention_numbers.size(); ++i) {
      const std::string name(attention_numbers[i].name);
      if (!head.numbers[i]) {
        put(head_json, name, Measured::none(head.numbers[i].reason()));
        continue;
      }
      const HeadNumber& number = *head.numbers[i];
      OrderedJson& own = head_json[name] = {{"mean", short_json(number.mean)}};
      for (std::size_t trait = 0; trait < user_traits; ++trait) {
        const std::string key(user_trait_keys[trait]);
        own["rho"][key] = short_json(number.rho[trait]);
        if (trait > 0) own["partial_rho_given_history_length"][key] = short_json(number.given_length[trait]);
      }
      for (std::size_t grouping = 0; grouping < user_groupings; ++grouping) {
        OrderedJson& grouping_json = own["by"][std::string(user_grouping_keys[grouping])];
        for (const SeedEstimate& mean : number.by[grouping]) grouping_json["means"].push_back(short_json(mean));
        grouping_json["last_less_first"] = short_json(number.change[grouping]);
      }
    }
  }
  return json;
}

}  // namespace gainlens::analyses
