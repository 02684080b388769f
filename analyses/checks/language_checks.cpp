#include "analyses/checks/training_checks.h"

#include "bft/filter_options.h"
#include "core/check.h"
#include "core/checked.h"
#include "core/counted.h"
#include "core/divergence.h"
#include "core/json.h"
#include "runfile/checksum_list.h"
#include "runfile/training_request.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

namespace gainlens::analyses {
namespace {

namespace fs = std::filesystem;

/// A table of numbers with a header line, as trainings write them. An empty cell is NaN.
class NumberTable {
 public:
  explicit NumberTable(const fs::path& file) : where_(printable(file.string())) {
    const std::string text = read_text_file(file);
    std::string_view rest = text;
    bool header = true;
    while (!rest.empty()) {
      const std::size_t end = rest.find('\n');
      CHECK(end != std::string_view::npos, "{}: its last line has no end; {}", where_, repair);
      add_line(rest.substr(0, end), header);
      header = false;
      rest.remove_prefix(end + 1);
    }
  }
  std::size_t rows() const { return rows_.size(); }
  double at(std::size_t row, std::string_view column) const {
    const auto found = std::ranges::find(names_, column);
    CHECK(found != names_.end(), "{}: has no column '{}'; {}", where_, column, repair);
    return rows_[row][static_cast<std::size_t>(found - names_.begin())];
  }

 private:
  static constexpr std::string_view repair = "repeat the training command, which writes it again";

  void add_line(std::string_view line, bool header) {
    std::vector<double> row;
    for (bool more = true; more;) {
      const std::size_t comma = line.find(',');
      const std::string_view cell = line.substr(0, comma);
      more = comma != std::string_view::npos;
      if (more) line.remove_prefix(comma + 1);
      if (header) {
        names_.emplace_back(cell);
        continue;
      }
      double value = std::numeric_limits<double>::quiet_NaN();
      if (!cell.empty()) {
        const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
        CHECK(error == std::errc() && end == cell.data() + cell.size(), "{}: '{}' is no number; {}", where_,
              printable(cell, 40), repair);
      }
      row.push_back(value);
    }
    if (header) return;
    CHECK(row.size() == names_.size(), "{}: a line has {} cells, and the first one {}; {}", where_, row.size(),
          names_.size(), repair);
    rows_.push_back(std::move(row));
  }

