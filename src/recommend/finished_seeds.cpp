#include "recommend/finished_seeds.h"

#include "core/check.h"
#include "core/counted.h"
#include "core/ranking_metrics.h"
#include "experiment/job.h"
#include "formats/tensor_file.h"
#include "recommend/backbone_keys.h"
#include "recommend/recommender_files.h"
#include "runfile/run_file_name.h"
#include "runfile/run_kind.h"
#include "runfile/run_proof.h"
#include "runfile/training_files.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace gainlens::recommend {
namespace {

namespace fs = std::filesystem;
using Faults = std::vector<runfile::FileFault>;

constexpr const char* checkpoint_names[] = {"config.json", "model.safetensors"};
constexpr std::string_view made_earlier = "an earlier version of gainlens made them, which kept no checksums";

/// Metrics are means over the ranks; a difference this small comes from a sum in another order.
constexpr double max_rounding = 1e-9;

void check_metrics(const experiment::Result& result, const std::string& where) {
  const auto scores = result.scores.find(runfile::rank_score);
  const std::vector<double> ranks = scores == result.scores.end() ? std::vector<double>() : scores->second;
  for (const RankingMetric& metric : ranking_metrics()) {
    const auto stored = result.test.find(metric.name());
    const double found = ranks.empty() ? 0 : mean_of(metric, ranks);
    CHECK(stored != result.test.end() && std::abs(stored->second - found) <= max_rounding,
          "{}: its '{}' is {}, and its ranks give {}: the file is damaged; delete it and repeat its gainlens train "
          "recommend command, which computes it again",
          where, metric.name(), stored == result.test.end() ? "missing" : fmt::format("{}", stored->second), found);
  }
}

/// Whether the name of an arm in a run.h5, perhaps with a variant, is that of a folder in the run folder, and nothing
/// else.
bool is_folder_name(const std::string& label) {
  const std::size_t slash = label.find('/');
  if (slash != std::string::npos && !experiment::is_variant_name(label.substr(slash + 1))) return false;
  const std::string arm = label.substr(0, slash);
  return !arm.empty() && arm != "." && arm != "..";
}

bool is_run(const fs::path& folder) {
  return runfile::is_run_of(folder, runfile::RunKind::recommenders);
}

/// Refuses the request of a run that a newer version made.
void refuse_newer(const Json& request, const std::string& where) {
  const auto keys = settings_keys(request.at("backbone").get<std::string>(), where + ": 'backbone'");
  runfile::KnownRequest known = runfile::known_recommend_request(keys);
  const auto variants = request.find("variants");
  if (variants != request.end() && variants->is_object()) {
    for (const auto& [name, changes] : variants->items())
      known.keys[(Json::json_pointer("/variants") / name).to_string()] = keys;
  }
  runfile::refuse_newer_request(request, known, where);
}

}  // namespace

void check_request_of(const fs::path& folder) {
  const fs::path file = folder / runfile::request_file_name;
  if (fs::exists(file)) refuse_newer(runfile::read_recommend_request(folder), printable(file.string()));
}

runfile::RecommendRun read_run(const fs::path& path) {
  const bool is_folder = fs::is_directory(path);
  if (is_folder) check_request_of(path);
  runfile::RecommendRun run = runfile::read_recommend_run(path);
  refuse_newer(run.request, printable((is_folder ? path / runfile::run_file_name : path).string()) + ": /request");
  return run;
}

runfile::KeptFiles checkpoint_files(const fs::path& folder) {
  return {folder, checkpoint_names};
}

void prove_files(const fs::path& folder, const experiment::StoredResult& stored, Faults* faults) {
  const fs::path file = folder / experiment::result_name;
  runfile::look_at(faults, file, [&] { check_metrics(stored.result, printable(file.string())); });
  if (stored.result.best_epoch == 0) return;  // a baseline has no checkpoint
  const std::string repair =
      fmt::format("delete {} and repeat its gainlens train recommend command, which trains this seed again",
                  printable(folder.string()));
  for (const char* const& name : checkpoint_names) {
    runfile::look_at(faults, folder / name, [&] {
      runfile::prove_kept(stored.kept, {folder, {&name, 1}}, {"this training", experiment::result_name, repair});
      if (!stored.kept.is_null() || name != checkpoint_names[1]) return;
      try {
        formats::TensorFile::open(folder / name);
      } catch (const InvalidArgument& error) {
        throw_invalid("{}; put it back, or {}", error.what(), repair);
      }
    });
  }
}

