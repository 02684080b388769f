#include "language/train_language_model.h"

#include "bft/warm_up.h"
#include "core/atomic_file.h"
#include "core/available_memory.h"
#include "core/check.h"
#include "core/checked.h"
#include "core/divergence.h"
#include "core/listener.h"
#include "core/quantity.h"
#include "core/scratch_folder.h"
#include "core/sha256.h"
#include "data/text.h"
#include "language/language_model_task.h"
#include "models/checkpoint/checkpoint.h"
#include "models/checkpoint/initial_weights.h"
#include "models/checkpoint/model_size.h"
#include "models/checkpoint/save_checkpoint.h"
#include "models/checkpoint/torch_dtype.h"
#include "models/decoder/filter_config.h"
#include "runfile/checksums.h"
#include "runfile/training_files.h"
#include "tokenizers/text_encoder.h"
#include "tokenizers/tokenizer.h"

#include <cmath>

namespace gainlens::language {
namespace {

/// The size of one text, unpacked.
constexpr std::uint64_t max_text_bytes = std::uint64_t{1} << 30;
/// Bytes that making a vocabulary takes for each byte of the texts: measured on WikiText.
std::uint64_t memory_per_byte(const TokenizerRecipe& recipe) {
  return recipe.algorithm == "unigram" ? 100 : 8;
}
/// Texts below this size are read without asking how much memory is free.
constexpr std::uint64_t unchecked_bytes = std::uint64_t{16} << 20;

/// The absolute path of the checkpoint folder, without "..", links and doubled slashes, so that the folder that is
/// checked is the one that is written to.
std::filesystem::path resolved(const std::filesystem::path& out) {
  CHECK(!out.empty(), "--out: is empty; give the folder to make");
  return std::filesystem::weakly_canonical(std::filesystem::absolute(out)).lexically_normal();
}

/// Accepts a folder that this command made, and a folder without any file that this command would replace.
void check_is_free(const std::filesystem::path& out) {
  if (std::filesystem::exists(out / "training" / "request.json")) return;
  for (const char* file : {"config.json", "model.safetensors", "model.safetensors.index.json", "tokenizer.model",
                           "tokenizer_config.json"}) {
    CHECK(!std::filesystem::exists(out / file), "{}: holds a {} that this command did not make; choose another folder",
          printable(out.string()), file);
  }
}

/// Reads the texts whole: the vocabulary is made from all of them. Refuses texts for which memory does not suffice.
std::vector<std::string> read_texts(const std::vector<std::filesystem::path>& paths, const TokenizerRecipe& recipe) {
  std::vector<std::string> texts;
  std::uint64_t bytes = 0;
  for (const auto& path : paths) {
    texts.push_back(data::read_text(path, max_text_bytes, formats::UnpackedFile::Accepts::files_and_pipes));
    bytes += texts.back().size();
    const auto available = available_memory();
    const std::uint64_t needed = checked_mul(memory_per_byte(recipe), bytes, "memory for a vocabulary");
    CHECK(bytes < unchecked_bytes || !available || needed <= *available,
          "{}: the texts have {} so far; to make a vocabulary of them takes about {} of memory, and {} are available; "
          "give less text",
          printable(path.string()), format_bytes(bytes), format_bytes(needed), format_bytes(*available));
  }
  return texts;
}

Json request_of(const LanguageModelRequest& request, const PreparedTexts& prepared) {
  Json asked = {{"kind", "train language-model"},
                {"version", runfile::language_request_version},
                {"recipe", prepared.recipe.document},
                {"texts", prepared.hashes},
                {"seed", request.seed}};
  if (request.filter) {
    asked["filter"] = knobs_to_json(bft::filter_knobs(), *request.filter);
    asked["precision_learning_rate"] = request.precision_learning_rate;
    if (request.filter_arm != bft::Arm::bft) asked["arm"] = bft::name_of(request.filter_arm);
  }
  return asked;
}

/// A request without a filter lacks its keys. The recipe is what the user wrote, so another one is another request.
training::RequestRules request_rules() {
  return {.may_grow = {},
          .absent = {{"", {{"filter", nullptr}, {"precision_learning_rate", nullptr}, {"arm", nullptr}}},
                     {"/filter", absent_values(bft::filter_knobs())}},
          .complete = {"", "/filter"}};
}

/// Where the end of a text begins that is held out. This is the next start of a line if at least half of the wanted
/// length remains after it, else the next character.
std::size_t start_of_validation(std::string_view text, double fraction) {
  const auto wanted = static_cast<std::size_t>(static_cast<double>(text.size()) * (1 - fraction));
  const std::size_t newline = text.find('\n', wanted);
  std::size_t cut = newline == std::string_view::npos ? text.size() : newline + 1;
  if (text.size() - cut < (text.size() - wanted) / 2) {
    cut = wanted;
    while (cut < text.size() && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80)
      ++cut;  // skip the continuation bytes of a UTF-8 character
  }
  return cut;
}

TrainingTokens encode(const std::vector<std::string>& texts, const Recipe& recipe,
                      const tokenizers::Tokenizer& tokenizer) {
  TrainingTokens tokens;
  for (const std::string_view text : texts) {
    const std::size_t cut = start_of_validation(text, recipe.validation_fraction);
    const auto append = [&tokenizer](std::vector<tokenizers::TokenId>& stream, std::string_view part) {
      const auto ids = tokenizers::encode_in_parts(tokenizer, part, "training text");
      stream.insert(stream.end(), ids.begin(), ids.end());
    };
    append(tokens.training, text.substr(0, cut));
    append(tokens.validation, text.substr(cut));
  }
  const auto bos = tokenizer.bos_token();
  ASSERT(bos.has_value(), "the trained vocabulary has no BOS");
  tokens.bos = *bos;
  return tokens;
}

OrderedJson with_filter(OrderedJson model, const LanguageModelRequest& request) {
  if (request.filter) model[models::filter_key] = knobs_to_json(bft::filter_knobs(), *request.filter);
  if (request.filter && request.filter_arm != bft::Arm::bft)
    model[models::filter_arm_key] = bft::name_of(request.filter_arm);
  return model;
}

/// config.json of the checkpoint: the recipe's model and the keys that the tokenizer decides.
OrderedJson checkpoint_config(const PreparedTexts& prepared, const LanguageModelRequest& request) {
  OrderedJson document = with_filter(prepared.recipe.model, request);
  document["vocab_size"] = prepared.vocabulary_size;
  document["bos_token_id"] = prepared.tokens.bos;
  document["eos_token_id"] = prepared.tokens.bos + 1;  // SentencePiece numbers EOS directly after BOS
  document["torch_dtype"] = models::dtype_name(prepared.recipe.dtype);
  return document;
}

void check_contexts(const Recipe& recipe, const models::DecoderConfig& config, const std::string& where) {
  for (const Stage& stage : recipe.stages) {
    CHECK(stage.context <= config.max_positions,
          "{}: a stage has a context of {}; must be at most 'model.max_position_embeddings', {}", where, stage.context,
          config.max_positions);
  }
}

training::TrainerOptions trainer_options(const Recipe& recipe, const LanguageModelRequest& request,
                                         const TrainingNews& news) {
  training::TrainerOptions options;
  options.steps = recipe.schedule.total_steps;
  options.schedule = recipe.schedule;
  options.optimizer = recipe.optimizer;
  options.max_gradient_norm = recipe.max_gradient_norm;
  options.evaluate_every = recipe.evaluate_every;
  options.save_every = recipe.save_every;
  options.patience = recipe.patience;
  options.title = "train " + request.out.filename().string();
  options.label = news.label;
  options.quiet = request.quiet;
  return options;
}

/// The SentencePiece model to train with. A training that has a saved state continues with the vocabulary stored next
/// to this state. Otherwise the vocabulary is trained from the texts; the same texts give the same bytes.
std::string vocabulary(const std::filesystem::path& out, const std::vector<std::string>& texts, const Recipe& recipe) {
  const std::filesystem::path kept = out / "training" / "tokenizer.model";
  const std::filesystem::path state = training::state_file_in(out / "training");
  if (std::filesystem::exists(kept) && std::filesystem::exists(state)) {
    const std::string model = read_text_file(kept);
    const std::filesystem::path published = out / "tokenizer.model";
    const std::string other = std::filesystem::exists(published) ? read_text_file(published) : std::string();
    if (other == model) return model;
    // Made again from the texts, the vocabulary shows which of the two files is damaged.
    const std::string right = train_tokenizer(texts, recipe.tokenizer);
    const std::string kept_name = printable(kept.string()), published_name = printable(published.string());
    CHECK(model != right, "{}: is missing, or is not the vocabulary that this training began with; copy {} there",
          published_name, kept_name);
    CHECK(other != right, "{}: is not the vocabulary that this training began with; copy {} there", kept_name,
          published_name);
    throw_invalid("{} and {}: neither is the vocabulary of these texts; delete {} to train from the start", kept_name,
                  published_name, printable(state.string()));
  }
  return train_tokenizer(texts, recipe.tokenizer);
}

/// The files of the best step. The training state keeps their checksums.
runfile::KeptFiles kept_files(const std::filesystem::path& out) {
  static constexpr const char* names[] = {"config.json", "model.safetensors"};
  return {out, names};
}

/// Everything that a finished training leaves, but figures and the state.
std::vector<std::string> files_of_training(bool has_filter) {
  std::vector<std::string> names = language_checkpoint_files();
  for (const char* name : {"request.json", "history.csv", "tokenizer.model"})
    names.push_back(std::string("training/") + name);
  if (has_filter) names.emplace_back("training/filter.csv");
  return names;
}

/// Removes the list of checksums of files that are about to change: without one a file is not proven, and with an old
/// one it would be refused.
void remove_list(const std::filesystem::path& folder) {
  std::filesystem::remove(folder / runfile::checksum_list_name);
}

/// Checks everything in a recipe that can be checked before a text is read.
void check(const Recipe& recipe, const LanguageModelRequest& request, const std::string& where) {
  check(recipe.tokenizer);
  for (const char* const key : {models::filter_key, models::filter_arm_key})
    CHECK(!recipe.model.contains(key), "{}: 'model.{}' is given; remove it, --arm bft gives it", where, key);
  CHECK(std::isfinite(request.precision_learning_rate) && request.precision_learning_rate >= 0 &&
            request.precision_learning_rate <= 1e6,
        "--precision-learning-rate: {}; must be 0 to 1e6", request.precision_learning_rate);
  OrderedJson document = with_filter(recipe.model, request);
  document["vocab_size"] = recipe.tokenizer.vocabulary;
  const models::DecoderConfig config = models::parse_decoder_config(Json(document), where + ": 'model'");
  check_contexts(recipe, config, where);
  CHECK(config.attention_layers(config.layers) == config.layers,
        "{}: 'model' has layers of {}; models with them can be swept and evaluated, not trained", where,
        config.without_attention());
  const std::string stack = models::stacked_tensor(config);
  CHECK(stack.empty(),
        "{}: 'model' has '{}', one of a stack (experts, or norms of single heads); models with stacks can be swept and "
        "evaluated, not trained",
        where, stack);
  CHECK(!config.head_bias, "{}: 'model' has an output head with a bias; models of this family are not trained", where);
  if (!config.armed_filter().has_gain()) return;
  const std::string never = bft::why_never_in_force(*config.filter, recipe.schedule.total_steps, recipe.save_every);
  if (!never.empty()) tell_warning("the filter does not act in this training: {}", never);
}

/// Keeps checkpoints along a training, each in Hugging Face layout.
class KeptCheckpoints {
 public:
  KeptCheckpoints(const std::filesystem::path& out, const OrderedJson& document, const std::string& tokenizer,
                  at::ScalarType dtype)
      : folder_(out / "checkpoints"), document_(document), tokenizer_(tokenizer), dtype_(dtype) {}

