#include "cli/tiny_checkpoint.h"
#include "support/program.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <ostream>

namespace gainlens::testing {
namespace bad_input_test {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Expects one line on stderr that begins with "gainlens: error: " and contains `text`, and the given exit code.
void expect_error(const ProgramResult& result, int exit_code, const std::string& text) {
  EXPECT_EQ(result.exit_code, exit_code) << result.error;
  EXPECT_THAT(result.error, StartsWith("gainlens: error: "));
  EXPECT_THAT(result.error, HasSubstr(text));
  EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
}

struct Case {
  std::string name;
  std::vector<std::string> arguments;  ///< arguments added to a sweep command that works
  std::string message;
};
void PrintTo(const Case& tested, std::ostream* out) {
  *out << tested.name;
}

class SweepRefuses : public ::testing::TestWithParam<Case> {
 protected:
  std::vector<std::string> sweep(const std::vector<std::string>& more) const {
    std::vector<std::string> words = {"sweep", tiny_checkpoint.string(), "--tokens", ids_, "--out", out()};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::string out() const { return folder_.path() / "run"; }

  TemporaryFolder folder_;
  std::string ids_ = write_ids(folder_.path(), 400);
};

TEST_P(SweepRefuses, WithOneLineAndNothingLeft) {
  expect_error(run_gainlens(sweep(GetParam().arguments)), 2, GetParam().message);
  EXPECT_FALSE(std::filesystem::exists(out())) << "a refused request must leave nothing behind";
}

INSTANTIATE_TEST_SUITE_P(
    Requests, SweepRefuses,
    ::testing::Values(
        Case{"zero_length",
             {"--lengths", "0"},
             "--lengths: 0; must be at least 4, so that the last quarter holds a query"},
        Case{"short_length", {"--lengths", "3"}, "--lengths: 3; must be at least 4"},
        Case{"negative_length", {"--lengths", "-64"}, "--lengths: -64; must be at least 4"},
        Case{"length_not_a_number", {"--lengths", "64,big"}, "--lengths: 'big' is not a count"},
        Case{"empty_length", {"--lengths", "64,"}, "--lengths: '' is not a count"},
        Case{"huge_length", {"--lengths", "99999999999999999999"}, "is not a count"},
        Case{"beyond_positions",
             {"--lengths", "256"},
             "--lengths: 256 exceeds the model's 128 positions; use shorter contexts, or --allow-extrapolation"},
        Case{"negative_samples", {"--lengths", "64", "--samples", "-1"}, "--samples: -1; must be at least 1"},
        Case{"zero_samples", {"--lengths", "64", "--samples", "0"}, "--samples: 0; must be at least 1"},
        Case{"samples_not_a_number", {"--lengths", "64", "--samples", "many"}, "--samples"},
        Case{"too_little_text", {"--lengths", "128", "--samples", "5"}, "400"},
        Case{"too_little_text_to_spread",
             {"--lengths", "64,128", "--samples", "5", "--spread"},
             "the text has 400 tokens, but 5 samples of length 128 (spread) need 640"},
        Case{"dtype",
             {"--lengths", "64", "--dtype", "flaot32"},
             "--dtype: 'flaot32'; must be float64, float32, bfloat16 or float16; did you mean 'float32'?"},
        Case{"statistics", {"--lengths", "64", "--statistics", "some"}, "--statistics: 'some'; must be all or none"},
        Case{"kernel",
             {"--lengths", "64", "--kernel", "fast"},
             "--kernel: 'fast'; must be auto, streaming, composed or fused-cuda"},
        Case{"kernel_not_offered",
             {"--lengths", "64", "--kernel", "fused-cuda"},
             "--kernel: 'fused-cuda' computes on a GPU; give --device cuda:0, or take auto"},
        Case{"kernel_without_statistics",
             {"--lengths", "64", "--statistics", "none", "--kernel", "composed"},
             "--kernel: needs --statistics all"},
        Case{"per_query_without_statistics",
             {"--lengths", "64", "--statistics", "none", "--per-query"},
             "--per-query: needs --statistics all"},
        Case{"layers", {"--lengths", "64", "--layers", "1:9"}, "--layers: 1:9; the model has layers 0:3"},
        Case{"layers_backwards", {"--lengths", "64", "--layers", "2:1"}, "--layers: 2:1"},
        Case{"layers_not_a_range", {"--lengths", "64", "--layers", "1"}, "--layers: '1'; write A:B"},
        Case{
            "stop_at_layer", {"--lengths", "64", "--stop-at-layer", "4"}, "--stop-at-layer: 4; the model has 3 layers"},
        Case{"stop_at_no_layer",
             {"--lengths", "64", "--stop-at-layer", "0"},
             "--stop-at-layer: 0; the model has 3 layers"},
        Case{"layers_beyond_the_stop",
             {"--lengths", "64", "--stop-at-layer", "1", "--layers", "0:2"},
             "--layers: 0:2 goes beyond --stop-at-layer 1"},
        Case{"bos", {"--lengths", "64", "--bos", "allways"}, "did you mean 'always'?"},
        Case{"threads", {"--lengths", "64", "--threads", "-2"}, "--threads: -2"},
        Case{"more_threads_than_end", {"--lengths", "64", "--threads", "999999"}, " on this machine, which has "},
        Case{"empty_lengths", {"--lengths", ""}, "--lengths: is empty; give it a value"},
        Case{"empty_text", {"--lengths", "64", "--text", ""}, "--text: is empty;"},
        Case{"empty_dtype", {"--lengths", "64", "--dtype", ""}, "--dtype: is empty;"},
        Case{"empty_layers", {"--lengths", "64", "--layers", ""}, "--layers: is empty;"},
        Case{"empty_threads", {"--lengths", "64", "--threads", ""}, "--threads: is empty;"},
        Case{"empty_seed", {"--lengths", "64", "--seed", ""}, "--seed: is empty;"},
        Case{"nothing_after_equals", {"--lengths", "64", "--text=", "--quiet"}, "--text: is empty;"},
        Case{"nothing_after_the_last_equals", {"--lengths", "64", "--dtype="}, "--dtype: is empty;"},
        Case{"an_option_as_value",
             {"--lengths", "64", "--text", "--quiet"},
             "--text: its value is missing, since '--quiet' is an option; put a value between them"},
        Case{"device", {"--lengths", "64", "--device", "tpu"}, "--device: 'tpu'; must be cpu or cuda:N"},
        Case{"cuda", {"--lengths", "64", "--device", "cuda:127"}, "--device: 'cuda:127'; "},
        Case{"misspelt_option", {"--lenghts", "64"}, "sweep: unknown option '--lenghts'; did you mean '--lengths'?"},
        Case{"surplus_argument", {"more", "--lengths", "64"}, "unexpected argument 'more'"},
        Case{"lengths_without_commas",
             {"--lengths", "32", "64"},
             "sweep: unexpected argument '64'; separate the numbers by commas: --lengths 32,64"},
        Case{"both_sources", {"--lengths", "64", "--text", "x.txt"}, "give either --text FILE or --tokens FILE.json"}),
    [](const auto& tested) { return tested.param.name; });

TEST(CommandLine, MisspeltSubcommand) {
  expect_error(run_gainlens({"sweeep"}), 2, "unknown subcommand 'sweeep'; did you mean 'sweep'?");
  expect_error(run_gainlens({"sweeep", "model", "--lengths", "64"}), 2,
               "unknown subcommand 'sweeep'; did you mean 'sweep'?");
  expect_error(run_gainlens({"--quiet", "reprot", "--out", "x"}), 2,
               "unknown subcommand 'reprot'; did you mean 'report'?");
}
TEST(CommandLine, NoSubcommand) {
  expect_error(run_gainlens({}), 2, "a subcommand is required; known are sweep");
}
TEST(CommandLine, SubcommandLeftOut) {
  expect_error(run_gainlens({"evaluate", tiny_checkpoint, "--text", "x.txt"}), 2,
               "evaluate: the subcommand is missing; write gainlens evaluate recommend|language-model " +
                   tiny_checkpoint.string().substr(0, 20));
  expect_error(run_gainlens({"train", "--config", "x.json"}), 2,
               "train: the subcommand is missing; write gainlens train recommend|finetune|language-model --config ...");
}
TEST(CommandLine, UnknownSubcommandFarFromAll) {
  expect_error(run_gainlens({"xylophone"}), 2, "known are sweep");
}
TEST(CommandLine, MisspeltGlobalOption) {
  expect_error(run_gainlens({"--quite", "sweep"}), 2, "unknown option '--quite'; did you mean '--quiet'?");
}
TEST(CommandLine, RequiredOptionMissing) {
  expect_error(run_gainlens({"sweep", "x"}), 2, "--out is required");
}

TEST(CommandLine, EmptyOutputIsNotTheNextOption) {
  const TemporaryFolder folder;
  const std::string sweep =
      QUOTED_PROGRAM " sweep " + shell_word(tiny_checkpoint) + " --tokens " + write_ids(folder.path(), 400).string();
  for (const char* out : {" --out= --quiet", " --quiet --out=", " --out ''", " --out=''"}) {
    expect_error(run_shell(sweep + out, folder.path()), 2, "--out: is empty; give it a value");
  }
  expect_error(run_shell(sweep + " --out --quiet", folder.path()), 2, "--out: its value is missing, since '--quiet'");
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "--quiet"));
}

TEST(CommandLine, EmptyArgumentsAreNamed) {
  expect_error(run_gainlens({"inspect", ""}), 2, "path: is empty; give it a value");
  expect_error(run_gainlens({"hooks", ""}), 2, "model: is empty;");
  expect_error(run_gainlens({"report", "run", ""}), 2, "runs: is empty;");
  expect_error(run_gainlens({"report", "run", "--out", ""}), 2, "--out: is empty;");
  expect_error(run_gainlens({"train", "language-model", "--text", "a", "", "--config", "b", "--out", "c"}), 2,
               "--text: is empty;");
  expect_error(run_gainlens({"--device", "", "hooks", tiny_checkpoint}), 2, "--device: is empty;");
  expect_error(run_gainlens({"inspect", tiny_checkpoint, "--unknown="}), 2, "unknown option '--unknown'");
}

TEST(CommandLine, PipesAndDevicesAreNeitherDataNorCheckpoints) {
  const TemporaryFolder folder;
  const std::string pipe = folder.path() / "pipe.csv", out = folder.path() / "out";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& given : {pipe, std::string("/dev/null")}) {
    const std::string said = given + ": not a regular file; pipes and devices are not read here";
    const ProgramResult inspected = run_gainlens({"inspect", given});
    expect_error(inspected, 2, said);
    EXPECT_EQ(inspected.out, "");
    expect_error(run_gainlens({"sweep", given, "--tokens", "ids.json", "--out", out}), 2, said);
    expect_error(run_gainlens({"train", "recommend", "--data", given, "--out", out}), 2, said);
    expect_error(run_gainlens({"train", "finetune", tiny_checkpoint, "--task", "squad", "--data", given, "--out", out}),
                 2, said);
  }
}

