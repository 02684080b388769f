// Tokens that are computed from a cache are those of the plain pass over the whole sequence.
#include "models/decoder/key_value_cache.h"

#include "models/decoder/attention_ops.h"
#include "models/random_decoder.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

namespace gainlens::models {
namespace key_value_cache_test {

using gainlens::testing::every_option;
using gainlens::testing::NamedConfig;
using gainlens::testing::RandomWeights;
using gainlens::testing::small_config;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Ids = std::vector<std::int64_t>;

Ids some_ids(const DecoderConfig& config, std::int64_t count, std::int64_t start) {
  Ids ids;
  for (std::int64_t i = 0; i < count; ++i) ids.push_back((i * 17 + start) % config.vocabulary);
  return ids;
}

/// The stream of the last of these tokens, by the plain pass, [width].
at::Tensor whole(Decoder& model, const Ids& ids) {
  return model.forward({at::tensor(ids, at::kLong).unsqueeze(0)}, {}, {}).hidden[0][-1];
}

double distance(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).abs().max() / b.abs().max()).item<double>();
}

class Cached : public ::testing::TestWithParam<NamedConfig> {
 protected:
  const DecoderConfig& config() const { return GetParam().config; }
  static double tolerance(at::ScalarType dtype) { return dtype == at::kDouble ? 1e-11 : 1e-5; }
  const c10::InferenceMode inference_;
};

/// Three sequences of different lengths: begun together or alone, then continued in pieces of several sizes. They pass
/// the original length of longrope (20) and both windows (5 and 7) on the way.
TEST_P(Cached, PiecesOfSeveralSequencesGiveThePlainPass) {
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat}) {
    Decoder model(config(), RandomWeights(3, dtype).of(config()));
    std::vector<KeyValueCache> caches(3, KeyValueCache(config()));
    std::vector<Ids> texts(3);
    const std::vector<std::vector<std::int64_t>> pieces = {{11, 1, 4}, {1, 1, 1}, {1, 2, 1}, {9, 1, 3}, {1, 1, 1}};
    std::int64_t start = 5;
    for (const auto& sizes : pieces) {
      std::vector<Ids> added;
      std::vector<Extension> extensions;
      for (std::size_t i = 0; i < 3; ++i) {
        added.push_back(some_ids(config(), sizes[i], start += 7));
        texts[i].insert(texts[i].end(), added[i].begin(), added[i].end());
      }
      for (std::size_t i = 0; i < 3; ++i) extensions.push_back({&caches[i], added[i]});
      const at::Tensor found = model.extend(extensions);
      ASSERT_EQ(found.size(0), 3);
      for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(caches[i].ids(), texts[i]);
        EXPECT_LT(distance(found[static_cast<std::int64_t>(i)], whole(model, texts[i])), tolerance(dtype))
            << "sequence " << i << " of " << texts[i].size() << " tokens";
      }
    }
  }
}

