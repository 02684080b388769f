#include "analyses/gate_arm_effects.h"

#include "analyses/holm.h"
#include "analyses/permutation.h"
#include "analyses/statistics.h"
#include "core/check.h"
#include "core/counted.h"
#include "core/quantity.h"
#include "core/random.h"

#include <boost/math/distributions/students_t.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

namespace gainlens::analyses {
namespace {

using runfile::GateArmReading;
using runfile::GateArmsRun;

std::optional<std::size_t> place_of(const GateArmsRun& run, const std::string& arm) {
  const auto found = std::ranges::find(run.arms, arm);
  if (found == run.arms.end()) return std::nullopt;
  return static_cast<std::size_t>(found - run.arms.begin());
}

std::vector<double> over_documents(const GateArmsRun& run, std::size_t arm, std::size_t context,
                                   double GateArmReading::*number) {
  std::vector<double> values(run.documents());
  std::ranges::transform(run.readings[arm], values.begin(),
                         [&](const auto& document) { return document[context].*number; });
  return values;
}

/// [document] loss of one arm minus that of another.
std::vector<double> differences_of(const GateArmsRun& run, std::size_t arm, std::size_t other, std::size_t context) {
  std::vector<double> differences = over_documents(run, arm, context, &GateArmReading::nll);
  const std::vector<double> base = over_documents(run, other, context, &GateArmReading::nll);
  for (std::size_t i = 0; i < base.size(); ++i) differences[i] -= base[i];
  return differences;
}

/// The mean that n paired differences with this error show with the declared power. The shift of the non-central t is
/// taken as a shift of Student's t.
double detectable_mean(const Estimate& estimate) {
  const boost::math::students_t student(estimate.degrees_of_freedom);
  return (boost::math::quantile(student, 1 - significance / 2) +
          boost::math::quantile(student, runfile::declared.power)) *
         estimate.error;
}

/// An equivalence test over documents.
Equivalence document_equivalence(const std::vector<double>& differences) {
  const double margin = runfile::declared.margin;
  if (differences.size() < 2)
    return no_equivalence(margin, differences.size(), "a test over documents needs at least 2");
  const Equivalence test = test_equivalence(differences, margin);
  return test.p ? test : no_equivalence(margin, differences.size(), "the difference is the same in every document");
}

ArmDifference paired_difference(const std::vector<double>& differences) {
  const Equivalence test = document_equivalence(differences);
  ArmDifference found{mean(differences), mean_interval(differences), test.difference_p,
                      Measured::none("there is no error of the difference"), skewness(differences)};
  if (!test.difference_p) {
    found.interval = Maybe<Interval>::none(test.difference_p.reason());
    found.detectable = Measured::none(test.difference_p.reason());
  } else {
    found.detectable = detectable_mean(mean_estimate(differences));
  }
  return found;
}

/// The slope on ln T of one difference for each context.
double slope_of(const std::vector<double>& logarithms, const std::vector<double>& values) {
  const double centre = mean(logarithms);
  double product = 0, squares = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    product += (logarithms[i] - centre) * values[i];
    squares += (logarithms[i] - centre) * (logarithms[i] - centre);
  }
  return product / squares;
}

Maybe<Interval> resampled_interval(const std::vector<double>& values, std::uint64_t seed) {
  // Of fewer, percentiles of the bootstrap miss the truth in 9% (20 documents) to 50% (2) of simulated samples.
  const std::int64_t fewest = runfile::declared.fewest_documents;
  if (std::ssize(values) < fewest)
    return Maybe<Interval>::none(fmt::format("the interval of a slope needs {} documents", fewest));
  Random random(seed, 0x736c6f7065);
  std::vector<double> means(static_cast<std::size_t>(runfile::declared.resamples));
  for (double& one : means) {
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) sum += values[random.below(values.size())];
    one = sum / static_cast<double>(values.size());
  }
  std::ranges::sort(means);
  const auto tail = static_cast<std::size_t>((1 - confidence) / 2 * static_cast<double>(means.size()));
  return Interval{means[tail], means[means.size() - 1 - tail]};
}