TEST(CommandLine, LengthsBelowTheLeastAreNoMatterOfTheCheckpoint) {
  const ProgramResult inspected = run_gainlens({"inspect", tiny_checkpoint, "--length", "0"});
  expect_error(inspected, 2, "--length: 0; must be at least 1");
  EXPECT_EQ(inspected.out, "");
  for (const char* length : {"0", "1"}) {
    expect_error(run_gainlens({"evaluate", "language-model", tiny_checkpoint, "--tokens", "x", "--length", length}), 2,
                 "must be at least 2, to predict one token from another");
  }
}

TEST(Input, ModelFolderMissing) {
  const TemporaryFolder folder;
  expect_error(run_gainlens({"sweep", folder.path() / "none", "--tokens", write_ids(folder.path(), 9), "--out",
                             folder.path() / "r"}),
               2, "none");
}

TEST(Input, NameOfTheHubThatIsNotInTheCache) {
  const TemporaryFolder folder;
  const ProgramResult result =
      run_shell("HF_HUB_CACHE=" + folder.path().string() + " " QUOTED_PROGRAM " sweep google/gemma-3-270m --tokens " +
                    write_ids(folder.path(), 9).string() + " --out r",
                folder.path());
  expect_error(result, 2, "run `hf download google/gemma-3-270m`");
}

