// What `gainlens k-by-frequency` computes of several models, and its words, figure and page.
#include "reports/frequency/frequency_report.h"
#include "support/file_bytes.h"
#include "support/refusal.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

namespace gainlens::reports {
namespace frequency_test {

using analyses::FilteredArm;
using analyses::FrequencyReading;
using gainlens::testing::bytes_of;
using gainlens::testing::refusal_of;
using gainlens::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<double> counts = [] {
  std::vector<double> made;
  for (int item = 0; item < 60; ++item) made.push_back(1 + item);
  return made;
}();

/// 40 users with 10 of the 60 items. K of a model is slope * item, plus a share of noise; lambda is constant.
FilteredPositions model_of(double slope, double share = 0) {
  FilteredPositions model;
  model.layers.resize(1);
  for (std::size_t user = 0; user < 40; ++user) {
    for (std::size_t i = 0; i < 10; ++i) {
      const std::size_t item = (user * 17 + i * i * 7 + i * 3) % 60;
      const double noise = std::sin(static_cast<double>(user * user * 31 + i * 17));
      model.read.item.push_back(item);
      model.read.place.push_back(static_cast<double>(i + 1));
      model.read.length.push_back(10);
      model.layers[0].gain.push_back(slope * static_cast<double>(item) + share * noise);
      model.layers[0].precision.push_back(7);
    }
    model.read.begin.push_back(model.read.item.size());
  }
  return model;
}

FrequencyReading reading_of(const FilteredArm& arm, const std::vector<FilteredArm>& placebos = {},
                            const std::string& against = "") {
  return analyses::frequency_reading(arm, placebos, counts, {.bins = 4, .against = against});
}

TEST(FrequencyTerminal, SaysWhichWayAQuantityGoesAndWhyOneIsMissing) {
  const std::string rises = print_frequency(reading_of({"bft", {0}, {model_of(0.01)}}));
  EXPECT_THAT(rises,
              AllOf(HasSubstr("arm bft, seed 0: 40 users, 400 positions\n60 of 60 items have a position"),
                    HasSubstr("\n    0  K       +1.000 [+1.000, +1.000]          –"), HasSubstr("+0.126\n"),
                    HasSubstr("layer 0, K: rises with frequency (rarest group of items 0.0700, most frequent 0.520)"),
                    HasSubstr("layer 0, lambda: no rho: the quantity is constant\n")));
  EXPECT_THAT(print_frequency(reading_of({"bft", {0}, {model_of(-0.01)}})),
              HasSubstr("layer 0, K: falls with frequency"));
  EXPECT_THAT(print_frequency(reading_of({"bft", {0}, {model_of(0, 1)}})),
              HasSubstr("K: no trend with frequency is shown"));
}

TEST(FrequencyTerminal, SaysInHowManySeedsATrendHasItsSign) {
  const std::string text = print_frequency(
      reading_of({"bft", {0, 1, 2, 3}, {model_of(0.01), model_of(0.01), model_of(0.01), model_of(-0.01)}}));
  EXPECT_THAT(text, HasSubstr("layer 0, K: rises with frequency in 3 of 4 seeds (rarest"));
  EXPECT_THAT(print_frequency(reading_of({"bft", {0, 1}, {model_of(-0.01), model_of(-0.01)}})),
              HasSubstr("layer 0, K: falls with frequency in 2 of 2 seeds (rarest"));
}

TEST(FrequencyTerminal, NamesWhatStandsInThePlaceOfTheCounts) {
  const FrequencyReading reading = reading_of({"bft", {0}, {model_of(0.01)}}, {}, "noise");
  EXPECT_THAT(
      print_frequency(reading),
      AllOf(HasSubstr("layer 0, K: rises with noise (items of the lowest noise 0.0700, of the highest 0.520)"),
            HasSubstr("over its positions against its noise;"), Not(HasSubstr("paper")), Not(HasSubstr("requency"))));
  EXPECT_EQ(analyses::to_json(reading).at("against"), "noise");
  const ReadFrequency arm{&reading};
  EXPECT_THAT(frequency_figure({&arm, 1})->script,
              AllOf(HasSubstr("set xlabel \"noise of the items\""), Not(HasSubstr("set logscale x"))));
}

TEST(FrequencyTerminal, JudgesTheDifferenceToAPlacebo) {
  const FilteredArm model{"bft", {3, 4}, {model_of(0.01), model_of(0.02)}},
      flat{"flat", {3, 4}, {model_of(0, 1), model_of(0, 2)}};
  const FrequencyReading above = reading_of(model, {flat, model});
  const std::string text = print_frequency(above);
  EXPECT_THAT(
      text,
      AllOf(HasSubstr("seeds 3, 4"), HasSubstr("\nflat         0  K       "), HasSubstr("\nbft          0  lambda  "),
            HasSubstr("    rises more, or falls less, than in placebo flat\n    no difference is shown to "
                      "placebo bft\n"),
            Not(HasSubstr("tau_base"))));
  const analyses::FrequencyQuantity& gain = above.layers[0].gain;
  ASSERT_EQ(gain.placebos.size(), 2u);
  EXPECT_EQ(*gain.placebos[0].difference.value, *gain.mean.rho - *gain.placebos[0].mean.rho);
  EXPECT_EQ(*gain.placebos[1].difference.value, 0);
  EXPECT_EQ(gain.placebos[1].bins.front().mean, gain.bins.front().mean);
  EXPECT_EQ(*reading_of(flat).layers[0].gain.mean.rho, *gain.placebos[0].mean.rho);
  EXPECT_THAT(print_frequency(reading_of(flat, {model})),
              HasSubstr("    rises less, or falls more, than in placebo bft\n"));
}

TEST(FrequencyReadings, BinsAreThoseOfTheMeanOverSeeds) {
  const FrequencyReading both = reading_of({"bft", {0, 1}, {model_of(0.01), model_of(0.03)}});
  const FrequencyReading mean = reading_of({"bft", {0}, {model_of(0.02)}});
  ASSERT_EQ(both.layers[0].gain.bins.size(), 4u);
  for (std::size_t bin = 0; bin < 4; ++bin)
    EXPECT_NEAR(both.layers[0].gain.bins[bin].mean, mean.layers[0].gain.bins[bin].mean, 1e-15);
  const OrderedJson json = analyses::to_json(both);
  EXPECT_EQ(json.at("groups"), 40);
  EXPECT_EQ(json.at("layers")[0].at("gain").at("seeds").size(), 2u);
  EXPECT_EQ(json.at("layers")[0].at("precision").at("rho_reason"), "the quantity is constant");
}

TEST(FrequencyReadings, ModelsOfOtherPositionsAreRefused) {
  FilteredPositions other = model_of(0.01);
  other.read.place[0] = 2;
  const FilteredArm model{"bft", {0}, {model_of(0.01)}}, differs{"other", {0}, {other}};
  EXPECT_THAT(refusal_of([&] { reading_of(model, {differs}); }), HasSubstr("other: its models read other positions"));
  FilteredPositions deeper = model_of(0.01);
  deeper.layers.resize(2, deeper.layers[0]);
  EXPECT_THAT(refusal_of([&] {
                reading_of({"bft", {0, 1}, {model_of(0.01), deeper}});
              }),
              HasSubstr("another number of layers"));
}

TEST(FrequencyReport, HasAFigureATableAndASummary) {
  const TemporaryFolder folder;
  const std::vector<FrequencyReading> one = {reading_of({"bft", {0}, {model_of(0.01, 0.1)}})};
  const WrittenReport written = write_frequency_report(one, folder.path() / "page");
  EXPECT_TRUE(written.left_out.empty());
  EXPECT_TRUE(written.failed.empty());
  EXPECT_THAT(bytes_of(folder.path() / "page/report.html"), AllOf(HasSubstr("layer 0, <i>K</i>: rises with frequency"),
                                                                  HasSubstr("<td>+0.984 [+0.970, +0.998]</td>")));
  EXPECT_THAT(bytes_of(folder.path() / "page/tables/k-by-frequency-trends.csv"),
              HasSubstr("layer,of,rho,rho_low,rho_high,seed_deviation,partial_rho,"));
  EXPECT_THAT(bytes_of(folder.path() / "page/tables/k-by-frequency.csv"),
              HasSubstr("\n0,precision,,4,15,46,60,53,7,7,7\n"));
  std::vector<FrequencyReading> arms(2, one.front());
  arms[1].arm = "bft/wide";
  EXPECT_TRUE(write_frequency_report(arms, folder.path() / "two").left_out.empty());
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "two/tables/run-2/k-by-frequency.csv"));
  const std::vector<ReadFrequency> many(7, ReadFrequency{one.data()});
  EXPECT_THAT(frequency_figure(many).reason(), HasSubstr("7 curves of arms and placebos; 6 can be told apart"));
}

}  // namespace frequency_test
}  // namespace gainlens::reports
