#include "reports/finetune/finetune_report.h"

#include "analyses/paper_gains.h"
#include "core/counted.h"
#include "reports/comparison/decided_changes.h"
#include "reports/finetune/run_section.h"
#include "reports/page/page_style.h"
#include "reports/page/typography.h"
#include "reports/section.h"
#include "reports/words/compare_words.h"
#include "reports/words/score_words.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <span>

namespace gainlens::reports {
namespace {

using analyses::Decision, analyses::GainDecision, analyses::NoiseCell, analyses::NoiseGain, analyses::NoiseLevels;
using Runs = std::span<const FinetunedRun>;

std::string percent(double level) {
  return fmt::format("{}%", level);
}

/// ".3072 (.0370)", as the paper prints them.
std::string score_number(const std::vector<double>& seeds) {
  const analyses::ArmSummary summary = analyses::arm_summary(seeds);
  const std::string mean = fmt::format("{:.4f}", summary.mean);
  return summary.deviation ? fmt::format("{} ({:.4f})", mean, *summary.deviation) : mean;
}

const analyses::PaperAnswerScore* paper_of(const FinetunedRun& run, double level, const std::string& arm) {
  if (run.paper_task == "squad") return analyses::find_paper_answer_score("squad", level, arm);
  if (run.paper_task == "nq" && level == 0) return analyses::find_paper_answer_score("nq", run.passages, arm);
  return nullptr;
}

PaperTable scores_table(const FinetunedRun& run) {
  const NoiseLevels& levels = run.levels;
  const bool selected = levels.selection_units > 0, paper = !run.paper_task.empty();
  PaperTable table{"noise-levels",
                   fmt::format("Scores of the answers to the test {}s by arm and share of wrong answer words in the "
                               "training: mean (standard deviation) over seeds.",
                               levels.unit),
                   {{"arm", true}, {"seeds"}, {"exact match"}, {"F1"}},
                   {}};
  if (selected) {
    table.columns.push_back({"exact match without selection"});
    table.columns.push_back({"F1 without selection"});
    table.caption += fmt::format(" The first {} chose the best epoch too; scores without selection leave them out.",
                                 counted(levels.selection_units, levels.unit));
  }
  if (paper) {
    table.columns.push_back({"F1 of the paper"});
    table.caption +=
        " The paper's numbers are of TinyLlama-1.1B, 20 seeds, with its own prompts, which it does not print.";
  }
  for (std::size_t level = 0; level < levels.levels.size(); ++level) {
    if (levels.levels.size() > 1) table.rows.push_back({percent(levels.levels[level]) + " wrong words"});
    for (std::size_t arm = 0; arm < levels.arms.size(); ++arm) {
      const NoiseCell* cell = levels.cell(arm, level);
      if (cell == nullptr) continue;
      std::vector<std::string> row{levels.arms[arm], std::to_string(cell->seeds.size()),
                                   score_number(cell->means.at("exact_match")), score_number(cell->means.at("f1"))};
      if (selected) {
        for (const char* score : {"exact_match", "f1"}) {
          const auto found = cell->means.find(std::string(score) + not_selected);
          row.push_back(found == cell->means.end() ? "–" : score_number(found->second));
        }
      }
      if (paper) {
        const auto* printed = paper_of(run, levels.levels[level], levels.arms[arm]);
        row.push_back(printed == nullptr ? "–"
                                         : score_number({printed->f1}) + fmt::format(" ({:.4f})", printed->deviation));
      }
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

std::vector<Block> scores_blocks(Runs runs) {
  const FinetunedRun& run = runs.front();
  const std::string left_out = has_scores_without_selection(run.levels)
                                   ? fmt::format(" Without the {} that chose the best epoch.",
                                                 counted(run.levels.selection_units, run.levels.unit))
                                   : "";
  const Caption caption = {
      "Exact match and F1 of the greedy answers against the share of wrong words in the training answers. Points are "
      "means over seeds, bars one standard error to both sides, as in the paper's figure; arms stand side by side." +
          left_out,
      "It shows how fast each arm loses with wrong answers.",
      "One standard error covers about two of three means of other seeds, on the same questions. It is no 95% "
      "interval, and bars that do not touch prove nothing."};
  return {
      CaptionedFigure{"noise-levels", "Scores by the share of wrong answer words", caption, noise_figure(run.levels)},
      scores_table(run)};
}

std::string range_name(const NoiseLevels& levels, const NoiseGain& gain) {
  if (gain.range.only) return percent(levels.levels[*gain.range.only]) + " wrong words";
  if (gain.range.without) return fmt::format("all levels but {}", percent(levels.levels[*gain.range.without]));
  return fmt::format("all {} levels", levels.levels.size());
}

std::string signed_number(double value) {
  return fmt::format("{:+.4f}", value);
}

std::string ends_of(const analyses::UnitScoreGain& gain) {
  const auto ends = [](const Interval& interval) {
    return fmt::format("[{}, {}]", signed_number(interval.low), signed_number(interval.high));
  };
  return compare_words::ends_of(gain.difference, ends) + compare_words::kind_of(gain.difference);
}

/// The decision of a gain's score; null for a gain that is none of the rows.
const GainDecision* decision_of(const NoiseLevels& levels, const NoiseGain& gain, std::size_t score) {
  const std::vector<const NoiseGain*> rows = levels.rows();
  const auto row = std::ranges::find(rows, &gain);
  if (row == rows.end()) return nullptr;
  const auto found = std::ranges::find_if(levels.decided, [&](const GainDecision& one) {
    return one.comparison == static_cast<std::size_t>(row - rows.begin()) && one.metric == score;
  });
  return found == levels.decided.end() ? nullptr : &*found;
}

PaperTable gains_table(const NoiseLevels& levels) {
  PaperTable table{
      "noise-gains",
      fmt::format("Change against {} and how sure it is. The interval and p count other seeds and other {}s: this p "
                  "decides, at 5%.",
                  levels.arms.front(), levels.unit),
      {{"levels", true},
       {"score", true},
       {"change"},
       {"interval"},
       {"p"},
       {"Holm's p"},
       {"naive p"},
       {"decision", true}},
      {},
      {}};
  const auto any_of = [&](auto&& is) {
    return std::ranges::any_of(levels.gains, [&](const NoiseGain& gain) { return is(gain.range); });
  };
  if (any_of([](const analyses::NoiseRange& range) { return !range.only; }))
    table.caption += fmt::format(
        " Of several levels, each {}'s score is first averaged over the levels, seed by seed, so that a seed counts "
        "once and not once a level.",
        levels.unit);
  table.caption +=
      " Holm's p is corrected for all rows that have one. The naive p is the paper's: the paired t over all pairs of "
      "seed and level.";
  if (any_of([](const analyses::NoiseRange& range) { return range.without.has_value(); }))
    table.caption += " Rows that leave a level out are no answers of their own, and their p is not corrected.";
  table.caption += " \"not shown\" does not say that there is no difference.";
  if (levels.selection_units > 0)
    table.caption +=
        fmt::format(" Without the first {}, which chose the best epoch.", counted(levels.selection_units, levels.unit));
  for (std::size_t arm = 1; arm < levels.arms.size(); ++arm) {
    table.rows.push_back({levels.arms[arm]});
    for (const NoiseGain& gain : levels.gains) {
      if (gain.arm != arm) continue;
      if (!gain.comparison) {
        table.rows.push_back({range_name(levels, gain), "", "–", "–", "–", "–", "–", gain.comparison.reason()});
        continue;
      }
      for (std::size_t score = 0; score < gain.comparison->scores.size(); ++score) {
        const analyses::UnitScoreGain& own = gain.comparison->scores[score];
        const GainDecision* decision = decision_of(levels, gain, score);
        table.rows.push_back({score == 0 ? fmt::format("{}, {}", range_name(levels, gain),
                                                       counted(gain.comparison->baseline_seeds.size(), "seed"))
                                         : "",
                              score_title(own.score.name), signed_number(own.seeds.difference), ends_of(own),
                              p_on_page(analyses::stated_p(own.difference)),
                              decision != nullptr ? p_on_page(decision->holm) : "–", p_on_page(gain.naive_p[score]),
                              decision != nullptr ? decision->in_words() : ""});
      }
    }
  }
  return table;
}

/// Who is better, in a few sentences.
std::string answer(const NoiseLevels& levels) {
  const std::vector<const NoiseGain*> rows = levels.rows();
  std::vector<std::string> better, worse;
  bool any = false;
  for (const GainDecision& row : levels.decided) {
    any = any || row.p;
    if (!row.holm || *row.holm > analyses::decision_level) continue;
    const NoiseGain& gain = *rows[row.comparison];
    const std::string text =
        fmt::format("{} in {} ({})", levels.arms[gain.arm], score_title(gain.comparison->scores[row.metric].score.name),
                    range_name(levels, gain));
    if (row.decision == Decision::better) better.push_back(text);
    if (row.decision == Decision::worse) worse.push_back(text);
  }
  if (!any) return "Nothing is decided: no row has a p, and the table says why.";
  std::string text =
      better.empty()
          ? fmt::format("No arm is shown to be better than {} after Holm's correction.", levels.arms[0])
          : fmt::format("Better than {} after Holm's correction: {}.", levels.arms[0], fmt::join(better, "; "));
  if (!worse.empty()) text += fmt::format(" Worse: {}.", fmt::join(worse, "; "));
  return text;
}

std::vector<Block> gains_blocks(Runs runs) {
  const NoiseLevels& levels = runs.front().levels;
  if (levels.arms.size() < 2) return {};
  const Caption caption = {
      fmt::format("Change of each score against {}, by the share of wrong words. Bars count other seeds and other {}s: "
                  "95% from three seeds on; with two seeds a range without a level, with one the {}s alone.",
                  levels.arms.front(), levels.unit, levels.unit),
      "It shows at which shares of wrong words an arm is better, and by how much.",
      "A bar that holds 0 does not show that two arms are equally good."};
  std::vector<Block> all = {paragraph(answer(levels)), gains_table(levels)};
  for (const NoiseGain& gain : levels.gains) {
    if (!gain.comparison) continue;
    const std::string far =
        compare_words::far_seeds(gain.comparison->scores, gain.comparison->candidate_seeds,
                                 [](const analyses::UnitScoreGain& own) { return score_title(own.score.name); });
    if (!far.empty())
      all.push_back(paragraph(fmt::format("{}, {}: {}", levels.arms[gain.arm], range_name(levels, gain), far)));
  }
  all.emplace_back(CaptionedFigure{"noise-gains", fmt::format("Changes against {}", levels.arms.front()), caption,
                                   noise_gains_figure(levels)});
  return all;
}

void gains_json(const FinetunedRun& run, OrderedJson& summary) {
  summary["noise_levels"] = analyses::to_json(run.levels);
}

std::vector<CsvTable> gains_csv(const FinetunedRun& run) {
  const NoiseLevels& levels = run.levels;
  CsvTable table{"noise-gains",
                 {"arm", "baseline", "levels", "score", "seeds", "units", "change", "low", "high", "interval", "p",
                  "p_holm", "paired_t_naive_p", "decision"},
                 {}};
  for (const NoiseGain& gain : levels.gains) {
    if (!gain.comparison) continue;
    for (std::size_t score = 0; score < gain.comparison->scores.size(); ++score) {
      const analyses::UnitScoreGain& own = gain.comparison->scores[score];
      const GainDecision* decision = decision_of(levels, gain, score);
      std::vector<Cell> row{levels.arms[gain.arm],
                            levels.arms.front(),
                            range_name(levels, gain),
                            own.score.name,
                            cell(gain.comparison->baseline_seeds.size()),
                            cell(gain.comparison->units),
                            own.seeds.difference};
      append(row, analyses::shown_ends(own.difference));
      row.emplace_back(interval_kind(own.difference));
      row.push_back(cell(analyses::stated_p(own.difference)));
      row.push_back(decision != nullptr ? cell(decision->holm) : empty_cell());
      row.push_back(cell(gain.naive_p[score]));
      row.emplace_back(decision != nullptr ? decision->in_words() : std::string());
      table.rows.push_back(std::move(row));
    }
  }
  return {table};
}

std::vector<CsvTable> scores_csv(const FinetunedRun& run) {
  CsvTable table{"noise-levels", {"arm", "noise", "seed", "score", "value"}, {}};
  for (const NoiseCell& one : run.levels.cells) {
    for (const auto& [name, values] : one.means) {
      for (std::size_t seed = 0; seed < values.size(); ++seed)
        table.rows.push_back({run.levels.arms[one.arm], run.levels.levels[one.level],
                              static_cast<std::int64_t>(one.seeds[seed]), name, values[seed]});
    }
  }
  return {table};
}

/// "focal-2" names the gamma that it keeps; "focal" learns one.
bool has_learned_gamma(const std::string& label) {
  return !runfile::arm_of(label).starts_with("focal-");
}

PaperTable gamma_table(const FinetunedRun& run) {
  PaperTable table{
      "gamma",
      "The learned gamma of focal loss after each epoch: mean over seeds. It starts at ln 2 = .693, and its "
      "gradient can only raise it.",
      {{"arm and level", true}, {"seeds"}, {"gamma by epoch", true}},
      {}};
  for (const GammaPath& path : run.gammas) {
    if (!has_learned_gamma(path.label)) continue;
    std::vector<std::string> epochs;
    for (std::size_t epoch = 0; epoch < path.seeds.front().size(); ++epoch) {
      std::vector<double> values;
      for (const std::vector<double>& seed : path.seeds)
        if (epoch < seed.size()) values.push_back(seed[epoch]);
      epochs.push_back(fmt::format("{:.5f}", analyses::arm_summary(values).mean));
    }
    table.rows.push_back({path.label, std::to_string(path.seeds.size()), fmt::format("{}", fmt::join(epochs, ", "))});
  }
  return table;
}

PaperTable start_table(const FinetunedRun& run) {
  PaperTable table{
      "start",
      "The held-out loss (nats per answer token) before any training: of the pretrained model, and with the "
      "whole filter in force. Mean over seeds. What the filter costs at its start, training has to mend.",
      {{"arm and level", true}, {"seeds"}, {"without the filter"}, {"with the filter"}},
      {}};
  for (const FilterOfLevel& filter : run.filters) {
    if (filter.start_loss.empty()) continue;
    table.rows.push_back({filter.label, std::to_string(filter.start_loss.size()),
                          fmt::format("{:.4f}", analyses::arm_summary(filter.start_loss).mean),
                          fmt::format("{:.4f}", analyses::arm_summary(filter.start_loss_with_filter).mean)});
  }
  return table;
}

std::vector<Block> state_blocks(Runs runs) {
  const FinetunedRun& run = runs.front();
  std::vector<Block> blocks;
  if (!run.filters.empty()) {
    const Caption caption = {
        "The Kalman gain K, the precision of the stream before each layer, and the share of the observation precisions "
        "lambda_obs at their bound, after each epoch: means over positions, dimensions and seeds, on the "
        "validation rows. What the arm does not have is left out.",
        "It shows whether training moves the filter, and in which layers.",
        "A precision at its bound (3 in the paper's settings) says nothing of the layer: where the share is near 1, K "
        "says nothing of the evidence. Precisions have the scale of the stream, and those of two models cannot be "
        "compared."};
    blocks.emplace_back(CaptionedFigure{"filter-by-layer", fmt::format("The filter of {}", run.filters.front().label),
                                        caption, filter_by_layer_figure(run.filters.front())});
  }
  PaperTable start = start_table(run);
  if (!start.rows.empty()) blocks.emplace_back(std::move(start));
  PaperTable gamma = gamma_table(run);
  if (!gamma.rows.empty()) blocks.emplace_back(std::move(gamma));
  return blocks;
}

/// Calls `use` with label, seed and result of each finished training.
template <typename Use>
void each_finished(const runfile::ExperimentRun& run, const Use& use) {
  for (std::size_t arm = 0; arm < run.arms.size(); ++arm) {
    for (std::size_t seed = 0; seed < run.seeds.size(); ++seed)
      if (const auto& result = run.result(arm, seed))
        use(printable(run.arms[arm], 60), static_cast<std::int64_t>(run.seeds[seed]), *result);
  }
}

std::vector<CsvTable> state_csv(const FinetunedRun& run) {
  CsvTable filter{"filter-by-layer", {"arm", "layer", "epoch", "curve", "mean"}, {}};
  for (const FilterOfLevel& one : run.filters) {
    for (std::size_t layer = 0; layer < one.layers.size(); ++layer) {
      for (const auto& [name, values] : one.layers[layer].mean) {
        for (std::size_t epoch = 0; epoch < values.size(); ++epoch)
          filter.rows.push_back(
              {one.label, static_cast<std::int64_t>(layer), static_cast<std::int64_t>(epoch + 1), name, values[epoch]});
      }
    }
  }
  CsvTable start{"start", {"arm", "seed", "loss", "loss_with_filter"}, {}};
  CsvTable gamma{"gamma", {"arm", "seed", "epoch", "gamma"}, {}};
  each_finished(*run.run, [&](const std::string& label, std::int64_t seed, const runfile::TrainedSeed& result) {
    const auto loss = result.test.find(runfile::start_loss),
               filtered = result.test.find(runfile::start_loss_with_filter);
    if (loss != result.test.end() && filtered != result.test.end())
      start.rows.push_back({label, seed, loss->second, filtered->second});
    const auto path = result.curve.find(runfile::gamma_curve);
    if (path == result.curve.end() || !has_learned_gamma(label)) return;
    for (std::size_t epoch = 0; epoch < path->second.size(); ++epoch)
      gamma.rows.push_back({label, seed, static_cast<std::int64_t>(epoch + 1), path->second[epoch]});
  });
  std::vector<CsvTable> tables;
  if (!filter.rows.empty()) tables.push_back(std::move(filter));
  if (!start.rows.empty()) tables.push_back(std::move(start));
  if (!gamma.rows.empty()) tables.push_back(std::move(gamma));
  return tables;
}

const Section<FinetunedRun> scores_section = {
    .name = "scores",
    .title = "Scores and wrong answers",
    .question = "How good are the answers, and how much do wrong training answers cost?",
    .files = {"noise-levels"},
    .blocks = scores_blocks,
    .tables = scores_csv};

const Section<FinetunedRun> gains_section = {.name = "gains",
                                             .title = "Who is better",
                                             .question = "Which arm is better, by how much, and how sure is it?",
                                             .files = {"noise-gains"},
                                             .keys = {"noise_levels"},
                                             .blocks = gains_blocks,
                                             .add_json = gains_json,
                                             .tables = gains_csv};

const Section<FinetunedRun> state_section = {.name = "state",
                                             .title = "What the arms learned",
                                             .question = "What did the filter and gamma become?",
                                             .files = {"filter-by-layer", "start", "gamma"},
                                             .blocks = state_blocks,
                                             .tables = state_csv};

}  // namespace

WrittenReport write_finetune_report(const FinetunedRun& run, const std::filesystem::path& out, const Writing& writing) {
  const Section<FinetunedRun>* const sections[] = {&scores_section,           &gains_section,
                                                   &finetuned_loss_section,   &state_section,
                                                   &finetuned_checks_section, &finetuned_run_section};
  MadeReport report = make_report<FinetunedRun>(sections, std::span(&run, 1));
  const std::string data = printable(run.levels.data_set, 60);
  report.title = page_title(model_of(run), data);
  report.header = fmt::format(
      "<header>\n<h1>Fine-tuning on noisy answers</h1>\n<p class=\"lead\">{}: {} on {}, {} ({}), {}.</p>\n",
      escape_html(run.name), escape_html(model_of(run)), escape_html(data), counted(run.levels.arms.size(), "arm"),
      escape_html(arms_in_words(run)), counted(run.run->seeds.size(), "seed"));
  if (!run.unproven.empty())
    report.header += fmt::format("<p>Not everything of this run was proven. {}</p>\n",
                                 escape_html(fmt::format("{}", fmt::join(run.unproven, " "))));
  report.header += "</header>\n";
  return write_files(report, out, writing);
}

}  // namespace gainlens::reports
