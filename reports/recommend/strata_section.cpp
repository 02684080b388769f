#include "reports/recommend/compared_arms.h"
#include "reports/recommend/paper_numbers.h"
#include "reports/recommend/stratum_words.h"
#include "reports/words/numbers.h"

#include <algorithm>

namespace gainlens::reports {
namespace {

using analyses::ArmComparison, analyses::MetricGain, analyses::StratifiedGains, analyses::StratumGain,
    analyses::StratumInteraction, analyses::StratumKind;

constexpr StratumKind kinds[] = {StratumKind::item_frequency, StratumKind::user_activity};

const StratifiedGains& gains_of(const ArmComparison& comparison, StratumKind kind) {
  return kind == StratumKind::item_frequency ? comparison.by_item : comparison.by_user;
}

std::string stem_of(StratumKind kind) {
  return kind == StratumKind::item_frequency ? "strata-items" : "strata-users";
}

/// Whether the paper prints something of these strata.
bool paper_has(const ArmComparison& comparison, const StratifiedGains& gains) {
  return gains.composition.size() == 5 &&
         std::any_of(comparison.metrics.begin(), comparison.metrics.end(), [&](const MetricGain& gain) {
           return analyses::paper_stratum(comparison, gains.kind, 0, gain.metric) != nullptr;
         });
}

std::string caption_of(const ComparedArms& arms, const StratifiedGains& gains) {
  std::string caption = fmt::format(
      "{}. {} Δ is the relative change and p its p over seeds and users, with Holm's correction over strata.",
      arms.title, stratum_rule(gains));
  if (paper_has(arms.comparison, gains))
    caption += fmt::format(" \"paper\" is the change that the paper prints for its own strata of {}.",
                           in_words(arms.comparison.paper));
  return caption;
}

std::vector<std::string> stratum_row(const ArmComparison& comparison, const StratifiedGains& gains, std::size_t i) {
  const StratumComposition& who = gains.composition[i];
  std::vector<std::string> row = {stratum_label(gains, i), std::to_string(who.users), shown(who.mean_target_count),
                                  shown(who.mean_history_length)};
  for (std::size_t metric = 0; metric < comparison.metrics.size(); ++metric) {
    const StratumGain& gain = (*gains.gains)[metric].strata[i];
    const double* const paper = analyses::paper_stratum(comparison, gains.kind, i, comparison.metrics[metric].metric);
    row.push_back(change_number(gain.relative));
    row.push_back(p_number(gain.crossed_holm));
    if (paper_has(comparison, gains)) row.push_back(paper != nullptr ? change_number(*paper) : "–");
  }
  return row;
}

PaperTable strata_table(const ComparedArms& arms, StratumKind kind, std::size_t number) {
  const ArmComparison& comparison = arms.comparison;
  const StratifiedGains& gains = gains_of(comparison, kind);
  PaperTable table{numbered_stem(stem_of(kind), number),
                   caption_of(arms, gains),
                   {{stratum_heading(kind), true}, {"users"}, {"target count"}, {"known items"}},
                   {},
                   {{"", 4}}};
  for (const MetricGain& gain : comparison.metrics) {
    const bool paper = paper_has(comparison, gains);
    table.spans.push_back({gain.metric.title(), paper ? 3U : 2U});
    for (const char* heading : {"Δ", "p"}) table.columns.push_back({heading});
    if (paper) table.columns.push_back({"paper"});
  }
  for (std::size_t i = 0; i < gains.composition.size(); ++i) table.rows.push_back(stratum_row(comparison, gains, i));
  return table;
}

/// "first minus last" of both kinds of strata, and the slopes of the regression.
PaperTable interaction_table(const ComparedArms& arms, std::size_t number) {
  const ArmComparison& comparison = arms.comparison;
  PaperTable table{numbered_stem("interactions", number),
                   arms.title +
                       ". Does the first stratum gain more than the last? Relative: ratio of the two relative gains "
                       "minus 1. Difference: of the gains in units of the metric. The two can differ in sign, because "
                       "rare items have a lower baseline. Errors are over seeds and users; users with one target item "
                       "count as one.",
                   {{"", true}, {"relative"}, {"95% interval"}, {"p"}, {"difference"}, {"95% interval"}, {"p"}},
                   {}};
  for (const StratumKind kind : kinds) {
    const StratifiedGains& gains = gains_of(comparison, kind);
    if (!gains.gains) continue;
    table.rows.push_back({kind == StratumKind::item_frequency ? "rarest minus most popular items"
                                                              : "least active minus most active users"});
    for (std::size_t i = 0; i < gains.gains->size(); ++i) {
      const StratumInteraction& contrast = (*gains.gains)[i];
      const auto& difference = contrast.difference;
      table.rows.push_back({comparison.metrics[i].metric.title(), change_of_log(contrast.log_ratio),
                            change_interval(contrast.log_ratio), p_number(contrast.log_ratio),
                            difference ? shown(difference->value) : "–", shown(stated_interval(difference)),
                            p_number(difference)});
    }
  }
  return table;
}

PaperTable slopes_table(const ComparedArms& arms, std::size_t number) {
  const ArmComparison& comparison = arms.comparison;
  PaperTable table{numbered_stem("slopes", number),
                   arms.title +
                       ". Slopes of the difference of each user, mean over the runs, on ln(1 + training count of the "
                       "target) and on ln(known items), both at once. A negative slope: rare items, or users with few "
                       "items, gain more. Units of the metric; p over seeds and target items.",
                   {{"metric", true}, {"frequency"}, {"95% interval"}, {"p"}, {"length"}, {"95% interval"}, {"p"}},
                   {}};
  for (const MetricGain& gain : comparison.metrics) {
    if (!gain.regression) continue;
    std::vector<std::string> row = {gain.metric.title()};
    for (const analyses::GainSlope* slope : {&gain.regression->frequency, &gain.regression->length}) {
      row.push_back(shown(slope->value));
      row.push_back(shown(stated_interval(slope->crossed)));
      row.push_back(p_number(slope->crossed));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

void add_blocks(std::vector<Block>& all, const ComparedArms& arms, std::size_t number) {
  const ArmComparison& comparison = arms.comparison;
  for (const StratumKind kind : kinds) {
    const StratifiedGains& gains = gains_of(comparison, kind);
    if (gains.gains)
      all.emplace_back(strata_table(arms, kind, number));
    else
      all.push_back(absence(fmt::format("{}, {}: {}.", arms.title, stratum_heading(kind), gains.gains.reason())));
  }
  all.emplace_back(interaction_table(arms, number));
  all.emplace_back(slopes_table(arms, number));
  const std::string correlation = correlation_sentence(comparison.length_frequency_correlation);
  if (!correlation.empty()) all.push_back(paragraph(correlation));
}

std::vector<Block> strata_blocks(Comparisons comparisons) {
  std::vector<Block> all;
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    const bool folded = comparisons.size() > 1;
    if (folded) all.emplace_back(FoldStart{comparisons[i].title});
    add_blocks(all, comparisons[i], i);
    if (folded) all.emplace_back(FoldEnd{});
  }
  return all;
}

std::vector<CsvTable> strata_tables(const ComparedArms& arms) {
  CsvTable table{
      "strata",
      {"kind", "stratum", "label", "users", "mean_target_count", "mean_history_length", "metric", "baseline_mean",
       "candidate_mean", "relative_difference", "paired_t_naive_p", "paired_t_naive_p_holm", "difference",
       "difference_p", "log_ratio", "log_ratio_low", "log_ratio_high", "log_ratio_p", "crossed_p_holm"},
      {}};
  for (const StratumKind kind : kinds) {
    const StratifiedGains& gains = gains_of(arms.comparison, kind);
    for (std::size_t metric = 0; gains.gains && metric < gains.gains->size(); ++metric) {
      for (std::size_t i = 0; i < gains.composition.size(); ++i) {
        const StratumGain& gain = (*gains.gains)[metric].strata[i];
        const StratumComposition& who = gains.composition[i];
        const auto& d = gain.difference;
        const auto& l = gain.log_ratio;
        const auto interval = stated_interval(l);
        table.rows.push_back(
            {std::string(name_of(kind)), static_cast<std::int64_t>(i + 1), stratum_label(gains, i), who.users,
             who.mean_target_count, who.mean_history_length, arms.comparison.metrics[metric].metric.name(),
             cell(gain.baseline), cell(gain.candidate), cell(gain.relative), cell(gain.naive_p), cell(gain.naive_holm),
             d ? Cell(d->value) : empty_cell(), cell(stated_p(d)), l ? Cell(l->value) : empty_cell(),
             interval ? Cell(interval->low) : empty_cell(), interval ? Cell(interval->high) : empty_cell(),
             cell(stated_p(l)), cell(gain.crossed_holm)});
      }
    }
  }
  return {table};
}

}  // namespace

const Section<ComparedArms> strata_section = {
    .name = "strata",
    .title = "Rare items and cold users",
    .question = "Who gains?",
    .files = {"strata-items", "strata-users", "interactions", "slopes", "strata"},
    .blocks = strata_blocks,
    .tables = strata_tables};

}  // namespace gainlens::reports
