// Calls train language-model and evaluate language-model as a user does.
#include "core/json.h"
#include "language/language_testing.h"
#include "support/file_bytes.h"
#include "support/program.h"
#include "support/refused_call.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace gainlens::testing {
namespace train_command_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class TrainCommand : public ::testing::Test {
 protected:
  ProgramResult train(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"train", "language-model", "--config", recipe_, "--text", text_, "--out", out_};
    words.insert(words.end(), more.begin(), more.end());
    return run_gainlens(words);
  }

  TemporaryFolder folder_;
  std::string recipe_ = write_text(folder_.path() / "recipe.json", small_recipe().dump());
  std::string text_ = write_text(folder_.path() / "text.txt", made_up_text(600));
  std::string out_ = folder_.path() / "model";
};

TEST_F(TrainCommand, MakesACheckpointThatOtherCommandsRead) {
  Json recipe = small_recipe();
  recipe["stages"] = {{{"context", 16}, {"steps", 150}}, {{"context", 32}, {"steps", 50}}};
  recipe["evaluate_every"] = recipe["save_every"] = 50;
  write_text(recipe_, recipe.dump());
  const ProgramResult trained = train({"--quiet"});
  ASSERT_EQ(trained.exit_code, 0) << trained.error;
  EXPECT_THAT(trained.out, AllOf(HasSubstr("model: 200 steps\n"), HasSubstr("best held-out loss"),
                                 HasSubstr("training/loss-curve.svg")));
  EXPECT_EQ(trained.error, "");
  for (const char* file :
       {"config.json", "model.safetensors", "tokenizer.model", "tokenizer_config.json", "training/history.csv",
        "training/loss-curve.svg", "training/loss-curve.pdf", "training/loss-curve.png"}) {
    EXPECT_TRUE(std::filesystem::exists(std::filesystem::path(out_) / file)) << file;
  }
  EXPECT_THAT(train({"--quiet"}).out, HasSubstr("complete, nothing to do (200 steps)"));

  const ProgramResult inspected = run_gainlens({"inspect", out_});
  EXPECT_EQ(inspected.exit_code, 0);
  EXPECT_THAT(inspected.out, AllOf(HasSubstr("qwen3"), HasSubstr("put first")));

  const std::string page = folder_.path() / "page";
  const ProgramResult reported = run_gainlens({"report", out_, "--out", page, "--json"});
  EXPECT_EQ(reported.exit_code, 0) << reported.error;
  EXPECT_EQ(Json::parse(reported.out).at("summary"), page + "/summary.json");
  EXPECT_THAT(bytes_of(page + "/report.html"),
              AllOf(HasSubstr("Has the model learned?"), HasSubstr("figure-loss-curve"), HasSubstr("held out</th>")));
  const std::string history = bytes_of(out_ + "/training/history.csv"), csv = bytes_of(page + "/tables/loss-curve.csv");
  EXPECT_THAT(csv, ::testing::StartsWith("step,training_loss,validation_loss\n"));
  EXPECT_EQ(std::ranges::count(csv, '\n'), std::ranges::count(history, '\n'));
  EXPECT_EQ(Json::parse(bytes_of(page + "/summary.json")).at("language_training").at("steps"), 200);
  expect_refused(run_gainlens({"report", out_, "--out", page, "--lengths", "1k"}),
                 "--lengths: is for sweeps, and " + out_ + " is the training of a language model; leave it out");

  const ProgramResult evaluated =
      run_gainlens({"evaluate", "language-model", out_, "--text", text_, "--json", "--quiet"});
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.error;
  const Json loss = Json::parse(evaluated.out);
  EXPECT_EQ(loss["context"], 32);
  EXPECT_EQ(loss["predicted"], loss["tokens"]);
  EXPECT_LT(loss["loss"].get<double>(), loss["unigram_entropy"].get<double>());
  EXPECT_GT(loss["standard_error"].get<double>(), 0);
  EXPECT_LT(loss["standard_error"].get<double>(), 0.5);
  EXPECT_THAT(run_gainlens({"evaluate", "language-model", out_, "--text", text_, "--length", "16", "--quiet"}).out,
              AllOf(HasSubstr("unigram entropy"), HasSubstr("chunks of at most 16")));
  expect_refusal_line(run_gainlens({"evaluate", "language-model", out_, "--text", text_, "--length", "1k"}),
                      "--length: 1024 exceeds the model's 32 positions; give a smaller one");
}

