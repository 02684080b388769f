// `gainlens train recommend` and `gainlens evaluate recommend`.
#include "support/file_bytes.h"
#include "support/program.h"
#include "support/refused_call.h"
#include "support/shared_data.h"
#include "support/text_file.h"
#include "support/tiny_training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

namespace gainlens::testing {
namespace recommend_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

/// Users who go round a ring of 12 items.
std::string ring() {
  std::string text;
  for (int user = 0; user < 40; ++user) {
    text += "user" + std::to_string(user);
    for (int i = 0; i < 4 + user % 4; ++i) text += " " + std::to_string((user * 5 + i) % 12 + 1);
    text += "\n";
  }
  return text;
}

/// The arms that `train recommend --help` lists as trained: lines "  NAME  text" below "Arms:".
std::vector<std::string> documented_arms() {
  std::istringstream help(run_gainlens({"train", "recommend", "--help"}).out);
  std::vector<std::string> names;
  bool listed = false;
  for (std::string line; std::getline(help, line);) {
    if (listed && !line.starts_with("  ")) break;
    if (listed && line.find("baseline without training") == std::string::npos)
      names.push_back(line.substr(2, line.find(' ', 2) - 2));
    listed = listed || line == "Arms:";
  }
  return names;
}

class Recommend : public ::testing::Test {
 protected:
  std::vector<std::string> training(const std::string& out, const std::vector<std::string>& more = {}) const {
    return tiny_training(data_, out, 4, more);
  }

  TemporaryFolder folder_;
  std::string data_ = write_file(folder_.path() / "ring.txt", ring());
  std::string run_ = folder_.path() / "run";
};

TEST_F(Recommend, ATrainedCheckpointIsEvaluatedInspectedAndHooked) {
  const ProgramResult trained = run_gainlens(training(run_, {"--seeds", "2", "--json", "--quiet"}));
  ASSERT_EQ(trained.exit_code, 0) << trained.error;
  const Json seeds = Json::parse(trained.out).at("seeds");
  ASSERT_EQ(seeds.size(), 2u);

  const std::string checkpoint = run_ + "/plain/seed-1";
  const ProgramResult evaluated =
      run_gainlens({"evaluate", "recommend", "--checkpoint", checkpoint, "--data", data_, "--json"});
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.error;
  EXPECT_EQ(std::count(evaluated.out.begin(), evaluated.out.end(), '\n'), 1);
  const Json metrics = Json::parse(evaluated.out);
  EXPECT_EQ(metrics.at("users"), 40);
  for (const auto& [name, value] : seeds[1].at("test").items()) EXPECT_EQ(metrics.at(name), value) << name;

  const std::string best = folder_.path() / "best.csv";
  ASSERT_EQ(run_gainlens(
                {"evaluate", "recommend", "--checkpoint", checkpoint, "--data", data_, "--top-k", "3", "--out", best})
                .exit_code,
            0);
  const std::string lines = bytes_of(best);
  EXPECT_THAT(lines, StartsWith("user,position,item,score\nuser0,1,"));
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 1 + 3 * 40);

  EXPECT_THAT(run_gainlens({"inspect", checkpoint}).out, AllOf(HasSubstr("recommender"), HasSubstr("usable")));
  expect_refusal_line(
      run_gainlens({"sweep", checkpoint, "--text", checkpoint + "/config.json", "--out", checkpoint + "-s"}),
      "--text: is for language models, and " + checkpoint + " is a recommender; leave it out");
  EXPECT_THAT(run_gainlens({"hooks", checkpoint}).out, HasSubstr("blocks.1.attn.hook_z"));
  const std::string items = write_file(folder_.path() / "items.json", "[3, 4, 5]"),
                    out = folder_.path() / "c.safetensors";
  const ProgramResult captured =
      run_gainlens({"capture", checkpoint, "--tokens", items, "--hooks", "blocks.*.attn.hook_pattern", "--out", out});
  EXPECT_THAT(captured.out, HasSubstr("blocks.1.attn.hook_pattern               [1, 2, 3, 3]")) << captured.error;
  expect_refusal_line(run_gainlens({"capture", checkpoint, "--text", items, "--hooks", "*", "--out", out + "2"}),
                      "is a recommender; give its items as --tokens");
}

TEST_F(Recommend, BestItemsAreCountedAndNoIdIsAFormula) {
  // =all has seen every item, -near all but one.
  data_ = write_file(folder_.path() / "seen.txt", ring() +
                                                      "=all 1 2 3 4 5 6 7 8 9 10 11 12\n-near 1 2 3 4 5 6 7 8 9 10 11\n"
                                                      "-7 1 2 3 4\n");
  ASSERT_EQ(run_gainlens(training(run_)).exit_code, 0);
  const std::string checkpoint = run_ + "/plain/seed-0", best = folder_.path() / "best.csv";
  const auto evaluate = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"evaluate", "recommend", "--checkpoint", checkpoint, "--data", data_,
                                      "--top-k",  "3",         "--out",        best};
    words.insert(words.end(), more.begin(), more.end());
    return run_gainlens(words);
  };
  const ProgramResult evaluated = evaluate({});
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.error;
  EXPECT_THAT(evaluated.error,
              HasSubstr(best + ": 3 items for each of 41 users, fewer for 1 user, none for 1 user; the "
                               "items that a user has seen are not recommended (--keep-seen keeps them)\n"));
  const std::string lines = bytes_of(best);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 1 + 3 * 41 + 1);
  EXPECT_THAT(lines, AllOf(HasSubstr("\n'-near,1,12,"), HasSubstr("\n-7,1,"), Not(HasSubstr("=all"))));
  EXPECT_THAT(evaluate({"--keep-seen"}).error,
              HasSubstr("--out: " + best + " exists; choose another name or remove it"));
  std::filesystem::remove(best);
  EXPECT_THAT(evaluate({"--keep-seen"}).error, HasSubstr("3 items for each of 43 users\n"));
  EXPECT_THAT(bytes_of(best), AllOf(HasSubstr("\n'=all,1,"), Not(HasSubstr("\n=all"))));
}

