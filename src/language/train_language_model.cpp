#include "language/train_language_model.h"

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/scratch_folder.h"
#include "core/sha256.h"
#include "data/text.h"
#include "language/language_model_task.h"
#include "models/checkpoint/checkpoint.h"
#include "models/checkpoint/compute_dtype.h"
#include "models/checkpoint/initial_weights.h"
#include "models/checkpoint/model_size.h"
#include "models/checkpoint/save_checkpoint.h"
#include "tokenizers/tokenizer.h"

namespace gainlens::language {
namespace {

/// Of what a request means: raised when the same request would give other weights.
constexpr int training_version = 1;

/// Where the checkpoint goes, without "..", links and doubled slashes: what is checked is what is written to.
std::filesystem::path resolved(const std::filesystem::path& out) {
  CHECK(!out.empty(), "--out: is empty; give the folder to make");
  return std::filesystem::weakly_canonical(std::filesystem::absolute(out)).lexically_normal();
}

/// A folder of this command's making, or one that holds nothing this command would replace.
void check_is_free(const std::filesystem::path& out) {
  if (std::filesystem::exists(out / "training" / "request.json")) return;
  for (const char* file : {"config.json", "model.safetensors", "model.safetensors.index.json", "tokenizer.model",
                           "tokenizer_config.json"}) {
    CHECK(!std::filesystem::exists(out / file), "{}: holds a {} that this command did not make; choose another folder",
          printable(out.string()), file);
  }
}

Json request_of(const LanguageModelRequest& request, const Recipe& recipe, const std::vector<std::string>& texts) {
  Json hashes = Json::array();
  for (const std::string& text : texts) hashes.push_back(sha256_hex(text));
  return {{"kind", "train language-model"},
          {"version", training_version},
          {"recipe", recipe.document},
          {"texts", hashes},
          {"seed", request.seed}};
}

/// Takes the end of a text off as held out: from the next start of a line if at least half of what is wanted remains,
/// else from the next character.
std::string take_validation(std::string& text, double fraction) {
  const auto wanted = static_cast<std::size_t>(static_cast<double>(text.size()) * (1 - fraction));
  const std::size_t newline = text.find('\n', wanted);
  std::size_t cut = newline == std::string::npos ? text.size() : newline + 1;
  if (text.size() - cut < (text.size() - wanted) / 2) {
    cut = wanted;
    while (cut < text.size() && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80)
      ++cut;  // not within a character of UTF-8
  }
  std::string validation = text.substr(cut);
  text.resize(cut);
  return validation;
}

TrainingTokens encode(const std::vector<std::string>& texts, const Recipe& recipe,
                      const tokenizers::Tokenizer& tokenizer) {
  TrainingTokens tokens;
  for (std::string text : texts) {
    const std::string validation = take_validation(text, recipe.validation_fraction);
    const auto append = [&tokenizer](std::vector<tokenizers::TokenId>& stream, const std::string& part) {
      const auto ids = tokenizer.encode(part);
      stream.insert(stream.end(), ids.begin(), ids.end());
    };
    append(tokens.training, text);
    append(tokens.validation, validation);
  }
  const auto bos = tokenizer.bos_token();
  ASSERT(bos.has_value(), "a trained vocabulary without BOS");
  tokens.bos = *bos;
  return tokens;
}

/// config.json of the checkpoint: the recipe's model, completed by what the tokenizer decides.
OrderedJson checkpoint_config(const Recipe& recipe, const tokenizers::Tokenizer& tokenizer) {
  OrderedJson document = recipe.model;
  document["vocab_size"] = tokenizer.vocabulary_size();
  document["bos_token_id"] = *tokenizer.bos_token();
  document["eos_token_id"] = *tokenizer.bos_token() + 1;  // as SentencePiece numbers its control pieces
  document["torch_dtype"] = models::dtype_name(recipe.dtype);
  return document;
}

void check_contexts(const Recipe& recipe, const models::DecoderConfig& config, const std::string& where) {
  for (const Stage& stage : recipe.stages) {
    CHECK(stage.context <= config.max_positions,
          "{}: a stage has a context of {}; 'model.max_position_embeddings' is {}", where, stage.context,
          config.max_positions);
  }
}

training::TrainerOptions trainer_options(const Recipe& recipe, const LanguageModelRequest& request) {
  training::TrainerOptions options;
  options.steps = recipe.schedule.total_steps;
  options.schedule = recipe.schedule;
  options.optimizer = recipe.optimizer;
  options.max_gradient_norm = recipe.max_gradient_norm;
  options.evaluate_every = recipe.evaluate_every;
  options.save_every = recipe.save_every;
  options.patience = recipe.patience;
  options.seed = request.seed;
  options.title = "train " + request.out.filename().string();
  options.quiet = request.quiet;
  return options;
}

/// The vocabulary of a training that has begun is the one beside its state, if it is still what was made then; else it
/// is made anew, which gives the same.
std::string vocabulary(const std::filesystem::path& out, const std::vector<std::string>& texts, const Recipe& recipe) {
  const std::filesystem::path kept = out / "training" / "tokenizer.model";
  if (std::filesystem::exists(kept) && std::filesystem::exists(out / "training" / "state.safetensors")) {
    const std::string model = read_text_file(kept);
    const std::filesystem::path published = out / "tokenizer.model";
    CHECK(std::filesystem::exists(published) && read_text_file(published) == model,
          "{}: is missing or not the vocabulary that this training began with, {}; copy that one over it",
          printable(published.string()), printable(kept.string()));
    return model;
  }
  return train_tokenizer(texts, recipe.tokenizer);
}

/// All of a recipe that can be judged before a text is read.
void check(const Recipe& recipe, const std::string& where) {
  check(recipe.tokenizer);
  OrderedJson document = recipe.model;
  document["vocab_size"] = recipe.tokenizer.vocabulary;
  check_contexts(recipe, models::parse_decoder_config(Json(document), where + ": 'model'"), where);
}

}  // namespace

LanguageModelOutcome train_language_model(const LanguageModelRequest& request) {
  const Recipe recipe = read_recipe(request.recipe);
  const std::string where = printable(request.recipe.string());
  check(recipe, where);
  CHECK(!request.texts.empty(), "--text: at least one text is needed");
  std::vector<std::string> texts;
  for (const auto& path : request.texts) texts.push_back(data::read_text(path));
  const std::filesystem::path out = resolved(request.out);
  check_is_free(out);

  // Everything that can be refused is found before the first file is written.
  const ScratchFolder scratch(std::filesystem::temp_directory_path(), "gainlens-");
  const std::string tokenizer_model = vocabulary(out, texts, recipe);
  write_tokenizer(tokenizer_model, scratch.path());
  const auto tokenizer = tokenizers::open_tokenizer(scratch.path());
  TrainingTokens tokens = encode(texts, recipe, *tokenizer);
  const OrderedJson document = checkpoint_config(recipe, *tokenizer);
  const models::DecoderConfig config = models::parse_decoder_config(Json(document), where + ": 'model'");

  LanguageModelOutcome outcome;
  outcome.folder = request.out;
  outcome.parameters = models::parameter_count(config);
  outcome.training_tokens = static_cast<std::int64_t>(tokens.training.size());
  outcome.validation_tokens = static_cast<std::int64_t>(tokens.validation.size());
  LanguageModelTask task(
      recipe, config, models::initial_weights(config, request.seed), std::move(tokens), request.seed,
      [&](const models::DecoderWeights& weights) { models::save_checkpoint(out, document, weights, recipe.dtype); });

  const training::TrainingFolder folder(out / "training", request_of(request, recipe, texts));
  write_file_atomically(folder.path() / "tokenizer.model", tokenizer_model);
  write_tokenizer(tokenizer_model, out);
  outcome.training = training::train(task, folder, trainer_options(recipe, request));
  for (const char* file : {"config.json", "model.safetensors"}) {
    CHECK(std::filesystem::exists(out / file), "{}: {} of the best step, {}, is missing; delete {} to train again",
          printable(out.string()), file, outcome.training.best_step,
          printable((folder.path() / "state.safetensors").string()));
  }
  write_file_atomically(folder.path() / "history.csv", training::history_csv(outcome.training.history));
  return outcome;
}

}  // namespace gainlens::language
