#include "cli/tiny_checkpoint.h"
#include "runfile/run_proof.h"
#include "support/file_bytes.h"
#include "support/program.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace gainlens::testing {
namespace commands_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Commands : public ::testing::Test {
 protected:
  std::vector<std::string> sweep(std::vector<std::string> more) const {
    std::vector<std::string> words = {
        "sweep",  tiny_checkpoint.string(), "--tokens", ids_, "--lengths", "32,64", "--samples", "2", "--out", run_,
        "--quiet"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  TemporaryFolder folder_;
  std::string ids_ = write_ids(folder_.path(), 400);
  std::string run_ = folder_.path() / "run";
};

TEST_F(Commands, SweepThenRerunThenExtend) {
  const auto first = run_gainlens(sweep({}));
  ASSERT_EQ(first.exit_code, 0) << first.error;
  EXPECT_THAT(first.out, HasSubstr("run.h5: 4 of 4 chunks computed"));
  EXPECT_THAT(run_gainlens(sweep({})).out, HasSubstr("run.h5: complete, nothing to do (4 chunks)"));
  const auto extended = run_gainlens(sweep({"--samples", "3"}));
  // CLI11 accepts an option only once, so the extension needs another command line.
  EXPECT_EQ(extended.exit_code, 2);
  const auto more = run_gainlens(
      {"sweep", tiny_checkpoint, "--tokens", ids_, "--lengths", "32,64", "--samples", "3", "--out", run_, "--json"});
  ASSERT_EQ(more.exit_code, 0) << more.error;
  EXPECT_THAT(more.error, HasSubstr("gainlens: " + run_ + ": 4 of 6 chunks were measured by an earlier call\n"));
  EXPECT_THAT(first.error, Not(HasSubstr("by an earlier call")));
  const auto outcome = nlohmann::json::parse(more.out);
  EXPECT_EQ(outcome.at("chunks"), 6);
  EXPECT_EQ(outcome.at("computed"), 2);
}

TEST_F(Commands, TheTheorysMarginIsChosenAndStored) {
  ASSERT_EQ(run_gainlens(sweep({})).exit_code, 0);
  const auto wrong = run_gainlens({"report", run_, "--theory-margin", "1"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.error,
              HasSubstr("--theory-margin: 1; it is a share of K above 0 and below 1, such as 0.01 for 1%"));
  const auto report = run_gainlens({"report", run_, "--theory-margin", "0.02", "--json"});
  ASSERT_EQ(report.exit_code, 0) << report.error;
  const auto summary = nlohmann::json::parse(bytes_of(nlohmann::json::parse(report.out)["summary"].get<std::string>()));
  EXPECT_EQ(summary["gain_theory"]["margin"], 0.02);
  EXPECT_EQ(summary["gain_theory"]["paper_max_relative_error"], 0.0028);
  EXPECT_THAT(summary["gain_theory"]["unseen_text_reason"],
              HasSubstr("not testable: 2 chunks are complete at every length"));
}

TEST_F(Commands, SweepWithoutStatisticsStoresTheLikelihoodAlone) {
  ASSERT_EQ(run_gainlens(sweep({"--statistics", "none"})).exit_code, 0);
  EXPECT_THAT(run_gainlens({"inspect", run_}).out,
              AllOf(HasSubstr("statistics         none"), HasSubstr("usable             yes")));
}

TEST_F(Commands, SweepOfARangeOfLayersWithoutLikelihood) {
  ASSERT_EQ(run_gainlens(sweep({"--layers", "0:1", "--no-nll"})).exit_code, 0);
  EXPECT_THAT(run_gainlens({"inspect", run_, "--json"}).out, HasSubstr("\"layers\": [\n    0\n  ]"));
}

TEST_F(Commands, StopAtLayerIsTheRangeUpToItWithoutLikelihood) {
  ASSERT_EQ(run_gainlens(sweep({"--stop-at-layer", "2"})).exit_code, 0);
  const std::string range = folder_.path() / "range";
  ASSERT_EQ(run_gainlens({"sweep", tiny_checkpoint, "--tokens", ids_, "--lengths", "32,64", "--samples", "2", "--out",
                          range, "--quiet", "--layers", "0:2", "--no-nll"})
                .exit_code,
            0);
  for (const char* file : {"/run.h5", "/request.json", "/manifest.jsonl"})
    EXPECT_TRUE(bytes_of(run_ + file) == bytes_of(range + file)) << file;
  EXPECT_THAT(run_gainlens(sweep({"--stop-at-layer", "2", "--layers", "0:2"})).out,
              HasSubstr("complete, nothing to do"));
}

const std::filesystem::path linear_checkpoint = tiny_checkpoint.parent_path() / "qwen3-next";

TEST_F(Commands, LayersOfLinearAttentionAreNamedAndNotMeasured) {
  const std::vector<std::string> words = {"sweep", linear_checkpoint, "--tokens", ids_,    "--lengths",
                                          "32,64", "--samples",       "2",        "--out", run_};
  const auto swept = run_gainlens(words);
  ASSERT_EQ(swept.exit_code, 0) << swept.error;
  EXPECT_THAT(swept.error,
              HasSubstr("2 of 4 layers have linear attention (the gated delta rule) and no attention weights: they are "
                        "computed and not measured. Measured are layers 1, 3"));
  const auto run = nlohmann::json::parse(run_gainlens({"inspect", run_, "--json"}).out);
  EXPECT_EQ(run.at("layers"), (std::vector<int>{1, 3}));
  for (const char* command : {"audit", "sink-vs-k", "report"})
    EXPECT_EQ(run_gainlens({command, run_}).exit_code, 0) << command;
  const auto summary = nlohmann::json::parse(bytes_of(run_ + "/report/summary.json"));
  EXPECT_EQ(summary["run"]["layers"], (std::vector<int>{1, 3}));
  const auto inspected = run_gainlens({"inspect", linear_checkpoint.string()});
  EXPECT_THAT(
      inspected.out,
      AllOf(HasSubstr("0 gated delta rule, 1 global, and so on every 2 layers"),
            HasSubstr("2 of 4 layers, by the gated delta rule: 2 key heads of 8 dimensions, 4 value heads of 6"),
            HasSubstr("4, of which each token uses 2, and one that every token uses")));
  EXPECT_THAT(run_gainlens({"hooks", linear_checkpoint.string()}).out,
              AllOf(Not(HasSubstr("blocks.0.attn.")), HasSubstr("blocks.1.attn.hook_gate")));
}

TEST_F(Commands, LayersOfLinearAttentionAloneAreRefused) {
  const auto refused = [&](const std::vector<std::string>& more, const char* message) {
    std::vector<std::string> words = {"sweep", linear_checkpoint, "--tokens", ids_, "--lengths", "32", "--out", run_};
    words.insert(words.end(), more.begin(), more.end());
    const auto result = run_gainlens(words);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.error, HasSubstr(message));
  };
  refused(
      {"--layers", "2:3"},
      "--layers: layers 2:3 have linear attention (the gated delta rule) and no attention weights to measure; layers "
      "with attention weights: 1, 3");
  refused({"--stop-at-layer", "1"}, "--stop-at-layer: layers 0:1 have linear attention");
  const auto part = run_gainlens({"sweep", linear_checkpoint, "--tokens", ids_, "--lengths", "32", "--samples", "1",
                                  "--out", run_, "--layers", "0:2", "--no-nll"});
  ASSERT_EQ(part.exit_code, 0) << part.error;
  EXPECT_THAT(part.error, HasSubstr("Measured is layer 1"));
}

TEST_F(Commands, StopAtTheLastLayerIsAllOfThem) {
  ASSERT_EQ(run_gainlens(sweep({})).exit_code, 0);
  EXPECT_THAT(run_gainlens(sweep({"--stop-at-layer", "3"})).out, HasSubstr("complete, nothing to do"));
}

TEST_F(Commands, StreamedWeightsGiveTheSameRunByteForByte) {
  ASSERT_EQ(run_gainlens(sweep({})).exit_code, 0);
  const std::string streamed = folder_.path() / "streamed";
  const auto outcome = run_gainlens({"sweep", tiny_checkpoint, "--tokens", ids_, "--lengths", "32,64", "--samples", "2",
                                     "--out", streamed, "--quiet", "--stream-weights"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
  for (const char* file : {"run.h5", "request.json", "manifest.jsonl"}) {
    EXPECT_EQ(bytes_of(std::filesystem::path(streamed) / file), bytes_of(std::filesystem::path(run_) / file)) << file;
  }
}

TEST_F(Commands, ARunKeepsToTheKernelItWasBegunWith) {
  ASSERT_EQ(run_gainlens(sweep({"--kernel", "composed"})).exit_code, 0);
  EXPECT_THAT(run_gainlens(sweep({"--kernel", "composed"})).out, HasSubstr("complete, nothing to do"));
  const auto other = run_gainlens(sweep({}));
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.error, AllOf(HasSubstr("cpu:composed"), HasSubstr("device")));
}

TEST_F(Commands, StreamingIsTheKernelOfTheCpu) {
  ASSERT_EQ(run_gainlens(sweep({})).exit_code, 0);
  EXPECT_THAT(run_gainlens(sweep({"--kernel", "streaming"})).out, HasSubstr("complete, nothing to do"));
}

TEST_F(Commands, EveryEstimatorOfASweepIsStoredReportedAndKept) {
  for (const std::string name : {"reml_naive", "reml_conjugate", "sandwich", "kish", "delta_weight_free"}) {
    SCOPED_TRACE(name);
    const std::string run = folder_.path() / name;
    std::vector<std::string> words = sweep({"--estimator", name});
    *(std::find(words.begin(), words.end(), "--out") + 1) = run;
    if (name == "delta_weight_free") words.insert(words.end(), {"--score-noise", "0.2"});
    const auto made = run_gainlens(words);
    ASSERT_EQ(made.exit_code, 0) << made.error;
    EXPECT_THAT(run_gainlens(words).out, HasSubstr("complete, nothing to do"));
    EXPECT_THAT(run_gainlens({"inspect", run}).out, HasSubstr(name));
    const std::string page = folder_.path() / (name + "-report");
    const auto reported = run_gainlens({"report", run, "--out", page});
    ASSERT_EQ(reported.exit_code, 0) << reported.error;
    const auto summary = nlohmann::json::parse(bytes_of(std::filesystem::path(page) / "summary.json"));
    EXPECT_THAT(summary.dump(),
                HasSubstr("K of this run is estimated by " + name + "; the gain theory holds for reml"));
    for (const char* command : {"sinks", "sink-vs-k", "audit"})
      EXPECT_EQ(run_gainlens({command, run}).exit_code, 0) << command;
  }
  const std::string run = folder_.path() / "kish";
  const auto mixed = run_gainlens({"report", run, folder_.path() / "sandwich", "--out", folder_.path() / "both"});
  EXPECT_EQ(mixed.exit_code, 0) << mixed.error;
}

TEST_F(Commands, OptionsOfEstimatorsThatDoNotGoTogether) {
  const auto refused = [&](std::vector<std::string> more, const char* text) {
    const auto result = run_gainlens(sweep(std::move(more)));
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.error, HasSubstr(text));
  };
  refused({"--estimator", "sandwitch"}, "did you mean 'sandwich'?");
  refused({"--estimator", "delta"}, "take delta_weight_free");
  refused({"--estimator", "delta_weight_free"}, "--score-noise: missing");
  refused({"--estimator", "kish", "--score-noise", "1"}, "belongs to --estimator delta_weight_free");
  refused({"--estimator", "delta_weight_free", "--score-noise", "-1"}, "--score-noise: -1; must be between 0");
  refused({"--estimator", "kish", "--kernel", "streaming"}, "'streaming' computes reml alone");
  refused({"--estimator", "kish", "--statistics", "none"}, "needs --statistics all");
  ASSERT_EQ(run_gainlens(sweep({})).exit_code, 0);
  refused({"--estimator", "kish"}, "the estimator (--estimator, --score-noise) is reml in the stored request and kish");
}

TEST_F(Commands, AnEmptyNameInAListIsRefused) {
  ASSERT_EQ(run_gainlens(sweep({})).exit_code, 0);
  for (const char* names : {"a,", ",a", "a,,b", ""}) {
    const auto result = run_gainlens({"report", run_, "--names", names});
    EXPECT_EQ(result.exit_code, 2) << names;
    EXPECT_THAT(result.error, HasSubstr("holds an empty name")) << names;
  }
  EXPECT_THAT(run_gainlens({"train", "recommend", "--data", "x", "--arm", "bft,", "--out", "y"}).error,
              HasSubstr("--arm: 'bft,' holds an empty name"));
}

TEST_F(Commands, PlainProgressLinesElsewhereThanOnATerminal) {
  const auto result =
      run_gainlens({"sweep", tiny_checkpoint, "--tokens", ids_, "--lengths", "32", "--samples", "2", "--out", run_});
  EXPECT_THAT(result.error, AllOf(HasSubstr("sweep: 100%"), HasSubstr("tokens/s"), Not(HasSubstr("\r"))));
}

TEST_F(Commands, InspectCheckpoint) {
  const auto result = run_gainlens({"inspect", tiny_checkpoint, "--length", "128"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, AllOf(HasSubstr("family             llama"),
                                HasSubstr("heads              4 query, 2 key/value, of 12 dimensions"),
                                HasSubstr("memory at 128      about"), HasSubstr("usable             yes")));
}

TEST_F(Commands, HooksListsSitesWithShapes) {
  const auto result = run_gainlens({"hooks", tiny_checkpoint});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, AllOf(HasSubstr("blocks.0.hook_resid_pre"), HasSubstr("blocks.1.attn.hook_q"),
                                HasSubstr("ln_final.hook_normalized")));
  EXPECT_THAT(result.out, HasSubstr("[batch, position, 4, 12]"));
  EXPECT_THAT(result.out, HasSubstr("[batch, 4, position, position]  computed only if --hooks matches it\n"));
  const auto learned = run_gainlens({"hooks", tiny_checkpoint.parent_path() / "gpt2"});
  EXPECT_THAT(learned.out, AllOf(HasSubstr("attn.hook_q"), Not(HasSubstr("hook_rot_q"))));
}

TEST_F(Commands, CaptureWritesSafetensors) {
  const std::string out = folder_.path() / "qk.safetensors";
  const auto result = run_gainlens({"capture", tiny_checkpoint, "--tokens", ids_, "--length", "16", "--hooks",
                                    "blocks.*.attn.hook_{q,k}", "--out", out, "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const auto tensors = nlohmann::json::parse(result.out).at("tensors");
  EXPECT_EQ(tensors.size(), 7u);  // q and k of three layers, and the tokens
  EXPECT_EQ(tensors.at("blocks.1.attn.hook_k"), (std::vector<int>{1, 16, 2, 12}));
  const auto bytes = bytes_of(out);
  const auto header = nlohmann::json::parse(
      bytes.substr(8, static_cast<unsigned char>(bytes[0]) + 256u * static_cast<unsigned char>(bytes[1])));
  const auto metadata = header.at("__metadata__");
  EXPECT_EQ(metadata.at("format"), "pt");
  EXPECT_EQ(metadata.at("model"), tiny_checkpoint.string());
  EXPECT_EQ(metadata.at("family"), "llama");
  EXPECT_EQ(metadata.at("text"), ids_);
  EXPECT_EQ(metadata.at("text_sha256").get<std::string>().size(), 64u);
  EXPECT_EQ(metadata.at("dtype"), "float32");
  EXPECT_FALSE(metadata.contains("tokens_text")) << "ids were given";
  EXPECT_EQ(run_gainlens({"capture", tiny_checkpoint, "--tokens", ids_, "--hooks", "*", "--out", out}).exit_code, 2)
      << "an existing file is kept";
}

TEST_F(Commands, CaptureTellsWhatTokensStandFor) {
  const std::string demo = GAINLENS_SOURCE_DIR "/data/demo/", out = folder_.path() / "text.safetensors";
  const auto result = run_gainlens({"capture", demo + "plain", "--text", demo + "text.txt", "--length", "6", "--hooks",
                                    "hook_{embed,logits}", "--out", out, "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(nlohmann::json::parse(result.out).at("tensors").at("hook_logits"), (std::vector<int>{1, 6, 2048}));
  const auto bytes = bytes_of(out);
  const auto header = nlohmann::json::parse(
      bytes.substr(8, static_cast<unsigned char>(bytes[0]) + 256u * static_cast<unsigned char>(bytes[1])));
  const auto texts = nlohmann::json::parse(header.at("__metadata__").at("tokens_text").get<std::string>());
  ASSERT_EQ(texts.size(), 6u);
  EXPECT_EQ(texts[0], "<s>");
  std::string joined;
  for (std::size_t i = 1; i < texts.size(); ++i) joined += texts[i].get<std::string>();
  const std::string start = bytes_of(demo + "text.txt").substr(0, 3);
  EXPECT_THAT(joined, HasSubstr(start));
}

TEST_F(Commands, CaptureTakesTheWholeText) {
  const std::string ids = write_ids(folder_.path(), 23), out = folder_.path() / "whole.safetensors";
  const auto result =
      run_gainlens({"capture", tiny_checkpoint, "--tokens", ids, "--hooks", "hook_embed", "--out", out, "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(nlohmann::json::parse(result.out).at("tensors").at("tokens"), (std::vector<int>{1, 23}));
}

TEST_F(Commands, SweepChoosesLengthsThatTheModelHas) {
  const auto result = run_gainlens({"sweep", tiny_checkpoint, "--tokens", ids_, "--samples", "2", "--out", run_});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.error, HasSubstr("gainlens: the model has 128 positions, so the lengths are 32, 64, 128 (choose "
                                      "others with --lengths)\n"));
  EXPECT_THAT(run_gainlens({"inspect", run_}).out, HasSubstr("lengths            32, 64, 128\n"));
}

TEST_F(Commands, ARebuiltRunFileIsNotNothingToDo) {
  ASSERT_EQ(run_gainlens(sweep({})).exit_code, 0);
  std::filesystem::remove(run_ + "/run.h5");
  EXPECT_THAT(run_gainlens(sweep({})).out,
              HasSubstr("run.h5: written from its shards; no chunk was missing (4 chunks)\n"));
  EXPECT_THAT(run_gainlens(sweep({})).out, HasSubstr("complete, nothing to do"));
}

TEST_F(Commands, InspectOfARunComparesItsChecksums) {
  ASSERT_EQ(run_gainlens(sweep({})).exit_code, 0);
  EXPECT_THAT(run_gainlens({"inspect", run_}).out,
              AllOf(HasSubstr("checksums          run.h5 and its 4 shards are as they were written (sha256)\n"),
                    HasSubstr("usable             yes\n")));
  const auto shard = *std::filesystem::directory_iterator(run_ + "/shards");
  std::ofstream(shard.path(), std::ios::app) << "x";
  const auto changed = run_gainlens({"inspect", run_});
  EXPECT_EQ(changed.exit_code, 2);
  EXPECT_THAT(changed.out, AllOf(HasSubstr("usable             no: "), HasSubstr("its sha256 is ")));
}

TEST_F(Commands, ShortNamesOfTypesAreThoseOfTheLongNames) {
  ASSERT_EQ(run_gainlens(sweep({"--dtype", "fp32"})).exit_code, 0);
  EXPECT_THAT(run_gainlens(sweep({"--dtype", "float32"})).out, HasSubstr("complete, nothing to do"));
  EXPECT_THAT(run_gainlens({"inspect", tiny_checkpoint, "--dtype", "bf16"}).out, HasSubstr(" in bfloat16"));
}

TEST_F(Commands, SpreadChunksStayWhereTheyAre) {
  const auto spread = [&](const std::string& lengths, const std::string& samples) {
    return run_gainlens({"sweep", tiny_checkpoint, "--tokens", ids_, "--lengths", lengths, "--samples", samples,
                         "--out", run_, "--quiet", "--spread"});
  };
  const auto first = spread("32,64", "2");
  ASSERT_EQ(first.exit_code, 0) << first.error;
  EXPECT_THAT(run_gainlens({"inspect", run_}).out, HasSubstr("(2 samples a length, spread over 400 tokens of text)"));
  const auto more = spread("32,64", "3");
  EXPECT_EQ(more.exit_code, 2);
  EXPECT_THAT(
      more.error,
      HasSubstr("samples is 2 in the stored request and 3 in this one, and this number decides where every spread"));
  const auto consecutive = run_gainlens(sweep({}));
  EXPECT_EQ(consecutive.exit_code, 2);
  EXPECT_THAT(consecutive.error,
              HasSubstr("chunks are spread over 400 tokens in the stored request and consecutive in this one"));
  EXPECT_THAT(spread("16,32,64", "2").out, HasSubstr("2 of 6 chunks computed"));
}

TEST_F(Commands, ReportAndSinkVsK) {
  ASSERT_EQ(run_gainlens(sweep({})).exit_code, 0);
  const auto report = run_gainlens({"report", run_});
  ASSERT_EQ(report.exit_code, 0) << report.error;
  EXPECT_THAT(report.out, HasSubstr("report.html"));
  for (const char* name : {"report.html", "summary.json", "context.svg", "context.pdf", "context.png", "sink-vs-k.svg",
                           "gain-theory.svg", "value-norms.svg", "heatmap-n_eff.svg", "heatmap-kalman_gain.svg",
                           "heatmap-bos_mass.svg", "heatmap-entropy.svg"}) {
    EXPECT_TRUE(std::filesystem::exists(run_ + "/report/" + name)) << name;
  }
  const auto sinks = run_gainlens({"sink-vs-k", run_});
  EXPECT_EQ(sinks.exit_code, 0) << sinks.error;
  EXPECT_THAT(sinks.out, HasSubstr("Pearson"));
  const auto json = nlohmann::json::parse(run_gainlens({"sink-vs-k", run_, "--json", "--seed", "5"}).out);
  EXPECT_EQ(json["correlations"]["kalman_gain"]["inference"]["block_permutation"]["seed"], 5);
  EXPECT_EQ(run_gainlens({"sink-vs-k", run_, "--permutations", "0"}).exit_code, 2);
}

TEST_F(Commands, SinksAreListedWithTheirTokens) {
  ASSERT_EQ(run_gainlens(sweep({})).exit_code, 0);
  const auto text = run_gainlens({"sinks", run_, "--threshold", "0.1"});
  EXPECT_EQ(text.exit_code, 0) << text.error;
  EXPECT_THAT(text.out, AllOf(HasSubstr("2 chunks of 64 tokens"), HasSubstr("--at 32")));
  const auto all = run_gainlens({"sinks", run_, "--json", "--threshold", "0.1"});
  const auto json = nlohmann::json::parse(all.out);
  EXPECT_EQ(json.size(), 1u);
  for (const auto& sink : json.at("sinks")) {
    EXPECT_EQ(sink.size(), 10u);
    EXPECT_GE(sink.at("column_mean").get<double>(), 0.1 - 1e-6);
    EXPECT_EQ(sink.at("text"), "");  // token ids were given
    EXPECT_GE(sink.at("token").get<int>(), 0);
  }
  const auto one = nlohmann::json::parse(run_gainlens({"sinks", run_, "--json", "--at", "32"}).out);
  for (const auto& sink : one.at("sinks")) EXPECT_EQ(sink.at("length"), 32);
}

TEST_F(Commands, ARunFileThatWasComparedWithNoChecksumIsNamed) {
  ASSERT_EQ(run_gainlens(sweep({})).exit_code, 0);
  const std::string alone = folder_.path() / "alone.h5";
  std::filesystem::copy_file(run_ + "/run.h5", alone);
  const auto notice = [&](const std::string& run) { return run_gainlens({"sinks", run}).error; };
  EXPECT_EQ(notice(run_), "");
  EXPECT_EQ(notice(alone),
            "gainlens: warning: " + alone + ": run.h5 has no checksum beside it; what it holds is not proven.\n");
  runfile::write_checksum_beside(alone);
  EXPECT_EQ(notice(alone), "");
}

TEST_F(Commands, AuditPrintsTheLemmaAndTheStatements) {
  ASSERT_EQ(run_gainlens(sweep({})).exit_code, 0);
  const auto text = run_gainlens({"audit", run_});
  EXPECT_EQ(text.exit_code, 0) << text.error;
  EXPECT_THAT(text.out, AllOf(HasSubstr("The bound holds at every query of 12 heads"), HasSubstr("epsilon"),
                              HasSubstr("1. false by algebra")));
  const auto json = nlohmann::json::parse(run_gainlens({"audit", run_, "--json", "--at", "32"}).out);
  EXPECT_EQ(json.at("lengths"), std::vector<int>{32});
  EXPECT_EQ(json.at("lemma").at("heads").size(), 12u);
  EXPECT_GE(json.at("lemma").at("slack_min").get<double>(), -1e-5);
}

TEST_F(Commands, VersionAndHelp) {
  EXPECT_THAT(run_gainlens({"--version"}).out, HasSubstr("gainlens 0."));
  for (const char* command : {"sweep",
                              "report",
                              "sinks",
                              "sink-vs-k",
                              "check",
                              "audit",
                              "inspect",
                              "hooks",
                              "capture",
                              "look",
                              "generate",
                              "intervene",
                              "gate-arms",
                              "inactive-heads",
                              "estimators",
                              "k-by-frequency",
                              "error-by-precision",
                              "gain-by",
                              "make-histories",
                              "sensitivity"}) {
    const auto help = run_gainlens({command, "--help"});
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_THAT(help.out, HasSubstr("Example:\n  gainlens ")) << command;
    EXPECT_THAT(help.out, HasSubstr("141 the reader of stdout closed it early")) << command;
  }
  EXPECT_THAT(run_gainlens({"hooks", "--help"}).out,
              HasSubstr("hook_normalized      after the division by the norm, before its weight and bias"));
}

TEST(Instructions, AreLimitedByTheEnvironment) {
  const auto version = [](const std::string& limit) {
    return run_shell("GAINLENS_INSTRUCTIONS=" + limit + " " QUOTED_PROGRAM " --version", "");
  };
  const ProgramResult limited = version("sse4");
  EXPECT_EQ(limited.exit_code, 0) << limited.error;
  EXPECT_THAT(limited.out, HasSubstr("(limited by GAINLENS_INSTRUCTIONS)"));
  EXPECT_THAT(version("").out, Not(HasSubstr("limited")));
  const ProgramResult wrong = version("mmx");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_EQ(wrong.error, "gainlens: error: GAINLENS_INSTRUCTIONS: 'mmx'; must be avx512_bf16, avx512, avx2 or sse4\n");
}

}  // namespace commands_test
}  // namespace gainlens::testing
