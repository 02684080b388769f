#include "interventions/run_interventions.h"

#include "core/check.h"
#include "core/counted.h"
#include "core/listener.h"
#include "core/progress.h"
#include "core/random.h"
#include "core/sha256.h"
#include "interventions/answer_tokens.h"
#include "interventions/arm_units.h"
#include "interventions/document_passes.h"
#include "interventions/document_source.h"
#include "interventions/gradient_pass.h"
#include "interventions/measured_decoder.h"
#include "interventions/site_values.h"
#include "models/checkpoint/checkpoint_source.h"
#include "models/checkpoint/torch_dtype.h"
#include "models/decoder/decoder_sites.h"
#include "runfile/checksums.h"
#include "runfile/intervention_run.h"
#include "runfile/run_store.h"

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <utility>

namespace gainlens::interventions {
namespace {

/// Everything that determines the numbers, read and checked before any work.
struct Job {
  models::CheckpointSource checkpoint;
  DocumentSource test, calibration;
  Question question;
  std::vector<Intervention> asked;
  std::vector<Arm> arms;                        // those that were asked for, then controls
  std::vector<runfile::InterventionArm> named;  // the same
};

bool takes(const std::vector<Arm>& arms, Mode mode) {
  return std::ranges::any_of(arms, [&](const Arm& arm) { return !arm.sites(mode).empty(); });
}

void add_calibration(const InterveneOptions& options, Job& job) {
  const bool mean = takes(job.arms, Mode::mean);
  CHECK(!mean || !options.calibration.empty(),
        "--calibration: missing; a mean is taken over another text than that of the test");
  CHECK(mean || options.calibration.empty(), "--calibration: no intervention takes a mean; leave it out");
  if (!mean) return;
  job.calibration =
      read_calibration(options.source, options.calibration, job.checkpoint, options.length, options.samples, job.test);
}

/// Places the interventions that were asked for, and a control for each that is of single heads.
void add_arms(const InterveneOptions& options, Job& job) {
  const models::DecoderConfig& config = job.checkpoint.config;
  const std::vector<hooks::SiteShape> sites = models::decoder_sites(config);
  const auto add = [&](const Intervention& one) {
    job.arms.push_back(place_arm(one, config, sites, options.length, options.dtype));
    job.named.push_back({job.arms.back().text, {}, {}});
    job.arms.back().control = job.arms.size() > job.asked.size();
    job.arms.back().may_do_nothing = job.arms.size() > options.given.size();
  };
  job.asked = options.given;
  for (Intervention& one : interventions_on(options.every, config)) job.asked.push_back(std::move(one));
  CHECK(!job.asked.empty(), "intervene: there is nothing to do; give --set, --interventions or --each-head");
  check_each_once(job.asked);
  for (const Intervention& one : job.asked) add(one);
  for (const Arm& arm : job.arms)
    CHECK(arm.sites(Mode::patch).empty(), "{}: patch takes values from another prompt; give --clean and --corrupt",
          arm.named());
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < job.named.size(); ++i) places[job.named[i].text] = i;
  for (std::size_t i = 0; i < job.asked.size(); ++i) {
    const Control control = control_of(job.asked[i], config, sites, options.length, options.seed);
    if (!control.intervention) {
      job.named[i].no_control = control.reason;
      continue;
    }
    const auto [place, added] = places.emplace(control.intervention->text(), job.arms.size());
    if (added) add(*control.intervention);
    job.named[i].control = place->second;
  }
}

Job read_job(const InterveneOptions& options) {
  Job job;
  job.checkpoint = models::open_checkpoint(options.model, options.ignored_config_keys);
  const models::DecoderConfig& config = job.checkpoint.config;
  CHECK(options.length >= 2, "--lengths: {}; a document needs 2 tokens, to predict one from another", options.length);
  CHECK(options.length <= config.max_positions || options.allow_extrapolation,
        "--lengths: {} exceeds the model's {} positions; use shorter contexts, or --allow-extrapolation to go beyond "
        "them",
        options.length, config.max_positions);
  CHECK(options.targets >= 0 && options.targets < options.length,
        "--targets: {}; must be from 1 to {}, since documents have {}", options.targets, options.length - 1,
        counted(options.length, "token"));
  if (options.targets > 0) job.question.targets = options.targets;
  if (const auto& range = options.target_positions) {
    CHECK(range->first >= 1 && range->end <= options.length,
          "--targets: {} must lie from 1 to {}: documents have {}, and the first of them is not predicted",
          range->text(), options.length, counted(options.length, "token"));
    job.question.targets = range->size();
    job.question.after = options.length - range->end;
  }
  add_arms(options, job);
  const bool resample = takes(job.arms, Mode::resample);
  data::ChunkAdvice advice;
  if (resample) {  // takes values from another document
    advice.samples = [](std::int64_t most) { return most >= 2 ? data::ChunkAdvice::give_samples(most) : ""; };
  }
  job.test = read_documents(options.source, job.checkpoint, options.length, options.samples, advice);
  CHECK(job.test.source.text_sha256 != options.other_text,
        "--text: is the text of the sweep that the scores are from; give another one");
  CHECK(!resample || options.samples >= 2,
        "--samples: {}; resample needs at least 2 documents, to take values from another one", options.samples);
  add_calibration(options, job);
  CHECK(options.answer.empty() == options.foil.empty(), "{}: is missing; --answer and --foil go together",
        options.answer.empty() ? "--answer" : "--foil");
  if (!options.answer.empty())
    job.question.pair = answer_pair(options.answer, options.foil, job.test.source.tokenizer.get(), config.vocabulary);
  return job;
}

runfile::InterventionNames names_of(const InterveneOptions& options) {
  const std::filesystem::path& text = options.source.text.empty() ? options.source.token_ids : options.source.text;
  return {runfile::name_of_model(options.model), text.filename().string()};
}

/// Says that some layers have no heads.
void tell_of_layers_without_heads(const InterveneOptions& options, const models::DecoderConfig& config) {
  const std::int64_t without = config.layers - config.attention_layers(config.layers);
  if (without == 0 || options.quiet || (!options.every.heads && !options.every.kv_heads)) return;
  tell_note(
      "{} of {} layers have {} and no heads: they are left out. --each-layer has "
      "them too",
      without, config.layers, config.without_attention());
}

Json request_of(const InterveneOptions& options, const Job& job) {
  const runfile::HashCache hashes = runfile::HashCache::for_user();
  Json files = Json::object(), controls = Json::array();
  for (const Arm& arm : job.arms) {
    for (const PlacedWrite& placed : arm.writes) {
      if (placed.write.mode == Mode::file) files[placed.write.file.string()] = hashes.sha256(placed.write.file);
    }
  }
  Json asked = Json::array();
  for (std::size_t i = 0; i < job.named.size(); ++i)
    (i < job.asked.size() ? asked : controls).push_back(job.named[i].text);
  Json request = {{"format", runfile::intervention_run_format},
                  {"version", runfile::intervention_run_version},
                  {"family", job.checkpoint.config.family},
                  {"model", hashes.sha256_by_name(job.checkpoint.files)},
                  {"ignored_config_keys", ignored_keys(options)},
                  {"tokenizer", job.test.source.tokenizer_sha256},
                  {"text", job.test.source.text_sha256},
                  {"calibration", job.calibration.source.text_sha256},
                  {"length", options.length},
                  {"samples", options.samples},
                  {"bos_policy", job.test.source.bos.explanation},
                  {"dtype", models::dtype_name(options.dtype)},
                  {"threads", at::get_num_threads()},
                  {"seed", options.seed},
                  {"allow_extrapolation", options.allow_extrapolation},
                  {"interventions", asked},
                  {"controls", controls},
                  {"files", files}};
  add_device(options, request);
  if (options.target_positions) {
    request["targets"] = fmt::format("{}:{}", options.target_positions->first, options.target_positions->end);
  } else if (job.question.targets) {
    request["targets"] = *job.question.targets;
  }
  if (job.question.pair) request["answer"] = answer_request(*job.question.pair, job.test.source.tokenizer.get());
  return request;
}

/// The document whose values a resampled document gets: another one, the same for all of its interventions. Each gives
/// to one document: two that had theirs from the same one would not be independent.
std::size_t donor_of(std::size_t document, std::size_t documents, std::uint64_t seed) {
  std::vector<std::size_t> circle(documents);
  std::iota(circle.begin(), circle.end(), 0);
  Random(seed, 0x646f6e6f72).shuffle(circle);  // apart from the streams of controls
  const auto place = std::ranges::find(circle, document) - circle.begin();
  return circle[(static_cast<std::size_t>(place) + 1) % documents];
}

/// Measures what is missing, document by document, and within a document layer by layer.
class Measuring {
 public:
  Measuring(const InterveneOptions& options, const Job& job, runfile::RunStore& kept, runfile::InterventionRun& run)
      : options_(options), job_(job), kept_(kept), run_(run), units_(job.arms) {
    forward_.allow_extrapolation = options.allow_extrapolation;
  }