TEST_F(Recommend, ThePaperStandsWhereItIsNamedOrTheDataHaveItsSize) {
  data_ = write_file(folder_.path() / "my-games-0.5.dat", ring());
  ASSERT_EQ(run_gainlens(training(run_, {"--arm", "plain,bft", "--warm-up", "1", "--seeds", "2"})).exit_code, 0);
  const auto paper_rows = [](const std::string& text) { return text.find("\n  paper ") != std::string::npos; };
  EXPECT_FALSE(paper_rows(run_gainlens({"compare", run_}).out));
  const ProgramResult named = run_gainlens({"compare", run_, "--paper", "toys"});
  ASSERT_EQ(named.exit_code, 0) << named.error;
  EXPECT_TRUE(paper_rows(named.out));
  EXPECT_THAT(named.out, HasSubstr("0.0872 (0.0016)"));
  EXPECT_FALSE(paper_rows(run_gainlens({"compare", run_, "--paper", "none"}).out));
  expect_refusal_line(run_gainlens({"compare", run_, "--paper", "tosy"}), "did you mean 'Toys'");
  expect_refusal_line(run_gainlens({"compare", run_, "--paper", "toys,beauty"}),
                      "--paper: 2 names for 1 data set (my-games-0.5); give one name for each");
  ASSERT_EQ(run_gainlens({"report", run_, "--paper", "Toys"}).exit_code, 0);
  EXPECT_THAT(bytes_of(run_ + "/report/report.html"), HasSubstr("for Toys, which --paper names"));
  ASSERT_EQ(run_gainlens({"report", run_}).exit_code, 0);
  EXPECT_THAT(bytes_of(run_ + "/report/report.html"), Not(HasSubstr("which --paper names")));
  expect_refusal_line(run_gainlens({"report", run_, "--paper", "x"}), "must be one of ML-1M");
}

TEST_F(Recommend, TheTimeLeftIsThatOfTrainings) {
  const ProgramResult trained = run_gainlens(training(run_, {"--arm", "popularity,markov,plain", "--seeds", "2"}));
  ASSERT_EQ(trained.exit_code, 0) << trained.error;
  // 4 rankings of a tenth of an epoch each and 2 trainings of 4 epochs: the first line is about a ranking.
  EXPECT_THAT(trained.error, StartsWith("train recommend:   1%  popularity seed 0 done  "));
  EXPECT_THAT(trained.error, HasSubstr("100%"));
  EXPECT_THAT(trained.error, Not(HasSubstr(" 0 epochs/")));
  const ProgramResult again = run_gainlens(training(run_, {"--arm", "popularity,markov,plain", "--seeds", "2"}));
  EXPECT_THAT(again.error, AllOf(HasSubstr("was done before"), Not(HasSubstr("epochs/"))));
}

TEST_F(Recommend, EveryArmGoesThroughEveryCommand) {
  std::vector<std::string> names = documented_arms();
  ASSERT_THAT(names, ::testing::IsSupersetOf({"plain", "bft", "constant-k", "ffn"}));
  std::erase(names, "ffn");  // of HSTU, which has a journey of its own
  std::string arms;
  for (const std::string& name : names) arms += (arms.empty() ? "" : ",") + name;
  const ProgramResult trained =
      run_gainlens(training(run_, {"--arm", arms, "--warm-up", "2", "--seeds", "2", "--json", "--quiet"}));
  ASSERT_EQ(trained.exit_code, 0) << trained.error;
  const Json seeds = Json::parse(trained.out).at("seeds");
  ASSERT_EQ(seeds.size(), 2 * names.size());
  const std::string items = write_file(folder_.path() / "items.json", "[3, 4, 5]");
  for (const Json& seed : seeds) {
    if (seed.at("seed") != 1) continue;
    const std::string arm = seed.at("arm"), checkpoint = run_ + "/" + arm + "/seed-1";
    SCOPED_TRACE(arm);
    const ProgramResult evaluated =
        run_gainlens({"evaluate", "recommend", "--checkpoint", checkpoint, "--data", data_, "--json"});
    ASSERT_EQ(evaluated.exit_code, 0) << evaluated.error;
    const Json metrics = Json::parse(evaluated.out);
    for (const auto& [name, value] : seed.at("test").items()) EXPECT_EQ(metrics.at(name), value) << name;
    const ProgramResult best = run_gainlens({"evaluate", "recommend", "--checkpoint", checkpoint, "--data", data_,
                                             "--top-k", "3", "--out", folder_.path() / (arm + ".csv"), "--json"});
    EXPECT_EQ(best.exit_code, 0) << best.error;
    const bool with_filter = arm == "bft" || arm == "textbook" || arm == "least-error";
    EXPECT_THAT(bytes_of(folder_.path() / (arm + ".csv")),
                StartsWith(with_filter ? "user,position,item,score,precision\nuser0,1,"
                                       : "user,position,item,score\nuser0,1,"));
    EXPECT_EQ(Json::parse(best.out).at("recommendations").contains("precision"), with_filter);
    const ProgramResult inspected = run_gainlens({"inspect", checkpoint, "--json"});
    ASSERT_EQ(inspected.exit_code, 0) << inspected.error;
    EXPECT_EQ(Json::parse(inspected.out).at("arm"), arm);
    const ProgramResult hooks = run_gainlens({"hooks", checkpoint});
    EXPECT_EQ(hooks.out.find("attn.hook_observation_precision") != std::string::npos, with_filter);
    const ProgramResult captured = run_gainlens(
        {"capture", checkpoint, "--tokens", items, "--hooks", "*", "--out", folder_.path() / (arm + ".safetensors")});
    EXPECT_EQ(captured.exit_code, 0) << captured.error;
  }
  const ProgramResult report = run_gainlens({"report", run_});
  EXPECT_EQ(report.exit_code, 0) << report.error;
  EXPECT_THAT(bytes_of(run_ + "/report/report.html"), HasSubstr("The filter of bft, by layer"));
  const ProgramResult compared = run_gainlens({"compare", run_});
  EXPECT_EQ(compared.exit_code, 0) << compared.error;
  EXPECT_THAT(compared.out, HasSubstr("constant-k against plain"));
  EXPECT_EQ(run_gainlens({"inspect", run_}).exit_code, 0);
}

