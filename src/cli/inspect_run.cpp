#include "cli/inspect_parts.h"
#include "core/check.h"
#include "core/counted.h"
#include "core/number_ranges.h"
#include "core/quantity.h"
#include "runfile/depth_run.h"
#include "runfile/run_file_name.h"
#include "runfile/run_folder.h"
#include "runfile/run_proof.h"
#include "runfile/run_reader.h"

#include <fmt/ranges.h>

#include <optional>

namespace gainlens::cli {
namespace {

/// Says which files were compared with their checksums.
void add_checksums(const runfile::RunProof& proof, Findings& findings) {
  std::string text = proof.unproven;
  if (proof.unproven.empty()) {
    text = fmt::format("run.h5 and its {} shards are as they were written (sha256)", proof.shards);
  } else if (proof.shards > 0) {
    text = fmt::format("{}its {} shards are as they were written (sha256). {}",
                       proof.run_file_compared && !proof.depth_compared ? "run.h5 and " : "", proof.shards,
                       proof.unproven);
  }
  findings.add("checksums", text,
               {{"shards", proof.shards}, {"unproven", proof.unproven.empty() ? Json(nullptr) : Json(proof.unproven)}});
}

void inspect_run(const std::filesystem::path& path, Findings& findings) {
  std::optional<runfile::RunProof> proof;
  auto stopped = runfile::open_stopped_sweep(path);
  if (stopped) proof = std::move(stopped->proof);
  // A run.h5 alone is proven before it is opened.
  else if (!std::filesystem::exists(path / runfile::request_file_name))
    proof = runfile::prove_run(path);
  const auto run = stopped ? std::move(stopped->reader) : runfile::RunReader::open(path);
  findings.add("kind", "run");
  const auto& request = run.request();
  findings.add("family", request.family);
  std::vector<std::string> lengths;
  for (const std::int64_t length : run.lengths()) lengths.push_back(format_count(length));
  findings.add("lengths", fmt::format("{}", fmt::join(lengths, ", ")), run.lengths());
  std::int64_t complete = 0;
  for (std::size_t i = 0; i < run.lengths().size(); ++i) {
    for (std::int64_t sample = 0; sample < run.samples(); ++sample) complete += run.complete(i, sample) ? 1 : 0;
  }
  const std::int64_t chunks = std::ssize(run.lengths()) * run.samples();
  findings.add("chunks",
               fmt::format("{} of {} complete ({} samples a length{}{})", complete, chunks, run.samples(),
                           request.nested ? ", nested" : "",
                           request.spread ? fmt::format(", spread over {} tokens of text", *request.spread) : ""),
               {{"complete", complete}, {"of", chunks}});
  const bool first_ones = run.layers().back() + 1 == std::ssize(run.layers());
  findings.add("layers",
               first_ones ? fmt::format("{}", run.layers().size())
                          : fmt::format("{} measured: {}", run.layers().size(), number_ranges(run.layers())),
               run.layers());
  const std::string kv_heads =
      either_number(request.layer_kv_heads.empty() ? std::vector{run.kv_heads()} : request.layer_kv_heads);
  findings.add("heads",
               fmt::format("{} query, {} key/value, of {} dimensions", run.heads(), kv_heads, request.head_dim),
               {{"query", run.heads()}, {"kv", run.kv_heads()}, {"head_dim", request.head_dim}});
  findings.add("gate", request.gated ? "stored" : "none");
  if (request.filtered) findings.add("filter", "Bayesian (BFT)", true);
  if (request.sink_logits) findings.add("sink logits", "one learned logit a head", true);
  findings.add("dtype", request.dtype);
  findings.add("BOS", request.bos_policy);
  if (!request.ignored_config_keys.empty()) {
    findings.add("ignored keys", fmt::format("{} of config.json", fmt::join(request.ignored_config_keys, ", ")),
                 request.ignored_config_keys);
  }
  if (request.estimator.name != Estimator::reml) findings.add("estimator", words_of(request.estimator));
  findings.add("statistics", request.statistics ? (request.per_query ? "all, per query too" : "all") : "none");
  if (const auto depth = runfile::read_depth_run(run.path().parent_path())) {
    const std::size_t layers = depth->chunks.front().layers.size();
    findings.add("depth",
                 fmt::format("precision through {} of {} ({})", counted(layers, "layer"),
                             counted(depth->chunks.size(), "chunk"), runfile::depth_file),
                 {{"layers", layers}, {"chunks", depth->chunks.size()}});
  }
  add_checksums(proof ? *proof : runfile::prove_run(path), findings);
  CHECK(complete > 0, "{}: no chunk is complete; run the sweep again to finish it", path.string());
}

}  // namespace

const RunInspection sweep_inspection = inspect_run;

}  // namespace gainlens::cli
