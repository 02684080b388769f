#include "reports/captions.h"

#include "analyses/synthetic_run.h"
#include "reports/figures.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gainlens::reports {
namespace {

using gainlens::testing::SyntheticRun;
using gainlens::testing::TemporaryFolder;
using gainlens::testing::write_run;
using ::testing::HasSubstr;
using ::testing::Not;

SyntheticRun small_run(std::int64_t samples) {
  SyntheticRun run;
  run.lengths = {64, 128};
  run.samples = samples;
  run.layers = 3;
  run.heads = 2;
  run.kv_heads = 1;
  return run;
}

/// The same run as often as asked for, under different names.
std::vector<Results> results_of(const SyntheticRun& run, std::size_t runs) {
  const TemporaryFolder folder;
  const auto reader = write_run(folder.path() / "run", run);
  std::vector<Results> results;
  for (std::size_t i = 0; i < runs; ++i)
    results.push_back(analyse({std::string(1, static_cast<char>('a' + i)), reader}, {}));
  return results;
}

std::string whole(const Caption& caption) {
  return caption.shows + " " + caption.can + " " + caption.cannot;
}

TEST(ContextCaption, ExplainsTheMarksThatAreDrawn) {
  struct Case {
    std::size_t runs;
    std::int64_t chunks;
  };
  for (const auto& [runs, chunks] : {Case{1, 3}, Case{1, 1}, Case{2, 3}, Case{2, 1}}) {
    const std::vector<Results> results = results_of(small_run(chunks), runs);
    const std::string script = context_figure(results)->script, caption = whole(context_caption(results));
    const bool bands = script.find("filledcurves") != std::string::npos,
               intervals = script.find("using 1:5:(0):($6-$5)") != std::string::npos;
    EXPECT_EQ(bands, runs == 1);
    EXPECT_EQ(intervals, chunks > 1);
    const auto says = [&](const char* words) { return caption.find(words) != std::string::npos; };
    EXPECT_EQ(says("bands are one standard deviation"), bands) << runs << " " << chunks;
    EXPECT_EQ(says("Bands are spreads"), bands) << runs << " " << chunks;
    EXPECT_EQ(says("bars are 95% intervals"), intervals) << runs << " " << chunks;
    EXPECT_EQ(says("that takes at least two chunks of a length"), !intervals) << runs << " " << chunks;
  }
}

TEST(ContextCaption, WithoutAGateSaysNothingOfOne) {
  SyntheticRun run = small_run(2);
  run.gated = false;
  const std::vector<Results> results = results_of(run, 2);
  EXPECT_THAT(context_caption(results).shows, Not(HasSubstr("logit(gate)")));
  EXPECT_THAT(context_caption(results).cannot, Not(HasSubstr("gate")));
  EXPECT_THAT(context_caption(results_of(small_run(2), 2)).shows, HasSubstr("hollow ones logit(gate)"));
}

TEST(GainTheoryCaption, HasIntervalsWhereThereAreSome) {
  EXPECT_THAT(gain_theory_caption(results_of(small_run(3), 1)).shows,
              HasSubstr("(markers, 95% intervals over chunks)"));
  EXPECT_THAT(gain_theory_caption(results_of(small_run(1), 1)).shows, HasSubstr("(markers)"));
}

TEST(SinkCaption, HollowMarkersAreExplainedWhereThereAreSome) {
  SyntheticRun run = small_run(2);
  EXPECT_THAT(sink_vs_k_caption(results_of(run, 2)).shows, Not(HasSubstr("hollow")));
  run.attention = {"window:8", "global", "global"};
  EXPECT_THAT(sink_vs_k_caption(results_of(run, 2)).shows, HasSubstr("hollow ones are set apart"));
}

}  // namespace
}  // namespace gainlens::reports