  std::filesystem::path folder(std::int64_t step) const { return folder_ / fmt::format("step-{}", step); }
  void keep(std::int64_t step, const models::DecoderWeights& weights) const {
    std::filesystem::create_directories(folder(step));
    remove_list(folder(step));
    write_tokenizer(tokenizer_, folder(step));
    models::save_checkpoint(folder(step), document_, weights, dtype_);
    runfile::write_checksum_list(folder(step), language_checkpoint_files());
  }
  /// Says which evaluations have no checkpoint, because they were made by a call that kept none.
  void tell_missing(const std::vector<training::Evaluation>& history) const {
    std::vector<std::int64_t> missing;
    for (const training::Evaluation& point : history) {
      if (!std::filesystem::exists(folder(point.step) / "model.safetensors")) missing.push_back(point.step);
    }
    if (missing.empty()) return;
    tell_warning("{}: there is no checkpoint of step {}: the training went past {} without --keep-checkpoints",
                 printable(folder_.string()), fmt::join(missing, ", "), missing.size() == 1 ? "it" : "them");
  }

 private:
  std::filesystem::path folder_;
  const OrderedJson& document_;
  const std::string& tokenizer_;
  at::ScalarType dtype_;
};

}  // namespace

const std::vector<std::string>& language_checkpoint_files() {
  static const std::vector<std::string> names = {"config.json", "model.safetensors", "tokenizer.model",
                                                 "tokenizer_config.json"};
  return names;
}

namespace {

std::vector<std::string> read_checked_texts(std::span<const LanguageModelRequest> requests, const Recipe& recipe) {
  const LanguageModelRequest& first = requests.front();
  for (const LanguageModelRequest& request : requests) check(recipe, request, printable(first.recipe.string()));
  CHECK(!first.texts.empty(), "--text: at least one text is needed");
  return read_texts(first.texts, recipe.tokenizer);
}

PreparedTexts prepared_with(const LanguageModelRequest& request, Recipe recipe, const std::vector<std::string>& texts,
                            std::string vocabulary) {
  PreparedTexts prepared{
      std::move(recipe), printable(request.recipe.string()), Json::array(), std::move(vocabulary), 0, {}};
  // Every wrong input must be refused before the first file is written.
  const ScratchFolder scratch(std::filesystem::temp_directory_path(), "gainlens-");
  write_tokenizer(prepared.vocabulary, scratch.path());
  const auto tokenizer = tokenizers::open_tokenizer(scratch.path());
  prepared.vocabulary_size = tokenizer->vocabulary_size();
  prepared.tokens = encode(texts, prepared.recipe, *tokenizer);
  for (const std::string& text : texts) prepared.hashes.push_back(sha256_hex(text));
  return prepared;
}

}  // namespace

PreparedTexts prepare_texts(std::span<const LanguageModelRequest> requests) {
  Recipe recipe = read_recipe(requests.front().recipe);
  const std::vector<std::string> texts = read_checked_texts(requests, recipe);
  std::string vocabulary = train_tokenizer(texts, recipe.tokenizer);
  return prepared_with(requests.front(), std::move(recipe), texts, std::move(vocabulary));
}

LanguageModelOutcome train_language_model(const LanguageModelRequest& request) {
  Recipe recipe = read_recipe(request.recipe);
  std::vector<std::string> texts = read_checked_texts({&request, 1}, recipe);
  const std::filesystem::path out = resolved(request.out);
  check_is_free(out);
  std::string tokenizer_model = vocabulary(out, texts, recipe);
  const PreparedTexts prepared = prepared_with(request, std::move(recipe), texts, std::move(tokenizer_model));
  texts = {};  // only the tokens are needed from here on
  return train_prepared(request, prepared,
                        {request.quiet ? std::string() : printable(request.out.filename().string()), {}});
}

LanguageModelOutcome train_prepared(const LanguageModelRequest& request, const PreparedTexts& prepared,
                                    const TrainingNews& news) {
  const Recipe& recipe = prepared.recipe;
  const std::filesystem::path out = resolved(request.out);
  const Json asked = request_of(request, prepared);
  const OrderedJson document = checkpoint_config(prepared, request);
  const models::DecoderConfig config = models::parse_decoder_config(Json(document), prepared.where + ": 'model'");

  LanguageModelOutcome outcome;
  outcome.folder = request.out;
  outcome.parameters = models::parameter_count(config);
  outcome.training_tokens = std::ssize(prepared.tokens.training);
  outcome.validation_tokens = std::ssize(prepared.tokens.validation);
  LanguageModelTask task(
      recipe, config, models::initial_weights(config, request.seed), prepared.tokens, request.seed,
      [&](const models::DecoderWeights& weights) {
        remove_list(out);
        models::save_checkpoint(out, document, weights, recipe.dtype);
        return runfile::checksums_of(kept_files(out));
      },
      request.precision_learning_rate);

  const training::TrainingFolder folder(out / "training", asked, request_rules());
  if (!std::filesystem::exists(folder.state_file())) remove_list(out);  // the training begins
  write_file_atomically(folder.path() / "tokenizer.model", prepared.vocabulary);
  write_tokenizer(prepared.vocabulary, out);
  const KeptCheckpoints checkpoints(out, document, prepared.vocabulary, recipe.dtype);
  if (request.keep_checkpoints) checkpoints.keep(0, task.weights());
  training::TrainerOptions options = trainer_options(recipe, request, news);
  bool warned = false;
  options.evaluated = [&](const training::Evaluation& point) {
    const std::string warning = task.filter().warning();
    if (!warning.empty() && !warned) tell_note("step {}: {}", point.step, warning);
    warned = warned || !warning.empty();
    if (request.keep_checkpoints) checkpoints.keep(point.step, task.weights());
    if (news.evaluated) news.evaluated(point);
  };
  outcome.training = training::train(task, folder, options);
  if (request.keep_checkpoints) checkpoints.tell_missing(outcome.training.history);
  runfile::prove_kept(task.kept(), kept_files(out),
                      {fmt::format("the best step, {},", outcome.training.best_step), "the training state",
                       fmt::format("delete {} to train again", printable(folder.state_file().string()))});
  write_file_atomically(folder.path() / "history.csv", runfile::history_csv(outcome.training.history));
  std::vector<double> losses;
  for (const training::Evaluation& point : outcome.training.history) losses.push_back(point.training_loss);
  outcome.diverged = divergence(losses, config.vocabulary, {"up to the first evaluation", "token"});
  const bool has_filter = config.armed_filter().has_gain();
  if (has_filter) write_file_atomically(folder.path() / "filter.csv", task.filter().csv());
  if (has_filter) outcome.filter = task.filter().curves();
  runfile::write_checksum_list(out, files_of_training(has_filter));
  return outcome;
}

}  // namespace gainlens::language
