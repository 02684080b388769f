// The page of `gainlens report` of a fine-tuning.
#include "reports/finetune/finetune_report.h"

#include "analyses/made_noise_run.h"
#include "support/file_bytes.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <limits>
#include <memory>
#include <set>
#include <sstream>

namespace gainlens::reports {
namespace finetune_report_test {

using gainlens::testing::bytes_of;
using gainlens::testing::made_noise_run;
using gainlens::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

const analyses::ExperimentOptions few_resamples{.resamples = {.count = 50, .seed = 7}};

FinetunedRun finetuned(const runfile::ExperimentRun& run) {
  const auto shared = std::make_shared<const runfile::ExperimentRun>(run);
  return {"made", shared,
          {},     analyses::noise_levels("run", shared, {}, few_resamples),
          {},     {{"focal/np0", {{0.6932, 0.6935}, {0.6933, 0.6937}}}}};
}

/// The run of one level: sft and bft, without a word that is wrong.
runfile::ExperimentRun one_level(testing::MadeNoise made = {}) {
  runfile::ExperimentRun run = made_noise_run(made), one = run;
  one.arms = {run.arms[0], run.arms[3]};
  one.results.clear();
  for (const std::size_t arm : {0U, 3U})
    for (std::size_t seed = 0; seed < run.seeds.size(); ++seed) one.results.push_back(run.result(arm, seed));
  return one;
}

/// Two layers whose gain appears in the second epoch.
FilterOfLevel some_filter(double first) {
  FilterOfLevel filter{"bft/np0", std::vector<analyses::FilterLayer>(2)};
  for (analyses::FilterLayer& layer : filter.layers) {
    layer.mean["gain"] = {first, 0.8};
    layer.mean["precision"] = {first, 1.5};
    layer.mean["share_at_most"] = {first, 0.97};
  }
  filter.start_loss = {2.25, 2.26};
  filter.start_loss_with_filter = {3.5, 3.75};
  return filter;
}

TEST(FinetuneReport, HasFiguresTablesAndASummary) {
  const TemporaryFolder folder;
  FinetunedRun run = finetuned(made_noise_run({.selection = 10}));
  run.filters = {some_filter(std::numeric_limits<double>::quiet_NaN())};
  run.paper_task = "squad";
  const WrittenReport written = write_finetune_report(run, folder.path(), {});
  EXPECT_THAT(written.failed, IsEmpty());
  EXPECT_THAT(written.left_out, IsEmpty());
  const std::string page = bytes_of(folder.path() / "report.html");
  EXPECT_THAT(page, AllOf(HasSubstr("Fine-tuning on noisy answers"), HasSubstr("40% wrong words"),
                          HasSubstr("all 3 levels"), HasSubstr("all levels but 10%"), HasSubstr("F1 of the paper"),
                          HasSubstr("0.3590 (0.0290)"), HasSubstr("The first 10 questions chose the best epoch too"),
                          HasSubstr("Better than sft after Holm")));
  EXPECT_THAT(page, HasSubstr("0.69325, 0.69360"));                    // gamma: means over seeds, rounded
  EXPECT_THAT(page, AllOf(HasSubstr("2.2550"), HasSubstr("3.6250")));  // the losses before training
  const Json summary = Json::parse(bytes_of(folder.path() / "summary.json"));
  EXPECT_EQ(summary.at("noise_levels").at("gains").size(), 7u);
  EXPECT_TRUE(summary.at("noise_levels").at("gains")[3].at("comparison").at("scores").at("f1").contains("decision"));
  EXPECT_FALSE(summary.at("noise_levels").at("gains")[4].at("comparison").at("scores").at("f1").contains("decision"));
  const std::string gains = bytes_of(folder.path() / "tables" / "noise-gains.csv");
  EXPECT_THAT(gains, AllOf(HasSubstr("change,low,high,interval,p,"), HasSubstr("bft,sft,all 3 levels,f1,5,50,"),
                           HasSubstr(",\"95%, seeds and questions\",")));
  for (const char* name : {"noise-levels.svg", "noise-gains.svg", "filter-by-layer.svg", "loss-curves.svg"})
    EXPECT_TRUE(std::filesystem::exists(folder.path() / name)) << name;
}

TEST(FinetuneReport, TablesForProgramsNameSeedsAndKindsOfIntervals) {
  runfile::ExperimentRun made = made_noise_run({.seeds = {7, 12}});
  made.arms = {"focal/np0", "focal/np10", "focal/np40", "bft/np0", "bft/np10", "bft/np40"};
  auto& tested = made.results[7]->test;
  tested[runfile::start_loss] = 2.26;
  tested[runfile::start_loss_with_filter] = 3.75;
  const TemporaryFolder folder;
  EXPECT_THAT(write_finetune_report(finetuned(made), folder.path(), {}).failed, IsEmpty());
  const std::filesystem::path tables = folder.path() / "tables";
  EXPECT_THAT(bytes_of(tables / "loss-curves.csv"),
              StartsWith("arm,seed,epoch,training_loss,validation_loss,is_best\nfocal/np0,7,1,2,2.1,0\n"
                         "focal/np0,7,2,1,1.5,1\n"));
  EXPECT_EQ(bytes_of(tables / "start.csv"), "arm,seed,loss,loss_with_filter\nbft/np0,12,2.26,3.75\n");
  EXPECT_THAT(bytes_of(tables / "gamma.csv"),
              StartsWith("arm,seed,epoch,gamma\nfocal/np0,7,1,0.6932\nfocal/np0,7,2,0.6935\nfocal/np0,12,1,0.6932\n"));
  EXPECT_THAT(bytes_of(tables / "noise-gains.csv"), HasSubstr(",range without a level,"));
}

TEST(FinetuneReport, AFixedGammaIsNoLearnedOne) {
  runfile::ExperimentRun made = made_noise_run({.seeds = {0, 1}});
  made.arms = {"focal-2/np0", "focal-2/np10", "focal-2/np40", "focal/np0", "focal/np10", "focal/np40"};
  for (std::size_t i = 6; i < 12; ++i) made.results[i]->curve[runfile::gamma_curve] = {0.6932, 0.6935};
  FinetunedRun run = finetuned(made);
  const auto written = [&] {
    const TemporaryFolder folder;
    EXPECT_THAT(write_finetune_report(run, folder.path(), {}).failed, IsEmpty());
    const std::filesystem::path csv = folder.path() / "tables" / "gamma.csv";
    return std::pair(bytes_of(folder.path() / "report.html"), std::filesystem::exists(csv) ? bytes_of(csv) : "none");
  };
  run.gammas.push_back({"focal-2/np0", {{2, 2}}});
  const auto [page, csv] = written();
  const auto times = [&page = page](std::string_view text) {
    std::size_t found = 0;
    for (auto at = page.find(text); at != std::string::npos; at = page.find(text, at + 1)) ++found;
    return found;
  };
  EXPECT_GT(times(">focal-2/np0<"), 0u);  // it has a curve of its losses, and none of gamma
  EXPECT_LT(times(">focal-2/np0<"), times(">focal/np0<"));
  EXPECT_THAT(csv, AllOf(HasSubstr("focal/np0,"), Not(HasSubstr("focal-2/np0"))));
  run.gammas.erase(run.gammas.begin());
  for (std::size_t i = 6; i < 12; ++i) made.results[i]->curve.erase(runfile::gamma_curve);
  run.run = std::make_shared<const runfile::ExperimentRun>(made);
  const auto [without, nothing] = written();
  EXPECT_THAT(without, Not(HasSubstr("gamma of focal loss")));
  EXPECT_EQ(nothing, "none");
}

TEST(FinetuneReport, SaysWhatWasRunAndWhatWasNotProven) {
  const TemporaryFolder folder;
  runfile::ExperimentRun run = made_noise_run({.selection = 10});
  run.results[4].reset();
  run.request["model"] = {{"family", "qwen3<b>"}, {"files", {{"model.safetensors", std::string(64, 'a')}}}};
  run.request["data"].update(Json{{"training", 200}, {"validation", 30}, {"test", 60}});
  run.request["training"] = {{"epochs", 3},
                             {"batch", 7},
                             {"learning_rate", 2e-4},
                             {"dtype", "bfloat16"},
                             {"lora", {{"rank", 8}, {"alpha", 16.0}, {"targets", {"q", "v"}}, {"merge", false}}}};
  run.request["threads"] = 5;
  run.request["processes"] = 2;
  FinetunedRun shown = finetuned(run);
  shown.unproven = {"There is no request.json: <i>."};
  EXPECT_THAT(write_finetune_report(shown, folder.path(), {}).failed, IsEmpty());
  const std::string page = bytes_of(folder.path() / "report.html");
  EXPECT_THAT(page, AllOf(HasSubstr("<title>qwen3&lt;b&gt; on made – gainlens</title>"), HasSubstr("What was run"),
                          HasSubstr("model.safetensors aaaaaaaaaaaa<"),
                          HasSubstr("200 to learn from, 30 to choose the best epoch by, 60 to test on, of which the "
                                    "first 10 choose too"),
                          HasSubstr("0%, 10%, 40%"), HasSubstr("sft, bft"), HasSubstr("0 to 4"), HasSubstr("29 of 30"),
                          HasSubstr("an adapter (LoRA) of rank 8, alpha 16.0, of q, v")));
  EXPECT_THAT(page, AllOf(HasSubstr("Not everything of this run was proven. There is no request.json: &lt;i&gt;."),
                          Not(HasSubstr("qwen3<b>")), Not(HasSubstr("<i>."))));
  const Json said = Json::parse(bytes_of(folder.path() / "summary.json")).at("run");
  EXPECT_EQ(said.at("training"), run.request.at("training"));
  EXPECT_EQ(said.at("data"), run.request.at("data"));
  EXPECT_EQ(said.at("model"), run.request.at("model"));
  EXPECT_EQ(said.at("noise"), (Json{0, 10, 40}));
  EXPECT_EQ(said.at("processes"), 2);
  EXPECT_EQ(said.at("trainings_finished"), 29);
  EXPECT_EQ(said.at("unproven"), Json(shown.unproven));
  // The list of gainlens check.
  EXPECT_THAT(page, HasSubstr("1 of 30 trainings are not finished: sft/np0 seed 4"));
  const Json checks = Json::parse(bytes_of(folder.path() / "summary.json")).at("checks");
  EXPECT_EQ(checks[0].at("finding"), "whether the files have changed. There is no request.json: <i>.");
  EXPECT_EQ(checks[1].at("ok"), false);
}

TEST(FinetuneReport, AModelHasTheNameOfItsFile) {
  const TemporaryFolder folder;
  runfile::ExperimentRun run = one_level();
  run.request["model"] = {{"family", "gemma3_text"}, {"files", {{"gemma-3-270m-q4_k_m.gguf", std::string(64, 'a')}}}};
  EXPECT_THAT(write_finetune_report(finetuned(run), folder.path(), {}).failed, IsEmpty());
  const std::string page = bytes_of(folder.path() / "report.html");
  EXPECT_THAT(page, AllOf(HasSubstr("<title>gemma-3-270m-q4_k_m.gguf on made – gainlens</title>"),
                          HasSubstr("made: gemma-3-270m-q4_k_m.gguf on made"), HasSubstr("gemma3_text")));
}

TEST(FinetuneReport, ARequestThatSaysLittleIsNoFailure) {
  for (const Json& odd : {Json(), Json("text"), Json{1, 2},
                          Json{{"family", {1}}, {"files", {{"a", 1}, {"b", 2}}}, {"lora", {{"targets", "q"}}}}}) {
    const TemporaryFolder folder;
    runfile::ExperimentRun run = made_noise_run({.seeds = {0, 1}});
    for (const char* key : {"model", "training", "processes", "threads"}) run.request[key] = odd;
    const WrittenReport written = write_finetune_report(finetuned(run), folder.path(), {});
    EXPECT_THAT(written.failed, IsEmpty()) << odd;
    EXPECT_THAT(bytes_of(folder.path() / "report.html"),
                AllOf(HasSubstr("say the same"), Not(HasSubstr("was proven")),
                      HasSubstr("not known: whether checkpoints have changed; a report does not read them, gainlens "
                                "check does"),
                      HasSubstr("sft/np0 has 2, ")));
  }
}

TEST(FinetuneReport, OneArmHasNoGains) {
  const TemporaryFolder folder;
  runfile::ExperimentRun run = made_noise_run({.seeds = {0}});
  run.arms.resize(3);
  run.results.resize(3);
  const WrittenReport written = write_finetune_report(finetuned(run), folder.path(), {});
  EXPECT_THAT(written.failed, IsEmpty());
  EXPECT_THAT(bytes_of(folder.path() / "report.html"), Not(HasSubstr("Who is better")));
}

TEST(FinetuneReport, TheQuestionsThatChoseTheEpochAreNotDrawn) {
  runfile::ExperimentRun run = made_noise_run({.selection = 10});
  const std::string words = "Without the 10 questions that chose the best epoch";
  const auto page_of = [](const runfile::ExperimentRun& made) {
    const TemporaryFolder folder;
    EXPECT_THAT(write_finetune_report(finetuned(made), folder.path(), {}).failed, IsEmpty());
    return bytes_of(folder.path() / "report.html");
  };
  // Files that lack these means are drawn with all questions.
  EXPECT_FALSE(has_scores_without_selection(finetuned(run).levels));
  EXPECT_THAT(page_of(run), Not(HasSubstr(words)));
  EXPECT_THAT(noise_figure(finetuned(run).levels)->script, Not(HasSubstr(" 0.125 ")));
  for (auto& result : run.results)
    for (const char* name : {"f1", "exact_match"}) result->test[name + std::string(not_selected)] = 0.125;
  EXPECT_TRUE(has_scores_without_selection(finetuned(run).levels));
  EXPECT_THAT(noise_figure(finetuned(run).levels)->script, HasSubstr(" 0.125 0.125 0.125"));
  // The table has both.
  EXPECT_THAT(page_of(run),
              AllOf(HasSubstr(words), HasSubstr("exact match without selection"), HasSubstr("0.1250 (0.0000)")));
  run.results.back()->test.erase(std::string("f1") + not_selected);
  EXPECT_FALSE(has_scores_without_selection(finetuned(run).levels));
}

/// The x of all points of a figure's script, and the ends of its axis.
struct PlottedX {
  double low = 0, high = 0;
  std::vector<double> points;
};
PlottedX plotted_x(const Figure& figure) {
  PlottedX found;
  bool inside = false;
  std::istringstream lines(figure.script);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("set xrange")) std::sscanf(line.c_str(), "set xrange [%lf:%lf]", &found.low, &found.high);
    if (line == "EOD") {
      inside = false;
    } else if (line.find("<< EOD") != std::string::npos) {
      inside = true;
    } else if (inside) {
      found.points.push_back(std::stod(line));
    }
  }
  return found;
}