  void run() {
    const c10::InferenceMode inference;
    std::vector<std::set<std::int64_t>> missing;  // [document]
    double work = 0;
    for (std::size_t document = 0; document < job_.test.documents.size(); ++document) {
      missing.push_back(units_.take_stored([&](std::int64_t layer) { return stored(document, layer); },
                                           [&](const auto& unit) { take(document, unit); }));
      work += units_.work(missing.back());
    }
    if (work == 0) return;
    if (!options_.quiet) kept_.tell_of_stored();
    Progress progress("intervene", work, "interventions", options_.quiet);
    load();
    for (std::size_t document = 0; document < missing.size(); ++document)
      if (!missing[document].empty()) measure(document, missing[document], progress);
  }

 private:
  /// A unit that an earlier call has computed.
  std::optional<runfile::InterventionUnit> stored(std::size_t document, std::int64_t layer) const {
    return kept_.unit(runfile::unit_name(document, layer), [&](const Json& json) {
      runfile::InterventionUnit unit = runfile::intervention_unit_from(json);
      CHECK(unit.arms == units_.places(layer), "it has other interventions");
      return unit;
    });
  }

  void take(std::size_t document, const runfile::InterventionUnit& unit) {
    run_.native[document] = unit.native;
    if (unit.answer) run_.native_answers[document] = *unit.answer;
    for (std::size_t k = 0; k < unit.arms.size(); ++k) run_.effects[unit.arms[k]][document] = unit.effects[k];
  }

