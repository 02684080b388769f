#include "analyses/shared_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gainlens::analyses {
namespace shared_text_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

runfile::Request request_with(std::vector<std::int64_t> lengths, std::int64_t samples) {
  runfile::Request request;
  request.lengths = std::move(lengths);
  request.samples = samples;
  return request;
}

Length length_with(std::int64_t tokens, std::int64_t samples, std::size_t index = 0) {
  Length length{index, tokens, {}, 0};
  for (std::int64_t sample = 0; sample < samples; ++sample) length.samples.push_back(sample);
  return length;
}

ByChunk by_chunk(const std::vector<double>& values) {
  ByChunk chunks;
  for (const double value : values) chunks.emplace(static_cast<std::int64_t>(chunks.size()), value);
  return chunks;
}

TEST(TextStretches, ConsecutiveChunksOfAShorterLengthLieInTheFirstStretches) {
  const auto text = text_stretches(request_with({4, 8}, 5), {length_with(4, 5), length_with(8, 5, 1)});
  EXPECT_THAT(text.chunk_stretch[0], ElementsAre(0, 0, 1, 1, 2));
  EXPECT_THAT(text.chunk_stretch[1], ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(text.numbers, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(text.fewest, 3u);
  EXPECT_EQ(text.scarcest, 4);
}

TEST(TextStretches, AChunkBelongsWhereMostOfItIs) {
  runfile::Request request = request_with({256, 1024}, 5);
  request.bos = 1;  // chunk 4 of 256 has the tokens [1020, 1275); 3 of them lie in the first stretch of 1023
  EXPECT_THAT(text_stretches(request, {length_with(256, 5), length_with(1024, 5, 1)}).chunk_stretch[0],
              ElementsAre(0, 0, 0, 0, 1));
}

TEST(TextStretches, NestedAndSpreadChunksPairByNumber) {
  runfile::Request request = request_with({4, 8}, 5);
  request.nested = true;
  EXPECT_THAT(text_stretches(request, {length_with(4, 5), length_with(8, 5, 1)}).chunk_stretch[0],
              ElementsAre(0, 1, 2, 3, 4));
  request.nested = false;
  request.spread = 1000;
  EXPECT_THAT(text_stretches(request, {length_with(4, 5), length_with(8, 5, 1)}).chunk_stretch[0],
              ElementsAre(0, 1, 2, 3, 4));
}

TEST(TextStretches, OneLengthIsItsOwnStretches) {
  const auto text = text_stretches(request_with({8}, 3), {length_with(8, 3)});
  EXPECT_THAT(text.chunk_stretch[0], ElementsAre(0, 1, 2));
  EXPECT_EQ(text.fewest, 3u);
}

TEST(DifferenceOfMeans, NestedChunksArePaired) {
  runfile::Request request = request_with({4, 8}, 3);
  request.nested = true;
  const auto found =
      difference_of_means(request, length_with(8, 3, 1), by_chunk({2, 4, 9}), length_with(4, 3), by_chunk({1, 2, 6}));
  // differences 1, 2, 3: mean 2, standard error 1 / sqrt 3
  EXPECT_DOUBLE_EQ(found->value, 2);
  EXPECT_NEAR(found->estimate->error, 1 / std::sqrt(3.0), 1e-12);
  EXPECT_EQ(found->estimate->degrees_of_freedom, 2);
  EXPECT_EQ(found->basis, "3 paired chunks");
}

TEST(DifferenceOfMeans, NumbersPairNothingWhereTextIsConsecutive) {
  // Chunk c of 8 tokens holds the chunks 2c and 2c + 1 of 4 tokens. Its value is the mean of its two halves, without
  // noise of its own, so that the difference comes from the text alone. Pairing by number would compare chunk 2 of 8
  // (the text of the short chunks 4 and 5) with the short chunk 2.
  const runfile::Request request = request_with({4, 8}, 6);
  // The effects of the twelve stretches of 4 tokens.
  const std::vector<double> text{1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1};
  std::vector<double> shorter(text.begin(), text.begin() + 6), longer;
  for (std::size_t i = 0; i < 6; ++i) longer.push_back((text[2 * i] + text[2 * i + 1]) / 2);
  const auto found =
      difference_of_means(request, length_with(8, 6, 1), by_chunk(longer), length_with(4, 6), by_chunk(shorter));
  EXPECT_NEAR(found->value, 0, 1e-12);
  EXPECT_EQ(found->estimate.reason(), same_in_every_chunk);  // all stretches agree
  EXPECT_EQ(found->basis, "6 chunks of 8 and 6 of 4 in 6 stretches of text");
}

TEST(DifferenceOfMeans, LeavesOutAStretchAtBothLengths) {
  // Stretches hold {x0; y0 y1}, {x1; y2 y3}, {x2; y4}, {x3}, {x4}
  const runfile::Request request = request_with({4, 8}, 5);
  const std::vector<double> x{3, 1, 4, 1, 5}, y{2, 7, 1, 8, 2};
  const auto found = difference_of_means(request, length_with(8, 5, 1), by_chunk(x), length_with(4, 5), by_chunk(y));
  const double without[] = {11.0 / 4 - 11.0 / 3, 13.0 / 4 - 11.0 / 3, 10.0 / 4 - 18.0 / 4, 13.0 / 4 - 20.0 / 5,
                            9.0 / 4 - 20.0 / 5};
  double centre = 0, squares = 0;
  for (const double value : without) centre += value / 5;
  for (const double value : without) squares += (value - centre) * (value - centre);
  EXPECT_DOUBLE_EQ(found->value, 14.0 / 5 - 4);
  EXPECT_NEAR(found->estimate->error, std::sqrt(0.8 * squares), 1e-12);
}

TEST(DifferenceOfMeans, UnknownCovarianceIsTakenAtItsWorst) {
  // All four chunks of 4 lie in the first chunk of 16. A quarter of the long chunks and all short chunks share text.
  const runfile::Request request = request_with({4, 16}, 4);
  const std::vector<double> x{1, 2, 3, 4}, y{2, 4, 6, 8};
  const auto found = difference_of_means(request, length_with(16, 4, 1), by_chunk(x), length_with(4, 4), by_chunk(y));
  const double a = std::sqrt(5.0 / 3 / 4), b = 2 * a;
  EXPECT_NEAR(found->estimate->error, std::sqrt(a * a + b * b + 2 * 0.5 * a * b), 1e-12);
  EXPECT_EQ(found->estimate->degrees_of_freedom, 3);
  EXPECT_THAT(found->basis, HasSubstr("with the largest covariance that shared text allows"));
}

TEST(DifferenceOfMeans, OneChunkHasAValueAndNoError) {
  for (const bool nested : {false, true}) {
    runfile::Request request = request_with({4, 8}, 1);
    request.nested = nested;
    const auto found =
        difference_of_means(request, length_with(8, 1, 1), by_chunk({3}), length_with(4, 1), by_chunk({1}));
    EXPECT_DOUBLE_EQ(found->value, 2);
    EXPECT_THAT(found->estimate.reason(), HasSubstr("at least 2 chunks; there is 1"));
  }
}

TEST(SharedText, IsSaidInWords) {
  runfile::Request request = request_with({256, 2048}, 5);
  const std::vector<Length> lengths{length_with(256, 5), length_with(2048, 5, 1)};
  EXPECT_THAT(sharing_in_words(request, lengths), HasSubstr("the chunks of 256 lie in 1 of the 5 chunks of 2k"));
  request.spread = 20000;
  EXPECT_THAT(sharing_in_words(request, lengths), HasSubstr("Spread: chunk c of a shorter length lies in the middle"));
  request.nested = true;
  EXPECT_THAT(sharing_in_words(request, lengths), HasSubstr("Nested: chunk c of a shorter length is the beginning"));
  EXPECT_EQ(sharing_in_words(request, {lengths[0]}), "One length: no text is shared between lengths.");
}

}  // namespace shared_text_test
}  // namespace gainlens::analyses
