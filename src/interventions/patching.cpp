#include "interventions/patching.h"

#include "core/check.h"
#include "core/listener.h"
#include "core/progress.h"
#include "interventions/answer_tokens.h"
#include "interventions/arm_units.h"
#include "interventions/document_passes.h"
#include "interventions/gradient_pass.h"
#include "interventions/measured_decoder.h"
#include "interventions/site_values.h"
#include "models/checkpoint/checkpoint_source.h"
#include "models/checkpoint/torch_dtype.h"
#include "models/decoder/decoder_sites.h"
#include "runfile/checksums.h"
#include "runfile/intervention_run.h"
#include "runfile/run_store.h"
#include "sweep/one_sequence.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>

namespace gainlens::interventions {
namespace {

using runfile::PatchDirection;
using runfile::PatchedPrompt;

/// Everything that determines the numbers, read and checked before any work.
struct PatchJob {
  models::CheckpointSource checkpoint;
  PromptPair prompts;
  std::optional<AnswerPair> pair;
  std::vector<Intervention> patches;
  std::vector<Arm> arms;
};

std::vector<Intervention> every_place(const models::DecoderConfig& config, std::int64_t length) {
  std::vector<Intervention> all;
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string stream = hooks::block_site(layer, "hook_resid_pre").name;
    for (std::int64_t position = 0; position < length; ++position)
      all.push_back({{Write{.site = stream, .position = IndexRange::one(position), .mode = Mode::patch}}});
    if (!config.attends(layer)) continue;
    const std::string heads = hooks::block_site(layer, "attn.hook_z").name;
    for (std::int64_t head = 0; head < config.heads; ++head)
      all.push_back({{Write{.site = heads, .head = head, .mode = Mode::patch}}});
  }
  return all;
}

PatchJob read_patch_job(const PatchingOptions& options) {
  PatchJob job;
  job.checkpoint = models::open_checkpoint(options.model, options.ignored_config_keys);
  const models::DecoderConfig& config = job.checkpoint.config;
  job.prompts = read_prompts(options.prompts, job.checkpoint.path, config.vocabulary, config.bos_token);
  const std::int64_t length = std::ssize(job.prompts.clean);
  CHECK(
      length <= config.max_positions || options.allow_extrapolation,
      "--clean: {} tokens exceed the model's {} positions; use shorter prompts, or --allow-extrapolation to go beyond "
      "them",
      length, config.max_positions);
  CHECK(options.answer.empty() == options.foil.empty(), "{}: is missing; --answer and --foil go together",
        options.answer.empty() ? "--answer" : "--foil");
  if (!options.answer.empty())
    job.pair = answer_pair(options.answer, options.foil, job.prompts.tokenizer.get(), config.vocabulary);
  const bool given = !options.given.empty();
  job.patches = given ? options.given : every_place(config, length);
  check_each_once(job.patches);
  const std::vector<hooks::SiteShape> sites = models::decoder_sites(config);
  for (const Intervention& patch : job.patches) {
    for (const Write& write : patch.writes)
      CHECK(write.mode == Mode::patch,
            "intervention '{}': with --clean and --corrupt the value must be patch: what the other prompt has there",
            printable(patch.text()));
    job.arms.push_back(place_arm(patch, config, sites, length, options.dtype));
    job.arms.back().may_do_nothing = !given;
  }
  return job;
}

/// Where a patch of one place stands in a table of layers.
runfile::Patch patch_of(const Arm& arm, std::int64_t layers) {
  runfile::Patch patch{arm.text};
  const PlacedWrite& one = arm.writes.front();
  const auto& position = one.write.position;
  if (arm.writes.size() > 1 || one.place.layer < 0 || one.place.layer >= layers) return patch;
  if ((position && position->size() > 1) || one.write.key) return patch;
  patch.site = one.write.site.substr(one.write.site.find('.', std::string_view("blocks.").size()) + 1);
  patch.layer = one.place.layer;
  patch.head = one.write.head;
  if (position) patch.position = position->first;
  return patch;
}

Json prompt_request(const std::vector<tokenizers::TokenId>& ids, const tokenizers::Tokenizer* tokenizer) {
  Json texts = Json::array();
  for (const tokenizers::TokenId id : ids) texts.push_back(shown_token(id, tokenizer));
  return {{"tokens", ids}, {"texts", texts}};
}

Json request_of(const PatchingOptions& options, const PatchJob& job) {
  Json patches = Json::array();
  for (const Arm& arm : job.arms) patches.push_back(arm.text);
  const tokenizers::Tokenizer* const tokenizer = job.prompts.tokenizer.get();
  Json request = {{"format", runfile::patching_run_format},
                  {"version", runfile::patching_run_version},
                  {"family", job.checkpoint.config.family},
                  {"model", runfile::HashCache::for_user().sha256_by_name(job.checkpoint.files)},
                  {"ignored_config_keys", ignored_keys(options)},
                  {"tokenizer", job.prompts.tokenizer_sha256},
                  {"clean", prompt_request(job.prompts.clean, tokenizer)},
                  {"corrupt", prompt_request(job.prompts.corrupt, tokenizer)},
                  {"bos_policy", job.prompts.bos.explanation},
                  {"dtype", models::dtype_name(options.dtype)},
                  {"threads", at::get_num_threads()},
                  {"allow_extrapolation", options.allow_extrapolation},
                  {"interventions", patches}};
  if (job.pair) request["answer"] = answer_request(*job.pair, tokenizer);
  add_device(options, request);
  return request;
}

runfile::InterventionNames names_of(const PatchingOptions& options, const PromptPair& prompts) {
  runfile::InterventionNames names{runfile::name_of_model(options.model)};
  if (!prompts.tokenizer) return names;
  const auto words = [&](const std::vector<tokenizers::TokenId>& ids) {
    return prompts.tokenizer->decode(std::span(ids).subspan(prompts.bos.token ? 1 : 0));
  };
  names.clean = words(prompts.clean);
  names.corrupt = words(prompts.corrupt);
  return names;
}

/// Measures what is missing, direction by direction, and within one layer by layer.
class Patching {
 public:
  Patching(const PatchingOptions& options, const PatchJob& job, runfile::RunStore& kept, runfile::PatchingRun& run)
      : options_(options), job_(job), kept_(kept), run_(run), units_(job.arms) {
    forward_.allow_extrapolation = options.allow_extrapolation;
  }

