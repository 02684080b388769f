#include "cli/inspect_parts.h"
#include "core/check.h"
#include "core/counted.h"
#include "runfile/attention_run.h"
#include "runfile/run_file_name.h"
#include "runfile/run_proof.h"

#include <algorithm>

namespace gainlens::cli {

namespace {

void inspect_attention_run(const std::filesystem::path& path, Findings& findings) {
  const runfile::AttentionRun run = runfile::read_attention_run(path);
  findings.add("kind", "sweep of recommenders");
  findings.add("backbone", printable(run.backbone()), run.backbone());
  findings.add("data set", fmt::format("{} ({})", printable(run.data_name()), counted(run.units.size(), "user")),
               run.request.at("data"));
  findings.add("split checksum", printable(run.split()), run.split());
  std::int64_t layers = 0, heads = 0;
  for (const auto& swept : run.swept) {
    layers = std::max(layers, swept ? swept->layers : 0);
    heads = std::max(heads, swept ? swept->heads : 0);
  }
  findings.add("heads", fmt::format("{} of {}", counted(layers, "layer"), counted(heads, "head")),
               {{"layers", layers}, {"heads", heads}});
  std::vector<std::string> numbers(std::size(attention_numbers));
  std::ranges::transform(attention_numbers, numbers.begin(),
                         [](const auto& number) { return std::string(number.name); });
  add_trainings(run, numbers, findings);
  const std::filesystem::path file = std::filesystem::is_directory(path) ? path / runfile::run_file_name : path;
  const bool compared =
      std::filesystem::exists(runfile::checksum_file_of(file));  // read_attention_run() has compared them
  findings.add("checksums",
               compared ? "run.h5 is as it was written (sha256)" : "there is no run.h5.sha256 beside run.h5", compared);
}

}  // namespace

extern const RunInspection recommender_sweep_inspection;
const RunInspection recommender_sweep_inspection = {runfile::RunKind::recommender_sweep, inspect_attention_run};

}  // namespace gainlens::cli
