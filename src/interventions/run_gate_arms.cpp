#include "interventions/run_gate_arms.h"

#include "core/check.h"
#include "core/listener.h"
#include "core/progress.h"
#include "core/quantity.h"
#include "interventions/document_source.h"
#include "interventions/gate_arm_reading.h"
#include "interventions/gate_pass.h"
#include "interventions/measured_decoder.h"
#include "models/checkpoint/torch_dtype.h"
#include "runfile/checksums.h"
#include "runfile/run_store.h"

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

namespace gainlens::interventions {
namespace {

using Readings = std::vector<runfile::GateArmReading>;  // [context]

/// Everything that determines the numbers, read and checked before any work.
struct GateArmsJob {
  models::CheckpointSource checkpoint;
  std::vector<GateArm> arms;
  std::vector<std::int64_t> contexts;
  DocumentSource test, calibration;

  bool gated() const { return checkpoint.config.gate != models::Gate::none; }
};

/// The contexts that are asked for, ascending.
std::vector<std::int64_t> contexts_of(const GateArmsOptions& options) {
  const std::int64_t trained = options.trained_length;
  CHECK(trained >= 4, "--trained-length: {}; must be at least 4 tokens", trained);
  std::vector<std::int64_t> contexts = options.contexts;
  if (contexts.empty()) {
    CHECK(trained % 2 == 0, "--trained-length: {} has no half; give the contexts with --contexts", trained);
    contexts = {trained / 2, trained, 2 * trained, 4 * trained};
  }
  std::ranges::sort(contexts);
  CHECK(std::ranges::adjacent_find(contexts) == contexts.end(), "--contexts: a length is given twice");
  CHECK(std::ranges::find(contexts, trained) != contexts.end(),
        "--contexts: must hold the trained length, {}, at which the gates are calibrated", format_count(trained));
  CHECK(options.targets >= 1 && options.targets < contexts.front(),
        "--targets: {}; must be from 1 to {}, so that the shortest context of {} tokens predicts each of them",
        options.targets, contexts.front() - 1, format_count(contexts.front()));
  return contexts;
}

void check_model(const models::DecoderConfig& config, std::int64_t longest) {
  CHECK(!config.filter, "model: its layers have a Bayesian filter, whose gain would stand beside that of an arm");
  CHECK(!softmax_layers(config).empty(), "model: no layer has softmax attention");
  CHECK(config.positions != models::Positions::learned || longest <= config.max_positions,
        "--trained-length: the longest context has {} tokens, and the model has vectors for {} positions; give "
        "shorter ones with --contexts",
        format_count(longest), format_count(config.max_positions));
}

void check_document_counts(const GateArmsOptions& options) {
  const std::int64_t fewest = runfile::declared.fewest_documents;
  CHECK(options.documents >= 1 && options.calibration_documents >= 1,
        "--samples: {} documents, and {} of calibration; at least 1 of each is needed", options.documents,
        options.calibration_documents);
  CHECK(options.documents >= fewest || options.few_documents,
        "--samples: {} documents; the plan declares {} or more. --few-documents measures fewer", options.documents,
        fewest);
  CHECK(!options.calibration.empty(),
        "--calibration: missing; gates are calibrated on another text than that of the test");
}

/// What to do about a text that is too short. Contexts must hold the trained length, and few documents have to be
/// allowed.
/// @param of  "--samples"
data::ChunkAdvice gate_arms_advice(const GateArmsOptions& options, const char* of, std::int64_t fewest) {
  data::ChunkAdvice advice;
  advice.lengths = [trained = options.trained_length](std::int64_t most) {
    return most >= trained ? fmt::format("--contexts of at most {}", most) : std::string();
  };
  advice.samples = [of, fewest](std::int64_t most) {
    if (most < 1) return std::string();
    return fmt::format("{} of at most {}{}", of, most, most < fewest ? " with --few-documents" : "");
  };
  return advice;
}

GateArmsJob read_gate_arms_job(const GateArmsOptions& options) {
  GateArmsJob job;
  check_document_counts(options);
  const std::int64_t fewest = runfile::declared.fewest_documents;
  job.contexts = contexts_of(options);
  const std::int64_t longest = job.contexts.back();
  job.checkpoint = models::open_checkpoint(options.model, options.ignored_config_keys);
  check_model(job.checkpoint.config, longest);
  job.arms = gate_arms(options.arms, job.checkpoint.config.gate);
  job.test = read_documents(options.source, job.checkpoint, longest, options.documents,
                            gate_arms_advice(options, "--samples", options.few_documents ? 0 : fewest));
  job.calibration =
      read_calibration(options.source, options.calibration, job.checkpoint, longest, options.calibration_documents,
                       job.test, gate_arms_advice(options, "--calibration-samples", 0));
  return job;
}

std::vector<std::string> names_of(const std::vector<GateArm>& arms) {
  std::vector<std::string> names;
  names.reserve(arms.size());
  for (const GateArm arm : arms) names.emplace_back(name_of(arm));
  return names;
}

Json gate_arms_request(const GateArmsOptions& options, const GateArmsJob& job) {
  Json request = {{"format", runfile::gate_arms_format},
                  {"version", runfile::gate_arms_version},
                  {"family", job.checkpoint.config.family},
                  {"model", runfile::HashCache::for_user().sha256_by_name(job.checkpoint.files)},
                  {"ignored_config_keys", ignored_keys(options)},
                  {"tokenizer", job.test.source.tokenizer_sha256},
                  {"text", job.test.source.text_sha256},
                  {"calibration", job.calibration.source.text_sha256},
                  {"trained_length", options.trained_length},
                  {"contexts", job.contexts},
                  {"targets", options.targets},
                  {"samples", options.documents},
                  {"calibration_samples", options.calibration_documents},
                  {"bos_policy", job.test.source.bos.explanation},
                  {"arms", names_of(job.arms)},
                  {"dtype", models::dtype_name(options.dtype)},
                  {"threads", at::get_num_threads()},
                  {"seed", options.seed},
                  {"declared", runfile::to_json(runfile::declared)}};
  add_device(options, request);
  return request;
}

/// Measures what is missing, document by document, and within a document arm by arm.
class GateArmsMeasuring {
 public:
  GateArmsMeasuring(const GateArmsOptions& options, const GateArmsJob& job, runfile::RunStore& kept,
                    runfile::GateArmsRun& run)
      : options_(options), job_(job), kept_(kept), run_(run) {}

