// The report of one recommender run. Expected numbers are computed from the ranks here (ranks_by_hand.h).
#include "reports/recommend/recommend_report.h"

#include "core/atomic_file.h"
#include "core/ranking_metrics.h"
#include "ranks_by_hand.h"
#include "reports/figures/palette.h"
#include "reports/recommend/run_sections.h"
#include "reports/report_testing.h"
#include "reports/training/learning_curves_figure.h"
#include "runfile/made_recommend_run.h"
#include "support/refusal.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace gainlens::reports {
namespace recommend_report_test {

namespace fs = std::filesystem;
using gainlens::testing::by_seed;
using gainlens::testing::contents;
using gainlens::testing::fifth_of_items;
using gainlens::testing::made_recommend_run;
using gainlens::testing::MadeRecommender;
using gainlens::testing::over;
using gainlens::testing::printed;
using gainlens::testing::refusal_of;
using gainlens::testing::TemporaryFolder;
using gainlens::testing::uneven_recommend_run;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TrainedRun trained(const runfile::RecommendRun& run, const Json& preset = {{"epochs", 5}},
                   const std::string& paper = "") {
  analyses::RecommenderOptions options;
  options.resamples.count = 50;
  options.paper = paper;
  return {"run", analyses::recommender_results("run", std::make_shared<const runfile::RecommendRun>(run), options),
          preset};
}

template <typename Type>
std::vector<Type> blocks_of(const Section<TrainedRun>& section, const TrainedRun& run) {
  std::vector<Type> found;
  for (const Block& block : section.blocks({&run, 1})) {
    if (const auto* wanted = std::get_if<Type>(&block)) found.push_back(*wanted);
  }
  return found;
}

std::string words_of(const Section<TrainedRun>& section, const TrainedRun& run) {
  std::string text;
  for (const Html& html : blocks_of<Html>(section, run)) text += html.text;
  return text;
}

TrainedRun beside_beauty(const runfile::RecommendRun& run) {
  return trained(run, {{"epochs", 5}}, "Beauty");
}

TEST(TestMetrics, EachCellIsTheMeanOverSeedsOfTheRanks) {
  const runfile::RecommendRun run = uneven_recommend_run();  // bft lacks seed 1, popularity is not trained
  const PaperTable table = blocks_of<PaperTable>(test_metrics_section, trained(run)).at(0);
  ASSERT_EQ(table.rows.size(), 3u);  // nothing of the paper
  const char* const metrics[] = {"hr@5", "hr@10", "hr@20", "ndcg@5", "ndcg@10", "ndcg@20", "mrr"};
  const char* const titles[] = {"HR@5", "HR@10", "HR@20", "NDCG@5", "NDCG@10", "NDCG@20", "MRR"};
  ASSERT_EQ(table.columns.size(), 9u);
  for (std::size_t arm = 0; arm < 3; ++arm) {
    EXPECT_EQ(table.rows[arm][0], run.arms[arm]);
    EXPECT_EQ(table.rows[arm][1], arm == 1 ? "2 of 3" : "3");
    for (std::size_t i = 0; i < 7; ++i) {
      EXPECT_EQ(table.columns[2 + i].heading, titles[i]);
      const auto expected = over(by_seed(run, arm, metrics[i]));
      EXPECT_EQ(table.rows[arm][2 + i], arm == 2 ? printed(expected.mean) : printed(expected)) << metrics[i];
    }
  }
}

TEST(TestMetrics, ThePaperStandsBesideItsDataSet) {
  const PaperTable table = blocks_of<PaperTable>(test_metrics_section, beside_beauty(made_recommend_run())).at(0);
  ASSERT_EQ(table.rows.size(), 4u);
  // bft.tex, Table main-sasrec
  EXPECT_THAT(table.rows[2],
              ElementsAre("paper", "20", "–", ".0881 (.0018)", "–", "–", ".0504 (.0010)", "–", ".0453 (.0007)"));
  EXPECT_THAT(table.rows[3],
              ElementsAre("paper, BFT", "20", "–", ".0890 (.0009)", "–", "–", ".0506 (.0008)", "–", ".0455 (.0008)"));
}

TEST(TestMetrics, TheCsvFileHasALineForEachArmAndFinishedSeed) {
  const runfile::RecommendRun run = uneven_recommend_run();
  const CsvTable table = test_metrics_section.tables(trained(run)).at(0);
  ASSERT_EQ(table.rows.size(), 8u);
  EXPECT_EQ(std::get<std::string>(table.rows[3][0]), "bft");
  EXPECT_EQ(std::get<std::string>(table.rows[4][1]), "2");  // seed 1 is not finished
  EXPECT_EQ(std::get<std::int64_t>(table.rows[4][3]), run.result(1, 2)->best_epoch);
  EXPECT_EQ(std::get<std::int64_t>(table.rows[5][3]), 0);  // popularity
  for (std::size_t i = 0; i < ranking_metrics().size(); ++i) {
    EXPECT_EQ(table.header[4 + i], ranking_metrics()[i].name());
    if (i < 7) {
      EXPECT_NEAR(std::get<double>(table.rows[4][4 + i]), by_seed(run, 1, table.header[4 + i])[1], 1e-12);
    }
  }
}

TEST(Quintiles, EachCellIsTheMeanOverTheUsersOfItsGroup) {
  const runfile::RecommendRun run = uneven_recommend_run();
  const PaperTable table = blocks_of<PaperTable>(quintiles_section, trained(run)).at(0);
  const std::vector<std::size_t> fifth = fifth_of_items(run);
  ASSERT_EQ(table.rows.size(), 3u * 6u);  // a heading and five groups of each arm
  for (std::size_t arm = 0; arm < 3; ++arm) {
    EXPECT_THAT(table.rows[6 * arm], ElementsAre(run.arms[arm]));
    for (std::size_t group = 0; group < 5; ++group) {
      const std::vector<std::string>& row = table.rows[6 * arm + 1 + group];
      double users = 0, count = 0, known = 0;
      for (std::size_t user = 0; user < run.units.size(); ++user) {
        if (fifth[user] != group) continue;
        users += 1;
        count += static_cast<double>(run.item_train_count[static_cast<std::size_t>(run.target[user] - 1)]);
        known += static_cast<double>(run.history_length[user]);
      }
      ASSERT_GT(users, 0);
      EXPECT_EQ(row[1], fmt::format("{:.0f}", users));
      EXPECT_NEAR(std::stod(row[2]), count / users, 0.006 * count / users);  // three digits
      EXPECT_NEAR(std::stod(row[3]), known / users, 0.006 * known / users);
      const char* const metrics[] = {"hr@10", "ndcg@10", "mrr"};
      for (std::size_t i = 0; i < 3; ++i) {
        const auto expected =
            over(by_seed(run, arm, metrics[i], [&](std::size_t user) { return fifth[user] == group; }));
        EXPECT_EQ(row[4 + i], arm == 2 ? printed(expected.mean) : printed(expected)) << run.arms[arm] << group;
      }
    }
  }
}

TEST(Quintiles, TheFigureHasAPanelOfEachKindAndASeriesOfEachArm) {
  const CaptionedFigure figure = blocks_of<CaptionedFigure>(quintiles_section, trained(uneven_recommend_run())).at(0);
  ASSERT_TRUE(figure.figure) << figure.figure.reason();
  for (const char* block : {"$items_0 <<", "$items_2 <<", "$users_0 <<", "$users_2 <<"})
    EXPECT_THAT(figure.figure->script, HasSubstr(block));
}

TEST(Quintiles, BarsCountUsersToo) {
  const runfile::RecommendRun run = made_recommend_run();
  const TrainedRun report = trained(run);
  const CaptionedFigure figure = blocks_of<CaptionedFigure>(quintiles_section, report).at(0);
  EXPECT_THAT(figure.caption.shows, HasSubstr("Bars are 95% intervals over seeds and users"));
  // Some groups have too few items for an interval.
  const analyses::ArmResult& plain = report.results.arms[0];
  auto groups = plain.by_item;
  groups.insert(groups.end(), plain.by_user.begin(), plain.by_user.end());
  const auto found = std::ranges::find_if(
      groups, [](const auto& metrics) { return metrics[1].crossed && metrics[1].crossed->interval; });
  ASSERT_NE(found, groups.end());
  const analyses::SeedValues& popular = (*found)[1];
  EXPECT_NEAR(popular.crossed->value, popular.over_seeds->mean, 1e-7);  // of values in float32
  const auto& interval = *popular.crossed->interval;
  EXPECT_LT(interval.low, popular.over_seeds->mean);
  // wider than that of the seeds alone: t with 2 degrees of freedom
  EXPECT_GE(interval.high - interval.low, 2 * 4.3026 * *popular.over_seeds->deviation / std::sqrt(3.0) * (1 - 1e-4));
  EXPECT_THAT(figure.figure->script,
              HasSubstr(fmt::format("{:.9g} {:.9g}\n", std::max(interval.low, 0.0), interval.high)));
  MadeRecommender made;
  made.seeds = {0};
  EXPECT_THAT(blocks_of<CaptionedFigure>(quintiles_section, trained(made_recommend_run(made))).at(0).caption.shows,
              HasSubstr("intervals over users alone"));
}

TEST(Quintiles, TheCsvFileHoldsEverySeed) {
  const runfile::RecommendRun run = made_recommend_run();
  const CsvTable table = quintiles_section.tables(trained(run)).at(0);
  const std::vector<std::size_t> fifth = fifth_of_items(run);
  std::size_t compared = 0;
  for (const auto& row : table.rows) {
    if (std::get<std::string>(row[0]) != "item_frequency") continue;
    const auto group = static_cast<std::size_t>(std::get<std::int64_t>(row[1]) - 1);
    const std::size_t arm = std::get<std::string>(row[6]) == "plain" ? 0 : 1;
    const auto values =
        by_seed(run, arm, std::get<std::string>(row[8]), [&](std::size_t user) { return fifth[user] == group; });
    EXPECT_NEAR(std::get<double>(row[9]), values[std::stoul(std::get<std::string>(row[7]))], 1e-12);
    ++compared;
  }
  EXPECT_EQ(compared, 5u * 2u * 3u * 3u);  // groups, arms, seeds, metrics
}

TEST(LearningCurves, TheMeanEndsWithTheShortestSeed) {
  const LabelledCurves arm = {"plain", {{0, {0.1, 0.3, 0.2}, 2, {3, 2, 1}}, {1, {0.3, 0.4}, 2, {5, 4}}}, 0};
  const analyses::Maybe<Figure> figure = learning_curves_figure({&arm, 1}, "curves");
  ASSERT_TRUE(figure) << figure.reason();
  EXPECT_THAT(figure->script, AllOf(HasSubstr("$loss_mean_0 << EOD\n1 4\n2 3\nEOD"),
                                    HasSubstr("$metric_mean_0 << EOD\n1 0.2\n2 0.35\nEOD"),
                                    HasSubstr("$metric_best_0 << EOD\n2 0.3\n2 0.4\nEOD"),
                                    HasSubstr("$loss_0_0 << EOD\n1 3\n2 2\n3 1\nEOD"), HasSubstr("set xtics 1\n")));
  const CsvTable table = learning_curves_csv({&arm, 1});
  ASSERT_EQ(table.rows.size(), 5u);
  EXPECT_THAT(to_csv(table), HasSubstr("plain,0,2,2,0.3,1\nplain,0,3,1,0.2,0\nplain,1,1,5,0.3,0\n"));
}

TEST(LearningCurves, WithoutLossesThereIsOnePanelAndWithoutTrainingNone) {
  const LabelledCurves arm = {"plain", {{0, {0.1, 0.3}, 2}}, 0};
  const analyses::Maybe<Figure> figure = learning_curves_figure({&arm, 1}, "curves");
  ASSERT_TRUE(figure);
  EXPECT_THAT(figure->script, Not(HasSubstr("$loss")));
  EXPECT_THAT(learning_curves_in_words({&arm, 1}), Not(HasSubstr("loss")));
  const LabelledCurves none = {"markov", {}, 0};
  EXPECT_EQ(learning_curves_figure({&none, 1}, "curves").reason(), "no arm is trained");
  std::vector<LabelledCurves> many(7, arm);
  for (std::size_t i = 0; i < many.size(); ++i) many[i].style = i;
  EXPECT_THAT(learning_curves_figure(many, "curves").reason(), HasSubstr("7 arms; 6 can be told apart"));
}

TEST(LearningCurves, TheTableHasTheValidationAtTheBestEpoch) {
  const runfile::RecommendRun run = uneven_recommend_run();
  const PaperTable table = blocks_of<PaperTable>(training_section, trained(run)).at(0);
  ASSERT_EQ(table.rows.size(), 2u);  // popularity is not trained
  std::vector<double> best;
  std::int64_t least = 100, most = 0;
  for (std::size_t seed = 0; seed < 3; ++seed) {
    const runfile::TrainedSeed& result = *run.result(0, seed);
    best.push_back(result.curve.at("ndcg@10").back());
    least = std::min(least, result.best_epoch), most = std::max(most, result.best_epoch);
  }
  const std::string epochs = least == most ? std::to_string(least) : fmt::format("{} to {}", least, most);
  EXPECT_THAT(table.rows[0], ElementsAre("plain", "3", epochs, epochs, printed(over(best)),
                                         printed(over(by_seed(run, 0, "ndcg@10")))));
}

TEST(RunFacts, SettingsThatDifferFromThePresetAreNamed) {
  runfile::RecommendRun run = made_recommend_run();
  run.request["training"] = {{"epochs", 5}, {"width", 32}, {"new", "x"}};
  const TrainedRun report = trained(run, {{"epochs", 5}, {"width", 64}, {"heads", 2}});
  const std::vector<PaperTable> tables = blocks_of<PaperTable>(run_facts_section, report);
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_THAT(tables[0].rows,
              AllOf(Contains(ElementsAre("settings",
                                         "those of the preset paper, but new x instead of –, width 32 "
                                         "instead of 64, heads – instead of 2")),
                    Contains(ElementsAre("users", "60")), Contains(ElementsAre("items", "25")),
                    Contains(ElementsAre("interactions", "180")), Contains(ElementsAre("seeds of bft", "0 to 2")),
                    Contains(ElementsAre("trainings finished", "6 of 6"))));
  EXPECT_THAT(tables[1].rows.front(), ElementsAre("other than the preset"));
  EXPECT_THAT(tables[1].rows.back(), ElementsAre("epochs", "5", "5"));
  OrderedJson summary;
  run_facts_section.add_json(report, summary);
  EXPECT_EQ(summary["run"]["other_than_preset"]["width"], OrderedJson({{"run", 32}, {"preset", 64}}));
  EXPECT_THAT(blocks_of<PaperTable>(run_facts_section, trained(made_recommend_run())).at(0).rows,
              Contains(ElementsAre("settings", "those of the preset paper")));
}

/// A made run whose arm bft has a filter of two layers: curve c has 100 c + 10 layer + seed in every epoch but the
/// first, in which the filter is not in force.
runfile::RecommendRun filtered_run() {
  runfile::RecommendRun run = made_recommend_run();
  for (std::size_t seed = 0; seed < run.seeds.size(); ++seed) {
    runfile::TrainedSeed& result = *run.results[run.seeds.size() + seed];
    double place = 0;
    for (const runfile::FilterCurve& curve : runfile::filter_curves()) {
      std::vector<double>& values = result.filter[std::string(curve.name)];
      for (std::size_t i = 0; i < 2 * result.curve.begin()->second.size(); ++i)
        values.push_back(i < 2 ? std::nan("")
                               : 100 * place + 10 * static_cast<double>(i % 2) + static_cast<double>(seed));
      ++place;
    }
    result.best_epoch = std::max<std::int64_t>(result.best_epoch, 2);
  }
  return run;
}

TEST(FilterSection, ShowsEachLayerAtTheTestedEpoch) {
  const TrainedRun run = trained(filtered_run());
  const PaperTable table = blocks_of<PaperTable>(filter_section, run).at(0);
  ASSERT_EQ(table.rows.size(), 2u);
  // Curves in the order of the columns: their places are 0, 1, 5, 2, 3, 4, 6 and 8. Three seeds: 0, 1 and 2.
  EXPECT_THAT(table.rows[1], ElementsAre("1", "11 (1)", "111 (1)", "511 (1)", "211 (1)", "311 (1)", "411 (1)",
                                         "611 (1)", "811 (1)", "9.1e+02, 1e+03, 1.1e+03"));
  const CaptionedFigure figure = blocks_of<CaptionedFigure>(filter_section, run).at(0);
  ASSERT_TRUE(figure.figure) << figure.figure.reason();
  EXPECT_THAT(figure.figure->script,
              AllOf(HasSubstr("$gain_1 << EOD\n2 211\n"), HasSubstr("layer 1"), Not(HasSubstr("$gain_2"))));
  // gnuplot forgets the dash of a line that looks like the one before it
  EXPECT_THAT(figure.figure->script,
              AllOf(HasSubstr("linewidth 1.31 dashtype 1"), HasSubstr("linewidth 1.3 dashtype 2")));
  for (std::size_t arm = 0; arm < 2; ++arm)  // a colour is an arm in the figures around it
    EXPECT_THAT(figure.figure->script, Not(HasSubstr(std::string(run_style(arm).colour))));
  const CsvTable csv = filter_section.tables(run).at(0);
  EXPECT_THAT(to_csv(csv), HasSubstr("bft,0,2,1,101,201,301,401,501,601,701,801,901,1001,1101,1201\n"));
  EXPECT_THAT(filter_section.blocks({&run, 1}).size(), 2u);
}

TEST(FilterSection, HasAFigureOfItsOwnForEachArmWithAFilter) {
  runfile::RecommendRun run = filtered_run();
  for (std::size_t seed = 0; seed < run.seeds.size(); ++seed) {
    run.results[seed]->filter = run.results[run.seeds.size() + seed]->filter;
    run.results[seed]->best_epoch = std::max<std::int64_t>(run.results[seed]->best_epoch, 2);
  }
  const std::vector<CaptionedFigure> figures = blocks_of<CaptionedFigure>(filter_section, trained(run));
  ASSERT_EQ(figures.size(), 2u);
  EXPECT_EQ(figures[0].name, "filter");
  EXPECT_EQ(figures[1].name, "filter-2");
  EXPECT_EQ(figures[1].figure->name, "filter-2");
}

TEST(FilterSection, IsLeftOutWithoutAFilter) {
  const TrainedRun run = trained(made_recommend_run());
  EXPECT_THAT(filter_section.blocks({&run, 1}), IsEmpty());
  EXPECT_THAT(filter_section.tables(run), IsEmpty());
}

TEST(RunSummary, UnfinishedSeedsAreNamed) {
  EXPECT_THAT(words_of(run_summary_section, trained(uneven_recommend_run())),
              AllOf(HasSubstr("8 of 9 trainings are finished: bft lacks seed 1."), HasSubstr("bft (2 seeds)"),
                    HasSubstr("popularity (3 seeds, no training)")));
  EXPECT_THAT(words_of(run_summary_section, trained(made_recommend_run())), Not(HasSubstr("finished")));
}

TEST(RunSummary, SaysWhatTheTablesSay) {
  const runfile::RecommendRun run = made_recommend_run();
  const auto ndcg = [&](std::size_t arm) { return printed(over(by_seed(run, arm, "ndcg@10"))); };
  EXPECT_THAT(words_of(run_summary_section, beside_beauty(run)),
              AllOf(HasSubstr("NDCG@10 " + ndcg(0)), HasSubstr("NDCG@10 " + ndcg(1)),
                    HasSubstr("The paper prints HR@10 .0881 (.0018), NDCG@10 .0504 (.0010), MRR .0453 (.0007)"),
                    HasSubstr("bft against plain: NDCG@10 changes by "), HasSubstr(", which is ")));
}

TEST(RecommenderResults, ArmsAreComparedOverTheSeedsThatBothHave) {
  const TrainedRun report = trained(uneven_recommend_run());
  ASSERT_EQ(report.results.comparisons.size(), 2u);
  EXPECT_THAT(report.results.comparisons[0].baseline_seeds, ElementsAre(0, 2));
  EXPECT_THAT(report.results.comparisons[0].candidate_seeds, ElementsAre(0, 2));
  EXPECT_THAT(report.results.comparisons[1].baseline_seeds, ElementsAre(0, 1, 2));
  runfile::RecommendRun apart = made_recommend_run();
  apart.results[0].reset();
  for (const std::size_t bft : {4u, 5u}) apart.results[bft].reset();
  const TrainedRun left = trained(apart);
  EXPECT_THAT(left.results.comparisons, IsEmpty());
  EXPECT_THAT(words_of(run_summary_section, left),
              HasSubstr("Not compared: plain and bft have no finished seed in common: 1, 2 and 0."));
}

TEST(RecommenderResults, AnArmWithoutAFinishedSeedHasDashesAndARunWithoutOneIsRefused) {
  runfile::RecommendRun run = made_recommend_run();
  for (std::size_t seed = 3; seed < 6; ++seed) run.results[seed].reset();
  const std::vector<std::string> row = blocks_of<PaperTable>(test_metrics_section, trained(run)).at(0).rows.at(1);
  EXPECT_THAT(row, ElementsAre("bft", "0 of 3", "–", "–", "–", "–", "–", "–", "–"));
  const TemporaryFolder folder;
  EXPECT_THAT(write_recommend_report(trained(run), folder.path() / "out").failed, IsEmpty());
  for (auto& result : run.results) result.reset();
  EXPECT_EQ(refusal_of([&] { trained(run); }),
            "run: no seed is finished; repeat its gainlens train recommend command, which continues");
}

TEST(RecommendReport, EveryFileIsThereAndTheSameTwice) {
  const TemporaryFolder folder;
  const TrainedRun run = trained(made_recommend_run());
  const WrittenReport report = write_recommend_report(run, folder.path() / "one");
  EXPECT_THAT(report.left_out, IsEmpty());
  EXPECT_THAT(report.failed, IsEmpty());
  write_recommend_report(trained(made_recommend_run()), folder.path() / "elsewhere" / "two");
  const auto one = contents(folder.path() / "one");
  EXPECT_TRUE(one == contents(folder.path() / "elsewhere" / "two"));
  std::vector<std::string> names;
  for (const auto& [name, content] : one) names.push_back(name);
  EXPECT_THAT(names,
              ElementsAre("forest.pdf", "forest.png", "forest.svg", "learning-curves.pdf", "learning-curves.png",
                          "learning-curves.svg", "quintiles.pdf", "quintiles.png", "quintiles.svg", "report.html",
                          "summary.json", "tables/checks.tex", "tables/comparison.csv", "tables/comparison.tex",
                          "tables/decisions.csv", "tables/decisions.tex", "tables/gains.tex", "tables/interactions.tex",
                          "tables/learning-curves.csv", "tables/quintiles-items.tex", "tables/quintiles-users.tex",
                          "tables/quintiles.csv", "tables/run.tex", "tables/settings.tex", "tables/slopes.tex",
                          "tables/strata-items.tex", "tables/strata-users.tex", "tables/strata.csv",
                          "tables/test-metrics.csv", "tables/test-metrics.tex", "tables/training.tex"));
  EXPECT_THAT(one.at("report.html"), AllOf(HasSubstr("<details>"), HasSubstr("id=\"gains-section\"")));
}

TEST(RecommendReport, TheSummaryHoldsEveryArmAndComparison) {
  const TemporaryFolder folder;
  const runfile::RecommendRun run = uneven_recommend_run();
  write_recommend_report(trained(run), folder.path());
  const Json summary = read_json_file(folder.path() / "summary.json");
  const auto expected = over(by_seed(run, 1, "hr@20"));
  const Json& found = summary.at("arms").at("bft").at("test").at("hr@20");
  EXPECT_NEAR(found.at("mean").get<double>(), expected.mean, 1e-12);
  EXPECT_NEAR(found.at("standard_deviation").get<double>(), expected.deviation, 1e-9);
  EXPECT_EQ(summary.at("arms").at("bft").at("seeds_missing"), Json({1}));
  EXPECT_TRUE(summary.at("arms").at("popularity").at("validation_ndcg@10").is_null());
  EXPECT_EQ(summary.at("comparisons").size(), 2u);
  const Json& popularity = summary.at("comparisons").at("popularity against plain on made (sasrec)");
  EXPECT_EQ(popularity.at("baseline"), "plain");
  EXPECT_TRUE(popularity.at("decisions").at("mrr").contains("decision"));
  // Two seeds have finished.
  EXPECT_TRUE(summary.at("arms").at("bft").at("test").at("mrr").at("over_seeds_and_users").contains("range"));
  EXPECT_EQ(summary.at("strata").at("item_frequency").at("arms").at("plain").at("mrr").size(), 5u);
  EXPECT_TRUE(fs::exists(folder.path() / "tables" / "run-2" / "comparison.csv"));
}

TEST(RecommendReport, ALoneArmIsComparedWithNothing) {
  const TemporaryFolder folder;
  MadeRecommender made;
  made.arms = {"plain"};
  write_recommend_report(trained(made_recommend_run(made)), folder.path());
  const std::string page = read_text_file(folder.path() / "report.html");
  EXPECT_THAT(page, AllOf(Not(HasSubstr("gains-section")), HasSubstr("The correlation between known items")));
  EXPECT_THAT(read_json_file(folder.path() / "summary.json").at("comparisons"), IsEmpty());
}

// The table of sections

template <typename Run>
void add_to_index(const std::vector<const Section<Run>*>& sections, std::string& index) {
  for (const Section<Run>* section : sections) {
    std::string files;
    for (const std::string& stem : section->files) files += (files.empty() ? "`" : ", `") + stem + "`";
    index += fmt::format("| {} | {} | {} |\n", section->title, section->question, files);
  }
}

/// The table in docs/report.md is written by hand; this prints the right one where they differ.
TEST(RecommendSections, TheIndexInTheDocumentationIsThisTable) {
  std::string index = "| section | what it answers | files |\n| --- | --- | --- |\n";
  add_to_index(opening_run_sections, index);
  add_to_index(answer_sections, index);
  add_to_index(run_sections, index);
  add_to_index(arm_comparison_sections, index);
  add_to_index(closing_run_sections, index);
  EXPECT_THAT(read_text_file(fs::path(GAINLENS_SOURCE_DIR) / "docs" / "report.md"), HasSubstr(index)) << index;
}

TEST(RecommendSections, EachListsTheKeysThatItWrites) {
  const TrainedRun run = trained(uneven_recommend_run());
  for (const Section<TrainedRun>* section : run_sections) {
    if (!section->add_json) continue;
    OrderedJson summary = OrderedJson::object();
    section->add_json(run, summary);
    for (const auto& [key, value] : summary.items()) {
      const auto names_it = [&, &name = key](std::string_view known) {
        return name == known || name == std::string(known) + "_reason";
      };
      EXPECT_TRUE(std::any_of(section->keys.begin(), section->keys.end(), names_it)) << section->name << ": " << key;
    }
  }
}

}  // namespace recommend_report_test
}  // namespace gainlens::reports