TEST_F(Recommend, ContradictionsOfAFilterAreRefused) {
  expect_refusal_line(
      run_gainlens(training(run_, {"--arm", "bft", "--estimator", "sandwich", "--initial-precision", "em"})),
      "needs a variance with a likelihood");
  expect_refusal_line(run_gainlens(training(
                          run_, {"--arm", "bft", "--norm", "post", "--jacobian", "exact", "--norm-jacobian", "true"})),
                      "the MLP reads the stream itself");
  expect_refusal_line(run_gainlens(training(run_, {"--arm", "bft", "--gain-place", "after"})),
                      "--gain-place: has no effect, because 'output_projection' is false");
  expect_refusal_line(run_gainlens(training(run_, {"--arm", "bft", "--embedding-deviation", "0"})), "must be above 0");
  expect_refusal_line(run_gainlens(training(run_, {"--arm", "bft", "--estimator", "remel"})), "did you mean 'reml'");
  expect_refusal_line(run_gainlens(training(run_, {"--arm", "bfd"})), "did you mean 'bft'");
  expect_refusal_line(run_gainlens(training(run_, {"--arm", "bft", "--no-jacobian", "--norm-jacobian", "true"})),
                      "needs 'jacobian' exact");
  expect_refusal_line(run_gainlens(training(run_, {"--arm", "bft", "--predict", "decay", "--most-process-noise", "1"})),
                      "--most-process-noise: has no effect, because 'predict' is \"decay\"");
  expect_refusal_line(run_gainlens(training(run_, {"--arm", "bft", "--no-jacobian", "--jacobian-rank", "8"})),
                      "--jacobian-rank: has no effect, because 'jacobian' is \"none\"");
  expect_refusal_line(run_gainlens(training(run_, {"--arm", "plain", "--kriging", "per_dimension"})),
                      "--kriging: is an option of the filter; give --arm bft too");
  expect_refusal_line(run_gainlens(training(run_, {"--arm", "plain,gate", "--kriging", "per_dimension"})),
                      "--kriging: has no effect, because arm gate does not read it");
  expect_refusal_line(run_gainlens(training(run_, {"--no-jacobian"})), "--no-jacobian: is an option of the filter");
  expect_refusal_line(run_gainlens(training(run_, {"--arm", "plain,bft", "--variant", "k:kriging=per_dimension"})),
                      "--variant k: arm plain would have the numbers that it has without it");
  expect_refusal_line(run_gainlens(training(run_, {"--arm", "markov", "--variant", "wide:width=16"})),
                      "--variant wide: arm markov would have the numbers that it has without it");
  // Nothing is predicted after the last layer.
  for (const std::vector<std::string>& idle : std::vector<std::vector<std::string>>{{"--jacobian", "exact"},
                                                                                    {"--no-jacobian"},
                                                                                    {"--jacobian-rank", "4"},
                                                                                    {"--running-jacobian", "false"},
                                                                                    {"--predict", "discount"},
                                                                                    {"--most-process-noise", "0"},
                                                                                    {"--process-noise-start", "-2"}}) {
    std::vector<std::string> words = {"--arm", "bft", "--layers", "1"};
    words.insert(words.end(), idle.begin(), idle.end());
    expect_refusal_line(run_gainlens(training(run_, words)), idle[0] + ": has no effect, because 'layers' is 1");
  }
  EXPECT_FALSE(std::filesystem::exists(run_));
}

TEST_F(Recommend, ASecondCallFindsItDone) {
  ASSERT_EQ(run_gainlens(training(run_, {"--arm", "plain,popularity,markov"})).exit_code, 0);
  const std::string before = bytes_of(run_ + "/plain/seed-0/result.safetensors");
  const ProgramResult again = run_gainlens(training(run_, {"--arm", "plain,popularity,markov"}));
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_THAT(again.out, HasSubstr("markov, mean (standard deviation) over 1 seed on the test items:\n  hr@5 "));
  EXPECT_THAT(again.out, ::testing::Not(HasSubstr("(0.0000)")));  // one seed has no deviation
  EXPECT_TRUE(bytes_of(run_ + "/plain/seed-0/result.safetensors") == before);
  expect_refusal_line(run_gainlens(training(run_, {"--dropout", "0.3"})),
                      "/training/dropout is 0.5 in the stored request");
}

TEST_F(Recommend, OptionsGoBeforeTheConfigFile) {
  const std::string config = write_file(folder_.path() / "c.json", R"({"learning_rate": 0.01, "layers": 1})");
  ASSERT_EQ(run_gainlens(training(run_, {"--config", config, "--learning-rate", "0.02"})).exit_code, 0);
  const Json request = Json::parse(bytes_of(run_ + "/request.json"));
  EXPECT_EQ(request.at("training").at("learning_rate"), 0.02);
  EXPECT_EQ(request.at("training").at("layers"), 1);
  EXPECT_EQ(request.at("training").at("dropout"), 0.5);
}

