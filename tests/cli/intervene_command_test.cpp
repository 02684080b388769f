#include "cli/expect_checksums.h"
#include "cli/tiny_checkpoint.h"
#include "core/json.h"
#include "support/program.h"
#include "support/refused_call.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <cmath>

#include <filesystem>
#include <string>
#include <vector>

namespace gainlens::testing {
namespace intervene_command_test {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const std::string models = GAINLENS_SOURCE_DIR "/tests/golden/models/";
const std::string head_1 = "blocks.0.attn.hook_z[head=1]=zero";

/// Of a safetensors file: the length of the header stands before it.
Json header_of(const std::string& bytes) {
  const std::size_t begin = bytes.find('{');
  return Json::parse(
      bytes.substr(begin, static_cast<unsigned char>(bytes[0]) + 256u * static_cast<unsigned char>(bytes[1])));
}

/// Where the last tensor of a file ends, from the start of its data.
std::size_t end_of_data(const Json& header) {
  std::size_t end = 0;
  for (const auto& [name, entry] : header.items())
    if (entry.contains("data_offsets")) end = std::max(end, entry.at("data_offsets").at(1).get<std::size_t>());
  return end;
}

class Intervene : public ::testing::Test {
 protected:
  /// Ids that repeat neither within a file nor between files of different `step`.
  std::string ids(int step, int count = 160) const {
    std::string text = "[";
    for (int i = 0; i < count; ++i) text += (i == 0 ? "" : ",") + std::to_string(3 + (i * step + i * i / 7) % 58);
    return write_file(folder_.path() / ("ids-" + std::to_string(step) + ".json"), text + "]");
  }
  ProgramResult call(const std::vector<std::string>& more, const std::string& model = models + "llama",
                     const std::string& samples = "4") const {
    std::vector<std::string> words = {"intervene", model,       "--tokens", ids(13),  "--lengths",
                                      "32",        "--samples", samples,    "--quiet"};
    words.insert(words.end(), more.begin(), more.end());
    return run_gainlens(words);
  }
  Json json_of(std::vector<std::string> more, const std::string& model = models + "llama",
               const std::string& samples = "4") const {
    more.emplace_back("--json");
    const ProgramResult result = call(more, model, samples);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 1);
    return Json::parse(result.out);
  }
  void refused(const std::vector<std::string>& more, const std::string& reason,
               const std::string& model = models + "llama", const std::string& samples = "4") const {
    expect_refused(call(more, model, samples), reason);
  }

