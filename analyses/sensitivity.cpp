#include "analyses/sensitivity.h"

#include "analyses/gain_decisions.h"
#include "analyses/holm.h"
#include "analyses/paired_units.h"
#include "analyses/paper_gains.h"
#include "analyses/seed_unit.h"
#include "core/check.h"
#include "core/nearest.h"
#include "core/short_text.h"
#include "core/terminal_text.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <span>
#include <tuple>
#include <utility>

namespace gainlens::analyses {
namespace {

using Run = std::shared_ptr<const runfile::RecommendRun>;
using runfile::arm_of, runfile::variant_of;

std::string chosen_arm(const std::string& where, const runfile::RecommendRun& run, const std::string& wanted) {
  std::vector<std::string> all, with_variants;
  const auto add = [](std::vector<std::string>& names, const std::string& name) {
    if (std::ranges::count(names, name) == 0) names.push_back(name);
  };
  for (const std::string& label : run.arms) {
    add(all, arm_of(label));
    if (!variant_of(label).empty()) add(with_variants, arm_of(label));
  }
  const std::string how = "train them with gainlens train recommend --grid paper, into the same folder";
  CHECK(!with_variants.empty(), "{}: has no variants of any arm; {}", where, how);
  if (wanted.empty()) {
    CHECK(with_variants.size() == 1, "{}: the arms {} have variants; name one with --arm", where,
          fmt::join(with_variants, ", "));
    return with_variants.front();
  }
  CHECK(std::ranges::count(all, wanted) == 1, "--arm: {} has no arm '{}', but {}{}", where, printable(wanted, 60),
        fmt::join(all, ", "), did_you_mean(wanted, all));
  CHECK(std::ranges::count(with_variants, wanted) == 1, "--arm: {} has no variants of arm {}; {}", where,
        printable(wanted, 60), how);
  return wanted;
}

/// The settings of a variant that are not those of the run.
Json changes_of(const Json& request, const std::string& variant, const std::string& where) {
  const Json none = Json::object();
  const Json& all = request.contains("variants") ? request.at("variants") : none;
  CHECK(all.is_object() && all.contains(variant) && all.at(variant).is_object(),
        "{}: its request does not say what variant '{}' changes", where, printable(variant, 60));
  const Json& own = request.contains("training") ? request.at("training") : none;
  CHECK(own.is_object(), "{}: its request does not say the settings of the run", where);
  Json changes = Json::object();
  for (const auto& [key, value] : all.at(variant).items()) {
    if (!own.contains(key) || own.at(key) != value) changes[key] = value;
  }
  return changes;
}

/// The value on the axis of its knob, and for readers.
struct Shown {
  std::string text;
  std::optional<double> place;
};
/// @param settings  of the run
Shown shown_value(const std::string& key, const Json& value, const Json& settings) {
  if (!value.is_number()) return {printable(short_text(value), 40), std::nullopt};
  const auto number = value.get<double>();
  // bft::FilterOptions::prior_variance: 0 stands for 1 / d, d the dimensions of a head.
  if (key == "prior_variance" && number == 0) {
    const auto count = [&](const char* name) {
      return settings.contains(name) && settings.at(name).is_number() ? settings.at(name).get<double>() : 0.0;
    };
    const double width = count("width"), heads = count("heads");
    return {"1/d", width > 0 && heads > 0 ? heads / width : 0};
  }
  return {short_text(value), number};
}

SettingResult setting_result(const ArmPair& pair, Shown shown, Json value, const SensitivityOptions& options) {
  const runfile::RecommendRun& run = *pair.baseline.run;
  const std::vector<double> before = pair.baseline.scores(runfile::rank_score),
                            after = pair.candidate.scores(runfile::rank_score);
  const std::vector<std::uint64_t> seeds = pair.baseline.seeds();
  const PairedUnits pairs = paired_users(options.metric, before, after, seeds.size(), run.units.size());
  const std::vector<std::size_t> target(run.target.begin(), run.target.end());
  const SignedGroup everybody = all_units(pairs);
  auto change = crossed_gain(pairs, std::span(&everybody, 1), GainScale::log_ratio, target);
  const SeedMeans means = seed_means(pairs);
  Equivalence equivalence = crossed_equivalence(change, std::log1p(options.margin));
  const Measured p = stated_p(change);
  return {.arm = pair.candidate.name(),
          .value = std::move(value),
          .text = std::move(shown.text),
          .place = shown.place,
          .seeds = seeds,
          .summary = arm_summary(means.candidate),
          .reference = arm_summary(means.baseline),
          .same_ranks = before == after,
          .change = std::move(change),
          .p = p,
          .holm = p,
          .equivalence = std::move(equivalence)};
}

void add_holm(std::vector<KnobResult>& knobs) {
  std::vector<Measured> p, flat;
  for (const KnobResult& knob : knobs) {
    for (const SettingResult& setting : knob.settings) p.push_back(setting.p);
    flat.push_back(knob.flat_p);
  }
  const std::vector<Measured> corrected = holm_where_present(p), corrected_flat = holm_where_present(flat);
  auto next = corrected.begin();
  for (std::size_t i = 0; i < knobs.size(); ++i) {
    for (SettingResult& setting : knobs[i].settings) setting.holm = *next++;
    knobs[i].flat_holm = corrected_flat[i];
  }
}

Measured largest_equivalence_p(const KnobResult& knob) {
  Measured largest = Measured::none("no setting changes a rank");
  for (const SettingResult& setting : knob.settings) {
    if (setting.same_ranks) continue;
    if (!setting.equivalence.p) return setting.equivalence.p;
    if (!largest || *setting.equivalence.p > *largest) largest = setting.equivalence.p;
  }
  return largest;
}

void answer(KnobResult& knob) {
  const bool flat = std::ranges::all_of(knob.settings, [](const auto& setting) { return setting.is_flat(); });
  const bool differs = std::ranges::any_of(knob.settings, [](const auto& setting) { return setting.differs(); });
  knob.answer = flat ? KnobAnswer::flat : differs ? KnobAnswer::differs : KnobAnswer::open;
}

/// Knobs of the paper in its order, then others by name.
std::pair<std::ptrdiff_t, std::string> order_of(const KnobResult& knob) {
  const PaperKnob* const known = find_paper_knob(knob.key);
  const std::ptrdiff_t place = known == nullptr ? std::ssize(paper_knobs()) : known - paper_knobs().data();
  return {place, knob.key};
}

void sort(std::vector<KnobResult>& knobs) {
  std::ranges::sort(knobs, {}, order_of);
  for (KnobResult& knob : knobs)
    std::ranges::stable_sort(knob.settings, {}, [](const SettingResult& setting) {
      return std::tuple(!setting.place, setting.place.value_or(0), setting.text);
    });
}

std::string percent(double share) {
  return fmt::format("{:.2g}%", 100 * share);
}

std::string change_in_words(const SettingResult& setting) {
  return fmt::format("{} ({:+.1f}%)", setting.text, 100 * relative_change(setting.change->value));
}

std::string not_decided(const KnobResult& knob) {
  std::vector<std::string> before_holm;
  double most = 0;
  for (const SettingResult& setting : knob.settings) {
    if (setting.same_ranks) continue;
    const Measured reach = setting.reach();
    if (!reach) return fmt::format("not decided: {}: {}", setting.text, reach.reason());
    most = std::max(most, *reach);
    if (setting.p && *setting.p <= decision_level) before_holm.push_back(change_in_words(setting));
  }
  std::string words = fmt::format("not decided: flat only within ±{}", percent(most));
  if (!before_holm.empty())
    words += fmt::format("; before Holm's correction alone a difference at {}", fmt::join(before_holm, ", "));
  return words;
}

const char* name_of(KnobAnswer answer) {
  switch (answer) {
    case KnobAnswer::flat:
      return "flat";
    case KnobAnswer::differs:
      return "differs";
    case KnobAnswer::open:
      return "not decided";
  }
  return "";
}

}  // namespace

double relative_change(double log_ratio) {
  return std::expm1(log_ratio);
}

Maybe<Interval> relative_change(const Maybe<Interval>& log_ratios) {
  if (!log_ratios) return log_ratios;
  return Interval{relative_change(log_ratios->low), relative_change(log_ratios->high)};
}

bool SettingResult::differs() const {
  return holm && *holm <= decision_level;
}

Measured SettingResult::reach() const {
  if (same_ranks) return 0.0;
  if (!equivalence.interval) return Measured::none(equivalence.interval.reason());
  // On the scale of the margin, whose lower end is ln(1 / (1 + margin)).
  return relative_change(std::max(std::abs(equivalence.interval->low), std::abs(equivalence.interval->high)));
}

std::string KnobResult::in_words(double margin) const {
  std::vector<std::string> better, worse, unlike;
  for (const SettingResult& setting : settings) {
    if (!setting.differs()) continue;
    unlike.push_back(change_in_words(setting));
    (setting.change->value > 0 ? better : worse).push_back(change_in_words(setting));
  }
  if (answer == KnobAnswer::open) return not_decided(*this);
  if (answer == KnobAnswer::flat) {
    std::string words = fmt::format("flat within ±{}", percent(margin));
    if (!flat_p) return words + ": no setting changes a rank";
    if (*flat_holm > decision_level) words += ", not after Holm over the knobs";
    if (!unlike.empty()) words += fmt::format("; within it a difference at {}", fmt::join(unlike, ", "));
    return words;
  }
  std::string words = "differs:";
  if (!better.empty()) words += fmt::format(" better at {}", fmt::join(better, ", "));
  if (!worse.empty()) words += fmt::format("{} worse at {}", better.empty() ? "" : ";", fmt::join(worse, ", "));
  return words;
}

Measured Sensitivity::median_half_width() const {
  std::vector<double> widths;
  for (const KnobResult& knob : knobs) {
    for (const SettingResult& setting : knob.settings) {
      const Maybe<Interval> interval = stated_interval(setting.change);
      if (interval) widths.push_back(0.5 * (interval->high - interval->low));
    }
  }
  return widths.empty() ? Measured::none("no setting has a 95% interval") : Measured(relative_change(median(widths)));
}

void check(const SensitivityOptions& options) {
  CHECK(options.margin > 0 && options.margin < 1, "--margin: {:g}%; must be above 0 and below 100",
        100 * options.margin);
}

Sensitivity sensitivity(const std::filesystem::path& path, const Run& run, const SensitivityOptions& options) {
  check(options);
  const std::string where = printable(path.string());
  const std::string arm = chosen_arm(where, *run, options.arm);
  const Json settings = run->request.value("training", Json::object());
  std::optional<RecommenderArm> reference;
  for (std::size_t i = 0; i < run->arms.size(); ++i) {
    if (run->arms[i] == arm) reference = RecommenderArm{path, run, i, arm};
  }
  CHECK(reference && !reference->seeds().empty(),
        "{}: has no finished seed of arm {} without a variant, the reference; train it with gainlens train recommend "
        "--grid, into the same folder",
        where, printable(arm, 60));
  std::map<std::string, KnobResult> knobs;
  std::vector<LeftOutVariant> left_out;
  for (std::size_t i = 0; i < run->arms.size(); ++i) {
    const std::string& label = run->arms[i];
    if (arm_of(label) != arm || variant_of(label).empty()) continue;
    const Json changes = changes_of(run->request, variant_of(label), where);
    std::vector<std::string> keys;
    for (const auto& [key, value] : changes.items()) keys.push_back(printable(key, 60));
    if (keys.size() != 1) {
      left_out.push_back({label, keys.empty()
                                     ? "it has the settings of the reference"
                                     : fmt::format("it changes {} settings: {}", keys.size(), fmt::join(keys, ", "))});
      continue;
    }
    const std::string key = changes.begin().key();
    if (!settings.contains(key)) {
      left_out.push_back({label, fmt::format("the run does not store its own setting '{}'", keys.front())});
      continue;
    }
    const Maybe<ArmPair> pair = pair_shared_seeds(*reference, {path, run, i, label});
    if (!pair) {
      left_out.push_back({label, pair.reason()});
      continue;
    }
    const Shown own = shown_value(key, settings.at(key), settings);
    KnobResult& knob = knobs
                           .try_emplace(key, KnobResult{.key = key,
                                                        .reference = settings.at(key),
                                                        .reference_text = own.text,
                                                        .reference_place = own.place})
                           .first->second;
    const Json& value = changes.begin().value();
    knob.settings.push_back(setting_result(*pair, shown_value(key, value, settings), value, options));
  }
  std::vector<std::string> reasons;
  reasons.reserve(left_out.size());
  for (const LeftOutVariant& variant : left_out) reasons.push_back(variant.arm + ": " + variant.reason);
  CHECK(!knobs.empty(), "{}: no variant of arm {} can be compared with the reference ({})", where, printable(arm, 60),
        printable(fmt::format("{}", fmt::join(reasons, "; ")), 300));
  std::vector<KnobResult> results;
  for (auto& [key, knob] : knobs) {
    knob.flat_p = largest_equivalence_p(knob);
    results.push_back(std::move(knob));
  }
  sort(results);
  add_holm(results);
  std::ranges::for_each(results, answer);
  std::vector<double> own;
  for (const std::size_t seed : reference->finished())
    own.push_back(reference->result(seed).test.at(options.metric.name()));
  return {.data_set = run->data_name(),
          .backbone = run->backbone(),
          .arm = arm,
          .metric = options.metric,
          .margin = options.margin,
          .seeds = reference->seeds(),
          .users = run->units.size(),
          .reference = arm_summary(own),
          .knobs = std::move(results),
          .left_out = std::move(left_out)};
}

OrderedJson to_json(const SettingResult& setting) {
  OrderedJson json = {{"value", setting.value}, {"arm", setting.arm}, {"seeds", setting.seeds}};
  json.update(to_json(setting.summary));
  json["reference_same_seeds"] = to_json(setting.reference);
  json["same_ranks"] = setting.same_ranks;
  put(json, "change",
      setting.change ? Measured(relative_change(setting.change->value)) : Measured::none(setting.change.reason()));
  put(json, "interval_95", relative_change(stated_interval(setting.change)));
  put(json, "p", setting.p);
  put(json, "p_holm", setting.holm);
  put(json, "log_ratio", setting.change);
  put(json, "equivalence_p", setting.equivalence.p);
  put(json, "interval_90", relative_change(setting.equivalence.interval));
  json["equivalent"] = setting.is_flat();
  put(json, "least_margin", setting.reach());
  return json;
}

OrderedJson to_json(const KnobResult& knob, double margin) {
  OrderedJson json = {{"key", knob.key}, {"reference", knob.reference}, {"answer", name_of(knob.answer)}};
  json["words"] = knob.in_words(margin);
  put(json, "flat_p", knob.flat_p);
  put(json, "flat_p_holm", knob.flat_holm);
  const PaperKnob* const known = find_paper_knob(knob.key);
  json["paper"] = known == nullptr ? Json() : Json(known->says);
  json["settings"] = to_json(knob.settings);
  return json;
}

OrderedJson to_json(const Sensitivity& sensitivity) {
  OrderedJson json = {{"data_set", sensitivity.data_set}, {"backbone", sensitivity.backbone},
                      {"arm", sensitivity.arm},           {"metric", sensitivity.metric.name()},
                      {"margin", sensitivity.margin},     {"seeds", sensitivity.seeds},
                      {"users", sensitivity.users},       {"reference", to_json(sensitivity.reference)},
                      {"knobs", OrderedJson::array()},    {"left_out", OrderedJson::array()}};
  for (const KnobResult& knob : sensitivity.knobs) json["knobs"].push_back(to_json(knob, sensitivity.margin));
  for (const LeftOutVariant& variant : sensitivity.left_out)
    json["left_out"].push_back({{"arm", variant.arm}, {"reason", variant.reason}});
  put(json, "median_half_width", sensitivity.median_half_width());
  return json;
}

}  // namespace gainlens::analyses