TEST_F(Recommend, ADamagedRunFileIsNamedAndWrittenAgain) {
  const std::vector<std::string> words = training(run_, {"--arm", "popularity,markov", "--seeds", "2"});
  ASSERT_EQ(run_gainlens(words).exit_code, 0);
  const std::string file = run_ + "/run.h5", whole = bytes_of(file);
  std::string damaged = whole;
  damaged[damaged.size() / 2] ^= 1;
  write_file(file, damaged);
  for (const char* command : {"compare", "report"})
    expect_refusal_line(run_gainlens({command, run_}), "run.h5: its sha256 is");
  EXPECT_EQ(run_gainlens({"inspect", run_}).exit_code, 2);
  expect_refusal_line(run_gainlens({"audit", run_}), "is a recommender run");
  ASSERT_EQ(run_gainlens(words).exit_code, 0);
  EXPECT_EQ(bytes_of(file), whole);
  EXPECT_EQ(run_gainlens({"compare", run_}).exit_code, 0);
}

/// Changes one bit near the end of the file.
void flip(const std::string& file) {
  std::string bytes = bytes_of(file);
  bytes[bytes.size() - 5] ^= 1;
  write_file(file, bytes);
}

TEST_F(Recommend, DamagedFilesOfAFinishedTrainingAreNamedByEveryCommand) {
  const std::vector<std::string> words = training(run_, {"--arm", "plain,popularity", "--seeds", "2", "--quiet"});
  ASSERT_EQ(run_gainlens(words).exit_code, 0);
  const std::string seed = run_ + "/plain/seed-0", combined = bytes_of(run_ + "/run.h5");
  EXPECT_THAT(run_gainlens({"inspect", run_}).out, HasSubstr("the files of every training are as it wrote them"));
  EXPECT_THAT(run_gainlens({"inspect", seed}).out, HasSubstr("its files are as the training wrote them"));
  const std::string second = run_ + "/plain/seed-1/config.json";
  for (const std::string& file : {seed + "/model.safetensors", second}) flip(file);
  EXPECT_THAT(run_gainlens({"check", run_}).out, AllOf(HasSubstr("found: " + seed + "/model.safetensors: its sha256"),
                                                       HasSubstr(". And 1 other file: " + second)));
  for (const std::string& file : {seed + "/model.safetensors", second}) flip(file);
  const std::vector<std::vector<std::string>> readers = {
      words, {"compare", run_}, {"report", run_}, {"evaluate", "recommend", "--checkpoint", seed, "--data", data_}};
  for (const char* name : {"/result.safetensors", "/model.safetensors"}) {
    const std::string file = seed + name, whole = bytes_of(file);
    for (const bool emptied : {false, true}) {
      SCOPED_TRACE(std::string(name) + (emptied ? " emptied" : " flipped"));
      if (emptied)
        write_file(file, "");
      else
        flip(file);
      for (const auto& reader : readers) {
        SCOPED_TRACE(reader[0]);
        const ProgramResult result = run_gainlens(reader);
        expect_refusal_line(result, file);
        EXPECT_THAT(result.error, HasSubstr("delete "));
      }
      for (const std::string& inspected : {run_, seed}) {
        const ProgramResult result = run_gainlens({"inspect", inspected});
        EXPECT_EQ(result.exit_code, 2);
        EXPECT_THAT(result.out, AllOf(HasSubstr("usable"), HasSubstr(file)));
      }
      EXPECT_TRUE(bytes_of(run_ + "/run.h5") == combined);
      std::filesystem::remove_all(name == std::string("/result.safetensors") ? file : seed);
      for (const auto& reader : {words, readers[1], readers[3]})  // a page takes long
        EXPECT_EQ(run_gainlens(reader).exit_code, 0) << reader[0];
      EXPECT_TRUE(bytes_of(file) == whole);
      EXPECT_TRUE(bytes_of(run_ + "/run.h5") == combined);
    }
  }
  // A run.h5 that is given alone, and a checkpoint that was copied, are read; what was not compared is said.
  EXPECT_THAT(run_gainlens({"compare", run_ + "/run.h5"}).error, HasSubstr("were not compared"));
  const std::string copy = folder_.path() / "copy";
  std::filesystem::create_directory(copy);
  for (const char* name : {"/config.json", "/model.safetensors"}) std::filesystem::copy_file(seed + name, copy + name);
  const ProgramResult copied = run_gainlens({"evaluate", "recommend", "--checkpoint", copy, "--data", data_, "--json"});
  EXPECT_THAT(copied.error, HasSubstr("its files were not compared with checksums: no result.safetensors lies beside"));
  EXPECT_EQ(Json::parse(copied.out).at("checksums"), "not compared");
}