TEST(Input, NameOfTheHubThatIsInTheCache) {
  const TemporaryFolder folder;
  const std::filesystem::path cache = folder.path() / "models--tiny--model";
  std::filesystem::create_directories(cache / "snapshots" / "abc");
  std::filesystem::create_directories(cache / "blobs");
  for (const auto& file : std::filesystem::directory_iterator(tiny_checkpoint))
    std::filesystem::create_symlink(file.path(), cache / "snapshots" / "abc" / file.path().filename());
  const std::string ids = write_ids(folder.path(), 64).string();
  for (const std::string& command :
       {std::string("inspect tiny/model"), std::string("hooks tiny/model"),
        "sweep tiny/model --tokens " + ids + " --lengths 16 --samples 1 --out run",
        "capture tiny/model --tokens " + ids + " --length 8 --hooks 'blocks.0.attn.hook_z' --out z.safetensors",
        "evaluate language-model tiny/model --tokens " + ids + " --length 16"}) {
    const ProgramResult result =
        run_shell("HF_HUB_CACHE=" + folder.path().string() + " " QUOTED_PROGRAM " --quiet " + command, folder.path());
    EXPECT_EQ(result.exit_code, 0) << command << ": " << result.error;
  }
}

TEST(Input, NeitherTextNorTokens) {
  const TemporaryFolder folder;
  expect_error(run_gainlens({"sweep", tiny_checkpoint, "--lengths", "4", "--out", folder.path() / "r"}), 2,
               "--text: there is no text, and there are no token ids; give either --text FILE or --tokens FILE.json");
}

