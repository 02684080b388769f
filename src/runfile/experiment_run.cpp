#include "runfile/experiment_run.h"

#include "core/check.h"
#include "core/nearest.h"
#include "runfile/trained_run_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace gainlens::runfile {
namespace {

/// The axis of the units, whatever they are called.
constexpr const char* unit_axis = "unit";
constexpr const char* higher = "higher";
constexpr const char* lower = "lower";

/// The names of what the results hold.
struct Names {
  std::set<std::string> curves, metrics;
};

Names names_in(const ExperimentRun& run) {
  Names names;
  for (const auto& result : run.results) {
    if (!result) continue;
    for (const auto& [name, values] : result->curve) names.curves.insert(name);
    for (const auto& [name, value] : result->test)
      if (!is_of_start(name)) names.metrics.insert(name);
  }
  for (const UnitScore& score : run.unit_scores) names.metrics.insert(score.name);
  return names;
}

std::vector<std::string> column(const ExperimentRun& run, const std::function<std::string(const UnitScore&)>& of) {
  std::vector<std::string> texts;
  for (const UnitScore& score : run.unit_scores) texts.push_back(of(score));
  return texts;
}

std::vector<std::string> score_names(const ExperimentRun& run) {
  return column(run, [](const UnitScore& score) { return score.name; });
}

std::string fault_of_names(const std::vector<std::string>& names, std::string_view what) {
  for (const std::string& name : names)
    if (!is_score_name(name)) return fmt::format("the {} '{}' has no usable name", what, printable(name, 60));
  return std::set(names.begin(), names.end()).size() == names.size() ? "" : fmt::format("two {}s have one name", what);
}

std::string dataset_of(const std::string& score) {
  return "score/" + score;
}

void write_run(const hdf5::Handle& file, const ExperimentRun& run) {
  const Names names = names_in(run);
  const std::vector<std::string> curves(names.curves.begin(), names.curves.end()),
      metrics(names.metrics.begin(), names.metrics.end());
  TrainedRunWriter writer(file, run, unit_axis);
  writer.head(experiment_run_format, experiment_run_version);
  writer.scales();
  writer.text_scale("score_name", score_names(run), "scores that every unit has");
  writer.texts("score_better", column(run, [](const UnitScore& s) { return s.higher_is_better ? higher : lower; }),
               "score_name", "which scores are better: higher or lower ones");
  writer.texts("score_measure", column(run, [](const UnitScore& s) { return s.measure; }), "score_name",
               "the unit of measurement of each score");
  if (!curves.empty()) writer.text_scale("curve_name", curves, "learning curves of the run");
  writer.text_scale("metric_name", metrics, "metrics of each training");
  writer.best_epochs();
  writer.curves(curves, [](const std::string& name) { return Description{"", name + " after each epoch"}; });
  writer.filter();
  writer.tests(
      metrics, fmt::format("over the {}s", run.unit()),
      {{start_loss, {"nat", "held-out loss before the training, of the pretrained model"}},
       {start_loss_with_filter, {"nat", "held-out loss before the training, with the whole filter in force"}}});
  const hdf5::Handle scores = writer.group("score", {"arm", "seed", unit_axis});
  for (const UnitScore& score : run.unit_scores)
    writer.score(scores, score.name, H5T_IEEE_F64LE,
                 {score.measure, fmt::format("{} of each {}", score.name, run.unit())});
}

void check_run(const ExperimentRun& run) {
  check_trained_run(run);
  ASSERT(is_unit_noun(run.unit()), "units that are called '{}'", run.unit());
  ASSERT(!run.unit_scores.empty() && fault_of_names(score_names(run), "score").empty(), "scores without usable names");
  const Names names = names_in(run);
  for (const auto* all : {&names.curves, &names.metrics})
    for (const std::string& name : *all) ASSERT(is_score_name(name), "no dataset can have the name '{}'", name);
  for (const auto& result : run.results) {
    if (!result) continue;
    const auto metrics = static_cast<std::size_t>(
        std::ranges::count_if(result->test, [](const auto& metric) { return !is_of_start(metric.first); }));
    ASSERT(metrics == names.metrics.size() && result->scores.size() == run.unit_scores.size(),
           "{} metrics of {}, {} scores of {}", metrics, names.metrics.size(), result->scores.size(),
           run.unit_scores.size());
    for (const UnitScore& score : run.unit_scores)
      ASSERT(std::abs(result->test.at(score.name) - mean_score(result->scores.at(score.name))) <=
                 max_rounding_of_metric * std::max(1.0, std::abs(result->test.at(score.name))),
             "the metric '{}' is not the mean of its scores", score.name);
  }
}

std::vector<UnitScore> read_unit_scores(const TrainedRunReader& reader) {
  const std::vector<std::string> names = reader.texts("score_name"), better = reader.texts("score_better"),
                                 measures = reader.texts("score_measure");
  CHECK(better.size() == names.size() && measures.size() == names.size(),
        "{}: has {} names of scores, {} directions and {} units of measurement; the file is damaged", reader.where(),
        names.size(), better.size(), measures.size());
  std::vector<UnitScore> scores;
  for (std::size_t i = 0; i < names.size(); ++i) {
    CHECK(better[i] == higher || better[i] == lower, "{}: dataset 'score_better' holds '{}'; must be {} or {}",
          reader.where(), printable(better[i], 60), higher, lower);
    CHECK(!measures[i].empty() && measures[i].size() <= 60 && printable(measures[i]) == measures[i],
          "{}: dataset 'score_measure' holds '{}', which is no unit of measurement", reader.where(),
          printable(measures[i], 60));
    scores.push_back({names[i], better[i] == higher, measures[i]});
  }
  return scores;
}

std::vector<std::string> read_names(const TrainedRunReader& reader, const std::string& dataset, std::string_view what) {
  std::vector<std::string> names = reader.texts(dataset);
  const std::string fault = fault_of_names(names, what);
  CHECK(fault.empty(), "{}: {}", reader.where(), fault);
  return names;
}

void check_scores(const TrainedRunReader& reader, const ExperimentRun& run, std::size_t place) {
  const TrainedSeed& result = *run.results[place];
  for (const auto& [name, values] : result.scores) {
    for (const double value : values)
      CHECK(std::isfinite(value), "{}: dataset '{}' holds {} for {}; a score is finite", reader.where(),
            dataset_of(name), value, TrainedRunReader::result_in_words(run, place));
    reader.check_metric(run, place, name, mean_score(values), "scores");
  }
  for (const auto& [name, value] : result.test)
    CHECK(std::isfinite(value), "{}: dataset 'test/{}' holds {} for {}; a metric is finite", reader.where(), name,
          value, TrainedRunReader::result_in_words(run, place));
}

ExperimentRun read_run(const TrainedRunReader& reader) {
  ExperimentRun run;
  reader.check_format(RunKind::experiment, experiment_run_version);
  reader.axes(run, unit_axis);
  reader.require(run.request.contains("unit") && run.request.at("unit").is_string() && is_unit_noun(run.unit()),
                 "word 'unit', in lower-case letters");
  reader.check_names(run);
  CHECK(std::set(run.units.begin(), run.units.end()).size() == run.units.size(), "{}: two {}s have one name",
        reader.where(), run.unit());
  run.unit_scores = read_unit_scores(reader);
  const std::vector<std::string> scores = read_names(reader, "score_name", "score"),
                                 metrics = read_names(reader, "metric_name", "metric");
  for (const std::string& score : scores)
    CHECK(std::ranges::find(metrics, score) != metrics.end(),
          "{}: has the score '{}' and no metric of this name; the file is damaged", reader.where(), score);
  reader.best_epochs(run);
  for (const std::string& score : scores) reader.score(run, dataset_of(score), score, H5T_IEEE_F64LE);
  reader.tests(run, metrics, {start_loss, start_loss_with_filter});
  if (reader.has("curve_name")) reader.curves(run, read_names(reader, "curve_name", "curve"));
  for (std::size_t i = 0; i < run.results.size(); ++i) {
    if (!run.results[i]) continue;
    check_scores(reader, run, i);
    reader.check_curves(run, i);
  }
  return run;
}

}  // namespace