std::optional<experiment::StoredResult> prove_seed(const fs::path& folder, const std::string& label, std::uint64_t seed,
                                                   Faults* faults) {
  const fs::path file = folder / experiment::result_name;
  std::optional<experiment::StoredResult> stored;
  runfile::look_at(faults, file, [&] { stored = experiment::load_result(file, label, seed); });
  if (stored) prove_files(folder, *stored, faults);
  return stored;
}

std::string label_of_folder(const fs::path& folder) {
  const fs::path parent = folder.parent_path(), above = parent.parent_path();
  const std::string name = parent.filename().string();
  const bool in_variant = !is_run(above) && is_run(above.parent_path());
  return in_variant ? above.filename().string() + "/" + name : name;
}

std::optional<fs::path> run_of_checkpoint(const fs::path& folder) {
  std::error_code ignored;
  const fs::path real = fs::weakly_canonical(folder, ignored);
  if (!fs::is_directory(real, ignored) || !experiment::seed_of_folder(real.filename().string())) return std::nullopt;
  const fs::path above = real.parent_path().parent_path();  // OUT, or OUT/ARM of OUT/ARM/VARIANT/seed-N
  for (const fs::path& run : {above, above.parent_path()}) {
    if (is_run(run)) return run;
  }
  return std::nullopt;
}

void refuse_run_for_checkpoint(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored) || !is_run(path)) return;
  std::vector<std::string> trainings;
  for (const auto& entry : fs::recursive_directory_iterator(path, ignored)) {
    if (experiment::seed_of_folder(entry.path().filename().string()) && is_recommender(entry.path()))
      trainings.push_back(printable(entry.path().string()));
  }
  throw_invalid("{}: is a recommender run; give the folder of one of its trainings{}", printable(path.string()),
                trainings.empty() ? std::string() : ", " + *std::ranges::min_element(trainings));
}

std::string prove_checkpoint(const fs::path& folder) {
  const fs::path file = folder / experiment::result_name;
  if (!fs::exists(file))
    return fmt::format("no {} lies beside it: its training is not finished, or the files were copied",
                       experiment::result_name);
  const experiment::StoredResult stored = experiment::load_result(file);
  prove_files(folder, stored);
  return stored.has_checksum ? std::string() : std::string(made_earlier);
}

ProvenRun read_proven_run(const fs::path& path, Faults* faults) {
  ProvenRun proven{read_run(path), 0, {}};
  const bool is_folder = fs::is_directory(path);
  const auto add = [&](std::string_view sentence) {
    proven.unproven += fmt::format("{}{}", proven.unproven.empty() ? "" : " ", sentence);
  };
  if (!fs::exists(runfile::checksum_file_of(is_folder ? path / runfile::run_file_name : path)))
    add(runfile::no_checksum);
  if (!is_folder) {
    add("run.h5 was given without its folder: the files of its trainings were not compared.");
    return proven;
  }
  const runfile::RecommendRun& run = proven.run;
  std::size_t finished = 0;
  for (std::size_t arm = 0; arm < run.arms.size(); ++arm) {
    for (std::size_t seed = 0; seed < run.seeds.size(); ++seed) {
      if (!run.result(arm, seed)) continue;
      ++finished;
      const fs::path folder = path / run.arms[arm] / fmt::format("seed-{}", run.seeds[seed]);
      if (!is_folder_name(run.arms[arm]) || !fs::is_directory(folder)) continue;
      const fs::path result = folder / experiment::result_name;
      const bool is_there = runfile::look_at(faults, result, [&] {
        CHECK(fs::exists(result),
              "{}: is not there, and run.h5 holds this training: it was deleted, or the training goes on with more "
              "epochs; repeat its gainlens train recommend command, which continues",
              printable(result.string()));
      });
      if (!is_there) continue;
      const auto stored = prove_seed(folder, run.arms[arm], run.seeds[seed], faults);
      if (!stored || stored->has_checksum) ++proven.compared;
    }
  }
  if (proven.compared < finished)
    add(fmt::format("The files of {} of {} were not compared with checksums: they are not there, or {}.",
                    finished - proven.compared, counted(finished, "training"), made_earlier));
  return proven;
}

}  // namespace gainlens::recommend