Maybe<ContextSlope> context_slope(const GateArmsRun& run, std::size_t arm, std::uint64_t seed) {
  if (run.contexts.size() < 2) return Maybe<ContextSlope>::none("a slope needs at least 2 contexts");
  std::vector<double> logarithms(run.contexts.size());
  std::ranges::transform(run.contexts, logarithms.begin(),
                         [](std::int64_t tokens) { return std::log(static_cast<double>(tokens)); });
  std::vector<double> slopes;
  slopes.reserve(run.documents());
  double largest = 0;  // loss
  for (std::size_t document = 0; document < run.documents(); ++document) {
    std::vector<double> values;
    values.reserve(run.contexts.size());
    for (std::size_t context = 0; context < run.contexts.size(); ++context) {
      values.push_back(run.readings[arm][document][context].nll - run.readings[0][document][context].nll);
      largest = std::max(largest, std::abs(run.readings[0][document][context].nll));
    }
    slopes.push_back(slope_of(logarithms, values));
  }
  return ContextSlope{mean(slopes), resampled_interval(slopes, seed), skewness(slopes, largest)};
}

std::size_t trained_context(const GateArmsRun& run) {
  return static_cast<std::size_t>(std::ranges::find(run.contexts, run.trained_length) - run.contexts.begin());
}

GateArmEffect effect_of(const GateArmsRun& run, std::size_t arm, std::uint64_t seed) {
  GateArmEffect effect{run.arms[arm], {}, std::nullopt, std::nullopt};
  for (std::size_t context = 0; context < run.contexts.size(); ++context) {
    const auto mean_of = [&](double GateArmReading::*number) {
      return mean(over_documents(run, arm, context, number));
    };
    ArmInContext& made = effect.contexts.emplace_back(
        ArmInContext{run.contexts[context], mean_of(&GateArmReading::nll), mean_of(&GateArmReading::gate_mean),
                     mean_of(&GateArmReading::bos_mass), mean_of(&GateArmReading::n_eff), std::nullopt});
    if (arm > 0) made.to_native = paired_difference(differences_of(run, arm, 0, context));
  }
  if (arm == 0) return effect;
  effect.at_trained = document_equivalence(differences_of(run, arm, 0, trained_context(run)));
  effect.slope = context_slope(run, arm, seed);
  return effect;
}

std::vector<GateArmComparison> comparisons_of(const GateArmsRun& run, std::size_t judged,
                                              const std::vector<std::string>& against) {
  std::vector<GateArmComparison> comparisons;
  std::vector<Measured> p;
  for (const std::string& name : against) {
    const auto other = place_of(run, name);
    if (!other) continue;
    const ArmDifference difference = paired_difference(differences_of(run, judged, *other, run.contexts.size() - 1));
    p.push_back(difference.p);
    comparisons.push_back({name, difference, difference.p});
  }
  const std::vector<Measured> adjusted = holm_where_present(p);
  for (std::size_t i = 0; i < comparisons.size(); ++i) comparisons[i].adjusted_p = adjusted[i];
  return comparisons;
}

CalibrationSummary summary_of(const GateArmsRun& run) {
  CalibrationSummary summary{run.calibration.size(), {}, std::nullopt, std::nullopt, std::nullopt, 0, 0};
  std::vector<double> lambdas;
  for (const runfile::CalibratedHead& head : run.calibration) {
    const double share = 1 / static_cast<double>(run.calibration.size());
    summary.raw_mean += head.raw_mean * share;
    summary.gate_mean += head.gate.value_or(1) * share;
    if (!head.gate) continue;
    if (!head.lambda) {
      summary.unsolved.push_back(head);
      continue;
    }
    lambdas.push_back(*head.lambda);
    if (head.gain) summary.largest_miss = std::max(summary.largest_miss.value_or(0), std::abs(*head.gain - *head.gate));
  }
  if (lambdas.empty()) return summary;
  const auto [least, most] = std::ranges::minmax(lambdas);
  summary.lambda = Interval{least, most};
  summary.lambda_median = median(lambdas);
  return summary;
}

