#include "recommend/finished_seeds.h"

#include "core/check.h"
#include "core/counted.h"
#include "core/ranking_metrics.h"
#include "formats/tensor_file.h"

#include <charconv>
#include <cmath>

namespace gainlens::recommend {
namespace {

namespace fs = std::filesystem;

constexpr const char* checkpoint_names[] = {"config.json", "model.safetensors"};
constexpr std::string_view of_earlier_version = "an earlier version of gainlens made them, which kept no checksums";

/// Metrics are means over the ranks; a difference this small comes from a sum in another order.
constexpr double most_rounding = 1e-9;

void check_metrics(const SeedResult& result, const std::string& where) {
  for (const RankingMetric& metric : ranking_metrics()) {
    const auto stored = result.test.find(metric.name());
    const double found = result.rank.empty() ? 0 : mean_of(metric, result.rank);
    CHECK(stored != result.test.end() && std::abs(stored->second - found) <= most_rounding,
          "{}: its '{}' is {}, and its ranks give {}: the file is damaged; delete it and repeat its gainlens train "
          "recommend command, which computes it again",
          where, metric.name(), stored == result.test.end() ? "missing" : fmt::format("{}", stored->second), found);
  }
}

void prove_files(const fs::path& folder, const SeedResult& result) {
  if (result.best_epoch == 0) return;  // a baseline has no checkpoint
  const std::string repair =
      fmt::format("delete {} and repeat its gainlens train recommend command, which trains this seed again",
                  printable(folder.string()));
  runfile::prove_kept(result.kept, checkpoint_files(folder), {"this training", seed_result_name, repair});
  if (!result.kept.is_null()) return;
  try {
    formats::TensorFile::open(folder / checkpoint_names[1]);
  } catch (const InvalidArgument& error) {
    throw_invalid("{}; put it back, or {}", error.what(), repair);
  }
}

/// Whether the name of an arm in a run.h5 is that of a folder in the run folder, and nothing else.
bool is_file_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos;
}

}  // namespace

runfile::KeptFiles checkpoint_files(const fs::path& folder) {
  return {folder, checkpoint_names};
}

std::optional<std::uint64_t> seed_of_folder(std::string_view name) {
  constexpr std::string_view prefix = "seed-";
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), seed);
  if (error != std::errc() || end != name.data() + name.size() || std::to_string(seed) != name) return std::nullopt;
  return seed;
}

SeedResult prove_seed(const fs::path& folder, const std::string& arm, std::uint64_t seed) {
  const fs::path file = folder / seed_result_name;
  SeedResult result = load_seed_result(file, arm, seed);
  check_metrics(result, printable(file.string()));
  prove_files(folder, result);
  return result;
}

std::string prove_checkpoint(const fs::path& folder) {
  const fs::path file = folder / seed_result_name;
  if (!fs::exists(file))
    return fmt::format("no {} lies beside it: its training is not finished, or the files were copied",
                       seed_result_name);
  const SeedResult result = load_seed_result(file);
  check_metrics(result, printable(file.string()));
  prove_files(folder, result);
  return result.has_checksum ? std::string() : std::string(of_earlier_version);
}

ProvenRun read_proven_run(const fs::path& path) {
  ProvenRun proven{runfile::read_recommend_run(path), 0, {}};
  if (!fs::is_directory(path)) {
    proven.unproven = "run.h5 was given without its folder: the files of its trainings were not compared.";
    return proven;
  }
  const runfile::RecommendRun& run = proven.run;
  std::size_t finished = 0;
  for (std::size_t arm = 0; arm < run.arms.size(); ++arm) {
    for (std::size_t seed = 0; seed < run.seeds.size(); ++seed) {
      if (!run.result(arm, seed)) continue;
      ++finished;
      const fs::path folder = path / run.arms[arm] / fmt::format("seed-{}", run.seeds[seed]);
      if (!is_file_name(run.arms[arm]) || !fs::is_directory(folder)) continue;
      CHECK(fs::exists(folder / seed_result_name),
            "{}: is not there, and run.h5 holds this training: it was deleted, or the training goes on with more "
            "epochs; repeat its gainlens train recommend command, which continues",
            printable((folder / seed_result_name).string()));
      if (prove_seed(folder, run.arms[arm], run.seeds[seed]).has_checksum) ++proven.compared;
    }
  }
  if (proven.compared < finished)
    proven.unproven = fmt::format("The files of {} of {} were not compared with checksums: they are not there, or {}.",
                                  finished - proven.compared, counted(finished, "training"), of_earlier_version);
  return proven;
}

}  // namespace gainlens::recommend