  void load() {
    model_ = measured_decoder(job_.checkpoint, options_);
    means_ = site_means(*model_, job_.calibration.documents, units_.sites(Mode::mean, {}), forward_);
  }

  void measure(std::size_t document, const std::set<std::int64_t>& layers, Progress& progress) {
    const std::set<std::string> resampled = units_.sites(Mode::resample, layers);
    SiteValues donor;
    if (!resampled.empty()) {
      const std::size_t other = donor_of(document, job_.test.documents.size(), options_.seed);
      donor = site_values(*model_, job_.test.documents[other], resampled, forward_);
    }
    DocumentPasses passes(*model_, job_.test.documents[document], layers, forward_, job_.question);
    for (const std::int64_t layer : layers) {
      const std::vector<const Arm*> arms = units_.arms(layer);
      runfile::InterventionUnit unit{units_.places(layer), passes.native_nll(), {}, passes.native_answer()};
      try {
        unit.effects = passes.run(arms, means_, donor);
      } catch (const InvalidArgument& error) {
        throw_invalid("document {}: {}", document, error.what());
      }
      kept_.keep_unit(runfile::unit_name(document, layer), runfile::to_json(unit));
      take(document, unit);
      const auto count = static_cast<double>(arms.size());
      progress.advance(count, count, fmt::format("document {}, {}", document, unit_words(layer)));
    }
  }

  const InterveneOptions& options_;
  const Job& job_;
  runfile::RunStore& kept_;
  runfile::InterventionRun& run_;
  ArmUnits units_;
  hooks::ForwardOptions forward_;
  std::unique_ptr<models::Decoder> model_;
  SiteValues means_;
};

/// Estimates every intervention by one backward pass of each document, and then measures some exactly.
class Estimating {
 public:
  Estimating(const InterveneOptions& options, const Job& job)
      : options_(options), job_(job), arms_(std::span(job.arms).first(job.asked.size())) {
    forward_.allow_extrapolation = options.allow_extrapolation;
    for (const Arm& arm : arms_) {
      for (const PlacedWrite& placed : arm.writes) sites_.insert(placed.write.site);
      resampled_.merge(arm.sites(Mode::resample));
      averaged_.merge(arm.sites(Mode::mean));
      found_.interventions.push_back(arm.text);
      found_.kinds.push_back(arm.kind());
    }
    found_.estimates.resize(arms_.size());
    found_.acts.assign(arms_.size(), false);
  }