TEST(Input, IdsOutsideTheVocabulary) {
  const TemporaryFolder folder;
  const auto ids = write_file(folder.path() / "ids.json", "[1, 2, 64, 3]");
  expect_error(run_gainlens({"sweep", tiny_checkpoint, "--tokens", ids, "--lengths", "4", "--samples", "1", "--out",
                             folder.path() / "r"}),
               2, "token id 64 at index 2 lies outside the model's vocabulary of 64");
}

TEST(Input, IdsThatAreNotIds) {
  const TemporaryFolder folder;
  for (const char* text : {"[1, -2]", "[1.5]", "{\"a\": 1}", "[1,", "", "[\"1\"]", "[99999999999]"}) {
    const auto ids = write_file(folder.path() / "ids.json", text);
    expect_error(
        run_gainlens({"sweep", tiny_checkpoint, "--tokens", ids, "--lengths", "4", "--out", folder.path() / "r"}), 2,
        "ids.json");
  }
}

TEST(Input, TokenizerMissingNamesTheWayRound) {
  const TemporaryFolder folder;
  const auto text = write_file(folder.path() / "text.txt", "some words");
  expect_error(run_gainlens({"sweep", tiny_checkpoint, "--text", text, "--lengths", "4", "--out", folder.path() / "r"}),
               2, "--tokens");
}

TEST(Input, MisspeltFamily) {
  const TemporaryFolder folder;
  const auto model = copy_checkpoint(folder.path());
  std::string edit =
      "sed -i 's/\"model_type\": \"llama\"/\"model_type\": \"lama\"/' " + (model / "config.json").string();
  ASSERT_EQ(run_shell(edit, "").exit_code, 0);
  expect_error(run_gainlens({"inspect", model}), 2, "did you mean 'llama'?");
}

TEST(Input, UnknownConfigKeyIsRefused) {
  const TemporaryFolder folder;
  const auto model = copy_checkpoint(folder.path());
  ASSERT_EQ(run_shell("sed -i 's/\"model_type\"/\"attention_chunk_size\": 2, \"model_type\"/' " +
                          (model / "config.json").string(),
                      "")
                .exit_code,
            0);
  expect_error(run_gainlens({"hooks", model}), 2, "attention_chunk_size");
}

