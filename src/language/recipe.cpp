#include "language/recipe.h"

#include "core/check.h"
#include "models/checkpoint/read_config.h"
#include "models/checkpoint/torch_dtype.h"
#include "models/families/config_reader.h"

#include <algorithm>

namespace gainlens::language {
namespace {

using models::ConfigReader;

constexpr std::int64_t max_steps = 100'000'000;
constexpr std::int64_t max_tokens = std::int64_t{1} << 31;

TokenizerRecipe read_tokenizer(ConfigReader& reader) {
  TokenizerRecipe recipe;
  auto section = reader.object("tokenizer");
  if (!section) return recipe;
  recipe.vocabulary = section->integer("vocabulary", 1, max_tokens, recipe.vocabulary);
  recipe.algorithm = section->text("algorithm", recipe.algorithm);
  recipe.character_coverage = section->number("character_coverage", 0, 1, recipe.character_coverage);
  section->refuse_unread();
  return recipe;
}

std::vector<Stage> read_stages(ConfigReader& reader) {
  const Json* list = reader.find_non_null("stages");
  CHECK(list != nullptr && list->is_array() && !list->empty(),
        "{}: 'stages' is {}; must be a list such as [{{\"context\": 512, \"steps\": 1000}}]", reader.where(),
        list == nullptr ? "missing" : models::brief(*list));
  std::vector<Stage> stages;
  for (std::size_t index = 0; index < list->size(); ++index) {
    ConfigReader stage((*list)[index], reader.where(), fmt::format("stages[{}].", index));
    stages.push_back({stage.integer("context", 2, max_tokens), stage.integer("steps", 1, max_steps)});
    stage.refuse_unread();
  }
  return stages;
}

training::AdamWOptions read_optimizer(ConfigReader& reader) {
  training::AdamWOptions options;
  options.learning_rate = reader.number("learning_rate", 1e-12, 1e3);
  options.beta1 = reader.number("beta1", 0, 1, options.beta1);
  options.beta2 = reader.number("beta2", 0, 1, options.beta2);
  options.epsilon = reader.number("epsilon", 1e-30, 1, options.epsilon);
  CHECK(options.beta1 < 1 && options.beta2 < 1, "{}: 'beta1' is {} and 'beta2' is {}; both must be below 1",
        reader.where(), options.beta1, options.beta2);
  return options;
}

training::Schedule read_schedule(ConfigReader& reader, const std::vector<Stage>& stages) {
  training::Schedule schedule;
  schedule.decay = training::parse_decay(reader.text("schedule", "cosine"));
  schedule.warmup_steps = reader.integer("warmup_steps", 0, max_steps, 0);
  CHECK(schedule.decay == training::Decay::cosine || reader.find_non_null("final_factor") == nullptr,
        "{}: 'final_factor' has no effect, because 'schedule' is constant; remove it", reader.where());
  schedule.final_factor = reader.number("final_factor", 0, 1, schedule.final_factor);
  schedule.total_steps = 0;
  for (const Stage& stage : stages) schedule.total_steps += stage.steps;
  CHECK(schedule.total_steps <= max_steps, "{}: {} steps; at most {} are supported", reader.where(),
        schedule.total_steps, max_steps);
  return schedule;
}

/// Checks that at every stage a step is a whole number of sequences that can be taken in equal parts.
void check_batches(const Recipe& recipe, const std::string& where) {
  for (const Stage& stage : recipe.stages) {
    CHECK(recipe.tokens_per_step % stage.context == 0,
          "{}: 'tokens_per_step' is {}; must be a multiple of every context ({})", where, recipe.tokens_per_step,
          stage.context);
    CHECK(recipe.tokens_at_once % stage.context == 0 && recipe.tokens_per_step % recipe.tokens_at_once == 0,
          "{}: 'tokens_at_once' is {}; must be a multiple of every context ({}) and divide 'tokens_per_step' ({})",
          where, recipe.tokens_at_once, stage.context, recipe.tokens_per_step);
  }
}

}  // namespace

Recipe parse_recipe(const Json& document, const std::string& where) {
  ConfigReader reader(document, where);
  Recipe recipe;
  const Json* model = reader.find_non_null("model");
  CHECK(model != nullptr && model->is_object(), "{}: 'model' is {}; must be an object as in config.json", where,
        model == nullptr ? "missing" : models::brief(*model));
  for (const std::string_view key : {"vocab_size", "bos_token_id", "eos_token_id"}) {
    CHECK(!model->contains(key), "{}: 'model.{}' is given; remove it, the trained tokenizer decides it", where, key);
  }
  recipe.model = OrderedJson(*model);
  recipe.tokenizer = read_tokenizer(reader);
  recipe.stages = read_stages(reader);
  const auto longest = std::max_element(recipe.stages.begin(), recipe.stages.end(),
                                        [](const Stage& a, const Stage& b) { return a.context < b.context; });
  recipe.tokens_per_step = reader.integer("tokens_per_step", 2, max_tokens, recipe.tokens_per_step);
  recipe.tokens_at_once =
      reader.integer("tokens_at_once", 2, max_tokens, std::max(longest->context, recipe.tokens_at_once));
  check_batches(recipe, where);
  recipe.optimizer = read_optimizer(reader);
  recipe.schedule = read_schedule(reader, recipe.stages);
  recipe.weight_decay = reader.number("weight_decay", 0, 1e3, recipe.weight_decay);
  recipe.max_gradient_norm = reader.number("max_gradient_norm", 0, 1e30, recipe.max_gradient_norm);
  recipe.validation_fraction = reader.number("validation_fraction", 1e-6, 0.5, recipe.validation_fraction);
  recipe.validation_tokens = reader.integer("validation_tokens", 2, max_tokens, recipe.validation_tokens);
  recipe.evaluate_every = reader.integer("evaluate_every", 1, max_steps, recipe.evaluate_every);
  recipe.save_every = reader.integer("save_every", 1, max_steps, recipe.save_every);
  recipe.patience = reader.integer("patience", 0, max_steps, recipe.patience);
  recipe.dtype = models::parse_dtype(reader.text("dtype", "bfloat16"), where + ": 'dtype'");
  reader.refuse_unread();
  recipe.document = document;
  return recipe;
}

Recipe read_recipe(const std::filesystem::path& file) {
  return parse_recipe(read_json_file(file, 16u << 20), printable(file.string()));
}

std::int64_t layers_of(const Recipe& recipe, const std::string& where) {
  OrderedJson document = recipe.model;
  document["vocab_size"] = recipe.tokenizer.vocabulary;
  return models::parse_decoder_config(Json(document), where + ": 'model'").layers;
}

}  // namespace gainlens::language