/// docs/report.md, "A series of runs".
TEST_F(TrainCommand, CheckpointsOfATrainingMakeASeries) {
  Json recipe = small_recipe();
  recipe["stages"] = {{{"context", 32}, {"steps", 60}}};
  recipe["evaluate_every"] = recipe["save_every"] = 20;
  write_text(recipe_, recipe.dump());
  ASSERT_EQ(train({"--quiet", "--keep-checkpoints"}).exit_code, 0);
  std::vector<std::string> report = {"report"};
  for (const char* step : {"60", "0", "20", "40"}) {
    const std::string name = std::string("step-") + step, run = folder_.path() / "runs" / name;
    const ProgramResult swept = run_gainlens({"sweep", out_ + "/checkpoints/" + name, "--text", text_, "--lengths",
                                              "16,32", "--samples", "4", "--out", run, "--quiet"});
    ASSERT_EQ(swept.exit_code, 0) << swept.error;
    report.push_back(run);
  }
  const std::string page = folder_.path() / "series";
  report.insert(report.end(), {"--axis", "step", "--out", page});
  const ProgramResult made = run_gainlens(report);
  ASSERT_EQ(made.exit_code, 0) << made.error;
  const Json summary = Json::parse(read_text_file(page + "/summary.json", 16 << 20));
  const Json& runs = summary.at("series").at("runs");
  ASSERT_EQ(runs.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(runs.at(i).at("step"), 20 * i);
  EXPECT_TRUE(std::filesystem::exists(page + "/series.svg"));
  // A checkpoint that an earlier call did not keep is missing, and the program says so.
  std::filesystem::remove_all(out_ + "/checkpoints/step-20");
  EXPECT_THAT(train({"--keep-checkpoints"}).error,
              HasSubstr("there is no checkpoint of step 20: the training went past"));
}

TEST_F(TrainCommand, ItsFilesAreProven) {
  Json recipe = small_recipe();
  recipe["evaluate_every"] = 20;
  write_text(recipe_, recipe.dump());
  ASSERT_EQ(train({"--quiet", "--keep-checkpoints"}).exit_code, 0);
  const auto check = [&] { return run_gainlens({"check", out_}); };
  EXPECT_THAT(check().out, HasSubstr("satisfactory: the files of the training are as it wrote them"));
  EXPECT_EQ(check().exit_code, 0);
  const std::string list = out_ + "/files.sha256", kept = out_ + "/checkpoints/step-20";
  EXPECT_EQ(std::system(("cd '" + out_ + "' && sha256sum --quiet -c files.sha256").c_str()), 0);
  for (const std::string name : {"/model.safetensors", "/training/history.csv", "/training/request.json",
                                 "/tokenizer.model", "/checkpoints/step-20/model.safetensors"}) {
    const std::string file = out_ + name, good = read_text_file(file);
    std::string changed = good;
    if (name.ends_with(".csv"))
      changed = good.substr(0, good.rfind(',')) + ",1\n";
    else if (name.ends_with(".json"))
      changed += "\n";
    else
      changed.back() ^= 1;
    write_text(file, changed);
    EXPECT_EQ(check().exit_code, 1) << name;
    EXPECT_THAT(check().out, HasSubstr("found: " + file + ": its sha256 is ")) << name;
    write_text(file, good);
  }
  // A changed checkpoint is not used.
  for (const std::string& folder : {out_, kept}) {
    const std::string file = folder + "/model.safetensors", good = read_text_file(file);
    std::string changed = good;
    changed.back() ^= 1;
    write_text(file, changed);
    expect_refused(run_gainlens({"evaluate", "language-model", folder, "--text", text_}), file + ": its sha256 is ");
    expect_refused(run_gainlens({"sweep", folder, "--text", text_, "--lengths", "16", "--out", out_ + "-run"}),
                   file + ": its sha256 is ");
    write_text(file, good);
  }
  std::filesystem::remove(out_ + "/config.json");
  expect_refused(run_gainlens({"evaluate", "language-model", out_, "--text", text_}), "config.json: is missing");
  EXPECT_THAT(check().out, HasSubstr("found: " + out_ + "/config.json: is missing, and files.sha256 lists it"));
  // Earlier versions wrote no list.
  std::filesystem::remove(list);
  std::filesystem::remove(kept + "/files.sha256");
  EXPECT_THAT(check().out, HasSubstr("not known: whether the files have changed. " + out_ + ", " + kept +
                                     " has no checksum beside it; what it holds is not proven."));
  write_text(list, std::string(64, 'a') + "  ../recipe.json\n");
  expect_refused(check(), "is no checksum of a file in its folder");
}

/// Several arms and seeds are one run; each training is what the same command makes of it alone.
TEST_F(TrainCommand, ArmsAndSeedsAreOneRun) {
  const std::string run = folder_.path() / "run";
  const auto train_run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"train", "language-model", "--config", recipe_, "--text", text_, "--out", run};
    words.insert(words.end(), {"--threads", "1"});
    words.insert(words.end(), more.begin(), more.end());
    return run_gainlens(words);
  };
  const ProgramResult two = train_run({"--arm", "plain,bft", "--warm-up", "5", "--seeds", "2"});
  ASSERT_EQ(two.exit_code, 0) << two.error;
  EXPECT_THAT(two.out, AllOf(HasSubstr("held-out loss"), HasSubstr("plain                    2  "),
                             HasSubstr("bft                      2  ")));
  const ProgramResult few = run_gainlens({"compare", run, "--resamples", "50"});
  EXPECT_EQ(few.exit_code, 0) << few.error;
  EXPECT_THAT(few.out, AllOf(HasSubstr("bft against plain on text.txt, 2 seeds"), HasSubstr("sequences")));

  // A process that is killed, and the same command again.
  std::vector<std::string> words = {
      "train", "language-model", "--config",  recipe_,     "--text", text_,     "--out", run,      "--threads",
      "1",     "--arm",          "bft,plain", "--warm-up", "5",      "--seeds", "3",     "--quiet"};
  const int process = start_gainlens(words);
  for (int i = 0; i < 3000 && !std::filesystem::exists(run + "/bft/seed-2/training/state.safetensors"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ::kill(process, SIGKILL);
  int status = 0;
  ::waitpid(process, &status, 0);
  const ProgramResult three = train_run({"--arm", "bft,plain", "--warm-up", "5", "--seeds", "3", "--json", "--quiet"});
  ASSERT_EQ(three.exit_code, 0) << three.error;
  const Json trainings = Json::parse(three.out).at("trainings");
  ASSERT_EQ(trainings.size(), 6u);
  EXPECT_EQ(trainings.at(0).at("seconds"), 0.0) << "it was done before";

  // Each is the training that one arm and one seed make in a folder of their own.
  ASSERT_EQ(train({"--arm", "bft", "--warm-up", "5", "--seed", "2", "--threads", "1", "--quiet"}).exit_code, 0);
  for (const char* name : {"config.json", "model.safetensors", "tokenizer.model", "tokenizer_config.json",
                           "files.sha256", "training/request.json", "training/history.csv", "training/filter.csv"})
    EXPECT_TRUE(read_text_file(out_ + "/" + name) == read_text_file(run + "/bft/seed-2/" + name)) << name;

  const ProgramResult compared = run_gainlens({"compare", run, "--baseline", "plain", "--resamples", "50", "--json"});
  ASSERT_EQ(compared.exit_code, 0) << compared.error;
  const Json comparison = Json::parse(compared.out).at("comparisons").at(0);
  EXPECT_EQ(comparison.at("unit"), "sequence");
  EXPECT_TRUE(comparison.at("scores").contains("loss"));
  const std::string page = folder_.path() / "page";
  const ProgramResult reported = run_gainlens({"report", run, "--out", page});
  EXPECT_EQ(reported.exit_code, 0) << reported.error;
  EXPECT_THAT(read_text_file(page + "/report.html", 64 << 20), HasSubstr("bft against plain on text.txt, 3 seeds"));

  const ProgramResult evaluated =
      run_gainlens({"evaluate", "language-model", run, "--text", text_, "--json", "--quiet"});
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.error;
  const ProgramResult alone =
      run_gainlens({"evaluate", "language-model", run + "/bft/seed-2", "--text", text_, "--json", "--quiet"});
  Json last = Json::parse(evaluated.out).at("trainings").at(5);
  EXPECT_EQ(last.at("arm"), "bft");
  EXPECT_EQ(last.at("loss"), Json::parse(alone.out).at("loss"));

  const ProgramResult checked = run_gainlens({"check", run});
  EXPECT_THAT(checked.out, AllOf(HasSubstr("the files of every training are as it wrote them"),
                                 HasSubstr("all 6 trainings are finished"), HasSubstr("1 score of ")));
  EXPECT_THAT(run_gainlens({"check", run + "/plain/seed-1"}).out, HasSubstr("the only training is finished"));
  const std::string file = run + "/plain/seed-1/model.safetensors";
  std::string bytes = read_text_file(file);
  bytes.back() ^= 1;
  write_text(file, bytes);
  EXPECT_THAT(run_gainlens({"check", run}).out, HasSubstr("found: " + file + ": its sha256 is "));
  expect_refused(run_gainlens({"evaluate", "language-model", run + "/plain/seed-1", "--text", text_}),
                 file + ": its sha256 is ");

  // Another request, and a folder of the other form.
  expect_refused(train_run({"--arm", "bft", "--warm-up", "6", "--quiet"}), "/filter/warm_up is 5");
  expect_refused(train_run({"--arm", "bft", "--seeds", "0"}), "--seeds: 0");
  expect_refused(train({"--arm", "plain,gate", "--quiet"}), "is not empty and not a run");
  expect_refused(train({"--arm", "plain,plain"}), "--arm: 'plain' is given twice");
}

TEST_F(TrainCommand, AFilterIsAnArmWithOptions) {
  Json recipe = small_recipe();
  recipe["model"].erase("headwise_attn_output_gate");
  recipe["model"]["num_hidden_layers"] = 2;
  write_text(recipe_, recipe.dump());
  expect_refusal_line(train({"--arm", "bfd"}), "--arm: 'bfd'; must be one of plain, bft");
  expect_refusal_line(train({"--prior-strength", "2"}),
                      "--prior-strength: is an option of the filter; give --arm bft too");
  expect_refusal_line(train({"--precision-learning-rate", "2"}), "give --arm bft too");
  expect_refusal_line(train({"--arm", "bft", "--precision-learning-rate", "fast"}), "'fast'; must be a number");
  expect_refusal_line(train({"--arm", "bft", "--precision-learning-rate", "-1"}), "must be 0 to 1e6");
  expect_refusal_line(train({"--arm", "bft", "--estimator", "rem"}), "did you mean 'reml'?");
  expect_refusal_line(train({"--arm", "bft", "--jacobian", "exact", "--jacobian-rank", "4"}),
                      "--jacobian-rank: has no effect, because 'jacobian' is \"exact\"");
  expect_refusal_line(train({"--arm", "bft", "--initial-precision", "count"}), "need counts of items");
  expect_refusal_line(train({"--arm", "bft", "--initial-precision", "count"}),
                      "error: --initial-precision count: 'initial_precision' is count");
  expect_refusal_line(train({"--no-jacobian"}), "--no-jacobian: is an option of the filter; give --arm bft too");
  expect_refusal_line(train({"--arm", "bft", "--no-jacobian", "--jacobian", "exact"}), "--jacobian exact is given too");
  recipe["model"]["num_hidden_layers"] = 1;
  write_text(recipe_, recipe.dump());
  expect_refusal_line(train({"--arm", "bft", "--jacobian", "exact"}),
                      "--jacobian: has no effect, because 'layers' is 1");
  expect_refusal_line(train({"--arm", "bft", "--no-jacobian"}), "--no-jacobian: has no effect, because 'layers' is 1");
  recipe["model"]["num_hidden_layers"] = 2;
  write_text(recipe_, recipe.dump());
  EXPECT_FALSE(std::filesystem::exists(out_));

  const ProgramResult trained = train({"--quiet", "--arm", "bft", "--warm-up", "5", "--jacobian", "exact"});
  ASSERT_EQ(trained.exit_code, 0) << trained.error;
  const auto model = std::filesystem::path(out_);
  EXPECT_TRUE(std::filesystem::exists(model / "training" / "filter.csv"));
  const Json filter = read_json_file(model / "config.json")["gainlens_filter"];
  EXPECT_EQ(filter["warm_up"], 5);
  EXPECT_EQ(filter["jacobian"], "exact");
  EXPECT_THAT(run_gainlens({"inspect", out_}).out, HasSubstr("Bayesian; estimator reml"));
  const std::string run = folder_.path() / "run";
  const ProgramResult swept =
      run_gainlens({"sweep", out_, "--text", text_, "--lengths", "16,32", "--samples", "3", "--out", run, "--quiet"});
  ASSERT_EQ(swept.exit_code, 0) << swept.error;
  EXPECT_THAT(run_gainlens({"inspect", run}).out, HasSubstr("Bayesian (BFT)"));
  const std::filesystem::path report = folder_.path() / "report";
  EXPECT_EQ(run_gainlens({"report", run, "--out", report.string(), "--quiet"}).exit_code, 0);
  EXPECT_EQ(read_json_file(report / "summary.json")["run"]["filtered"], true);
  EXPECT_THAT(read_text_file(report / "report.html"), HasSubstr("with a Bayesian filter (BFT)"));
}

TEST_F(TrainCommand, FusedProjectionsAreTrainedAndStacksAreRefused) {
  Json recipe = small_recipe();
  recipe["model"] = {{"model_type", "gpt2"}, {"n_layer", 1}, {"n_embd", 16}, {"n_head", 2}, {"n_positions", 64}};
  write_text(recipe_, recipe.dump());
  const ProgramResult trained = train({"--quiet"});
  ASSERT_EQ(trained.exit_code, 0) << trained.error;
  EXPECT_EQ(run_gainlens({"evaluate", "language-model", out_, "--text", text_, "--quiet"}).exit_code, 0);

  out_ = folder_.path() / "experts";
  recipe = small_recipe();
  recipe["model"].erase("headwise_attn_output_gate");
  recipe["model"].update(
      {{"model_type", "qwen3_moe"}, {"num_experts", 2}, {"num_experts_per_tok", 1}, {"moe_intermediate_size", 8}});
  write_text(recipe_, recipe.dump());
  expect_refusal_line(train({"--quiet"}), "one of a stack (experts, or norms of single heads)");
  EXPECT_FALSE(std::filesystem::exists(out_)) << "a refused request must leave nothing behind";
}

TEST_F(TrainCommand, RefusesWrongInputInOneLine) {
  expect_refusal_line(run_gainlens({"train"}),
                      "train: a subcommand is required; known are recommend, finetune, language-model");
  expect_refusal_line(run_gainlens({"train", "langage-model"}), "did you mean 'language-model'?");
  expect_refusal_line(train({"--sede", "1"}), "unknown option '--sede'; did you mean '--seed'?");
  expect_refusal_line(run_gainlens({"evaluate", "language-model", out_, "--text", text_}), "model");

  write_text(recipe_, "{\"learning_rate\": 0.1");
  expect_refusal_line(train(), "recipe.json");
  write_text(recipe_, small_recipe().dump());
  write_text(text_, "");
  expect_refusal_line(train(), "text.txt");
  std::filesystem::remove(text_);
  expect_refusal_line(train(), "text.txt");
  EXPECT_FALSE(std::filesystem::exists(out_)) << "a refused request must leave nothing behind";

  write_text(text_, made_up_text(600));
  std::filesystem::create_directories(out_);
  write_text(std::filesystem::path(out_) / "config.json", "{}");
  expect_refusal_line(train(), "holds a config.json that this command did not make");
}

TEST_F(TrainCommand, HelpNamesTheDefaultsOfARecipe) {
  const std::string help = run_gainlens({"train", "language-model", "--help"}).out;
  for (const char* line :
       {"tokenizer            {vocabulary: 2048, algorithm: bpe (or unigram), character_coverage: 0.9995}\n",
        "tokens_per_step      8192\n", "tokens_at_once       2048, or the longest context if that is more\n",
        "beta1, beta2         0.9, 0.95\n", "weight_decay         0.1, of matrices\n",
        "patience             0 evaluations (0: no early stopping)\n", "dtype                bfloat16"}) {
    EXPECT_THAT(help, HasSubstr(line));
  }
}

TEST_F(TrainCommand, OneLineWhereTheLossExplodes) {
  Json recipe = small_recipe();
  recipe["learning_rate"] = 1000;
  recipe["max_gradient_norm"] = recipe["warmup_steps"] = recipe["beta2"] = 0;
  recipe["evaluate_every"] = 1;
  recipe["schedule"] = "constant";
  recipe["stages"] = {{{"context", 16}, {"steps", 5000}}};
  write_text(recipe_, recipe.dump());
  const ProgramResult result = train({"--quiet"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.error,
              AllOf(StartsWith("gainlens: error: "), HasSubstr("the best model, of step"), HasSubstr("is kept")));
  EXPECT_TRUE(std::filesystem::exists(std::filesystem::path(out_) / "model.safetensors"));
}

}  // namespace train_command_test
}  // namespace gainlens::testing