TEST(Input, NaNInWeightsNamesTheTensor) {
  const TemporaryFolder folder;
  const auto model = copy_checkpoint(folder.path());
  // The last four bytes of the file belong to the last tensor; 0x7fc00000 is NaN.
  ASSERT_EQ(run_shell("truncate -s -4 model.safetensors; printf '\\x00\\x00\\xc0\\x7f' >> model.safetensors", model)
                .exit_code,
            0);
  expect_error(run_gainlens({"sweep", model, "--tokens", write_ids(folder.path(), 400), "--lengths", "64", "--out",
                             folder.path() / "r"}),
               2, "NaN");
}

TEST(Input, TruncatedWeights) {
  const TemporaryFolder folder;
  const auto model = copy_checkpoint(folder.path());
  ASSERT_EQ(run_shell("truncate -s -1 model.safetensors", model).exit_code, 0);
  expect_error(run_gainlens({"sweep", model, "--tokens", write_ids(folder.path(), 400), "--lengths", "64", "--out",
                             folder.path() / "r"}),
               2, "model.safetensors");
}

TEST(Output, FolderOfAnotherRun) {
  const TemporaryFolder folder;
  const std::string ids = write_ids(folder.path(), 400), out = folder.path() / "run";
  const std::vector<std::string> first = {
      "sweep", tiny_checkpoint, "--tokens", ids, "--lengths", "64", "--samples", "1", "--out", out, "--quiet"};
  ASSERT_EQ(run_gainlens(first).exit_code, 0);
  auto other = first;
  other.insert(other.end(), {"--dtype", "float64"});
  const auto result = run_gainlens(other);
  expect_error(result, 2, "float64");
  EXPECT_THAT(result.error, HasSubstr("float32"));
}

TEST(Output, FolderOfAnotherModelTextOrBos) {
  const TemporaryFolder folder;
  const std::string ids = write_ids(folder.path(), 400), out = folder.path() / "run";
  const auto other_ids = write_file(folder.path() / "others.json", "[5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]");
  const auto sweep = [&](const std::string& model, const std::string& tokens, const std::string& bos) {
    return run_gainlens({"sweep", model, "--tokens", tokens, "--bos", bos, "--lengths", "8", "--samples", "1", "--out",
                         out, "--quiet"});
  };
  const std::string model = tiny_checkpoint.string();
  const std::string gated = (tiny_checkpoint.parent_path() / "qwen3-gate-headwise").string();
  ASSERT_EQ(sweep(model, ids, "always").exit_code, 0);
  expect_error(sweep(gated, ids, "always"), 2,
               "the model is " + model + " in the stored request and " + gated + " in this one");
  expect_error(sweep(model, other_ids, "always"), 2,
               "the text is " + ids + " in the stored request and " + other_ids.string() + " in this one");
  expect_error(sweep(model, ids, "never"), 2,
               "--bos is \"BOS 1 at position 0 of every chunk (--bos always)\" in the stored request and \"no BOS "
               "(--bos never)\" in this one");
}

TEST(Output, RunOfAnotherStatisticsVersion) {
  const TemporaryFolder folder;
  const std::string out = folder.path() / "run";
  const std::vector<std::string> sweep = {
      "sweep",   tiny_checkpoint, "--tokens", write_ids(folder.path(), 400), "--lengths", "64", "--samples", "1",
      "--quiet", "--out",         out};
  ASSERT_EQ(run_gainlens(sweep).exit_code, 0);
  ASSERT_EQ(
      run_shell("sed -i 's/\"statistics_version\": [0-9]*/\"statistics_version\": 1/' request.json", out).exit_code, 0);
  expect_error(run_gainlens(sweep), 2,
               out +
                   ": made by another version of gainlens (statistics version 1, this one computes 4); sweep into a "
                   "new folder, or read it with report");
}

TEST(Output, FolderThatHoldsSomethingElse) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "notes");
  write_file(folder.path() / "notes/diary.txt", "dear diary");
  expect_error(run_gainlens({"sweep", tiny_checkpoint, "--tokens", write_ids(folder.path(), 400), "--lengths", "64",
                             "--out", folder.path() / "notes"}),
               2, "notes");
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "notes/diary.txt"));
}