  void run() {
    const c10::InferenceMode inference;
    const std::vector<std::pair<std::size_t, std::size_t>> missing = take_stored();  // document, arm
    const auto unit_steps = static_cast<double>(missing.size());
    // A calibration document takes about as long as an arm on a document.
    const auto calibrating = static_cast<double>(job_.calibration.documents.size());
    if (missing.empty() && !run_.calibration.empty()) return;
    if (!options_.quiet) kept_.tell_of_stored();
    Progress progress("gate-arms", unit_steps + calibrating, "arms of documents", options_.quiet);
    load();
    calibrate();
    progress.advance(calibrating, 0, "calibration");
    for (const auto& [document, arm] : missing) {
      measure(document, arm);
      progress.advance(1, 1, fmt::format("document {}, {}", document, name_of(job_.arms[arm])));
    }
  }

 private:
  std::string unit_name(std::size_t document, std::size_t arm) const {
    return runfile::gate_arm_unit(document, name_of(job_.arms[arm]));
  }

  /// Takes what earlier calls have stored, and returns what is missing.
  std::vector<std::pair<std::size_t, std::size_t>> take_stored() {
    std::vector<std::pair<std::size_t, std::size_t>> missing;
    if (auto stored = kept_.unit(runfile::calibration_unit, runfile::calibration_from))
      run_.calibration = std::move(*stored);
    const auto readings = [&](const Json& stored) { return runfile::readings_from(stored, job_.contexts.size()); };
    for (std::size_t document = 0; document < job_.test.documents.size(); ++document) {
      for (std::size_t arm = 0; arm < job_.arms.size(); ++arm) {
        if (auto stored = kept_.unit(unit_name(document, arm), readings))
          run_.readings[arm][document] = std::move(*stored);
        else
          missing.emplace_back(document, arm);
      }
    }
    return missing;
  }

  void load() { model_ = measured_decoder(job_.checkpoint, options_); }

  void calibrate() {
    const bool positions = std::ranges::find(job_.arms, GateArm::position) != job_.arms.end();
    calibration_ = calibrate_gates(*model_, job_.calibration.documents, options_.trained_length, positions);
    run_.calibration = calibration_.heads;
    kept_.keep_unit(runfile::calibration_unit, runfile::to_json(run_.calibration));
  }

  void measure(std::size_t document, std::size_t arm) {
    Readings readings;
    for (const std::int64_t context : job_.contexts) {
      const GateContext asked{
          last_tokens(job_.test.documents[document], context, job_.test.source.bos.token.has_value()), options_.targets,
          document};
      try {
        readings.push_back(read_gate_arm(*model_, job_.arms[arm], calibration_, asked, options_.seed));
      } catch (const RunFailed& error) {
        throw_run_failed("document {}, {} tokens, arm '{}': {}", document, context, name_of(job_.arms[arm]),
                         error.what());
      }
    }
    kept_.keep_unit(unit_name(document, arm), runfile::to_json(readings));
    run_.readings[arm][document] = std::move(readings);
  }

  const GateArmsOptions& options_;
  const GateArmsJob& job_;
  runfile::RunStore& kept_;
  runfile::GateArmsRun& run_;
  std::unique_ptr<models::Decoder> model_;
  GainCalibration calibration_;
};

void tell_of_layers_without_gates(const GateArmsOptions& options, const models::DecoderConfig& config) {
  const std::int64_t without = config.layers - std::ssize(softmax_layers(config));
  if (without == 0 || options.quiet) return;
  tell_note("{} of {} layers have {}: they stay as they are in every arm", without, config.layers,
            config.without_attention());
}

}  // namespace

runfile::GateArmsRun run_gate_arms(const GateArmsOptions& options) {
  const GateArmsJob job = read_gate_arms_job(options);
  for (const std::string& note : job.checkpoint.notes) tell_warning("{}", note);
  tell_of_layers_without_gates(options, job.checkpoint.config);
  runfile::GateArmsRun run;
  run.request = gate_arms_request(options, job);
  run.arms = names_of(job.arms);
  run.contexts = job.contexts;
  run.trained_length = options.trained_length;
  run.gated = job.gated();
  run.readings.assign(job.arms.size(), std::vector<Readings>(job.test.documents.size()));
  runfile::RunStore kept(options.out, run.request,
                         {"arms", "model", "text", "calibration", "trained_length", "contexts", "samples", "seed"});
  GateArmsMeasuring(options, job, kept, run).run();
  if (!kept.path().empty()) runfile::write_gate_arms_run(kept.path(), run);
  return run;
}

}  // namespace gainlens::interventions