TEST(FinetuneReport, TheCaptionExplainsRowsThatAreThere) {
  const auto page_of = [](const runfile::ExperimentRun& run) {
    const TemporaryFolder folder;
    EXPECT_THAT(write_finetune_report(finetuned(run), folder.path(), {}).failed, IsEmpty());
    return bytes_of(folder.path() / "report.html");
  };
  EXPECT_THAT(page_of(made_noise_run()),
              AllOf(HasSubstr("Rows that leave a level out"), HasSubstr("Of several levels")));
  EXPECT_THAT(page_of(one_level()), AllOf(HasSubstr("does not say that there is no difference"),
                                          Not(HasSubstr("leave a level out")), Not(HasSubstr("Of several levels"))));
}

TEST(FinetuneReport, EveryPointLiesWithinItsAxis) {
  for (const runfile::ExperimentRun& run : {one_level(), made_noise_run()}) {
    const FinetunedRun shown = finetuned(run);
    const std::size_t levels = shown.levels.levels.size();
    for (const auto& [figure, arms] :
         {std::pair(noise_figure(shown.levels), 2U), std::pair(noise_gains_figure(shown.levels), 1U)}) {
      ASSERT_TRUE(figure);
      const PlottedX x = plotted_x(*figure);
      EXPECT_EQ(x.points.size(), 2 * arms * levels) << figure->name;
      for (const double point : x.points) EXPECT_TRUE(x.low < point && point < x.high) << figure->name << ' ' << point;
      if (levels == 1) {
        EXPECT_THAT(figure->script, AllOf(HasSubstr("set xrange [-0.5:0.5]\n"), HasSubstr("set xtics (0)\n")));
        EXPECT_EQ(std::set<double>(x.points.begin(), x.points.end()).size(), arms) << "arms stand side by side";
      }
    }
  }
}