  void run() {
    const c10::InferenceMode inference;
    std::map<PatchDirection, std::set<std::int64_t>> missing;
    double work = 0;
    for (const PatchDirection direction : runfile::patch_directions) {
      result(direction).effects.resize(job_.arms.size());
      const std::set<std::int64_t> layers =
          units_.take_stored([&](std::int64_t layer) { return stored(direction, layer); },
                             [&](const auto& unit) { take(direction, unit); });
      work += units_.work(layers);
      if (!layers.empty()) missing[direction] = layers;
    }
    if (missing.empty()) return;
    if (!options_.quiet) kept_.tell_of_stored();
    Progress progress("intervene", work, "patches", options_.quiet);
    load();
    for (const auto& [direction, layers] : missing) measure(direction, layers, progress);
  }

 private:
  PatchedPrompt& result(PatchDirection direction) { return run_.directions[static_cast<std::size_t>(direction)]; }

  void take(PatchDirection direction, const runfile::PatchingUnit& unit) {
    PatchedPrompt& whole = result(direction);
    whole.base = unit.prompt.base;
    whole.other = unit.prompt.other;
    for (std::size_t k = 0; k < unit.patches.size(); ++k) whole.effects[unit.patches[k]] = unit.prompt.effects[k];
  }

  /// A unit that an earlier call has computed.
  std::optional<runfile::PatchingUnit> stored(PatchDirection direction, std::int64_t layer) const {
    return kept_.unit(runfile::patch_unit_name(direction, layer), [&](const Json& json) {
      runfile::PatchingUnit unit = runfile::patching_unit_from(json);
      CHECK(unit.patches == units_.places(layer), "it has other patches");
      return unit;
    });
  }

  void load() {
    model_ = measured_decoder(job_.checkpoint, options_);
    const at::Tensor clean = last_logits(job_.prompts.clean);
    question_ = {.pair = job_.pair, .reference = {}, .targets = 0};
    if (!job_.pair) question_.reference = log_probabilities(clean);
  }

  at::Tensor last_logits(const std::vector<tokenizers::TokenId>& ids) {
    const at::Tensor stream = model_->forward(sweep::one_sequence(ids), forward_, {}).hidden;
    return model_->unembed(stream[0].slice(0, std::ssize(ids) - 1))[0];
  }

  void measure(PatchDirection direction, const std::set<std::int64_t>& layers, Progress& progress) {
    const bool into_corrupt = direction == PatchDirection::denoising;
    const auto& base = into_corrupt ? job_.prompts.corrupt : job_.prompts.clean;
    const auto& other = into_corrupt ? job_.prompts.clean : job_.prompts.corrupt;
    const SiteValues donor = site_values(*model_, other, units_.sites(Mode::patch, layers), forward_);
    const double other_metric = answer_to(question_, last_logits(other));
    DocumentPasses passes(*model_, base, layers, forward_, question_);
    for (const std::int64_t layer : layers) {
      const std::vector<const Arm*> arms = units_.arms(layer);
      runfile::PatchingUnit unit{units_.places(layer), {*passes.native_answer(), other_metric, {}}};
      try {
        for (const InterventionEffect& effect : passes.run(arms, {}, donor))
          unit.prompt.effects.push_back(
              {*effect.answer, effect.site_norm_before, effect.site_norm_after, effect.largest_logit_change});
      } catch (const InvalidArgument& error) {
        throw_invalid("{}: {}", name_of(direction), error.what());
      }
      kept_.keep_unit(runfile::patch_unit_name(direction, layer), runfile::to_json(unit));
      take(direction, unit);
      const auto count = static_cast<double>(arms.size());
      progress.advance(count, count, fmt::format("{}, {}", name_of(direction), unit_words(layer)));
    }
  }