  TemporaryFolder folder_;
};

TEST_F(Intervene, PrintsWhatOtherProgramsRead) {
  const Json json = json_of({"--set", head_1}, models + "llama", "1");
  const double native = json.at("native").at("nll"), nll = json.at("arms").at(0).at("nll");
  ASSERT_EQ(json.at("arms").size(), 1u);
  const Json& arm = json.at("arms").at(0);
  EXPECT_EQ(arm.at("intervention"), head_1);
  EXPECT_EQ(arm.at("delta").get<double>(), nll - native);
  EXPECT_NE(nll, native);
  EXPECT_GT(arm.at("site_norm_before").get<double>(), 0);
  EXPECT_EQ(arm.at("site_norm_after").get<double>(), 0);
  EXPECT_GT(arm.at("largest_logit_change").get<double>(), 0);
  EXPECT_EQ(arm.at("interval"), nullptr);
  EXPECT_EQ(arm.at("interval_reason"), "an interval over documents needs at least 2");
  EXPECT_THAT(arm.at("control").at("intervention").get<std::string>(), HasSubstr("blocks.0.attn.hook_z[head="));
  EXPECT_NE(arm.at("control").at("intervention"), head_1);
}

/// The loss is that of a sweep of the same chunks.
TEST_F(Intervene, TheNativeLossIsThatOfEvaluate) {
  const Json json = json_of({"--set", head_1}, models + "llama", "5");
  const ProgramResult evaluated = run_gainlens(
      {"evaluate", "language-model", models + "llama", "--tokens", ids(13), "--length", "32", "--quiet", "--json"});
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.error;
  EXPECT_NEAR(json.at("native").at("nll").get<double>(), Json::parse(evaluated.out).at("loss").get<double>(), 1e-6);
}

TEST_F(Intervene, TakesTheLossOfTheLastTokens) {
  const Json all = json_of({"--set", head_1}), last = json_of({"--set", head_1, "--targets", "1"});
  EXPECT_EQ(json_of({"--set", head_1, "--targets", "31"}).at("arms"), all.at("arms"));
  EXPECT_EQ(last.at("targets"), 1);
  EXPECT_NE(last.at("native"), all.at("native"));
  // What stands before the prediction of the one target, and reaches no later position, changes nothing that is read.
  refused({"--set", "blocks.2.hook_mlp_out[position=29]=zero", "--targets", "1"}, "and no logit");
  const Json estimated = json_of({"--set", head_1, "--targets", "1", "--approximate"});
  EXPECT_NEAR(estimated.at("native").get<double>(), last.at("native").at("nll").get<double>(), 1e-6);
  EXPECT_THAT(call({"--set", head_1, "--targets", "9"}).out, HasSubstr("the last 9 tokens of 4 documents of 32"));
  // A range of positions: the last nine again, and some in the middle.
  const std::vector<std::string> nine = {"--set", head_1, "--targets", "9"},
                                 range = {"--set", head_1, "--targets", "23:32"};
  EXPECT_EQ(json_of(range).at("arms"), json_of(nine).at("arms"));
  EXPECT_EQ(json_of(range).at("targets"), "23:32");
  EXPECT_THAT(call(range).out, HasSubstr("positions 23 to 31 of 4 documents of 32"));
  const Json middle = json_of({"--set", head_1, "--targets", "10:12"}), mean_of = [&] {
    const double to_12 = json_of({"--set", head_1, "--targets", "1:12"}).at("native").at("nll");
    const double to_10 = json_of({"--set", head_1, "--targets", "1:10"}).at("native").at("nll");
    return Json((11 * to_12 - 9 * to_10) / 2);
  }();
  EXPECT_NEAR(middle.at("native").at("nll").get<double>(), mean_of.get<double>(), 1e-6);
  EXPECT_NEAR(json_of({"--set", head_1, "--targets", "10:12", "--approximate"}).at("native").get<double>(),
              mean_of.get<double>(), 1e-5);
  refused({"--set", "blocks.2.hook_mlp_out[position=12]=zero", "--targets", "10:12"}, "and no logit");
  refused({"--set", head_1, "--targets", "0:5"}, "--targets: 0:5 must lie from 1 to 32");
  refused({"--set", head_1, "--targets", "30:33"}, "--targets: 30:33 must lie from 1 to 32");
  refused({"--set", head_1, "--targets", "5:4"}, "--targets: 5:4 holds nothing");
  refused({"--set", head_1, "--targets", "32"}, "--targets: 32; must be from 1 to 31");
  refused({"--set", head_1, "--targets", "0"}, "--targets: 0; must be at least 1");
}

TEST_F(Intervene, ComparesTheLogitsOfTwoTokens) {
  const Json json =
      json_of({"--set", head_1, "--set", "blocks.2.hook_mlp_out[position=31]=zero", "--answer", "11", "--foil", "30"});
  const Json& arm = json.at("arms").at(0);
  EXPECT_EQ(json.at("answer"), "token 11");
  EXPECT_NEAR(arm.at("logit_difference_delta").get<double>(),
              arm.at("logit_difference").get<double>() - json.at("native").at("logit_difference").get<double>(), 1e-12);
  EXPECT_EQ(arm.at("logit_difference_interval").size(), 2u);
  // The prediction of the last position is in no loss, but it is what is asked for.
  EXPECT_NEAR(json.at("arms").at(1).at("delta").get<double>(), 0, 1e-6);
  EXPECT_GT(std::abs(json.at("arms").at(1).at("logit_difference_delta").get<double>()), 1e-3);
  // The other way round it is its negative.
  const Json other = json_of({"--set", head_1, "--answer", "30", "--foil", "11"});
  EXPECT_NEAR(other.at("arms").at(0).at("logit_difference").get<double>(), -arm.at("logit_difference").get<double>(),
              1e-6);
  EXPECT_EQ(other.at("arms").at(0).at("nll"), arm.at("nll"));
  EXPECT_THAT(call({"--set", head_1, "--answer", "11", "--foil", "30"}).out,
              HasSubstr("logit of token 11 minus logit of token 30: "));
  refused({"--set", head_1, "--answer", "11"}, "--foil: is missing; --answer and --foil go together");
  refused({"--set", head_1, "--answer", "11", "--foil", "x"}, "with token ids there is no tokenizer; give an id");
}

TEST_F(Intervene, SeveralSetsAreSeveralArmsEachAlone) {
  const std::string gate = "blocks.1.hook_mlp_out=0.5", joint = head_1 + " + " + gate;
  const Json all = json_of({"--set", head_1, "--set", gate, "--set", joint});
  ASSERT_EQ(all.at("arms").size(), 3u);
  for (std::size_t i = 0; i < 2; ++i) {
    const Json alone = json_of({"--set", i == 0 ? head_1 : gate});
    EXPECT_EQ(alone.at("arms").at(0).at("nll"), all.at("arms").at(i).at("nll"));
  }
  EXPECT_EQ(all.at("arms").at(2).at("intervention"), joint);
  EXPECT_EQ(all.at("arms").at(1).at("control"), nullptr);
  EXPECT_EQ(all.at("arms").at(1).at("control_reason"), "it is not of single heads");
  const double low = all.at("arms").at(0).at("interval").at(0), high = all.at("arms").at(0).at("interval").at(1),
               delta = all.at("arms").at(0).at("delta");
  EXPECT_LT(low, delta);
  EXPECT_LT(delta, high);
}

TEST_F(Intervene, EachUnitHasOneEntryForEachMode) {
  const Json heads = json_of({"--each-head", "--modes", "zero,mean,resample", "--calibration", ids(29)});
  const std::size_t count = heads.at("arms").size();
  EXPECT_EQ(count % 3, 0u);
  EXPECT_EQ(heads.at("arms").at(0).at("intervention"), "blocks.0.attn.hook_z[head=0]=zero");
  EXPECT_EQ(heads.at("arms").at(1).at("intervention"), "blocks.0.attn.hook_z[head=0]=mean");
  EXPECT_EQ(heads.at("arms").at(2).at("intervention"), "blocks.0.attn.hook_z[head=0]=resample");
  EXPECT_EQ(heads.at("arms").at(3).at("nll"), json_of({"--set", head_1}).at("arms").at(0).at("nll"));
  EXPECT_EQ(json_of({"--each-head"}).at("arms").size(), count / 3);
  EXPECT_EQ(json_of({"--each-kv-head"}).at("arms").at(0).at("intervention"), "blocks.0.attn.hook_v[head=0]=zero");
  EXPECT_EQ(json_of({"--each-layer"}).at("arms").at(0).at("intervention"), "blocks.0.hook_attn_out=zero");
}

/// A KV head whose values are 0: its query heads give nothing that could be taken away.
TEST_F(Intervene, ADeadHeadStandsInTheTableAndIsNamed) {
  const fs::path model = copy_checkpoint(folder_.path());
  std::string bytes = bytes_of(model / "model.safetensors");
  const Json header = header_of(bytes), &entry = header.at("model.layers.0.self_attn.v_proj.weight");
  const std::size_t begin = bytes.size() - end_of_data(header) + entry.at("data_offsets").at(0).get<std::size_t>();
  const std::size_t kv_heads = Json::parse(bytes_of(model / "config.json")).at("num_key_value_heads");
  const std::size_t size =
      entry.at("data_offsets").at(1).get<std::size_t>() - entry.at("data_offsets").at(0).get<std::size_t>();
  bytes.replace(begin, size / kv_heads, size / kv_heads, '\0');
  write_file(model / "model.safetensors", bytes);

  const std::string dead = "blocks.0.attn.hook_z[head=0]=zero";
  refused({"--set", dead}, "it changes nothing at blocks.0.attn.hook_z", model);
  const Json json = json_of({"--each-head"}, model);
  const Json& arm = json.at("arms").at(0);
  EXPECT_EQ(arm.at("intervention"), dead);
  EXPECT_EQ(arm.at("changes_nothing"), true);
  EXPECT_EQ(arm.at("delta").get<double>(), 0);
  EXPECT_EQ(arm.at("interval_reason"), "the intervention changes nothing");
  EXPECT_EQ(json.at("arms").at(4).at("changes_nothing"), false);
  const ProgramResult table = call({"--each-head"}, model);
  EXPECT_THAT(table.out, HasSubstr(" change nothing: " + dead + ", blocks.0.attn.hook_z[head=1]=zero"));
  // A control may be dead too. Which one is drawn, the seed says.
  bool named = false;
  for (int seed = 0; seed < 8 && !named; ++seed) {
    const ProgramResult one =
        call({"--set", "blocks.0.attn.hook_z[head=3]=zero", "--seed", std::to_string(seed)}, model);
    EXPECT_EQ(one.exit_code, 0) << one.error;
    named = one.out.find("1 control changes nothing: blocks.0.attn.hook_z[head=") != std::string::npos;
  }
  EXPECT_TRUE(named);
}

TEST_F(Intervene, SaysWhichLayersHaveNoHeads) {
  const ProgramResult result = run_gainlens(
      {"intervene", models + "qwen3-next", "--tokens", ids(13), "--lengths", "16", "--samples", "1", "--each-head"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.error, HasSubstr("layers have linear attention (the gated delta rule) and no heads"));
}

TEST_F(Intervene, TheTableBeginsWithWhatChanged) {
  const ProgramResult result = call({"--each-head"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.out, HasSubstr("acted     "));
  EXPECT_THAT(result.out, HasSubstr("nothing before the first changed position moved\nnative    "));
  EXPECT_THAT(result.out, HasSubstr("4 documents of 32 tokens; no BOS"));
  EXPECT_THAT(result.out, HasSubstr(head_1));
}

TEST_F(Intervene, ARunIsKeptContinuedAndPrintedAgain) {
  const std::string out = folder_.path() / "run";
  const std::vector<std::string> words = {"--each-head", "--set", "blocks.1.hook_mlp_out=0.5", "--out", out};
  const Json first = json_of(words);
  const std::string bytes = bytes_of(out + "/intervene.json");
  EXPECT_EQ(json_of(words), first);
  fs::remove(out + "/units/document-2-layer-1.json");
  fs::remove(out + "/intervene.json");
  EXPECT_EQ(json_of(words), first);
  EXPECT_EQ(bytes_of(out + "/intervene.json"), bytes);
  // The file that the flags have written gives the same arms.
  EXPECT_EQ(json_of({"--interventions", out + "/interventions.json"}).at("arms").size(), first.at("arms").size());

  refused({"--set", head_1, "--out", out}, "holds a run with other interventions; give a new folder");
  refused(words, "holds a run with other samples", models + "llama", "3");
  const ProgramResult checked = run_gainlens({"check", out});
  EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.error;
  EXPECT_THAT(checked.out, HasSubstr("intervene.json holds what the units hold"));
  write_file(out + "/units/document-2-layer-1.json", R"({"sha256": "0", "unit": {}})");
  refused(words, "document-2-layer-1.json: is damaged");
  expect_refusal_line(run_gainlens({"inspect", out}), "document-2-layer-1.json: its sha256 is ");
  fs::remove(out + "/units/document-2-layer-1.json");
  expect_refusal_line(run_gainlens({"inspect", out}),
                      "document-2-layer-1.json: is listed in manifest.jsonl and is not");
  EXPECT_EQ(json_of(words), first);
  expect_checksums(out, "intervene.json");

  const ProgramResult inspected = run_gainlens({"inspect", out});
  EXPECT_EQ(inspected.exit_code, 0) << inspected.error;
  EXPECT_THAT(inspected.out, HasSubstr("run of interventions"));
}

TEST_F(Intervene, AStoppedRunIsShownAsFarAsItGoes) {
  const std::string out = folder_.path() / "run", page = folder_.path() / "page";
  const std::vector<std::string> words = {"--each-head", "--set", "blocks.1.hook_mlp_out=0.5", "--out", out};
  const Json first = json_of(words);
  const std::string bytes = bytes_of(out + "/intervene.json"), lines = bytes_of(out + "/manifest.jsonl");
  for (const char* file : {"intervene.json", "manifest.jsonl", "units/document-2-layer-1.json"})
    fs::remove(out + "/" + file);
  fs::remove(out + "/units/document-3-layer-0.json");
  const ProgramResult inspected = run_gainlens({"inspect", out});
  EXPECT_EQ(inspected.exit_code, 0) << inspected.error;
  EXPECT_THAT(inspected.out,
              ::testing::ContainsRegex("[0-9]+ of [0-9]+ parts .each intervention on each document. are measured; "
                                       "repeat the command that makes the run, which continues"));
  const ProgramResult reported = run_gainlens({"report", out, "--out", page});
  EXPECT_EQ(reported.exit_code, 0) << reported.error;
  EXPECT_THAT(reported.error, HasSubstr("the run was stopped: "));
  EXPECT_THAT(bytes_of(page + "/report.html"), HasSubstr("2 documents of 32 tokens (the run was stopped: "));
  EXPECT_THAT(bytes_of(page + "/summary.json"), HasSubstr("the run was stopped before its end"));
  for (const int document : {0, 1}) fs::remove(fmt::format("{}/units/document-{}-layer-1.json", out, document));
  expect_refused(run_gainlens({"report", out, "--out", page}), "and no document has all interventions; repeat the");
  write_file(out + "/units/document-0-layer-0.json", "{}");
  expect_refusal_line(run_gainlens({"inspect", out}), "document-0-layer-0.json: has no checksum");
  fs::remove(out + "/units/document-0-layer-0.json");
  EXPECT_EQ(json_of(words), first);
  EXPECT_EQ(bytes_of(out + "/intervene.json"), bytes);
  EXPECT_EQ(bytes_of(out + "/manifest.jsonl"), lines);
}

TEST_F(Intervene, EstimatesByOneBackwardPass) {
  const Json json = json_of({"--each-head", "--approximate"}), exact = json_of({"--each-head"});
  ASSERT_EQ(json.at("arms").size(), exact.at("arms").size());
  ASSERT_EQ(json.at("kinds").size(), 1u);
  EXPECT_EQ(json.at("kinds").at(0).at("kind"), "attn.hook_z=zero");
  EXPECT_EQ(json.at("kinds").at(0).at("exact"), 12);
  EXPECT_NEAR(json.at("native").get<double>(), exact.at("native").at("nll").get<double>(), 1e-6);
  for (std::size_t i = 0; i < exact.at("arms").size(); ++i)
    EXPECT_NEAR(json.at("arms").at(i).at("exact").get<double>(), exact.at("arms").at(i).at("delta").get<double>(),
                1e-6);
  EXPECT_THAT(call({"--each-head", "--approximate"}).out, HasSubstr("estimated 12 interventions by one backward pass"));
  refused({"--each-head", "--approximate", "--stream-weights"}, "leave --stream-weights out");
  const std::string table = folder_.path() / "estimates.csv";
  ASSERT_EQ(call({"--each-head", "--approximate", "--out", table}).exit_code, 0);
  EXPECT_THAT(bytes_of(table), HasSubstr("\n,blocks.0.attn.hook_z[head=0]=zero,attn.hook_z=zero,1,"));
  refused({"--each-head", "--approximate", "--out", table}, "--out: ");
  refused({"--each-head", "--approximate", "--out", folder_.path() / "run"}, "must be a CSV file, FILE.csv");
}

/// Several places in one pass, some heads each alone, and keys that queries no longer see.
TEST_F(Intervene, WritesToSeveralPlaces) {
  const auto effect = [&](const std::string& set) {
    Json arm = json_of({"--set", set}).at("arms").at(0);
    return std::vector<double>{arm.at("nll"), arm.at("site_norm_before"), arm.at("largest_logit_change")};
  };
  EXPECT_EQ(effect("blocks.{0,2}.attn.hook_z[head=1,3]=zero"),
            effect("blocks.0.attn.hook_z[head=1]=zero + blocks.0.attn.hook_z[head=3]=zero + "
                   "blocks.2.attn.hook_z[head=1]=zero + blocks.2.attn.hook_z[head=3]=zero"));
  const auto range = effect("blocks.1.hook_resid_pre[position=4:7]=zero"),
             each = effect("blocks.1.hook_resid_pre[position=4,5,6]=zero");
  for (std::size_t i = 0; i < range.size(); ++i) EXPECT_NEAR(range[i], each[i], 1e-5 * range[i]);
  const Json heads = json_of({"--heads", "2.1,0.3"});
  ASSERT_EQ(heads.at("arms").size(), 2u);
  EXPECT_EQ(heads.at("arms").at(0).at("intervention"), "blocks.2.attn.hook_z[head=1]=zero");
  EXPECT_FALSE(heads.at("arms").at(0).at("control").is_null());
  // A knockout enlarges the other weights; zero alone does not.
  const std::string key = "blocks.1.attn.hook_pattern[head=2][position=1:32][key=0]=";
  EXPECT_NE(effect(key + "knockout")[0], effect(key + "zero")[0]);
  EXPECT_EQ(json_of({"--set", key + "knockout", "--approximate"}).at("arms").size(), 1u);
  refused({"--set", "blocks.1.attn.hook_pattern[key=0]=knockout"}, "query 0 sees no other key");
  refused({"--heads", "0.9"}, "query head 9 is out of range");
  refused({"--heads", "0.1", "--each-head"}, "--heads: --each-head has these too");
}

TEST_F(Intervene, ARunIsReported) {
  const std::string out = folder_.path() / "run";
  ASSERT_EQ(call({"--each-head", "--out", out}).exit_code, 0);
  const ProgramResult report = run_gainlens({"report", out});
  EXPECT_EQ(report.exit_code, 0) << report.error;
  EXPECT_TRUE(fs::exists(out + "/report/intervention-maps.svg"));
  EXPECT_THAT(bytes_of(out + "/report/summary.json"), HasSubstr("\"intervention\""));
  EXPECT_THAT(bytes_of(out + "/report/report.html"), HasSubstr("<title>llama on "));
  // A run of an earlier version has no names; the family stands for the model.
  fs::remove(out + "/names.json");
  ASSERT_EQ(run_gainlens({"report", out}).exit_code, 0);
  EXPECT_THAT(bytes_of(out + "/report/report.html"), HasSubstr("<title>llama – gainlens</title>"));
  write_file(out + "/names.json", "{}");
  expect_refused(run_gainlens({"report", out}), "names.json: is damaged");
}

TEST_F(Intervene, PatchesFromAFileOfCapture) {
  const std::string patch = folder_.path() / "patch.safetensors";
  ASSERT_EQ(run_gainlens({"capture", models + "llama", "--tokens", ids(29), "--length", "32", "--hooks",
                          "blocks.0.hook_resid_pre", "--out", patch})
                .exit_code,
            0);
  const std::string set = "blocks.0.hook_resid_pre[position=7]=" + patch;
  EXPECT_EQ(json_of({"--set", set}).at("arms").at(0).at("intervention"), set);
  refused({"--set", "blocks.1.hook_resid_pre=" + patch}, "blocks.1.hook_resid_pre");
  std::string bytes = bytes_of(patch);
  bytes.replace(bytes.find("F32"), 3, "I32");
  const std::string whole = write_file(folder_.path() / "whole.safetensors", bytes);
  refused({"--set", "blocks.0.hook_resid_pre=" + whole}, "is stored as I32; a site has floating-point numbers");
  expect_refused(run_gainlens({"intervene", models + "llama", "--tokens", ids(13), "--lengths", "16", "--set", set}),
                 "this intervention needs [1, 16, ");
}

TEST_F(Intervene, WrongRequestsGetOneLine) {
  refused({}, "there is nothing to do; give --set, --interventions or --each-head");
  refused({"--set", "blocks.0.attn.hook_zz=zero"}, "did you mean 'blocks.0.attn.hook_z'?");
  refused({"--set", "blocks.0.attn.hook_gate=0.5"}, "the model has no gates");
  refused({"--set", "blocks.0.attn.hook_z[head=99]=zero"}, "query head 99 is out of range");
  refused({"--set", "blocks.0.attn.hook_v[head=99]=zero"}, "KV head 99 is out of range");
  refused({"--set", "blocks.0.attn.hook_z[position=32]=zero"}, "position 32 is out of range");
  refused({"--set", "blocks.0.attn.hook_z=nan"}, "must be a finite number");
  refused({"--set", head_1, "--set", head_1}, "is asked for twice");
  refused({"--set", head_1, "--each-head"}, "is asked for twice");
  refused({"--set", "blocks.1.hook_mlp_out=0", "--set", "blocks.1.hook_mlp_out=zero"}, "is asked for twice");
  refused({"--set", head_1, "--modes", "zero"}, "--modes: belongs to --heads, --each-head");
  refused({"--each-head", "--modes", "zro"}, "did you mean 'zero'?");
  refused({"--each-head", "--modes", "zero,zero"}, "'zero' is given twice");
  refused({"--each-head", "--modes", "mean"}, "--calibration: missing");
  refused({"--set", head_1, "--calibration", ids(29)}, "--calibration: no intervention takes a mean");
  refused({"--each-head", "--modes", "mean", "--calibration", ids(13)}, "tokens in a row in common");
  refused({"--each-head", "--modes", "mean", "--calibration", ids(29, 50)}, "--calibration: chunks: the text has 50");
  refused({"--each-head", "--modes", "resample"}, "resample needs at least 2 documents", models + "llama", "1");
  refused({"--set", head_1}, "the text has 160 tokens, but 9 samples", models + "llama", "9");
  refused({"--set", head_1}, "--samples: 0; must be at least 1", models + "llama", "0");
  refused({"--set", "blocks.1.attn.hook_q[position=0]=zero"}, "and no logit");
  refused({"--set", "blocks.0.attn.hook_z[head=1]=zero"}, "layer 0 has linear attention", models + "qwen3-next");
  refused({"--set", head_1}, "no such", models + "nothing");
}

TEST_F(Intervene, ARefusedRequestLeavesNothingBehind) {
  const std::vector<std::string> idle = {"--set", "blocks.1.attn.hook_q[position=0]=zero", "--out"};
  const auto into = [&](const std::string& out) {
    std::vector<std::string> words = idle;
    words.push_back(out);
    refused(words, "and no logit");
  };
  into(folder_.path() / "run");
  EXPECT_FALSE(fs::exists(folder_.path() / "run"));
  into(folder_.path() / "a" / "b" / "run/");
  EXPECT_FALSE(fs::exists(folder_.path() / "a"));
  fs::create_directories(folder_.path() / "a" / "empty");
  into(folder_.path() / "a" / "empty");
  EXPECT_TRUE(fs::is_empty(folder_.path() / "a" / "empty"));
  into(folder_.path() / "a" / "b" / "run");
  EXPECT_FALSE(fs::exists(folder_.path() / "a" / "b"));
  EXPECT_TRUE(fs::exists(folder_.path() / "a"));
}

TEST_F(Intervene, AFolderOfSomethingElseStaysAsItIs) {
  const std::string own = folder_.path() / "own", idle = "blocks.0.attn.hook_q[position=0]=zero";
  std::filesystem::create_directory(own);
  const std::string file = write_file(own + "/interventions.json", R"({"interventions": [")" + idle + R"("]})");
  refused({"--interventions", file, "--out", own}, "is not empty and not a run (it holds 'interventions.json'");
  EXPECT_TRUE(std::filesystem::exists(file));
  EXPECT_FALSE(std::filesystem::exists(own + "/lock"));
  const std::string run = folder_.path() / "run";
  ASSERT_EQ(call({"--set", head_1, "--out", run}).exit_code, 0);
  std::filesystem::remove(run + "/request.json");  // its units would be taken for those of another request
  refused({"--set", "blocks.0.attn.hook_z[head=2]=zero", "--out", run}, "is not empty and not a run");
  EXPECT_TRUE(std::filesystem::exists(run + "/units"));
}

TEST_F(Intervene, OnePositionOfEachHeadsResultIsChangedAlone) {
  const Json json = json_of({"--set", "blocks.0.attn.hook_result[position=7]=0.5"}, models + "bloom");
  EXPECT_GT(json.at("arms").at(0).at("largest_logit_change"), 0);
}

TEST_F(Intervene, LengthsAreChecked) {
  const auto with = [&](const std::string& lengths) {
    return run_gainlens({"intervene", models + "llama", "--tokens", ids(13), "--lengths", lengths, "--set", head_1});
  };
  expect_refused(with("1"), "a document needs 2 tokens");
  expect_refused(with("16,32"), "--lengths: 2 lengths; intervene takes one");
  expect_refused(with("256"), "exceeds the model's 128 positions");
}

}  // namespace intervene_command_test
}  // namespace gainlens::testing