TEST(FinetuneReport, AFilterThatNeverActedHasNoFigure) {
  constexpr double nothing = std::numeric_limits<double>::quiet_NaN();
  FilterOfLevel filter = some_filter(nothing);
  for (analyses::FilterLayer& layer : filter.layers) layer.mean["gain"] = {nothing, nothing};
  EXPECT_FALSE(filter_by_layer_figure(filter));
  EXPECT_TRUE(filter_by_layer_figure(some_filter(0.7)));
}

TEST(FinetuneReport, TheFigureOfAFilterShowsWhatIsAtItsBound) {
  FilterOfLevel filter = some_filter(0.7);
  const std::string script = filter_by_layer_figure(filter)->script;
  EXPECT_THAT(script, AllOf(HasSubstr("at its bound"), HasSubstr("$share_at_most_1 << EOD\n0 0.97"),
                            HasSubstr("set yrange [0:1.06]")));
  // An arm without precisions has its gain.
  constexpr double nothing = std::numeric_limits<double>::quiet_NaN();
  for (analyses::FilterLayer& layer : filter.layers)
    for (const char* curve : {"precision", "share_at_most"}) layer.mean[curve] = {nothing, nothing};
  EXPECT_THAT(filter_by_layer_figure(filter)->script,
              AllOf(HasSubstr("Kalman gain"), Not(HasSubstr("precision")), Not(HasSubstr("at its bound"))));
}

}  // namespace finetune_report_test
}  // namespace gainlens::reports