TEST_F(Recommend, ACheckpointKnowsItsSplit) {
  std::string ratings;
  for (int user = 0; user < 40; ++user) {
    for (int i = 0; i < 6; ++i)  // the last three on one day
      ratings += std::to_string(user) + "::" + std::to_string((user * 5 + i) % 12 + 1) +
                 "::5::" + std::to_string(100 + std::min(i, 3)) + "\n";
  }
  data_ = write_file(folder_.path() / "ratings.dat", ratings);
  ASSERT_EQ(run_gainlens(training(run_, {"--ties", "random:1"})).exit_code, 0);
  const std::string checkpoint = run_ + "/plain/seed-0";
  const std::vector<std::string> evaluate = {"evaluate", "recommend", "--checkpoint", checkpoint,
                                             "--data",   data_,       "--json"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = evaluate;
    words.insert(words.end(), more.begin(), more.end());
    return run_gainlens(words);
  };
  const ProgramResult same = with({"--ties", "random:1"});
  EXPECT_EQ(same.error, "");
  EXPECT_EQ(Json::parse(same.out).at("split"), "same");
  EXPECT_EQ(Json::parse(same.out).at("checksums"), "equal");
  expect_refusal_line(
      with({}), "is split otherwise than the data that " + checkpoint +
                    " was trained on, so test items may have been "
                    "trained on; the training had --ties random:1 --min-item-count 0: give the same file and options");
  const ProgramResult other = with({"--other-split"});
  EXPECT_EQ(other.exit_code, 0);
  EXPECT_THAT(other.error, StartsWith("gainlens: warning: " + data_ + ": is split otherwise"));
  EXPECT_EQ(Json::parse(other.out).at("split"), "other");
  EXPECT_THAT(run_gainlens({"inspect", checkpoint}).out, HasSubstr("--ties random:1 --min-item-count 0"));

  // As an earlier version wrote it.
  Json config = Json::parse(bytes_of(checkpoint + "/config.json"));
  const Json data = {{"item_names", config.at("data").at("item_names")}};
  config["data"] = data;
  write_file(checkpoint + "/config.json", config.dump());
  std::filesystem::remove(checkpoint + "/result.safetensors");
  const ProgramResult unknown = with({});
  EXPECT_EQ(unknown.exit_code, 0);
  EXPECT_THAT(unknown.error, HasSubstr("it cannot be checked whether test items were trained on"));
  EXPECT_EQ(Json::parse(unknown.out).at("split"), "unknown");
}

TEST_F(Recommend, MoreEpochsAndAMovedDataFileContinueARun) {
  ASSERT_EQ(run_gainlens(training(run_, {"--arm", "plain,markov", "--seeds", "2"})).exit_code, 0);
  std::filesystem::rename(data_, folder_.path() / "moved.txt");
  data_ = folder_.path() / "moved.txt";
  std::vector<std::string> words = training(run_, {"--arm", "plain,markov", "--seeds", "2", "--json"});
  *std::find(words.begin(), words.end(), "4") = "7";
  const ProgramResult longer = run_gainlens(words);
  ASSERT_EQ(longer.exit_code, 0) << longer.error;
  EXPECT_EQ(Json::parse(longer.out).at("seeds")[0].at("epochs"), 7);
  EXPECT_THAT(run_gainlens({"compare", run_}).out, HasSubstr("markov against plain on ring"));
  EXPECT_EQ(run_gainlens({"report", run_}).exit_code, 0);
  EXPECT_EQ(Json::parse(bytes_of(run_ + "/report/summary.json")).at("run").at("training").at("epochs"), 7);
  expect_refusal_line(run_gainlens(training(run_)), "/training/epochs is 7 in the stored request and 4 in this one");
}

TEST_F(Recommend, SeedsOfTheWholeRangeGoThroughEveryCommand) {
  for (const std::string seed : {"9223372036854775807", "9223372036854775808", "18446744073709551615"}) {
    SCOPED_TRACE(seed);
    const std::vector<std::string> words = training(run_, {"--arm", "plain,markov", "--seed", seed, "--json"});
    const ProgramResult trained = run_gainlens(words);
    ASSERT_EQ(trained.exit_code, 0) << trained.error;
    EXPECT_EQ(Json::parse(trained.out).at("seeds")[0].at("seed").dump(), seed);
    ASSERT_EQ(run_gainlens(words).exit_code, 0);
    const ProgramResult evaluated = run_gainlens(
        {"evaluate", "recommend", "--checkpoint", run_ + "/plain/seed-" + seed, "--data", data_, "--json"});
    ASSERT_EQ(evaluated.exit_code, 0) << evaluated.error;
    EXPECT_EQ(Json::parse(evaluated.out).at("hr@10"), Json::parse(trained.out).at("seeds")[0].at("test").at("hr@10"));
  }
  EXPECT_THAT(run_gainlens({"inspect", run_}).out,
              HasSubstr("9223372036854775807, 9223372036854775808, 18446744073709551615"));
  EXPECT_THAT(run_gainlens({"compare", run_}).out, HasSubstr("18446744073709551615"));
  EXPECT_EQ(run_gainlens({"report", run_}).exit_code, 0);
  EXPECT_THAT(bytes_of(run_ + "/report/tables/learning-curves.csv"), HasSubstr("plain,18446744073709551615,1,"));
}

TEST_F(Recommend, ATrainingThatDivergesSaysSo) {
  const ProgramResult trained = run_gainlens(training(run_, {"--learning-rate", "1000", "--json", "--quiet"}));
  ASSERT_EQ(trained.exit_code, 0) << trained.error;
  EXPECT_THAT(trained.error, HasSubstr("gainlens: warning: plain seed 0 has diverged: its last training loss is "));
  EXPECT_THAT(Json::parse(trained.out).at("seeds")[0].at("diverged").get<std::string>(), HasSubstr("above"));
  EXPECT_THAT(run_gainlens({"inspect", run_}).out, HasSubstr("plain seed 0: its last training loss is "));
  EXPECT_EQ(run_gainlens({"report", run_}).exit_code, 0);
  EXPECT_THAT(bytes_of(run_ + "/report/report.html"), HasSubstr("plain seed 0: its last training loss is "));
}