/// The last query of every sequence, as the kernel of a sweep sees it in a pass over the whole sequence.
TEST_P(Cached, TheLastQueryHasTheStatisticsOfThePlainPass) {
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat}) {
    Decoder model(config(), RandomWeights(3, dtype).of(config()));
    std::vector<KeyValueCache> caches(2, KeyValueCache(config()));
    std::vector<Ids> texts(2);
    const std::vector<std::vector<std::int64_t>> pieces = {{11, 1}, {1, 1}, {1, 6}, {9, 1}, {1, 1}};
    std::int64_t start = 5;
    for (const auto& sizes : pieces) {
      std::vector<Ids> added;
      std::vector<Extension> extensions;
      for (std::size_t i = 0; i < 2; ++i) {
        added.push_back(some_ids(config(), sizes[i], start += 7));
        texts[i].insert(texts[i].end(), added[i].begin(), added[i].end());
      }
      for (std::size_t i = 0; i < 2; ++i) extensions.push_back({&caches[i], added[i]});
      std::map<std::pair<std::int64_t, std::int64_t>, LastQuery> found;
      const at::Tensor stream = model.extend(extensions, false, [&](const LastQuery& seen) {
        EXPECT_TRUE(found.try_emplace({seen.sequence, seen.layer}, seen).second) << "a layer twice";
      });
      std::size_t compared = 0;
      for (std::size_t i = 0; i < 2; ++i) {
        StatisticsAttention attention([&](std::int64_t layer, kernels::QueryStatistics&& expected) {
          const auto at = found.find({static_cast<std::int64_t>(i), layer});
          ASSERT_NE(at, found.end()) << "layer " << layer;
          ++compared;
          const auto same = [&](const at::Tensor& one, const at::Tensor& all, const char* name) {
            EXPECT_TRUE(at::allclose(one, all.select(1, -1), 10 * tolerance(dtype), 10 * tolerance(dtype), true))
                << name << " of layer " << layer << ", sequence " << i << " of " << texts[i].size() << " tokens\n"
                << one << all.select(1, -1);
          };
          same(at->second.n_eff, expected.n_eff, "n_eff");
          same(at->second.kalman_gain, expected.kalman_gain, "K");
          same(at->second.entropy, expected.entropy, "entropy");
          same(at->second.bos_mass, expected.first_mass.select(2, 0), "BOS mass");
        });
        hooks::ForwardOptions options;
        options.attention = &attention;
        model.forward({at::tensor(texts[i], at::kLong).unsqueeze(0)}, options, {});
      }
      EXPECT_EQ(compared, found.size());
      EXPECT_EQ(compared, 2u * static_cast<std::size_t>(config().attention_layers(config().layers)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryOption, Cached, ::testing::ValuesIn(every_option()),
                         [](const auto& tested) { return tested.param.name; });

TEST(KeyValueCache, StatisticsChangeNoBit) {
  const c10::InferenceMode inference;
  const DecoderConfig config = small_config();
  Decoder model(config, RandomWeights(7, at::kFloat).of(config));
  const Ids begin = some_ids(config, 9, 3), next = {17};
  KeyValueCache plain(config), seen(config);
  for (const Ids& ids : {begin, next}) {
    const Extension one{&plain, ids}, other{&seen, ids};
    EXPECT_TRUE(at::equal(model.extend({&one, 1}), model.extend({&other, 1}, false, [](const LastQuery&) {})));
  }
}

/// A cache of a window holds no more than its window and what has not been forgotten yet.
TEST(KeyValueCache, AWindowForgets) {
  const c10::InferenceMode inference;
  DecoderConfig config = small_config();
  config.window = {5, 0};
  Decoder model(config, RandomWeights(4, at::kFloat).of(config));
  KeyValueCache cache(config);
  EXPECT_EQ(cache.bytes(), 0u);
  for (int i = 0; i < 300; ++i) {
    const Ids next = {(i * 7) % config.vocabulary};
    const Extension one{&cache, next};
    model.extend({&one, 1});
  }
  EXPECT_EQ(cache.length(), 300);
  EXPECT_EQ(cache.layer(0).keys.positions(), 4);
  EXPECT_EQ(cache.layer(1).values.positions(), 300);
  // 2 kv heads of 4 dimensions: 64 positions at least in one layer, at most 600 in the other.
  EXPECT_LT(cache.layer(0).keys.bytes(), 65u * 2 * 4 * 4);
  EXPECT_LT(cache.bytes(), 2u * (65 + 600) * 2 * 4 * 4);
  cache.clear();
  EXPECT_EQ(cache.length(), 0);
  EXPECT_EQ(cache.bytes(), 0u);
}

TEST(KeyValueCache, WhatCannotBeExtendedIsRefused) {
  const c10::InferenceMode inference;
  DecoderConfig config = small_config();
  config.max_positions = 6;
  Decoder model(config, RandomWeights(5, at::kFloat).of(config));
  KeyValueCache cache(config);
  const auto extend = [&](const Ids& ids, bool beyond = false) {
    const Extension one{&cache, ids};
    return model.extend({&one, 1}, beyond);
  };
  extend({1, 2, 3, 4});
  EXPECT_THAT(
      [&] {
        extend({5, 6, 7});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("7 positions; the model was made for 6 at most")));
  EXPECT_THAT([&] { extend({50}); }, ThrowsMessage<InvalidArgument>(HasSubstr("the vocabulary has 50 ids, 0 to 49")));
  EXPECT_EQ(cache.length(), 4);
  EXPECT_LT(distance(extend({5, 6, 7}, true)[0],
                     [&] {
                       hooks::ForwardOptions beyond;
                       beyond.allow_extrapolation = true;
                       return model.forward({at::tensor(Ids{1, 2, 3, 4, 5, 6, 7}, at::kLong).unsqueeze(0)}, beyond, {})
                           .hidden[0][-1];
                     }()),
            1e-5);
}

/// Rows are independent: another sequence beside it changes no bit of a text that is continued by single tokens.
TEST(KeyValueCache, OtherSequencesChangeNoBit) {
  const c10::InferenceMode inference;
  const DecoderConfig config = small_config();
  Decoder model(config, RandomWeights(6, at::kFloat).of(config));
  const Ids begin = some_ids(config, 9, 3), other = some_ids(config, 4, 8), next = {17};
  KeyValueCache alone(config), beside(config), second(config);
  for (KeyValueCache* cache : {&alone, &beside}) {
    const Extension one{cache, begin};
    model.extend({&one, 1});
  }
  const Extension first{&second, other}, own{&alone, next};
  model.extend({&first, 1});
  const std::vector<Extension> both = {{&beside, next}, {&second, next}};
  EXPECT_TRUE(at::equal(model.extend({&own, 1})[0], model.extend(both)[0]));
}

TEST(GrowingRows, HoldWhatWasAppendedAndNotForgotten) {
  GrowingRows rows;
  EXPECT_EQ(rows.positions(), 0);
  EXPECT_EQ(rows.bytes(), 0u);
  const at::Tensor all = at::arange(2 * 400 * 3, at::kFloat).view({2, 400, 3});
  std::int64_t end = 0;
  for (const std::int64_t more : {1, 63, 1, 200, 135}) {
    rows.append(all.narrow(1, end, more));
    end += more;
    EXPECT_TRUE(at::equal(rows.view(), all.narrow(1, 0, end)));
  }
  rows.keep_last(500);  // more than there are
  EXPECT_EQ(rows.positions(), 400);
  rows.keep_last(3);
  EXPECT_TRUE(at::equal(rows.view(), all.narrow(1, 397, 3)));
  rows.append(all.narrow(1, 0, 399));  // beyond the memory: what is kept moves
  EXPECT_TRUE(at::equal(rows.view(), at::cat({all.narrow(1, 397, 3), all.narrow(1, 0, 399)}, 1)));
  EXPECT_THROW(rows.append(all.to(at::kDouble)), InternalError);
  EXPECT_THROW(rows.append(all.narrow(2, 0, 2)), InternalError);
}

}  // namespace key_value_cache_test
}  // namespace gainlens::models