const UnitScore& ExperimentRun::score(const std::string& name, std::string_view where) const {
  const auto found = std::ranges::find(unit_scores, name, &UnitScore::name);
  if (found != unit_scores.end()) return *found;
  const std::vector<std::string> names = score_names(*this);
  throw_invalid("{}: '{}' is no score of the run, which has {}{}", where, printable(name, 60), fmt::join(names, ", "),
                did_you_mean(name, names));
}

std::size_t ExperimentRun::selection_units() const {
  const Json& data = request.at("data");
  const auto found = data.find("selection_rows");
  if (found == data.end()) return 0;
  CHECK(found->is_number_unsigned() && found->get<std::uint64_t>() <= units.size(),
        "request: 'selection_rows' must be a number of units, at most {}", units.size());
  const auto count = found->get<std::size_t>();
  return count < units.size() ? count : 0;
}

bool have_same_units(const ExperimentRun& one, const ExperimentRun& other) {
  return one.unit() == other.unit() && one.units == other.units;
}

void write_experiment_run(const std::filesystem::path& path, const ExperimentRun& run,
                          std::string_view program_version) {
  check_run(run);
  write_trained_run(path, fmt::format("Learning curves, metrics and scores of every {}", run.unit()), program_version,
                    [&](const hdf5::Handle& file) { write_run(file, run); });
}

ExperimentRun read_experiment_run(const std::filesystem::path& path) {
  ExperimentRun run;
  read_trained_run(path, RunKind::experiment, [&](const TrainedRunReader& reader) { run = read_run(reader); });
  return run;
}

}  // namespace gainlens::runfile
