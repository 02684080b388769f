#include "cli/inspect_parts.h"
#include "core/check.h"
#include "core/counted.h"
#include "experiment/proven_result.h"
#include "runfile/experiment_run.h"
#include "runfile/run_file_name.h"
#include "runfile/run_proof.h"

namespace gainlens::cli {

namespace {

void inspect_experiment_run(const std::filesystem::path& path, Findings& findings) {
  findings.add("kind", "run of an experiment");
  const auto prove = [](const experiment::Job& job) { experiment::prove_result(job.folder, job.label(), job.seed); };
  if (add_begun_trainings(path, prove, findings)) return;
  const runfile::ExperimentRun run = runfile::read_experiment_run(path);
  findings.add("data set", fmt::format("{} ({})", printable(run.data_name()), counted(run.units.size(), run.unit())),
               run.request.at("data"));
  findings.add("split checksum", printable(run.split()), run.split());
  std::vector<std::string> scores;
  for (const UnitScore& score : run.unit_scores) scores.push_back(score.name);
  const std::int64_t finished = add_trainings(run, scores, findings);
  const std::filesystem::path file = std::filesystem::is_directory(path) ? path / runfile::run_file_name : path;
  const bool compared =
      std::filesystem::exists(runfile::checksum_file_of(file));  // read_experiment_run() has compared them
  findings.add("checksums",
               compared ? "run.h5 is as it was written (sha256)" : "there is no run.h5.sha256 beside run.h5", compared);
  CHECK(finished > 0, "{}: no training is finished; repeat the command that trains, which continues",
        printable(path.string()));
}

}  // namespace

extern const RunInspection experiment_inspection;
const RunInspection experiment_inspection = {runfile::RunKind::experiment, inspect_experiment_run};

}  // namespace gainlens::cli
