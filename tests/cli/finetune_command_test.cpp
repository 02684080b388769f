#include "cli/tiny_checkpoint.h"
#include "core/json.h"
#include "support/file_bytes.h"
#include "support/program.h"
#include "support/refused_call.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace gainlens::testing {
namespace finetune_command_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Words = std::vector<std::string>;

const std::string demo = GAINLENS_SOURCE_DIR "/data/demo/gated";

class TrainFinetune : public ::testing::Test {
 protected:
  std::string questions(int count) const {
    std::string lines;
    for (int i = 0; i < count; ++i) {
      const std::string color = i % 3 == 0 ? "red" : i % 3 == 1 ? "green" : "blue";
      lines += Json{{"prompt", "Number " + std::to_string(i) + " is " + color + ". What is it?"}, {"answers", {color}}}
                   .dump() +
               "\n";
    }
    return write_file(folder_.path() / "questions.jsonl", lines);
  }
  Words command(const Words& more, const std::string& rows = "8") const {
    Words words = {"train", "finetune", demo, "--task", questions(30), "--train-rows", rows};
    const Words rest = {"--validation-rows", "3", "--test-rows", "4", "--learning-rate", "1e-3"};
    words.insert(words.end(), rest.begin(), rest.end());
    words.insert(words.end(), {"--max-new", "3", "--out", out()});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::string out() const { return folder_.path() / "run"; }
  TemporaryFolder folder_;
};

TEST_F(TrainFinetune, PrintsATableAndKeepsARunThatOthersRead) {
  const ProgramResult made = run_gainlens(command({"--arm", "sft,focal", "--noise", "0", "40", "--seeds", "2"}));
  ASSERT_EQ(made.exit_code, 0) << made.error;
  EXPECT_EQ(std::count(made.out.begin(), made.out.end(), '\n'), 6);
  EXPECT_THAT(made.out, AllOf(HasSubstr("sft/np0"), HasSubstr("focal/np40"), HasSubstr("exact match")));
  EXPECT_THAT(made.error, HasSubstr("8 rows to learn from, 3 to choose the best epoch by, 4 to test on"));
  const ProgramResult again =
      run_gainlens(command({"--arm", "sft,focal", "--noise", "0", "40", "--seeds", "2", "--quiet", "--json"}));
  const Json json = Json::parse(again.out);
  ASSERT_EQ(json.at("trainings").size(), 8u);
  for (const Json& one : json.at("trainings")) {
    EXPECT_EQ(one.at("seconds"), 0.0);
    EXPECT_TRUE(one.at("metrics").contains("f1"));
  }
  const auto compare = [&] { return run_gainlens({"compare", out(), "--baseline", "sft/np0", "--resamples", "50"}); };
  const ProgramResult compared = compare();
  EXPECT_EQ(compared.exit_code, 0) << compared.error;
  EXPECT_THAT(compared.out, HasSubstr("2 seeds, 4 questions"));
  EXPECT_THAT(run_gainlens({"inspect", out()}).out, HasSubstr("questions.jsonl (4 questions)"));
  const std::string job = out() + "/focal/np40/seed-1";
  EXPECT_EQ(run_gainlens({"generate", job, "--prompt", "Number 3 is", "--max-new", "2"}).exit_code, 0);
  // A report says what of the run it could not prove, and refuses what contradicts it.
  const auto report = [&] { return run_gainlens({"report", out(), "--out", folder_.path() / "page"}); };
  const ProgramResult proven = report();
  ASSERT_EQ(proven.exit_code, 0) << proven.error;
  EXPECT_THAT(proven.error, Not(HasSubstr("warning")));
  EXPECT_EQ(compared.error, "");
  // What is compared is said in the same words.
  const auto expect_warned = [&](const std::string& sentence) {
    const std::string warning = "gainlens: warning: " + out() + ": " + sentence;
    EXPECT_THAT(report().error, HasSubstr(warning));
    const ProgramResult again = compare();
    EXPECT_EQ(again.exit_code, 0);
    EXPECT_THAT(again.error, StartsWith(warning));
    EXPECT_EQ(std::count(again.error.begin(), again.error.end(), '\n'), 1) << again.error;
    EXPECT_EQ(again.out, compared.out);
  };
  const std::filesystem::path run = out();
  std::filesystem::rename(run / "focal/np40/seed-1", folder_.path() / "seed");
  expect_warned("The folders of 1 of 8 trainings are not there: their results were not compared.");
  EXPECT_THAT(bytes_of(folder_.path() / "page/report.html"),
              AllOf(HasSubstr("proven. The folders of 1 of 8 trainings are not there"), HasSubstr("What was run")));
  std::filesystem::rename(folder_.path() / "seed", run / "focal/np40/seed-1");
  std::filesystem::rename(run / "request.json", folder_.path() / "request");
  expect_warned("There is no request.json");
  write_file(run / "request.json", "{}");
  expect_refused(report(),
                 "request.json: is not the request in run.h5; put the right file back, it is the text "
                 "/request of run.h5");
  expect_refused(compare(), "request.json: is not the request in run.h5");
  std::filesystem::rename(folder_.path() / "request", run / "request.json");
  std::filesystem::rename(run / "run.h5.sha256", folder_.path() / "sum");
  expect_warned("run.h5 has no checksum beside it");
  std::filesystem::rename(folder_.path() / "sum", run / "run.h5.sha256");
  std::filesystem::copy_file(run / "sft/np0/seed-0/result.safetensors", run / "sft/np0/seed-1/result.safetensors",
                             std::filesystem::copy_options::overwrite_existing);
  expect_refused(report(), "not the result of arm sft/np0, seed 1");
  expect_refused(compare(), "not the result of arm sft/np0, seed 1");
}

TEST_F(TrainFinetune, ASmallFileIsSplitWhereTheSizesAreDefaults) {
  const ProgramResult made = run_gainlens(
      {"train", "finetune", demo, "--task", questions(30), "--max-new", "1", "--epochs", "1", "--out", out()});
  ASSERT_EQ(made.exit_code, 0) << made.error;
  EXPECT_THAT(made.error, AllOf(HasSubstr("--train-rows: 18, because the file has 30 questions (the default is 1000)"),
                                HasSubstr("--validation-rows: 6, because"),
                                HasSubstr("18 rows to learn from, 6 to choose the best epoch by, 6 to test on")));
  EXPECT_THAT(
      run_gainlens({"train", "finetune", demo, "--task", questions(30), "--train-rows", "1000", "--out", out() + "2"})
          .error,
      HasSubstr("--train-rows: 1000 questions; only 30 are left for it"));
}

TEST_F(TrainFinetune, ItsRunIsChecked) {
  ASSERT_EQ(run_gainlens(command({"--arm", "sft,gate", "--seeds", "3", "--lora-rank", "2", "--lora-targets", "q,v"}))
                .exit_code,
            0);
  const auto check = [&] { return run_gainlens({"check", out()}); };
  const ProgramResult sound = check();
  EXPECT_EQ(sound.exit_code, 0) << sound.out << sound.error;
  EXPECT_THAT(sound.out, AllOf(HasSubstr("the files of every training are as it wrote them"),
                               HasSubstr("all 6 trainings are finished"), HasSubstr("every arm has 1 level"),
                               HasSubstr("every finished training has 2 scores of 4 questions"),
                               HasSubstr("every metric is the mean of its scores")));
  // The adapter of one arm, and the whole checkpoint of the other.
  for (const char* name : {"sft/np0/seed-1/adapter_model.safetensors", "gate/np0/seed-2/config.json"}) {
    const std::string file = out() + "/" + name, bytes = bytes_of(file);
    std::string changed = bytes;
    changed.back() ^= 1;
    write_file(file, changed);
    const ProgramResult found = check();
    EXPECT_EQ(found.exit_code, 1);
    EXPECT_THAT(found.out, HasSubstr("found: " + file + ": its sha256 is "));
    EXPECT_THAT(found.error, HasSubstr("1 of 9 checks found something"));
    write_file(file, bytes);
  }
  std::filesystem::remove(out() + "/sft/np0/seed-0/adapter_config.json");
  EXPECT_THAT(check().out, HasSubstr("adapter_config.json of this training is missing; put it back"));
  // All files are named.
  const std::string other = out() + "/gate/np0/seed-2/predictions.jsonl", good = bytes_of(other);
  write_file(other, good + "\n");
  EXPECT_THAT(check().out, HasSubstr(". And 1 other file: " + other));
  write_file(other, good);

  // One training alone.
  const std::string sane = out() + "/gate/np0/seed-2", broken = out() + "/sft/np0/seed-0";
  const ProgramResult alone = run_gainlens({"check", sane});
  EXPECT_EQ(alone.exit_code, 0) << alone.out << alone.error;
  EXPECT_THAT(alone.out, AllOf(HasSubstr("the only training is finished"), HasSubstr("not known: how many seeds"),
                               HasSubstr("not known: which levels"),
                               HasSubstr("every finished training has 2 scores of 4 questions")));
  const ProgramResult one = run_gainlens({"check", broken});
  EXPECT_EQ(one.exit_code, 1);
  EXPECT_THAT(one.out, HasSubstr("adapter_config.json of this training is missing"));

  // Several in one call: each under its name, and the worst exit status.
  const ProgramResult two = run_gainlens({"check", sane, broken});
  EXPECT_EQ(two.exit_code, 1);
  EXPECT_THAT(two.out, AllOf(StartsWith(sane + "\nfiles "), HasSubstr("\n\n" + broken + "\nfiles ")));
  EXPECT_EQ(two.error, "gainlens: error: check: something was found in 1 of 2 runs: " + broken + "\n");
  const ProgramResult three = run_gainlens({"check", out() + "-none", broken, sane, "--json"});
  expect_refusal_line(three, "check: 1 of 3 runs cannot be read: " + out() + "-none");
  const Json runs = Json::parse(three.out).at("runs");
  EXPECT_THAT(runs.at(0).at("unreadable").get<std::string>(), HasSubstr("no such file or folder"));
  EXPECT_EQ(runs.at(1).at("checks").at(0).at("ok"), false);
  EXPECT_EQ(runs.at(2).at("run"), sane);
  EXPECT_EQ(run_gainlens({"check", sane, out() + "/sft/np0/seed-1"}).exit_code, 0);

  // A changed checkpoint is not used.
  const std::string weights = out() + "/gate/np0/seed-1/model.safetensors";
  std::string bytes = bytes_of(weights);
  bytes.back() ^= 1;
  write_file(weights, bytes);
  const std::string text = write_file(folder_.path() / "text.txt", "Number 3 is red."),
                    job = out() + "/gate/np0/seed-1";
  for (const Words& words : {Words{"evaluate", "language-model", job, "--text", text},
                             Words{"sweep", job, "--text", text, "--lengths", "8", "--out", out() + "-sweep"},
                             Words{"generate", job, "--prompt", "Number 3", "--max-new", "1"}})
    expect_refused(run_gainlens(words), weights + ": its sha256 is ");
}

TEST_F(TrainFinetune, TheLossesBeforeAFilterIsTrainedAreSaidStoredAndReported) {
  const ProgramResult made = run_gainlens(command({"--arm", "sft,bft", "--epochs", "1", "--json"}));
  ASSERT_EQ(made.exit_code, 0) << made.error;
  EXPECT_THAT(made.error, HasSubstr("bft/np0 seed 0: the held-out loss before training is "));
  EXPECT_THAT(made.error, HasSubstr(" with the filter in force"));
  EXPECT_THAT(made.error, Not(HasSubstr("sft/np0 seed 0: the held-out loss")));
  const Json trainings = Json::parse(made.out).at("trainings");
  EXPECT_FALSE(trainings.at(0).at("metrics").contains("start_loss"));
  const Json& metrics = trainings.at(1).at("metrics");
  EXPECT_GT(metrics.at("start_loss_with_filter"), metrics.at("start_loss"));
  const ProgramResult report = run_gainlens({"report", out()});
  ASSERT_EQ(report.exit_code, 0) << report.error;
  EXPECT_THAT(bytes_of(out() + "/report/tables/start.csv"), HasSubstr("bft/np0,0,"));
  EXPECT_THAT(bytes_of(out() + "/report/tables/noise-levels.csv"), Not(HasSubstr("start_loss")));
  EXPECT_EQ(run_gainlens({"compare", out(), "--baseline", "sft/np0", "--resamples", "50"}).exit_code, 0);
}

TEST_F(TrainFinetune, AnotherRequestIsRefused) {
  ASSERT_EQ(run_gainlens(command({"--epochs", "1", "--quiet"})).exit_code, 0);
  expect_refused(run_gainlens(command({"--epochs", "3", "--quiet"})), "epochs");
  expect_refused(run_gainlens(command({"--epochs", "1", "--lora-rank", "2", "--quiet"})),
                 "/training/lora is absent in the stored request");
}

TEST_F(TrainFinetune, NothingIsWrittenAmongCheckpoints) {
  ASSERT_EQ(run_gainlens(command({"--epochs", "1", "--quiet"})).exit_code, 0);
  const std::string job = out() + "/sft/np0/seed-0";
  const auto refused = [&](const std::string& model, const std::string& folder, const std::string& reason) {
    expect_refused(run_gainlens({"train", "finetune", model, "--task", "squad", "--data", "no-such-file", "--out",
                                 folder, "--quiet"}),
                   "--out: " + folder + reason);
    EXPECT_FALSE(std::filesystem::exists(job + "/more"));
  };
  const std::string among = " lies among the checkpoints of the run " + out();
  refused(demo, job, among);
  refused(demo, job + "/more", among);
  refused(demo, out() + "/sft/np0/seed-1", among);
  refused(demo, out() + "/sft/np0", among);
  refused(demo, out() + "/sft", among);
  const std::string ids = write_ids(folder_.path(), 64);
  for (const Words& words :
       {Words{"sweep", job, "--tokens", ids, "--lengths", "32"},
        Words{"intervene", job, "--tokens", ids, "--lengths", "16", "--each-layer"},
        Words{"gate-arms", job, "--tokens", ids, "--calibration", ids, "--trained-length", "16"}}) {
    Words there = words;
    there.insert(there.end(), {"--out", job + "/more"});
    expect_refused(run_gainlens(there), "--out: " + job + "/more" + among);
  }
  expect_refused(run_gainlens({"compare", job}), "is one training of the run " + out() + "; give the run");
  expect_refused(run_gainlens({"report", job}),
                 "is a checkpoint, and a run is needed here; give " + out() + ", the run of its training, or sweep it");
  refused(demo, demo, " lies in the folder of the model, " + demo);
  refused(demo, demo + "/more/deeper", " lies in the folder of the model");
  refused(demo, demo + "/../gated/more", " lies in the folder of the model");
  // Beside the model, and in the run itself, is no reason.
  for (const std::string& folder : {demo + "-more", out()})
    expect_refused(run_gainlens({"train", "finetune", demo, "--task", "squad", "--data", "no-such-file", "--out",
                                 folder, "--quiet"}),
                   "no-such-file");
}

TEST_F(TrainFinetune, AnAdapterIsMergedOnRequest) {
  std::vector<std::string> weights;
  for (const Words& more : {Words{"--lora-merge"}, Words{"--lora-merge=true"}, Words{}}) {
    Words words = more;
    words.insert(words.end(), {"--lora-rank", "2", "--epochs", "1", "--quiet", "--dtype", "fp32"});
    ASSERT_EQ(run_gainlens(command(words)).exit_code, 0);
    weights.push_back(std::filesystem::exists(out() + "/sft/np0/seed-0/model.safetensors") ? "whole" : "adapter");
    std::filesystem::remove_all(out());
  }
  EXPECT_EQ(weights, (Words{"whole", "whole", "adapter"}));
}

TEST_F(TrainFinetune, BadInputIsRefusedInOneLine) {
  const auto refused = [&](const Words& words, const std::string& reason) {
    Words quiet = words;
    quiet.emplace_back("--quiet");
    const ProgramResult result = run_gainlens(quiet);
    EXPECT_EQ(result.exit_code, 2) << result.error;
    EXPECT_THAT(result.error, HasSubstr("gainlens: error: ")) << reason;
    EXPECT_THAT(result.error, HasSubstr(reason));
    EXPECT_FALSE(std::filesystem::exists(out()));
  };
  const Words base = {"train", "finetune", demo, "--out", out()};
  const auto with = [&](Words more) {
    more.insert(more.begin(), base.begin(), base.end());
    return more;
  };
  refused(with({"--task", "squad"}), "--data: is missing");
  refused(with({"--task", "sqaud", "--data", "x"}), "--data: --task names the file already");
  refused(with({"--task", "text.txt"}), "must be squad, nq or a file *.jsonl");
  refused(with({"--task", "squad", "--data", questions(2)}), "questions.jsonl");
  refused(command({"--arm", "dpo"}), "--arm: 'dpo'; must be one of sft");
  refused(command({"--noise", "-1"}), "--noise: -1");
  refused(command({"--noise", "0,,40"}), "--noise: '0,,40' holds an empty name");
  refused(command({"--noise", "0", "half"}), "--noise: 'half' is no finite number");
  refused(command({}, "100"), "--train-rows: 100 questions; only");
  refused(command({"--max-length", "4"}), "longer than 4 tokens");
  refused(command({"--epochs", "0"}), "--epochs: 0");
  // Values are refused before the data are read.
  const auto unread = [&](const Words& more) {
    Words words = with({"--task", "squad", "--data", "no-such-file"});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  refused(unread({}), "no-such-file");
  refused(unread({"--batch", "0"}), "--batch: 0");
  refused(unread({"--arm", "dpo"}), "--arm: 'dpo'");
  refused(unread({"--train-rows", "0"}), "--train-rows: 0");
  refused(with({"--task", "nq", "--data", "no-such-file", "--passages", "0"}), "--passages: 0");
  // Options that would change nothing, also where they are the default.
  refused(unread({"--passages", "5"}), "--passages: is an option of --task nq");
  refused(with({"--task", "nq", "--data", "no-such-file", "--passages", "5"}), "no-such-file");
  refused(unread({"--arm", "sft,focal", "--precision-learning-rate", "100"}),
          "--precision-learning-rate: is an option of the filter; give --arm bft too");
  refused(unread({"--arm", "sft,gate", "--precision-learning-rate", "10"}),
          "--precision-learning-rate: is an option of the filter; give --arm bft too");
  refused(unread({"--arm", "sft,bft", "--precision-learning-rate", "2000000"}), "--precision-learning-rate: 2000000");
  refused(unread({"--arm", "sft,bft", "--precision-learning-rate", "10"}), "no-such-file");
  refused(unread({"--lora-rank", "-1"}), "--lora-rank: -1");
  refused(unread({"--lora-rank", "2", "--lora-alpha", "0"}), "--lora-alpha: 0");
  refused(unread({"--lora-merge"}), "--lora-rank, which is 0");
  // It takes no value, so that the model may follow it.
  refused({"train", "finetune", "--lora-merge", demo, "--lora-rank", "2", "--task", "squad", "--data", "no-such-file",
           "--out", out()},
          "no-such-file");
  refused(unread({"--dtype", "fp16"}), "--dtype: 'float16'; must be float32 or bfloat16");
  refused(unread({"--dtype", "bf17"}), "--dtype: 'bf17'; must be float64, float32, bfloat16 or float16");
  refused(unread({"--spread", "rows"}), "--spread: 'rows'");
}

}  // namespace finetune_command_test
}  // namespace gainlens::testing