TEST_F(Recommend, NothingIsWrittenAmongCheckpoints) {
  ASSERT_EQ(run_gainlens(training(run_, {"--arm", "plain,markov", "--seeds", "2"})).exit_code, 0);
  const std::string among = "lies among the checkpoints of the run " + run_;
  for (const char* place : {"/plain", "/plain/seed-0", "/plain/new", "/markov/seed-1/new"}) {
    expect_refusal_line(run_gainlens({"report", run_, "--out", run_ + place}), among);
    expect_refusal_line(run_gainlens({"compare", run_, "--out", run_ + place}), among);
    expect_refusal_line(run_gainlens(training(run_ + place)), among);
  }
  expect_refusal_line(run_gainlens({"evaluate", "recommend", "--checkpoint", run_ + "/plain/seed-0", "--data", data_,
                                    "--top-k", "3", "--out", run_ + "/plain/seed-0/best.csv"}),
                      among);
  expect_refusal_line(run_gainlens({"evaluate", "recommend", "--checkpoint", run_ + "/plain/seed-0", "--data", data_,
                                    "--top-k", "3", "--out", run_ + "/best.csv"}),
                      "is the folder of a run");
  const std::string other = folder_.path() / "other";
  std::filesystem::create_directory(other);
  write_file(other + "/thesis.txt", "precious");
  expect_refusal_line(run_gainlens(training(other)), "is not empty and not a run (it holds 'thesis.txt'");
}

TEST_F(Recommend, SettingsNeedToFitEachOtherOnlyWhenAllAreKnown) {
  const std::string config = write_file(folder_.path() / "c.json", R"({"heads": 3})");
  std::vector<std::string> words = training(run_, {"--config", config});
  *std::find(words.begin(), words.end(), "8") = "12";  // the width; the default, 64, is no multiple of 3
  const ProgramResult result = run_gainlens(words);
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(Json::parse(bytes_of(run_ + "/request.json")).at("training").at("heads"), 3);
}

TEST_F(Recommend, WrongRequestsAreOneLine) {
  const auto refused = [&](const std::vector<std::string>& more, const std::string& reason) {
    SCOPED_TRACE(reason);
    expect_refusal_line(run_gainlens(training(run_, more)), reason);
    EXPECT_FALSE(std::filesystem::exists(run_));
  };
  refused({"--arm", "plian"}, "did you mean 'plain'");
  refused({"--backbone", "sarsec"}, "must be sasrec");
  refused({"--preset", "pape"}, "did you mean 'paper'");
  refused({"--seeds", "0"}, "--seeds: 0; at least 1 is needed");
  refused({"--seeds", "1000000", "--arm", "popularity"}, "--seeds: 1000000; at most 10000 are supported");
  refused({"--seeds", "2", "--seed", "18446744073709551615"}, "go beyond 2^64 - 1, the largest seed");
  refused({"--negatives", "5"}, "--negatives: has no effect, because 'loss' is \"full\"");
  refused({"--negative-exponent", "0.5"}, "--negative-exponent: has no effect");
  refused({"--precision-learning-rate", "5"}, "--precision-learning-rate: is an option of the filter");
  refused({"--permute-popularity", "true"}, "--permute-popularity: is an option of the filter");
  refused({"--arm", "bft", "--initial-precision", "table", "--permute-popularity", "true"},
          "--permute-popularity: has no effect, because 'initial_precision' is \"table\"");
  refused({"--seeds-at-once", "0"}, "--seeds-at-once: 0; at least 1 is needed");
  refused({"--seeds", "3", "--seeds-at-once", "3"}, "--seeds-at-once: 3 trainings side by side need a thread each");
  refused({"--dropout", "1"}, "--dropout: 'dropout' is 1; must be at least 0 and below 1");
  refused({"--learning-rate", "fast"}, "must be a number");
  refused({"--heads", "3"}, "heads must divide the width");
  refused({"--ties", "random"}, "such as random:1");
  refused({"--config", write_file(folder_.path() / "c.json", R"({"droput": 0.1})")},
          "c.json: 'droput' is not a known key");
  refused({"--min-item-count", "100"}, "has fewer than 3 interactions");
  data_ = write_file(folder_.path() / "short.txt", "a 1 2 3\nb 2 3 1\n");
  refused({}, "no user has two training items");
  data_ = "/no/such/file";
  refused({}, "/no/such/file");
}

TEST_F(Recommend, WrongEvaluationsAreOneLine) {
  ASSERT_EQ(run_gainlens(training(run_)).exit_code, 0);
  const std::string checkpoint = run_ + "/plain/seed-0";
  const auto refused = [&](const std::vector<std::string>& more, const std::string& reason) {
    SCOPED_TRACE(reason);
    std::vector<std::string> words = {"evaluate", "recommend"};
    words.insert(words.end(), more.begin(), more.end());
    expect_refusal_line(run_gainlens(words), reason);
  };
  refused({"--checkpoint", checkpoint, "--data", data_, "--top-k", "3"}, "--top-k and --out belong together");
  for (const char* none : {"0", "-1"})
    refused({"--checkpoint", checkpoint, "--data", data_, "--top-k", none, "--out", "x"},
            std::string("--top-k: ") + none + "; at least 1 is needed");
  refused({"--checkpoint", checkpoint, "--data", data_, "--top-k", "3", "--out", folder_.path() / "none" / "x"},
          "--out: there is no folder");
  refused({"--checkpoint", checkpoint, "--data", data_, "--top-k", "13", "--out", "x"}, "--top-k: 13");
  refused({"--checkpoint", checkpoint, "--data", data_, "--layout", "iclrc"}, "did you mean 'iclrec'");
  refused({"--checkpoint", checkpoint, "--data", data_, "--layout", "iclrec"},
          "2 safetensors files; name the one to read");
  const std::string fewer = write_file(folder_.path() / "fewer.txt", "a 1 2 3 4\nb 2 3 1 4\n");
  refused({"--checkpoint", checkpoint, "--data", fewer}, "the data set has 4 items; the checkpoint was made for 12");
  const std::string other = write_file(folder_.path() / "other.txt", "a 21 22 23 24 25 26 27 28 29 30 31 32\n");
  refused({"--checkpoint", checkpoint, "--data", other}, "its items have other names");
  refused({"--checkpoint", folder_.path() / "none", "--data", data_}, "no such file or folder");
  const std::string hint = run_ + ": is a recommender run; give the folder of one of its trainings, " + checkpoint;
  refused({"--checkpoint", run_, "--data", data_}, hint);
  expect_refusal_line(run_gainlens({"hooks", run_}), hint);
  expect_refusal_line(run_gainlens({"capture", run_, "--tokens", data_, "--hooks", "*", "--out", "x"}), hint);
}