  std::string where_;
  std::vector<std::string> names_;
  std::vector<std::vector<double>> rows_;
};

void read_request(const fs::path& file, LanguageTraining& training) {
  try {
    const Json request = read_json_file(file);
    std::vector<std::string> of_filter;
    for (const auto& knob : bft::filter_knobs()) of_filter.push_back(knob.key);
    runfile::refuse_newer_request(request, runfile::known_language_request(of_filter), printable(file.string()));
    const Json& recipe = request.at("recipe");
    for (const Json& stage : recipe.at("stages"))
      training.steps = checked_add(training.steps, stage.at("steps").get<std::int64_t>(), "steps");
    training.may_stop = recipe.value("patience", std::int64_t{0}) > 0;
    training.vocabulary = recipe.at("tokenizer").at("vocabulary").get<std::int64_t>();
    // As trainings write it: bft has a filter and no arm, a control has both, plain has neither.
    training.filtered = request.contains("filter") && !request.contains("arm");
    training.arm = training.filtered ? "bft" : request.value("arm", training.arm);
  } catch (const Json::exception&) {
    throw_invalid("{}: is not the request of a training of a language model", printable(file.string()));
  }
  CHECK(training.vocabulary > 0, "{}: a vocabulary of {}; must be positive", printable(file.string()),
        training.vocabulary);
}

/// The layers of the last evaluation.
void read_filter(const fs::path& file, LanguageTraining& training) {
  const NumberTable table(file);
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (table.at(row, "step") != table.at(table.rows() - 1, "step")) continue;
    training.gain.push_back(table.at(row, "gain"));
    training.share_at_most.push_back(table.at(row, "share_at_most"));
  }
}

constexpr std::string_view no_list = "has no checksum beside it; what it holds is not proven.";

/// The folders of the checkpoints that were kept along a training, by step.
std::vector<fs::path> kept_checkpoints(const fs::path& folder) {
  std::map<std::pair<std::size_t, std::string>, fs::path> found;  // by the length of the name: step-20 before step-100
  const fs::path all = folder / "checkpoints";
  if (!fs::is_directory(all)) return {};
  for (const auto& entry : fs::directory_iterator(all)) {
    std::string name = entry.path().filename().string();
    if (entry.is_directory() && name.starts_with("step-")) found[{name.size(), std::move(name)}] = entry.path();
  }
  std::vector<fs::path> folders;
  for (const auto& [name, path] : found) folders.push_back(path);
  return folders;
}

/// Compares the checkpoint, and those that were kept on the way, with their checksums.
void compare_files(const fs::path& folder, LanguageTraining& training) {
  std::vector<runfile::FileFault> faults;
  std::vector<std::string> unlisted;
  const auto compare = [&](const fs::path& checkpoint, const std::string& repair) {
    runfile::ComparedFolder found = runfile::compare_with_list(checkpoint, repair);
    std::ranges::move(found.faults, std::back_inserter(faults));
    if (!found.has_list) unlisted.push_back(printable(checkpoint.string()));
  };
  compare(folder, "delete training/state.safetensors in its folder and repeat the training command");
  for (const fs::path& checkpoint : kept_checkpoints(folder))
    compare(checkpoint, "take no number from this checkpoint");
  training.changed = runfile::faults_in_words(faults);
  if (!unlisted.empty()) training.unproven = fmt::format("{} {}", fmt::join(unlisted, ", "), no_list);
}

CheckOutcome files(const LanguageTraining& training) {
  if (!training.changed.empty()) return {training.changed, "take no number from these files until they are mended"};
  if (!training.unproven.empty()) return not_known("whether the files have changed", training.unproven);
  return satisfactory("the files of the training are as it wrote them");
}

CheckOutcome finished(const LanguageTraining& training) {
  const std::int64_t done = training.step.empty() ? 0 : training.step.back();
  if (done >= training.steps) return satisfactory(all_are(training.steps, "step") + " done");
  if (training.may_stop) return satisfactory(fmt::format("stopped early, after {} of {} steps", done, training.steps));
  return {fmt::format("{} of {} done", done, counted_are(training.steps, "step")),
          "repeat the gainlens train language-model command, which continues"};
}

CheckOutcome diverged(const LanguageTraining& training) {
  const std::string why = divergence(training.loss, training.vocabulary, {"up to the first evaluation", "token"});
  if (why.empty()) return satisfactory("the training has not diverged");
  return {fmt::format("the training has diverged: {}", why),
          "train with a smaller 'learning_rate' in the recipe, in another folder"};
}

/// The checkpoint is that of the best evaluation, so a loss that rises afterwards costs time alone. If it rises from
/// the first evaluation on, nothing was learnt that holds for other text.
CheckOutcome held_out(const LanguageTraining& training) {
  if (training.held_out.size() < 2)
    return not_known(fmt::format("whether it predicts better than at first; it takes 2 evaluations, and there is {}",
                                 training.held_out.size()));
  const auto best = std::ranges::min_element(training.held_out);
  if (best != training.held_out.begin())
    return satisfactory(fmt::format("the loss of held-out text fell to {:.4g}", *best));
  return {fmt::format("the loss of held-out text was best at the first evaluation, {:.4g}, and is {:.4g} at the last",
                      training.held_out.front(), training.held_out.back()),
          "train on more text, with fewer steps or a smaller model"};
}

std::string without_filter(const LanguageTraining& training) {
  return fmt::format("the arm {} has no filter to check", printable(training.arm, 60));
}

CheckOutcome filter(const LanguageTraining& training) {
  if (!training.filtered) return satisfactory(without_filter(training));
  if (std::ranges::any_of(training.gain, [](double gain) { return std::isfinite(gain); }))
    return satisfactory("the filter is in force");
  return {"the filter was never in force: it warms up longer than the training lasts",
          "train longer, or with a smaller --warm-up"};
}

CheckOutcome bounds(const LanguageTraining& training) {
  if (!training.filtered) return satisfactory(without_filter(training));
  std::vector<std::size_t> layers;
  for (std::size_t layer = 0; layer < training.share_at_most.size(); ++layer) {
    if (training.share_at_most[layer] >= nearly_all) layers.push_back(layer);
  }
  if (layers.empty()) return satisfactory("no layer has nearly all of lambda_obs at the bound");
  return {fmt::format("at least {:.0f}% of lambda_obs are at their upper bound in layers {}: they say nothing there",
                      100 * nearly_all, fmt::join(layers, ", ")),
          "train with a larger --most-precision or a smaller --precision-learning-rate"};
}

}  // namespace

LanguageTraining read_language_training(const fs::path& folder) {
  const fs::path training = folder / "training", history = training / "history.csv";
  LanguageTraining read;
  read_request(training / "request.json", read);
  CHECK(fs::exists(history), "{}: the training has not ended; repeat its gainlens train language-model command",
        printable(folder.string()));
  const NumberTable table(history);
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const double step = table.at(row, "step");
    CHECK(step >= 0 && step <= 0x1p53 && step == std::floor(step), "{}: 'step' is {}; must be a whole number",
          printable(history.string()), step);
    read.step.push_back(static_cast<std::int64_t>(step));
    read.loss.push_back(table.at(row, "training_loss"));
    read.held_out.push_back(table.at(row, "validation_loss"));
  }
  if (read.filtered) read_filter(training / "filter.csv", read);
  compare_files(folder, read);
  return read;
}

std::span<const Check<LanguageTraining>> language_checks() {
  static constexpr Check<LanguageTraining> checks[] = {
      {"files", "Are the files those that the training wrote?", files},
      {"finished", "Is the training finished?", finished},
      {"diverged", "Has it not diverged?", diverged},
      {"held_out", "Does it predict held-out text better than at first?", held_out},
      {"filter", "Was the filter in force?", filter},
      {"bounds", "Is lambda_obs within its bounds?", bounds},
  };
  return checks;
}

}  // namespace gainlens::analyses