/// Findings over documents that are too skewed for a ruling, which the reasons name.
class SkewedFindings {
 public:
  explicit SkewedFindings(GateArmEffects& effects) : effects_(effects) {}
  /// Whether something may be ruled from differences with this skewness.
  bool allow(const Measured& skewness, const std::string& what) {
    if (!skewness || std::abs(*skewness) <= max_skewness) return true;
    any_ = true;
    effects_.reasons.push_back(
        fmt::format("{}: nothing is ruled from it, for its documents are skewed ({:+.2f}; at most {} "
                    "in magnitude)",
                    what, *skewness, max_skewness));
    return false;
  }
  bool any() const { return any_; }

 private:
  GateArmEffects& effects_;
  bool any_ = false;
};

/// Rules on the prediction by the rule that the request declares.
void rule(const std::vector<std::string>& needed, GateArmEffects& effects) {
  const auto judged = std::ranges::find(effects.arms, effects.judged, &GateArmEffect::arm);
  effects.ruling = PredictionRuling::not_judged;
  const bool all = judged != effects.arms.end() && effects.comparisons.size() == needed.size();
  if (!all || !effects.arms.back().contexts.back().to_native || judged->contexts.size() < 2 ||
      judged->contexts.back().tokens == effects.trained_length) {
    effects.reasons.push_back(
        fmt::format("the prediction needs the arms {} and its controls, and a context longer than the trained one",
                    effects.judged));
    return;
  }
  const auto interval = judged->at_trained->interval;
  const Maybe<ContextSlope>& slope = *judged->slope;
  if (!interval || !slope || !slope->interval) {
    effects.reasons.push_back(!interval ? interval.reason() : !slope ? slope.reason() : slope->interval.reason());
    return;
  }
  const double margin = runfile::declared.margin;
  // Two findings can contradict, so that each has half of 5%: here one side of a 95% interval.
  const auto trained = std::ranges::find(judged->contexts, effects.trained_length, &ArmInContext::tokens);
  const Maybe<Interval>& wide = trained->to_native->interval;
  bool not_worse = interval->high < margin, worse = wide && wide->low > margin;
  effects.reasons.push_back(fmt::format(
      "at {} tokens {} is {} ({}% interval [{:+.4f}, {:+.4f}], margin {})", effects.trained_length, effects.judged,
      not_worse ? "not worse than native by the margin"
      : worse   ? "worse than native by more than the margin"
                : "not shown to be within the margin",
      worse ? 95 : 90, worse ? wide->low : interval->low, worse ? wide->high : interval->high, margin));
  SkewedFindings skewed(effects);
  if (!skewed.allow(trained->to_native->skewness,
                    fmt::format("{} - native at {} tokens", effects.judged, effects.trained_length)))
    not_worse = worse = false;
  bool better = true, worse_than_native = false;
  for (const GateArmComparison& one : effects.comparisons) {
    const std::string what =
        fmt::format("{} - {} at {} tokens", effects.judged, one.against, judged->contexts.back().tokens);
    const bool allowed = skewed.allow(one.difference.skewness, what);
    better = better && allowed && one.better();
    worse_than_native = worse_than_native || (one.against == "native" && allowed && one.worse());
    effects.reasons.push_back(fmt::format(
        "at {} tokens {} is {} {} ({:+.4f}{})", judged->contexts.back().tokens, effects.judged,
        one.better()  ? "better than"
        : one.worse() ? "worse than"
                      : "not shown to differ from",
        one.against, one.difference.mean, one.adjusted_p ? fmt::format(", Holm's p {:.2g}", *one.adjusted_p) : ""));
  }
  const bool falls = slope->interval->high < 0;
  const bool slope_allowed = skewed.allow(slope->skewness, "the slope");
  effects.reasons.push_back(
      fmt::format("its difference from native {} as the context grows ({:+.4f} [{:+.4f}, {:+.4f}] "
                  "for each e-fold)",
                  falls                      ? "falls"
                  : slope->interval->low > 0 ? "rises"
                                             : "is not shown to fall or rise",
                  slope->value, slope->interval->low, slope->interval->high));
  // What is sound may contradict alone. Where something skewed is left out, "not shown" would say that it was tested.
  effects.ruling = not_worse && better && falls && slope_allowed ? PredictionRuling::supported
                   : worse || worse_than_native                  ? PredictionRuling::contradicted
                   : skewed.any()                                ? PredictionRuling::not_judged
                                                                 : PredictionRuling::not_shown;
}

