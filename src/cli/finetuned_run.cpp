#include "cli/finetuned_run.h"

#include "analyses/filter_layers.h"
#include "analyses/noise_levels.h"
#include "cli/given_run.h"
#include "core/check.h"

namespace gainlens::cli {

reports::FinetunedRun read_finetuned_run(const std::filesystem::path& path, const std::string& name,
                                         const analyses::ExperimentOptions& options) {
  ProvenTrainings<runfile::ExperimentRun> proven = prove_experiment_run(path);
  const std::shared_ptr<const runfile::ExperimentRun> run = proven.run;
  ASSERT(analyses::has_noise_levels(*run), "the report of levels of noise of a run without them");
  reports::FinetunedRun finetuned{name, run, std::move(proven.unproven), analyses::noise_levels(path, run, {}, options),
                                  {},   {}};
  tell_unproven(path, finetuned.unproven);
  for (std::size_t arm = 0; arm < run->arms.size(); ++arm) {
    const std::string label = printable(run->arms[arm], 60);
    std::vector<analyses::FilterLayer> layers = analyses::filter_layers(*run, arm);
    reports::GammaPath path_of{label, {}};
    std::vector<double> plain, filtered;
    for (std::size_t seed = 0; seed < run->seeds.size(); ++seed) {
      const auto& result = run->result(arm, seed);
      if (result && result->test.contains(runfile::start_loss) &&
          result->test.contains(runfile::start_loss_with_filter)) {
        plain.push_back(result->test.at(runfile::start_loss));
        filtered.push_back(result->test.at(runfile::start_loss_with_filter));
      }
      if (result && result->curve.contains(runfile::gamma_curve))
        path_of.seeds.push_back(result->curve.at(runfile::gamma_curve));
    }
    if (!layers.empty()) finetuned.filters.push_back({label, std::move(layers), plain, filtered});
    if (!path_of.seeds.empty()) finetuned.gammas.push_back(std::move(path_of));
  }
  const Json& data = run->request.at("data");
  const std::string task = data.contains("task") && data.at("task").is_string() ? data.at("task") : "";
  if (task == "squad" || task == "nq") finetuned.paper_task = task;
  if (task == "nq" && data.contains("passages") && data.at("passages").is_number())
    finetuned.passages = data.at("passages").get<double>();
  return finetuned;
}

}  // namespace gainlens::cli