  const PatchingOptions& options_;
  const PatchJob& job_;
  runfile::RunStore& kept_;
  runfile::PatchingRun& run_;
  ArmUnits units_;
  hooks::ForwardOptions forward_;
  std::unique_ptr<models::Decoder> model_;
  Question question_;
};

/// The first position at which the prompts have other tokens. Before it both runs are the same.
std::int64_t first_difference(const PromptPair& prompts) {
  const auto places = std::ranges::mismatch(prompts.clean, prompts.corrupt);
  return places.in1 - prompts.clean.begin();
}

/// Whether an arm writes to positions before this one alone.
bool lies_before(const Arm& arm, std::int64_t position) {
  return std::ranges::all_of(
      arm.writes, [&](const PlacedWrite& one) { return one.write.position && one.write.position->end <= position; });
}

}  // namespace

runfile::PatchingRun run_patching(const PatchingOptions& options) {
  const PatchJob job = read_patch_job(options);
  for (const std::string& note : job.checkpoint.notes) tell_warning("{}", note);
  runfile::PatchingRun run;
  run.request = request_of(options, job);
  for (const Arm& arm : job.arms) run.patches.push_back(patch_of(arm, job.checkpoint.config.layers));
  runfile::RunStore kept(options.out, run.request, {"interventions", "model", "clean", "corrupt"},
                         {{"interventions.json", interventions_text(job.patches)},
                          {runfile::intervention_names_file, names_text(names_of(options, job.prompts))}});
  Patching(options, job, kept, run).run();
  for (const PatchedPrompt& direction : run.directions) {
    CHECK(std::ranges::any_of(direction.effects, [](const auto& effect) { return effect.largest_logit_change > 0; }),
          "intervene: none of {} patches changes a logit of the last position", run.patches.size());
  }
  if (!kept.path().empty()) runfile::write_patching_run(kept.path(), run);
  return run;
}

std::vector<Attribution> approximate_patching(const PatchingOptions& options, std::uint64_t seed) {
  ASSERT(options.out.empty(), "estimates are no run");
  check_can_approximate(options.stream_weights);
  CHECK(!options.answer.empty() || !options.foil.empty(),
        "--approximate: needs --answer and --foil; the divergence from the clean run has no slope at the clean run");
  const PatchJob job = read_patch_job(options);
  for (const std::string& note : job.checkpoint.notes) tell_warning("{}", note);
  std::set<std::string> sites;
  for (const Arm& arm : job.arms) sites.merge(arm.sites(Mode::patch));
  const std::int64_t first = first_difference(job.prompts);
  const auto model = measured_decoder(job.checkpoint, options);
  hooks::ForwardOptions forward;
  forward.allow_extrapolation = options.allow_extrapolation;
  const Question question{.pair = job.pair, .reference = {}, .targets = 0};
  std::vector<Attribution> all;
  for (const PatchDirection direction : runfile::patch_directions) {
    const bool into_corrupt = direction == PatchDirection::denoising;
    const auto& base = into_corrupt ? job.prompts.corrupt : job.prompts.clean;
    SiteValues donor;
    {
      const c10::InferenceMode inference;
      donor = site_values(*model, into_corrupt ? job.prompts.clean : job.prompts.corrupt, sites, forward);
    }
    const GradientPass pass(*model, base, sites, forward, question);
    Attribution& found = all.emplace_back();
    found.native.push_back(pass.value());
    for (const Arm& arm : job.arms) {
      found.interventions.push_back(arm.text);
      found.kinds.push_back(arm.kind());
      const Estimate estimate = lies_before(arm, first) ? Estimate{} : pass.estimate(arm, {}, donor);
      found.estimates.push_back({estimate.change});
      found.acts.push_back(estimate.acts());
    }
    std::vector<const Arm*> drawn;
    for (const std::size_t place : drawn_places(found.kinds, found.acts, seed)) {
      found.exact.push_back({place, {}});
      drawn.push_back(&job.arms[place]);
    }
    const std::vector<double> changes = exact_changes(*model, base, drawn, {}, donor, forward, question);
    for (std::size_t k = 0; k < changes.size(); ++k) found.exact[k].changes = {changes[k]};
  }
  // Each direction's values come from the run that the other one patches.
  for (std::size_t i = 0; i < all.size(); ++i) all[i].other = all[1 - i].native.front();
  return all;
}

}  // namespace gainlens::interventions