/// The columns of a paired difference, but for its mean.
std::vector<TableColumn> difference_columns() {
  return {{.key = "interval", .heading = "95% interval", .show = ends_as(with_sign<4>), .csv = "delta"},
          {.key = "p", .heading = "", .show = significant<2>, .csv = ""},
          {.key = "detectable", .heading = "detectable", .show = fixed<4>},
          {.key = "skewness", .heading = "skewness", .show = with_sign<2>, .csv = ""}};
}

/// @param differs  empty: native
void add_difference(std::vector<TableValue>& row, const std::optional<ArmDifference>& differs) {
  row.push_back(value_of(differs, &ArmDifference::interval));
  for (const auto member : {&ArmDifference::p, &ArmDifference::detectable, &ArmDifference::skewness})
    row.push_back(value_of(differs, member));
}

/// How the change at the trained length stands to the margin.
std::string at_trained_words(const Equivalence& test) {
  if (!test.interval) return "not known";
  const double centre = (test.interval->low + test.interval->high) / 2;
  switch (test.flatness) {
    case Flatness::equivalent:
      return fmt::format("equivalent within ±{}", test.margin);
    case Flatness::changes:
      return centre < 0 ? "better" : "worse";
    case Flatness::not_shown:
    case Flatness::unknown:
      break;
  }
  return fmt::format("not shown within ±{}", test.margin);
}

Table contexts_table(std::span<const GateArmEffect> arms) {
  Table table{"gate-arms-by-context", "", {{.key = "arm", .heading = "arm", .show = verbatim, .json = ""}}};
  table.columns.insert(table.columns.end(), {{.key = "tokens", .heading = "context", .show = token_count},
                                             {.key = "nll", .heading = "loss", .show = fixed<4>},
                                             {.key = "delta", .heading = "change", .show = with_sign<4>}});
  for (TableColumn& column : difference_columns()) table.columns.push_back(std::move(column));
  table.columns.insert(table.columns.end(), {{.key = "gate_mean", .heading = "mean gate", .show = fixed<3>},
                                             {.key = "bos_mass", .heading = "BOS mass", .show = fixed<3>},
                                             {.key = "n_eff", .heading = "n_eff", .show = fixed<1>}});
  for (const GateArmEffect& arm : arms) {
    for (const ArmInContext& one : arm.contexts) {
      std::vector<TableValue>& row = table.rows.emplace_back();
      row = {arm.arm, one.tokens, one.nll, value_of(one.to_native, &ArmDifference::mean)};
      add_difference(row, one.to_native);
      row.insert(row.end(), {one.gate_mean, one.bos_mass, one.n_eff});
    }
  }
  return table;
}

OrderedJson to_json(const CalibrationSummary& summary) {
  OrderedJson json = {{"heads", summary.heads}, {"gate_mean", summary.gate_mean}, {"raw_mean", summary.raw_mean}};
  json["unsolved"] = OrderedJson::array();
  for (const runfile::CalibratedHead& head : summary.unsolved)
    json["unsolved"].push_back({{"layer", head.layer}, {"head", head.head}});
  if (summary.lambda) json["lambda"] = {summary.lambda->low, summary.lambda->high};
  if (summary.lambda_median) json["lambda_median"] = *summary.lambda_median;
  if (summary.largest_miss) json["largest_miss"] = *summary.largest_miss;
  return json;
}

}  // namespace

bool GateArmComparison::better() const {
  return difference.mean < 0 && adjusted_p && *adjusted_p <= significance;
}

bool GateArmComparison::worse() const {
  return difference.mean > 0 && adjusted_p && *adjusted_p <= significance;
}

GateArmEffects gate_arm_effects(const GateArmsRun& run, std::uint64_t seed) {
  const std::vector<std::string> needed = run.gated ? std::vector<std::string>{"native", "constant", "permuted"}
                                                    : std::vector<std::string>{"native", "permuted"};
  GateArmEffects effects{
      run.documents(), run.trained_length, {}, run.gated ? "gain" : "modulated", {}, PredictionRuling::not_judged, {},
      summary_of(run)};
  for (std::size_t arm = 0; arm < run.arms.size(); ++arm) effects.arms.push_back(effect_of(run, arm, seed));
  if (const auto judged = place_of(run, effects.judged)) effects.comparisons = comparisons_of(run, *judged, needed);
  rule(needed, effects);
  return effects;
}

