#include "options/option_inputs.h"

#include "core/json.h"
#include "language/language_testing.h"
#include "support/tiny_training.h"

namespace gainlens::testing {
namespace {

/// Settings of the filter, with what each needs to act.
std::vector<OptionRow> filter_rows() {
  return {{"--estimator", {"kish"}},
          {"--prior-strength", {"3"}},
          {"--prior-variance", {"0.5"}},
          {"--score-noise", {"0.5"}, {"--estimator", "delta_weight_free", "--score-noise", "0.1"}},
          {"--kriging", {"per_dimension"}},
          {"--predict", {"decay"}},
          {"--jacobian", {"exact"}},
          {"--jacobian-rank", {"1"}},
          {"--norm-jacobian", {"true"}, {"--jacobian", "exact"}},
          {"--running-jacobian", {"false"}},
          {"--discount", {"0.5"}, {"--predict", "discount"}},
          {"--most-process-noise", {"0"}},
          {"--process-noise-start", {"1"}},
          {"--initial-precision", {"table"}},
          {"--initial-gain", {"0.5"}},
          {"--initial-gain-of-data", {"false"}},
          {"--initial-range", {"3"}},
          {"--recency-decay", {"false"}},
          {"--decay-owner", {"head"}},
          {"--initial-decay", {"0.5"}},
          {"--least-precision", {"50"}},
          {"--most-precision", {"1"}},
          {"--warm-up", {"2"}},
          {"--warm-up-unit", {"epochs"}, {"--warm-up", "1"}},
          {"--warm-up-form", {"blend"}, {"--warm-up", "3"}},
          {"--no-jacobian"},
          {"--precision-learning-rate", {"3"}}};
}

OptionTable train_recommend() {
  const Words filtered = {"--arm", "bft", "--warm-up", "0"};
  const Words hstu = {"--backbone", "hstu", "!--inner-width", "--data", timed_interactions()};
  std::vector<OptionRow> rows = {
      {"--data", {timed_interactions()}},
      {"--out", {"other"}},
      {"--backbone", {"hstu"}, {"!--inner-width", "--data", timed_interactions()}},
      {"--arm", {"bft"}},
      {"--seeds", {"2"}},
      {"--seed", {"7"}},
      {"--variant", {"wide:dropout=0.3"}},
      {"--grid", {"dropout=0.3"}},
      {"--preset", {"paper-no-norm"}},
      {"--config", {input_file("settings.json", R"({"dropout": 0.3})")}},
      {"--width", {"12"}},
      {"--heads", {"1"}},
      {"--layers", {"1"}},
      {"--inner-width", {"8"}},
      {"--positions", {"6"}},
      {"--norm", {"post"}},
      {"--embedding-factor", {"one"}, {"--embedding-factor", "sqrt_width"}},
      {"--embedding-deviation", {"0.5"}},
      {"--embedding-norm", {"false"}},
      {"--norm-epsilon", {"0.1"}},
      {"--alignment", {"start"}, {"--alignment", "end"}},
      {"--dropout", {"0.1"}},
      {"--attention-dropout", {"0.1"}},
      {"--loss", {"sampled"}},
      {"--negatives", {"3"}, {"--loss", "sampled"}},
      {"--negative-exponent", {"2"}, {"--loss", "sampled"}},
      {"--learning-rate", {"0.1"}},
      {"--beta2", {"0.5"}},
      {"--weight-decay", {"0.9"}},
      {"--max-gradient-norm", {"0.01"}},
      {"--batch", {"8"}},
      {"--epochs", {"2"}},
      {"--patience", {"1"}, {"--epochs", "12", "--learning-rate", "0.5"}},
      {"--permute-popularity", {"true"}, filtered},
      {"--keep-seen", {"true"}},
      {"--output-projection", {"true"}, filtered},
      {"--gain-place", {"after"}, with_words(filtered, {"--output-projection", "true"})},
      {"--mask-probability", {"0.5"}, {"--backbone", "bert4rec"}},
      {"--time-bias", {"false"}, hstu},
      {"--no-time-bias", {}, hstu},
      {"--precision-place", {"multiplicative"}, with_words(hstu, filtered)},
      {"--extra-length", {"30"}, hstu},
      {"--score-scale", {"one"}, hstu},
      {"--attention-norm-weights", {"false"}, with_words(hstu, {"--attention-norm-weights", "true"})},
      {"--projection-deviation", {"0.5"}, hstu},
      {"--output", {"unit"}, hstu},
      {"--temperature", {"0.5"}, with_words(hstu, {"--output", "unit"})},
  };
  for (OptionRow row : filter_rows()) {
    row.also = with_words(filtered, row.also);
    rows.push_back(row);
  }
  for (const OptionRow& row : interaction_rows({})) rows.push_back(row);
  Words call = tiny_training(histories(), "run", 1, {});
  call.erase(call.begin(), call.begin() + 2);
  return {{"train", "recommend"},
          call,
          rows,
          {{"--spread", "one process"},
           {"--seeds-at-once", "the numbers do not depend on it"},
           {"--save-every", "states to resume from, which a finished training deletes"}}};
}

OptionTable train_language_model() {
  Json recipe = small_recipe();
  recipe["stages"] = {{{"context", 16}, {"steps", 4}}};
  recipe["model"]["num_hidden_layers"] = 2;  // precisions are predicted between layers
  recipe["evaluate_every"] = recipe["save_every"] = 2;
  const std::string config = input_file("recipe.json", recipe.dump());
  recipe["learning_rate"] = 0.1;
  const std::string other = input_file("other-recipe.json", recipe.dump());
  const Words filtered = {"--arm", "bft", "--warm-up", "0"};
  std::vector<OptionRow> rows = {
      {"--config", {other}},
      {"--text", {some_text(2)}},
      {"--out", {"other"}},
      {"--arm", {"bft"}},
      {"--seeds", {"2"}},
      {"--keep-checkpoints"},
      {"--seed", {"7"}},
      {"--gain-place", {"after"}, filtered},
      {"--output-projection", {"false"}, filtered, "output_projection"},
  };
  for (OptionRow row : filter_rows()) {
    // A decoder takes some of the choices; the others are refused, which shows that the option is read.
    if (row.option == "--estimator") row.value = {"reml_conjugate"};
    if (row.option == "--score-noise") row.also = {};
    for (const char* option : {"--score-noise", "--kriging", "--norm-jacobian", "--decay-owner", "--warm-up-unit"})
      if (row.option == option) row.refused = any_refusal;
    row.also = with_words(filtered, row.also);
    rows.push_back(row);
  }
  return {{"train", "language-model"}, {"--config", config, "--text", some_text(1), "--out", "run"}, rows};
}

OptionTable train_finetune() {
  const auto questions = [](const std::string& name, int shift) {
    std::string lines;
    for (int i = 0; i < 30; ++i) {
      const char* const color = (i + shift) % 3 == 0 ? "red" : (i + shift) % 3 == 1 ? "green" : "blue";
      lines += Json{{"prompt", "Number " + std::to_string(i) + " is " + color + ". What is it?"}, {"answers", {color}}}
                   .dump() +
               "\n";
    }
    return input_file(name, lines);
  };
  const Words lora = {"--lora-rank", "2"};
  const Words filtered = {"--arm", "bft"};
  std::vector<OptionRow> rows = {
      {"model", {GAINLENS_SOURCE_DIR "/data/demo/plain"}},
      {"--task", {questions("other.jsonl", 1)}},
      {"--data", {questions("data.jsonl", 1)}, {}, "--data"},
      {"--test", {questions("test.jsonl", 1)}},
      {"--train-rows", {"6"}},
      {"--validation-rows", {"3"}},
      {"--test-rows", {"5"}},
      {"--data-seed", {"3"}},
      {"--passages", {"3"}, {}, "--passages"},
      {"--noise", {"60"}},
      {"--arm", {"focal"}},
      {"--seeds", {"2"}},
      {"--seed", {"7"}},
      {"--epochs", {"2"}},
      {"--batch", {"1"}},
      {"--learning-rate", {"1e-2"}},
      {"--weight-decay", {"0.9"}, {"--learning-rate", "1e-2"}},
      {"--warmup-ratio", {"0.9"}},
      {"--max-gradient-norm", {"0.01"}},
      {"--max-length", {"14"}, {}, "raise --max-length"},
      {"--dtype", {"bfloat16"}},
      {"--precision-learning-rate", {"3"}, filtered},
      {"--lora-rank", {"2"}},
      {"--lora-alpha", {"9"}, lora},
      {"--lora-targets", {"q"}, lora},
      {"--lora-merge", {}, lora},
      {"--max-new", {"1"}},
      {"--out", {"other"}},
  };
  return {{"train", "finetune"},
          {demo_model, "--task", questions("questions.jsonl", 0), "--train-rows", "4", "--validation-rows", "2",
           "--test-rows", "3", "--learning-rate", "1e-3", "--max-new", "2", "--epochs", "1", "--batch", "2", "--out",
           "run"},
          rows,
          {{"--spread", "one process"},
           {"--recompute", "less memory, the same bits"},
           {"--tokens-at-once", "memory and time alone; the numbers change by rounding"}}};
}

OptionTable evaluate_recommend() {
  const std::string foreign = GAINLENS_SOURCE_DIR "/tests/golden/foreign/";
  const Words recbole = {"--checkpoint", foreign + "recbole/model.pth", "--layout", "recbole",
                         "--data",       foreign + "tiny.inter",        "--items",  foreign + "recbole/items.csv"};
  const std::string items = input_file("items.csv", "item,id\n1,1\n");
  std::vector<OptionRow> rows = {
      {"--checkpoint", {recommend_run() + "/bft/seed-1"}},
      {"--ranks",
       {foreign + "pmixer-pre/ranks.csv"},
       {"!--checkpoint", "--data", foreign + "tiny.inter", "--ranks", foreign + "recbole/ranks.csv"}},
      {"--layout", {"recbole"}, with_words(recbole, {"!--layout"})},
      {"--items", {foreign + "recbole/items.csv"}, with_words(recbole, {"!--items"})},
      {"--items", {items}, {}, "--items"},
      {"--heads", {"2"}, {}, "--heads"},
      {"--data", {timed_interactions()}, {}, any_refusal},
      {"--keep-seen"},
      {"--other-split", {}, {"--duplicates", "first"}},
      {"--validation"},
      {"--top-k", {"3"}, {"--top-k", "2", "--out", "best.csv"}},
      {"--out", {"other.csv"}, {"--top-k", "2", "--out", "best.csv"}},
      {"--ranks-out", {"ranks.csv"}},
  };
  for (const OptionRow& row : refused_interaction_rows({})) rows.push_back(row);
  return {{"evaluate", "recommend"}, {"--checkpoint", recommend_run() + "/bft/seed-0", "--data", histories()}, rows};
}

OptionTable make_histories() {
  const Words synthetic = {"!--data", "!--density", "--synthetic", "--noise", "0.3,1.5",
                           "--users", "30",         "--items",     "40"};
  std::vector<OptionRow> rows = {
      {"--data", {timed_interactions()}},
      {"--density", {"0.3"}},
      {"--noise", {"0.5"}, {"!--density", "--noise", "0.2"}},
      {"--synthetic", {}, {"!--data", "!--density", "--noise", "0.3,1.5", "--users", "30", "--items", "40"}},
      {"--seed", {"7"}},
      {"--users", {"20"}, synthetic},
      {"--items", {"60"}, synthetic},
      {"--shortest", {"10"}, synthetic},
      {"--longest", {"9"}, synthetic},
      {"--dimensions", {"3"}, synthetic},
      {"--drift", {"0.9"}, synthetic},
      {"--items-file", {"items.csv"}, synthetic},
      {"--out", {"other.txt"}},
  };
  for (OptionRow row : interaction_rows({})) {
    if (row.option == "--split") row.refused = any_refusal;  // what is written has no times
    rows.push_back(row);
  }
  return {{"make-histories"}, {"--data", histories(), "--density", "0.5", "--out", "thin.txt"}, rows};
}

OptionTable estimators() {
  return {{"estimators"},
          {"--draws", "100", "--n-eff", "2"},
          {{"--draws", {"120"}}, {"--dimensions", {"8"}}, {"--n-eff", {"3"}}, {"--seed", {"7"}}, {"--out", {"page"}}}};
}

}  // namespace

std::vector<OptionTable> tables_of_training() {
  return {train_recommend(),    train_language_model(), train_finetune(),
          evaluate_recommend(), make_histories(),       estimators()};
}

}  // namespace gainlens::testing
