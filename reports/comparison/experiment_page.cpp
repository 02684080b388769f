#include "reports/comparison/experiment_page.h"

#include "core/counted.h"
#include "core/error.h"
#include "reports/comparison/decided_changes.h"
#include "reports/comparison/forest.h"
#include "reports/page/typography.h"
#include "reports/section.h"
#include "reports/words/compare_words.h"
#include "reports/words/numbers.h"
#include "reports/words/score_words.h"
#include "runfile/trained_run.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

namespace gainlens::reports {
namespace {

using analyses::ExperimentComparison, analyses::GainDecision, analyses::UnitScoreGain;

/// One comparison, as the sections see it.
struct ComparedExperiment {
  ExperimentComparison comparison;
  std::vector<GainDecision> decisions;  ///< [score]
  std::string title;                    ///< differs from those of the others
  std::size_t style;                    ///< of the candidate's arm, whatever its variant

  const std::string& label() const { return title; }
};
using Experiments = std::span<const ComparedExperiment>;

std::vector<ComparedExperiment> compared(std::span<const ExperimentComparison> comparisons) {
  std::vector<ComparedExperiment> all;
  std::vector<std::string> arms;  // in the order of their styles
  const auto style_of = [&](const std::string& label) {
    const std::string arm = runfile::arm_of(label);
    const auto found = std::ranges::find(arms, arm);
    if (found != arms.end()) return static_cast<std::size_t>(found - arms.begin());
    arms.push_back(arm);
    return arms.size() - 1;
  };
  for (const ExperimentComparison& comparison : comparisons) {
    const auto same = [&](const ExperimentComparison& other) { return other.title() == comparison.title(); };
    const bool several = std::ranges::count_if(comparisons, same) > 1;
    const std::string split = several ? fmt::format(", split {}", short_checksum(comparison.split)) : "";
    style_of(comparison.baseline);
    all.push_back({comparison, {}, comparison.title() + split, style_of(comparison.candidate)});
  }
  for (const GainDecision& row : analyses::decide(comparisons)) all[row.comparison].decisions.push_back(row);
  return all;
}

std::vector<DecidedChange> decided(Experiments experiments) {
  std::vector<DecidedChange> changes;
  for (const ComparedExperiment& one : experiments) {
    for (std::size_t score = 0; score < one.decisions.size(); ++score)
      changes.push_back({one.title, score_title(one.comparison.scores[score].score.name), one.decisions[score]});
  }
  return changes;
}

/// What a unit is called; "unit" if the comparisons differ in it.
std::string unit_of(Experiments experiments) {
  return common_name(experiments, &ExperimentComparison::unit, "unit");
}

std::string baseline_of(Experiments experiments) {
  return common_name(experiments, &ExperimentComparison::baseline, "the baseline");
}

std::string interval_cell(const Maybe<analyses::CrossedEstimate>& estimate) {
  return analyses::shown_ends(estimate)
             ? compare_words::ends_of(estimate, score_interval) + compare_words::kind_of(estimate)
             : "–";
}

/// How many units chose the best epoch and count all the same, each sentence once and with a blank in front.
std::string selection_notes(Experiments experiments) {
  std::string notes;
  for (const ComparedExperiment& one : experiments) {
    const std::string note = one.comparison.selection_note();
    if (!note.empty() && notes.find(note) == std::string::npos) notes += " " + note;
  }
  return notes;
}

/// "loss (nats), lower is better"
std::string score_heading(const UnitScore& score) {
  const std::string measure = score.measure == "1" ? "" : fmt::format(" ({})", score.measure);
  return score_title(score.name) + measure + (score.higher_is_better ? "" : ", lower is better");
}

PaperTable decisions_table(Experiments experiments) {
  const std::string unit = unit_of(experiments);
  const bool tests_equivalence = std::ranges::any_of(experiments, [](const ComparedExperiment& one) {
    return std::ranges::any_of(one.comparison.scores,
                               [](const UnitScoreGain& gain) { return gain.equivalence.has_value(); });
  });
  PaperTable table{
      "decisions",
      fmt::format("Who is better, and how sure. A change is the difference of the means over the {0}s, in the unit of "
                  "the score. Its interval and p count other seeds and other {0}s: this p decides, at 5%. {1}{2}",
                  unit, decisions_in_words(decided(experiments), unit + "s"), selection_notes(experiments)),
      {{"score", true},
       {"change"},
       {interval_heading(seed_counts(experiments))},
       {"p"},
       {"Holm's p"},
       {"naive p"},
       {"decision", true}},
      {},
      {{"", 1}, {fmt::format("seeds and {}s", unit), 4}, {"seeds alone", 1}, {"", 1}}};
  if (tests_equivalence) {
    table.columns.push_back({"equivalence", true});
    table.spans.push_back({"", 1});
  }
  for (const ComparedExperiment& one : experiments) {
    table.rows.push_back({fmt::format("{}, {}", one.title, counted(one.comparison.baseline_seeds.size(), "seed"))});
    for (std::size_t i = 0; i < one.decisions.size(); ++i) {
      const UnitScoreGain& gain = one.comparison.scores[i];
      table.rows.push_back({score_heading(gain.score), score_change(gain.seeds.difference),
                            interval_cell(gain.difference), p_on_page(one.decisions[i].p),
                            p_on_page(one.decisions[i].holm), p_on_page(gain.seeds.naive_p),
                            one.decisions[i].in_words()});
      if (tests_equivalence)
        table.rows.back().push_back(gain.equivalence ? equivalence_in_words(*gain.equivalence) : "–");
    }
  }
  return table;
}

/// One figure for each unit of measurement, at most so many.
constexpr std::size_t max_figures = 4;

std::string forest_stem(std::size_t number) {
  return number == 0 ? "forest" : fmt::format("forest-{}", number + 1);
}

/// The changes of the scores with one unit of measurement.
Forest forest_of(Experiments experiments, const std::string& measure) {
  std::vector<std::pair<std::string, std::string>> names;
  std::set<std::string> splits;
  for (const ComparedExperiment& one : experiments) {
    names.emplace_back(one.comparison.candidate, printable(one.comparison.data_set, 60));
    splits.insert(one.comparison.split);
  }
  Forest forest{.groups = {},
                .names = forest_names(names, splits.size()),
                .rows = {},
                .axis = fmt::format("change against {}{}", baseline_of(experiments),
                                    measure == "1" ? "" : fmt::format(" ({})", measure)),
                .unit = unit_of(experiments),
                .number = score_change,
                // Levels of noise cost more than arms differ, and belong on one axis.
                .max_reaches = 30};
  const std::vector<UnitScoreGain>& scores = experiments.front().comparison.scores;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (scores[i].score.measure != measure) continue;
    forest.groups.push_back(score_title(scores[i].score.name) +
                            (scores[i].score.higher_is_better ? "" : ", lower is better"));
    auto& group = forest.rows.emplace_back();
    for (const ComparedExperiment& one : experiments) {
      const UnitScoreGain& gain = one.comparison.scores[i];
      group.push_back(forest_row(one.style, gain.difference, gain.seeds.interval, [](double value) { return value; }));
    }
  }
  return forest;
}

std::vector<std::string> measures_of(Experiments experiments) {
  std::vector<std::string> measures;
  for (const UnitScoreGain& gain : experiments.front().comparison.scores)
    if (std::ranges::find(measures, gain.score.measure) == measures.end()) measures.push_back(gain.score.measure);
  return measures;
}

/// Whether all comparisons have the same scores, so that one figure can hold them.
bool have_same_scores(Experiments experiments) {
  const auto scores_of = [](const ComparedExperiment& one) {
    std::vector<UnitScore> scores;
    for (const UnitScoreGain& gain : one.comparison.scores) scores.push_back(gain.score);
    return scores;
  };
  return std::ranges::all_of(
      experiments, [&](const ComparedExperiment& one) { return scores_of(one) == scores_of(experiments.front()); });
}

std::vector<Block> decisions_blocks(Experiments experiments) {
  std::vector<Block> all = {paragraph(answer_in_words(decided(experiments))), decisions_table(experiments)};
  for (const std::string& note : notes_on_few_seeds(seed_counts(experiments), unit_of(experiments)))
    all.push_back(paragraph(note));
  for (const ComparedExperiment& one : experiments) {
    const std::string far = compare_words::far_seeds(one.comparison.scores, one.comparison.candidate_seeds,
                                                     [](const UnitScoreGain& gain) { return gain.score.name; });
    if (!far.empty()) all.push_back(paragraph(one.comparison.title() + ": " + far));
  }
  if (!have_same_scores(experiments)) {
    all.push_back(absence("There is no figure: the comparisons have different scores."));
    return all;
  }
  const std::vector<std::string> measures = measures_of(experiments);
  for (std::size_t i = 0; i < measures.size() && i < max_figures; ++i) {
    const Forest forest = forest_of(experiments, measures[i]);
    const Caption caption = {
        fmt::format("The change of each score against {}: differences of means. {}", baseline_of(experiments),
                    forest_lines_in_words(forest)),
        fmt::format("It shows which changes are larger than what other seeds and other {}s would bring about.",
                    unit_of(experiments)),
        forest_cannot};
    all.emplace_back(CaptionedFigure{forest_stem(i), "Changes with their intervals", caption,
                                     forest_figure(forest, forest_stem(i))});
  }
  return all;
}

void add_json(const ComparedExperiment& one, OrderedJson& summary) {
  summary.update(to_json(one.comparison));
  for (const GainDecision& row : one.decisions)
    summary["scores"][one.comparison.scores[row.metric].score.name]["decision"] = to_json(row);
}

/// The numbers of the table and of the figures.
CsvTable csv_of(Experiments experiments) {
  CsvTable table{"decisions",
                 {"data_set", "unit", "baseline", "candidate", "seeds", "units", "split", "score", "measure", "better",
                  "difference", "low", "high", "interval", "p", "p_holm"},
                 {}};
  for (const char* name : {"paired_t_naive_p", "paired_t_naive_low", "paired_t_naive_high", "decision"})
    table.header.emplace_back(name);
  for (const ComparedExperiment& one : experiments) {
    const ExperimentComparison& c = one.comparison;
    for (const GainDecision& row : one.decisions) {
      const UnitScoreGain& gain = c.scores[row.metric];
      std::vector<Cell> cells = {c.data_set,
                                 c.unit,
                                 c.baseline,
                                 c.candidate,
                                 cell(c.baseline_seeds.size()),
                                 cell(c.units),
                                 c.split,
                                 gain.score.name,
                                 gain.score.measure,
                                 std::string(gain.score.higher_is_better ? "higher" : "lower"),
                                 gain.seeds.difference};
      append(cells, analyses::shown_ends(gain.difference));
      cells.emplace_back(interval_kind(gain.difference));
      for (const Measured& p : {row.p, row.holm, gain.seeds.naive_p}) cells.push_back(cell(p));
      append(cells, gain.seeds.interval);
      cells.emplace_back(row.in_words());
      table.rows.push_back(std::move(cells));
    }
  }
  return table;
}

PaperTable scores_table(Experiments experiments) {
  PaperTable table{
      "scores",
      fmt::format("Mean (standard deviation) over seeds of each score on the test {}s.", unit_of(experiments)),
      {{"score", true}, {"baseline"}, {"candidate"}, {"change"}},
      {}};
  for (const ComparedExperiment& one : experiments) {
    table.rows.push_back({one.title});
    for (const UnitScoreGain& gain : one.comparison.scores)
      table.rows.push_back({score_heading(gain.score), score_number(gain.seeds.baseline),
                            score_number(gain.seeds.candidate), score_change(gain.seeds.difference)});
  }
  return table;
}

std::string bootstrap_on_page(const UnitScoreGain& gain) {
  const auto& bootstrap = gain.bootstrap.difference;
  return bootstrap ? score_interval(bootstrap->range) + (bootstrap->is_95 ? "" : " (no level)") : "–";
}

PaperTable tests_table(Experiments experiments) {
  PaperTable table{
      "tests",
      fmt::format("Every test of these changes. The p over seeds alone are naive: they take the {0}s as fixed. The "
                  "bootstrap draws seeds and {0}s; below ten seeds its range has no level.",
                  unit_of(experiments)),
      {{"score", true}, {"p"}, {"paired t"}, {"signs"}, {"signed ranks"}, {"sign flips"}, {"range of the change"}},
      {},
      {{"", 1}, {fmt::format("seeds and {}s", unit_of(experiments)), 1}, {"naive: seeds alone", 4}, {"bootstrap", 1}}};
  for (const ComparedExperiment& one : experiments) {
    table.rows.push_back({one.title});
    for (const UnitScoreGain& gain : one.comparison.scores)
      table.rows.push_back({score_heading(gain.score), p_on_page(analyses::stated_p(gain.difference)),
                            p_on_page(gain.seeds.naive_p), p_on_page(gain.seeds.signs.p), p_on_page(gain.seeds.ranks.p),
                            p_on_page(gain.seeds.flips.p), bootstrap_on_page(gain)});
  }
  return table;
}

/// What was compared, each sentence once.
std::vector<std::string> data_in_words(Experiments experiments) {
  std::vector<std::string> sentences;
  for (const ComparedExperiment& one : experiments) {
    const ExperimentComparison& c = one.comparison;
    std::string sentence =
        fmt::format("{}: {}, seeds {}, split {}.", printable(c.data_set, 60), counted(c.units, c.unit),
                    compare_words::paired_seeds(c.baseline_seeds, c.candidate_seeds), short_checksum(c.split));
    if (std::ranges::find(sentences, sentence) == sentences.end()) sentences.push_back(std::move(sentence));
  }
  return sentences;
}

std::vector<Block> scores_blocks(Experiments experiments) {
  std::vector<Block> all = {scores_table(experiments)};
  for (const std::string& sentence : data_in_words(experiments)) all.push_back(paragraph(sentence));
  all.emplace_back(FoldStart{"Every test of these changes"});
  all.emplace_back(tests_table(experiments));
  all.emplace_back(FoldEnd{});
  return all;
}

std::vector<std::string> decisions_files() {
  std::vector<std::string> files = {"decisions"};
  for (std::size_t i = 0; i < max_figures; ++i) files.push_back(forest_stem(i));
  return files;
}

const Section<ComparedExperiment> experiment_decisions = {
    .name = "decisions",
    .title = "Who is better",
    .question = "Which arm is better, by how much, and how sure?",
    .files = decisions_files(),
    .keys = {"scores"},
    .blocks = decisions_blocks,
    .add_json = add_json,
    .tables =
        [](const ComparedExperiment& one) {
          return std::vector<CsvTable>{csv_of({&one, 1})};
        },
    .common_tables = [](Experiments experiments) { return std::vector<CsvTable>{csv_of(experiments)}; }};

const Section<ComparedExperiment> experiment_scores = {.name = "scores",
                                                       .title = "Scores",
                                                       .question = "What does each arm reach?",
                                                       .files = {"scores", "tests"},
                                                       .blocks = scores_blocks};

const Section<ComparedExperiment> experiment_reading = {
    .name = "reading",
    .title = "How to read this page",
    .question = "What do these numbers not say?",
    .blocks = [](Experiments experiments) { return std::vector<Block>{list(comparison_notes(unit_of(experiments)))}; }};

}  // namespace

WrittenReport write_experiment_page(std::span<const ExperimentComparison> comparisons,
                                    const std::vector<std::string>& unproven, const std::filesystem::path& out) {
  const std::vector<ComparedExperiment> experiments = compared(comparisons);
  const Section<ComparedExperiment>* const sections[] = {&experiment_decisions, &experiment_scores,
                                                         &experiment_reading};
  MadeReport report = make_report<ComparedExperiment>(sections, experiments);
  report.summary["unproven"] = unproven;
  report.title = comparisons_title(comparisons);
  std::vector<std::string> titles;
  titles.reserve(experiments.size());
  for (const ComparedExperiment& one : experiments) titles.push_back(escape_html(one.title));
  report.header =
      fmt::format("<header>\n<h1>Is one arm better?</h1>\n<p class=\"lead\">{} of arms, paired by seed: {}.</p>\n",
                  counted(comparisons.size(), "comparison"), fmt::join(titles, "; "));
  if (!unproven.empty())
    report.header += fmt::format("<p>Not everything of these runs was proven. {}</p>\n",
                                 escape_html(fmt::format("{}", fmt::join(unproven, " "))));
  report.header += "</header>\n";
  return write_files(report, out);
}

}  // namespace gainlens::reports