TEST_F(Recommend, ABackboneThatIsNotKnownIsNamed) {
  expect_refusal_line(run_gainlens(training(run_, {"--backbone", "sasrek"})), "--backbone: 'sasrek'; must be sasrec");
  ASSERT_EQ(run_gainlens(training(run_, {"--quiet"})).exit_code, 0);
  const std::string checkpoint = run_ + "/plain/seed-0";
  expect_refusal_line(run_gainlens({"evaluate", "language-model", checkpoint, "--text", data_}),
                      "is a recommender; use gainlens evaluate recommend");
  Json config = Json::parse(bytes_of(checkpoint + "/config.json"));
  config["model_type"] = "gainlens-gru4rec";
  write_file(checkpoint + "/config.json", config.dump());
  const std::string reason = "the backbone in 'model_type': 'gru4rec'; must be sasrec";
  expect_refusal_line(run_gainlens({"hooks", checkpoint}), reason);
  expect_refusal_line(run_gainlens({"evaluate", "recommend", "--checkpoint", checkpoint, "--data", data_}), reason);
}

TEST_F(Recommend, ArmsAreComparedBySeed) {
  ASSERT_EQ(run_gainlens(training(run_, {"--arm", "plain,markov,popularity", "--seeds", "2"})).exit_code, 0);
  const ProgramResult compared = run_gainlens({"compare", run_, "--json"});
  ASSERT_EQ(compared.exit_code, 0) << compared.error;
  const Json arms = Json::parse(compared.out).at("comparisons");
  ASSERT_EQ(arms.size(), 2u);
  EXPECT_EQ(arms[0].at("baseline"), "plain");
  EXPECT_EQ(arms[1].at("candidate"), "markov");
  // Each seed of a baseline without training has the same ranks: the mean is that of its evaluation.
  const double markov = arms[1].at("metrics").at("hr@10").at("seeds").at("candidate").at("mean");
  const Json trained = Json::parse(run_gainlens(training(run_, {"--arm", "markov", "--seeds", "2", "--json"})).out);
  EXPECT_NEAR(markov, trained.at("seeds")[0].at("test").at("hr@10").get<double>(), 1e-6);
  const ProgramResult text = run_gainlens({"compare", run_ + ":popularity", run_ + ":markov", "--metrics", "hr@5"});
  EXPECT_THAT(text.out,
              AllOf(HasSubstr("markov against popularity on "), HasSubstr("2 seeds, 40 users"), HasSubstr("hr@5 ")));

  EXPECT_THAT(run_gainlens({"inspect", run_}).out,
              AllOf(HasSubstr("recommender run"), HasSubstr("6 of 6 trainings"), HasSubstr("plain, popularity, markov"),
                    HasSubstr("0, 1"), HasSubstr("ndcg@10"), HasSubstr("split checksum")));
  for (const char* command : {"sinks", "sink-vs-k", "audit"})
    expect_refusal_line(run_gainlens({command, run_}), "is a recommender run; gainlens report and compare read it");
}

TEST_F(Recommend, ARunIsReportedAsAPage) {
  ASSERT_EQ(run_gainlens(training(run_, {"--arm", "plain,popularity", "--seeds", "2"})).exit_code, 0);
  const ProgramResult trained = run_gainlens(training(run_, {"--seeds", "3", "--json"}));  // popularity lacks seed 2
  const ProgramResult reported = run_gainlens({"report", run_});
  ASSERT_EQ(reported.exit_code, 0) << reported.error;
  EXPECT_EQ(reported.out, run_ + "/report/report.html\n");
  const std::string page = bytes_of(run_ + "/report/report.html");
  EXPECT_THAT(page, AllOf(HasSubstr("5 of 6 trainings are finished: popularity lacks seed 2."),
                          HasSubstr("those of the preset paper, but batch 16 instead of 256, epochs 4 instead of 200, "
                                    "inner_width 16 instead of 256, width 8 instead of 64")));
  const Json summary = Json::parse(bytes_of(run_ + "/report/summary.json"));
  double sum = 0;
  const Json seeds = Json::parse(trained.out).at("seeds");
  for (const Json& seed : seeds) sum += seed.at("test").at("ndcg@5").get<double>();
  EXPECT_NEAR(summary.at("arms").at("plain").at("test").at("ndcg@5").at("mean").get<double>(), sum / 3, 1e-12);
  EXPECT_EQ(summary.at("comparisons").size(), 1u);

  const std::string out = folder_.path() / "page";
  const ProgramResult again = run_gainlens({"report", run_ + "/run.h5", "--out", out, "--json"});
  ASSERT_EQ(again.exit_code, 0) << again.error;
  EXPECT_EQ(Json::parse(again.out).at("report"), out + "/report.html");
  EXPECT_TRUE(bytes_of(out + "/report.html") == page);
  EXPECT_EQ(run_gainlens(training(run_, {"--seeds", "3", "--quiet"})).exit_code, 0);  // the page does not disturb it
}