TEST(Output, FileInPlaceOfTheFolder) {
  const TemporaryFolder folder;
  const auto file = write_file(folder.path() / "taken", "x");
  expect_error(run_gainlens({"sweep", tiny_checkpoint, "--tokens", write_ids(folder.path(), 400), "--lengths", "64",
                             "--out", file}),
               2, "taken");
}

TEST(Output, FullDiskKeepsFinishedShards) {
  const TemporaryFolder folder;
  const auto disk = folder.path() / "disk";
  std::filesystem::create_directories(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=600k") != 0)
    GTEST_SKIP() << "SKIPPED: cannot mount a small file system here (needs root)";
  const auto arguments = [&](const std::filesystem::path& out) {
    return std::vector<std::string>{"sweep",       tiny_checkpoint, "--tokens",  write_ids(folder.path(), 4000),
                                    "--lengths",   "64,128",        "--samples", "12",
                                    "--per-query", "--quiet",       "--out",     out};
  };
  const auto result = run_gainlens(arguments(disk / "run"));
  expect_error(result, 1, "No space left on device");
  std::size_t shards = 0;
  for (const auto& entry : std::filesystem::directory_iterator(disk / "run/shards")) {
    EXPECT_EQ(entry.path().extension(), ".h5") << "no half-written shard may stay behind";
    ++shards;
  }
  EXPECT_GT(shards, 0u);
  // With free space again, the same command continues and finishes.
  ASSERT_EQ(::mount("tmpfs", disk.c_str(), "tmpfs", MS_REMOUNT, "size=64m"), 0);
  const auto resumed = run_gainlens(arguments(disk / "run"));
  EXPECT_EQ(resumed.exit_code, 0) << resumed.error;
  ASSERT_EQ(::umount(disk.c_str()), 0);
}

TEST(Inspect, SaysNoWithTheReason) {
  const TemporaryFolder folder;
  const auto model = copy_checkpoint(folder.path());
  ASSERT_EQ(run_shell("truncate -s 100 model.safetensors", model).exit_code, 0);
  const auto result = run_gainlens({"inspect", model});
  expect_error(result, 2, "model.safetensors");
  EXPECT_THAT(result.out, HasSubstr("usable             no: "));
}

TEST(Report, OfSomethingThatIsNoRun) {
  const TemporaryFolder folder;
  expect_error(run_gainlens({"report", folder.path()}), 2, folder.path().string());
  expect_error(run_gainlens({"sink-vs-k", folder.path() / "none"}), 2, "none");
}

TEST(Report, OfACheckpointSaysToSweepItFirst) {
  for (const char* command : {"report", "sinks", "sink-vs-k", "audit", "check"}) {
    expect_error(run_gainlens({command, tiny_checkpoint}), 2,
                 "is a checkpoint, and a run is needed here; sweep it first: gainlens sweep ");
  }
}

TEST(Sinks, WrongRequestsAreOneLine) {
  const TemporaryFolder folder;
  const std::string run = folder.path() / "run", csv = folder.path() / "sinks.csv";
  ASSERT_EQ(run_gainlens({"sweep", tiny_checkpoint, "--tokens", write_ids(folder.path(), 400), "--lengths", "32",
                          "--samples", "1", "--out", run, "--quiet"})
                .exit_code,
            0);
  for (const char* threshold : {"0.05", "1.5", "nan", "-1"})
    expect_error(run_gainlens({"sinks", run, "--threshold", threshold}), 2, "--threshold: ");
  expect_error(run_gainlens({"sinks", run, "--threshold", "x"}), 2, "--threshold");
  expect_error(run_gainlens({"sinks", run, "--at", "64"}), 2, "--at: the run has no complete chunk of 64 tokens");
  expect_error(run_gainlens({"sinks", run, "--csv", run + "/sinks.csv"}), 2, "is the folder of a run");
  ASSERT_EQ(run_gainlens({"sinks", run, "--csv", csv}).exit_code, 0);
  expect_error(run_gainlens({"sinks", run, "--csv", csv}), 2, "exists; choose another name");
}

TEST(Audit, WrongRequestsAreOneLine) {
  const TemporaryFolder folder;
  expect_error(run_gainlens({"audit", folder.path()}), 2, folder.path().string());
  const std::string run = folder.path() / "run";
  ASSERT_EQ(run_gainlens({"sweep", tiny_checkpoint, "--tokens", write_ids(folder.path(), 400), "--lengths", "32",
                          "--samples", "1", "--out", run, "--quiet"})
                .exit_code,
            0);
  expect_error(run_gainlens({"audit", run, "--at", "64"}), 2, "--at: the run has no complete chunk of 64 tokens");
  expect_error(run_gainlens({"audit", run, "--alll"}), 2, "--all");

  std::fstream file(run + "/run.h5", std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(-5, std::ios::end);
  file.put('#');
  file.close();
  for (const char* command : {"audit", "sinks", "sink-vs-k", "report"})
    expect_error(run_gainlens({command, run}), 2, "its sha256 is");
}

TEST(Capture, IntoAFolderThatDoesNotExist) {
  const TemporaryFolder folder;
  expect_error(run_gainlens({"capture", tiny_checkpoint, "--tokens", write_ids(folder.path(), 16), "--hooks",
                             "hook_embed", "--out", folder.path() / "nodir/x"}),
               2, "--out: there is no folder " + (folder.path() / "nodir").string() + "; make it first");
}

TEST(Capture, IntoARun) {
  const TemporaryFolder folder;
  const std::string ids = write_ids(folder.path(), 400), run = folder.path() / "run";
  ASSERT_EQ(run_gainlens({"sweep", tiny_checkpoint, "--tokens", ids, "--lengths", "32", "--samples", "1", "--out", run,
                          "--quiet"})
                .exit_code,
            0);
  const auto capture = [&](const std::string& out) {
    return run_gainlens(
        {"capture", tiny_checkpoint, "--tokens", ids, "--length", "16", "--hooks", "hook_embed", "--out", out});
  };
  expect_error(capture(run + "/x"), 2, "--out: " + run + " is the folder of a run; choose another folder");
  expect_error(capture(run + "/shards/x"), 2, "--out: " + run + "/shards holds the shards of a run");
  EXPECT_FALSE(std::filesystem::exists(run + "/x") || std::filesystem::exists(run + "/shards/x"));
}

TEST(Capture, AWrongPatternIsNamedBeforeAnyWork) {
  const TemporaryFolder folder;
  expect_error(run_gainlens({"capture", tiny_checkpoint, "--tokens", write_ids(folder.path(), 400), "--hooks", "[",
                             "--out", folder.path() / "x"}),
               2, "hook pattern '[': the '[' at character 1 is never closed; write a set of characters as [ab]");
}

TEST(Capture, LengthsThatTextOrModelDoNotHave) {
  const TemporaryFolder folder;
  const auto capture = [&](int ids, std::vector<std::string> more) {
    std::vector<std::string> words = {"capture", tiny_checkpoint, "--tokens", write_ids(folder.path(), ids),
                                      "--hooks", "hook_embed",    "--out",    folder.path() / "a.safetensors"};
    words.insert(words.end(), more.begin(), more.end());
    return run_gainlens(words);
  };
  expect_error(capture(14, {"--length", "256"}), 2, "--length: the text has 14 tokens; --length 256 needs 256");
  expect_error(capture(14, {"--length", "256", "--bos", "always"}), 2,
               "--length: the text has 15 tokens with BOS; --length 256 needs 256");
  expect_error(capture(400, {}), 2,
               "--length: the text has 400 tokens, and the model has 128 positions; give --length 128 or less");
  expect_error(capture(400, {"--length", "256"}), 2, "--length: 256 exceeds the model's 128 positions");
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "a.safetensors"));
}

TEST(Capture, GlobThatMatchesNothing) {
  const TemporaryFolder folder;
  expect_error(run_gainlens({"capture", tiny_checkpoint, "--tokens", write_ids(folder.path(), 400), "--length", "16",
                             "--hooks", "blocks.*.atn.hook_q", "--out", folder.path() / "a.safetensors"}),
               2, "blocks.*.atn.hook_q");
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "a.safetensors"));
}

}  // namespace bad_input_test
}  // namespace gainlens::testing
