#include "analyses/checks/training_checks.h"

#include "bft/filter_options.h"
#include "core/check.h"
#include "core/checked.h"
#include "core/counted.h"
#include "core/divergence.h"
#include "core/json.h"
#include "runfile/checksums.h"
#include "runfile/training_files.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

namespace gainlens::analyses {
namespace {

namespace fs = std::filesystem;

void read_request(const fs::path& file, LanguageTraining& training) {
  try {
    const Json request = read_json_file(file);
    std::vector<std::string> filter_keys;
    for (const auto& knob : bft::filter_knobs()) filter_keys.push_back(knob.key);
    runfile::refuse_newer_request(request, runfile::known_language_request(filter_keys), printable(file.string()));
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
  const std::vector<runfile::FilterPoint> points = runfile::read_filter_history(file);
  for (const runfile::FilterPoint& point : points) {
    if (point.step != points.back().step) continue;
    training.gain.push_back(point.gain);
    training.share_at_most.push_back(point.share_at_most);
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
  folders.reserve(found.size());
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
  const std::size_t best = best_evaluation(training);
  if (best != 0) return satisfactory(fmt::format("the loss of held-out text fell to {:.4g}", training.held_out[best]));
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

std::size_t best_evaluation(const LanguageTraining& training) {
  const auto best = std::ranges::min_element(
      training.held_out, [](double a, double b) { return std::isfinite(a) && (!std::isfinite(b) || a < b); });
  return static_cast<std::size_t>(best - training.held_out.begin());
}

LanguageTraining read_language_training(const fs::path& folder) {
  const fs::path training = folder / "training", history = training / "history.csv";
  LanguageTraining read;
  read_request(training / "request.json", read);
  CHECK(fs::exists(history), "{}: the training has not ended; repeat its gainlens train language-model command",
        printable(folder.string()));
  for (const runfile::Evaluation& point : runfile::read_history(history)) {
    read.step.push_back(point.step);
    read.loss.push_back(point.training_loss);
    read.held_out.push_back(point.validation_loss);
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