TEST_F(Recommend, ReportsThatCannotBeMadeAreOneLine) {
  const std::string other = folder_.path() / "other", sweep = folder_.path() / "none";
  ASSERT_EQ(run_gainlens(training(run_, {"--arm", "markov"})).exit_code, 0);
  ASSERT_EQ(run_gainlens(training(other, {"--arm", "markov"})).exit_code, 0);
  expect_refusal_line(run_gainlens({"report", run_, other, "--out", folder_.path() / "o"}),
                      "are recommender runs; compare them: gainlens compare " + run_ + " " + other + " --out FOLDER");
  expect_refusal_line(run_gainlens({"report", sweep, run_, "--out", folder_.path() / "o"}),
                      run_ + " is a recommender run, and " + sweep + " is not; give one recommender run alone");
  expect_refusal_line(run_gainlens({"report", run_, "--at", "4k"}), "--at: is for sweeps, and " + run_);
  expect_refusal_line(run_gainlens({"report", run_, "--theory-margin", "0.5"}), "--theory-margin: is for sweeps");
  expect_refusal_line(run_gainlens({"report", run_, "--out", run_}), "is the folder of a run");
  std::filesystem::remove(other + "/run.h5");
  expect_refusal_line(run_gainlens({"report", other}), "has no run.h5: the training has not finished");
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "o"));
  EXPECT_FALSE(std::filesystem::exists(run_ + "/report"));
}

TEST_F(Recommend, AStoppedRunSaysWhatIsFinished) {
  ASSERT_EQ(run_gainlens(training(run_, {"--arm", "popularity,markov", "--seeds", "2"})).exit_code, 0);
  const std::string asked = bytes_of(run_ + "/trainings.json"), whole = bytes_of(run_ + "/run.h5");
  EXPECT_EQ(Json::parse(asked), Json::parse(R"({"popularity": [0, 1], "markov": [0, 1]})"));
  for (const char* file : {"/run.h5", "/run.h5.sha256", "/markov/seed-1/result.safetensors"})
    std::filesystem::remove(run_ + file);
  const ProgramResult inspected = run_gainlens({"inspect", run_});
  EXPECT_EQ(inspected.exit_code, 0) << inspected.error;
  EXPECT_THAT(inspected.out, AllOf(HasSubstr("3 of 4 trainings; run.h5 is written when"),
                                   HasSubstr("1 of 2 seeds finished"), HasSubstr("2 of 2 seeds finished")));
  const std::string result = run_ + "/markov/seed-0/result.safetensors", bytes = bytes_of(result);
  std::string changed = bytes;
  changed.back() = static_cast<char>(changed.back() ^ 1);
  write_file(result, changed);
  expect_refusal_line(run_gainlens({"inspect", run_}), "the file has changed since it was written");
  write_file(result, bytes);
  std::filesystem::remove(run_ + "/trainings.json");  // as earlier versions wrote it
  EXPECT_THAT(run_gainlens({"inspect", run_}).out, HasSubstr("3 of 4 trainings that have begun; run.h5 is written"));
  ASSERT_EQ(run_gainlens(training(run_, {"--arm", "markov", "--seeds", "2"})).exit_code, 0);
  ASSERT_EQ(run_gainlens(training(run_, {"--arm", "popularity", "--seeds", "2"})).exit_code, 0);
  EXPECT_EQ(bytes_of(run_ + "/trainings.json"), asked);
  EXPECT_EQ(bytes_of(run_ + "/run.h5"), whole);
}

TEST_F(Recommend, AComparisonIsWrittenAsAPage) {
  ASSERT_EQ(run_gainlens(training(run_, {"--arm", "popularity,markov", "--seeds", "2"})).exit_code, 0);
  const std::string out = folder_.path() / "page";
  const ProgramResult compared = run_gainlens({"compare", run_, "--out", out});
  ASSERT_EQ(compared.exit_code, 0) << compared.error;
  EXPECT_THAT(compared.error,
              AllOf(HasSubstr(out + "/report.html\n"), HasSubstr("left out: learning-curves: no arm is trained")));
  EXPECT_THAT(bytes_of(out + "/report.html"), HasSubstr("markov against popularity on ring"));
  for (const char* file : {"/summary.json", "/tables/comparison.csv", "/tables/gains.tex", "/tables/strata-items.tex"})
    EXPECT_TRUE(std::filesystem::exists(out + file)) << file;
  expect_refusal_line(run_gainlens({"compare", run_, "--out", run_}), "is the folder of a run");
}

TEST_F(Recommend, RunsThatDoNotFitEachOtherAreNotCompared) {
  const std::string other = folder_.path() / "other", longer = folder_.path() / "longer";
  ASSERT_EQ(run_gainlens(training(run_, {"--seeds", "2", "--arm", "markov"})).exit_code, 0);
  ASSERT_EQ(run_gainlens(training(other, {"--seeds", "2", "--seed", "7", "--arm", "markov"})).exit_code, 0);
  expect_refusal_line(run_gainlens({"compare", run_}), "one arm alone (markov)");
  expect_refusal_line(run_gainlens({"compare", run_ + ":plain", other}), "has no arm 'plain', but markov");
  const ProgramResult seeds = run_gainlens({"compare", run_ + ":markov", other + ":markov"});
  expect_refusal_line(seeds, "have the finished seeds 0, 1 and 7, 8; arms are paired by seed");
  EXPECT_EQ(run_gainlens({"compare", run_ + ":markov", other + ":markov", "--by-position"}).exit_code, 0);
  data_ = write_file(folder_.path() / "longer.txt", ring() + "one 1 2 3 4\n");
  ASSERT_EQ(run_gainlens(training(longer, {"--seeds", "2", "--arm", "markov"})).exit_code, 0);
  expect_refusal_line(run_gainlens({"compare", run_ + ":markov", longer + ":markov"}), "have different splits");
  expect_refusal_line(run_gainlens({"compare", run_, other, "--metrics", "hr@11"}), "'hr@11'; must be one of");
  expect_refusal_line(run_gainlens({"compare", folder_.path() / "none", other}), "no such file");
}

}  // namespace recommend_test
}  // namespace gainlens::testing