  Attribution run() {
    model_ = measured_decoder(job_.checkpoint, options_);
    {
      const c10::InferenceMode inference;
      means_ = site_means(*model_, job_.calibration.documents, averaged_, forward_);
    }
    const std::size_t documents = job_.test.documents.size();
    Progress progress("intervene", static_cast<double>(2 * documents), "documents", options_.quiet);
    for (std::size_t document = 0; document < documents; ++document) {
      estimate(document);
      progress.advance(1, 1, fmt::format("document {}, estimates", document));
    }
    std::vector<const Arm*> drawn;
    for (const std::size_t place : drawn_places(found_.kinds, found_.acts, options_.seed)) {
      drawn.push_back(&arms_[place]);
      found_.exact.push_back({place, {}});
    }
    for (std::size_t document = 0; document < documents; ++document) {
      const std::vector<double> changes = exact_changes(*model_, job_.test.documents[document], drawn, means_,
                                                        donor_for(document), forward_, job_.question);
      for (std::size_t k = 0; k < changes.size(); ++k) found_.exact[k].changes.push_back(changes[k]);
      progress.advance(1, 1, fmt::format("document {}, exact changes", document));
    }
    return std::move(found_);
  }

 private:
  SiteValues donor_for(std::size_t document) {
    if (resampled_.empty()) return {};
    const c10::InferenceMode inference;
    const std::size_t other = donor_of(document, job_.test.documents.size(), options_.seed);
    return site_values(*model_, job_.test.documents[other], resampled_, forward_);
  }

  void estimate(std::size_t document) {
    const SiteValues donor = donor_for(document);
    const GradientPass pass(*model_, job_.test.documents[document], sites_, forward_, job_.question);
    found_.native.push_back(pass.value());
    for (std::size_t i = 0; i < arms_.size(); ++i) {
      const Estimate made = pass.estimate(arms_[i], means_, donor);
      found_.estimates[i].push_back(made.change);
      found_.acts[i] = found_.acts[i] || made.acts();
    }
  }

  const InterveneOptions& options_;
  const Job& job_;
  std::span<const Arm> arms_;  // those that were asked for
  std::set<std::string> sites_, resampled_, averaged_;
  hooks::ForwardOptions forward_;
  std::unique_ptr<models::Decoder> model_;
  SiteValues means_;
  Attribution found_;
};

/// Refuses a run in which no unit acts. Of many units some may be dead. If all are, something else is wrong.
void check_some_act(const runfile::InterventionRun& run) {
  const auto acts = [](const std::vector<InterventionEffect>& documents) {
    return std::ranges::any_of(documents, [](const auto& effect) { return effect.largest_logit_change > 0; });
  };
  CHECK(std::any_of(run.effects.begin(), run.effects.begin() + static_cast<std::ptrdiff_t>(run.asked), acts),
        "intervene: none of {} interventions changes a logit; the first is '{}'", run.asked,
        printable(run.arms.front().text));
}

}  // namespace

runfile::InterventionRun run_interventions(const InterveneOptions& options) {
  const Job job = read_job(options);
  for (const std::string& note : job.checkpoint.notes) tell_warning("{}", note);
  tell_of_layers_without_heads(options, job.checkpoint.config);
  runfile::InterventionRun run;
  run.request = request_of(options, job);
  run.arms = job.named;
  run.asked = job.asked.size();
  run.native.resize(job.test.documents.size());
  if (job.question.pair) run.native_answers.resize(job.test.documents.size());
  run.effects.assign(job.arms.size(), std::vector<InterventionEffect>(job.test.documents.size()));
  runfile::RunStore kept(options.out, run.request, {"interventions", "model", "text", "length", "samples", "seed"},
                         {{"interventions.json", interventions_text(job.asked)},
                          {runfile::intervention_names_file, names_text(names_of(options))}});
  Measuring(options, job, kept, run).run();
  check_some_act(run);
  if (!kept.path().empty()) runfile::write_intervention_run(kept.path(), run);
  return run;
}

Attribution approximate_interventions(const InterveneOptions& options) {
  ASSERT(options.out.empty(), "estimates are no run");
  check_can_approximate(options.stream_weights);
  const Job job = read_job(options);
  for (const std::string& note : job.checkpoint.notes) tell_warning("{}", note);
  tell_of_layers_without_heads(options, job.checkpoint.config);
  return Estimating(options, job).run();
}

}  // namespace gainlens::interventions
