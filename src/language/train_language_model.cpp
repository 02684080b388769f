#include "language/train_language_model.h"

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/sha256.h"
#include "data/text.h"
#include "data/tokenizer.h"
#include "language/language_model_task.h"
#include "models/checkpoint.h"
#include "models/dtype.h"
#include "models/initial_weights.h"
#include "models/model_size.h"
#include "models/save_checkpoint.h"

namespace gainlens::language {
namespace {

/// Of what a request means: raised when the same request would give other weights.
constexpr int training_version = 1;

void check_is_free(const std::filesystem::path& out) {
  const bool ours = std::filesystem::exists(out / "training" / "request.json");
  CHECK(ours || !std::filesystem::exists(out / "config.json"), "{}: holds a checkpoint that this command did not make; choose another folder",
        printable(out.string()));
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

/// Takes the end of a text off as held out, at the start of a line where there is one.
std::string take_validation(std::string& text, double fraction) {
  const auto wanted = static_cast<std::size_t>(static_cast<double>(text.size()) * (1 - fraction));
  std::size_t cut = text.find('\n', wanted);
  cut = cut == std::string::npos ? text.size() : cut + 1;
  std::string validation = text.substr(cut);
  text.resize(cut);
  return validation;
}

TrainingTokens encode(const std::vector<std::string>& texts, const Recipe& recipe, const data::Tokenizer& tokenizer) {
  TrainingTokens tokens;
  for (std::string text : texts) {
    const std::string validation = take_validation(text, recipe.validation_fraction);
    const auto append = [&tokenizer](std::vector<data::TokenId>& stream, const std::string& part) {
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
OrderedJson checkpoint_config(const Recipe& recipe, const data::Tokenizer& tokenizer) {
  OrderedJson document = recipe.model;
  document["vocab_size"] = tokenizer.vocabulary_size();
  document["bos_token_id"] = *tokenizer.bos_token();
  document["eos_token_id"] = *tokenizer.bos_token() + 1;  // as SentencePiece numbers its control pieces
  document["torch_dtype"] = models::dtype_name(recipe.dtype);
  return document;
}

void check_contexts(const Recipe& recipe, const models::DecoderConfig& config, const std::string& where) {
  for (const Stage& stage : recipe.stages) {
    CHECK(stage.context <= config.max_positions, "{}: a stage has a context of {}; 'model.max_position_embeddings' is {}", where,
          stage.context, config.max_positions);
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

/// Removes a folder that was not there before unless what is made in it turns out to be wanted: a refused request leaves nothing behind.
class UnwantedFolder {
 public:
  explicit UnwantedFolder(std::filesystem::path folder) : folder_(std::move(folder)), remove_(!std::filesystem::exists(folder_)) {}
  UnwantedFolder(const UnwantedFolder&) = delete;
  UnwantedFolder& operator=(const UnwantedFolder&) = delete;
  ~UnwantedFolder() {
    std::error_code ignored;
    if (remove_) std::filesystem::remove_all(folder_, ignored);
  }
  void keep() { remove_ = false; }

 private:
  std::filesystem::path folder_;
  bool remove_;
};

}  // namespace

LanguageModelOutcome train_language_model(const LanguageModelRequest& request) {
  const Recipe recipe = read_recipe(request.recipe);
  CHECK(!request.texts.empty(), "--text: at least one text is needed");
  std::vector<std::string> texts;
  for (const auto& path : request.texts) texts.push_back(data::read_text(path));
  check_is_free(request.out);
  UnwantedFolder unwanted(request.out);
  const training::TrainingFolder folder(request.out / "training", request_of(request, recipe, texts));

  if (!std::filesystem::exists(request.out / "tokenizer_config.json")) train_tokenizer(texts, recipe.tokenizer, request.out);
  const auto tokenizer = data::open_tokenizer(request.out);
  TrainingTokens tokens = encode(texts, recipe, *tokenizer);
  const OrderedJson document = checkpoint_config(recipe, *tokenizer);
  const std::string where = printable(request.recipe.string());
  const models::DecoderConfig config = models::parse_decoder_config(Json(document), where + ": 'model'");
  check_contexts(recipe, config, where);

  LanguageModelOutcome outcome;
  outcome.folder = request.out;
  outcome.parameters = models::parameter_count(config);
  outcome.training_tokens = static_cast<std::int64_t>(tokens.training.size());
  outcome.validation_tokens = static_cast<std::int64_t>(tokens.validation.size());
  LanguageModelTask task(recipe, config, models::initial_weights(config, request.seed), std::move(tokens), request.seed,
                         [&](const models::DecoderWeights& weights) { models::save_checkpoint(request.out, document, weights, recipe.dtype); });
  unwanted.keep();
  outcome.training = training::train(task, folder, trainer_options(recipe, request));
  write_file_atomically(folder.path() / "history.csv", training::history_csv(outcome.training.history));
  return outcome;
}

}  // namespace gainlens::language