std::string_view in_words(PredictionRuling ruling) {
  switch (ruling) {
    case PredictionRuling::supported:
      return "supported";
    case PredictionRuling::contradicted:
      return "contradicted";
    case PredictionRuling::not_shown:
      return "not shown";
    case PredictionRuling::not_judged:
      return "not judged";
  }
  ASSERT(false, "ruling {}", static_cast<int>(ruling));
}

Table contexts_of(const GateArmEffects& effects) {
  Table table = contexts_table(effects.arms);
  table.caption = fmt::format(
      "Loss in nats per token, and its change from native, of each arm in each context; {}. \"Detectable\" is the "
      "change that so many documents show with {:.0f}% power, \"skewness\" that of their changes. BOS mass and n_eff "
      "are over the queries that predict the targets.",
      counted(effects.documents, "document"), 100 * runfile::declared.power);
  return table;
}

Table rulings_of(const GateArmEffects& effects) {
  Table table{
      "gate-arms-rulings",
      "The change of each arm at the trained length, and by how much it grows where the context is e times as long.",
      {{.key = "arm", .heading = "arm", .show = verbatim},
       {.key = "at_trained_length",
        .heading = fmt::format("at {} tokens", format_count(effects.trained_length)),
        .show = words},
       {.key = "slope", .heading = "slope on ln T", .show = with_sign<4>},
       {.key = "slope_interval", .heading = "95% interval", .show = ends_as(with_sign<4>), .csv = "slope"},
       {.key = "slope_skewness", .heading = "skewness", .show = with_sign<2>}}};
  for (const GateArmEffect& arm : effects.arms) {
    if (!arm.at_trained) continue;
    const Maybe<ContextSlope>& slope = *arm.slope;
    std::vector<TableValue>& row = table.rows.emplace_back();
    row = {arm.arm, at_trained_words(*arm.at_trained)};
    if (slope)
      row.insert(row.end(), {slope->value, slope->interval, slope->skewness});
    else
      row.insert(row.end(), {{std::nullopt, slope.reason()}, {}, {}});
  }
  return table;
}

Table comparisons_of(const GateArmEffects& effects) {
  Table table{
      "gate-arms-comparisons",
      fmt::format("{} less each other arm at the longest context, and Holm's p of all of these.", effects.judged),
      {{.key = "against", .heading = "against", .show = verbatim},
       {.key = "delta", .heading = "difference", .show = with_sign<4>}}};
  for (TableColumn& column : difference_columns()) table.columns.push_back(std::move(column));
  table.columns.push_back({.key = "adjusted_p", .heading = "Holm's p", .show = significant<2>});
  for (const GateArmComparison& one : effects.comparisons) {
    std::vector<TableValue>& row = table.rows.emplace_back();
    row = {one.against, one.difference.mean};
    add_difference(row, one.difference);
    row.emplace_back(one.adjusted_p);
  }
  return table;
}

OrderedJson to_json(const GateArmEffects& effects) {
  OrderedJson json = {{"documents", effects.documents}, {"trained_length", effects.trained_length}};
  json["declared"] = runfile::to_json(runfile::declared);
  json["calibration"] = to_json(effects.calibration);
  json["arms"] = OrderedJson::array();
  const Table rulings = rulings_of(effects);
  std::size_t ruling = 0;
  for (const GateArmEffect& arm : effects.arms) {
    OrderedJson& made = json["arms"].emplace_back(OrderedJson{{"arm", arm.arm}});
    made["contexts"] = to_json(contexts_table({&arm, 1}));
    if (!arm.at_trained) continue;
    made.update(row_json(rulings, ruling++));
    made["at_trained_length"] = to_json(*arm.at_trained);
  }
  json["judged"] = effects.judged;
  json["comparisons"] = to_json(comparisons_of(effects));
  json["ruling"] = in_words(effects.ruling);
  json["reasons"] = effects.reasons;
  return json;
}

}  // namespace gainlens::analyses
