// config.json: the rotation of positions.
#include "models/config_mutants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gainlens::models {
namespace rope_config_test {

using models::testing::expect_refused;
using models::testing::read;
using models::testing::tiny_with;

TEST(Config, RopeMistakes) {
  expect_refused({
      {"llama", R"({"rope_theta": 0})", "'rope_theta' is 0"},
      {"llama", R"({"rope_scaling": [8]})", "'rope_scaling' is [8]; must be a JSON object"},
      {"llama", R"({"rope_scaling": {"rope_type": "dynamic", "factor": 2}})",
       "'rope_scaling.rope_type' is 'dynamic', which is not supported"},
      {"llama", R"({"rope_scaling": {"rope_type": "dynamic", "alpha": 1000}})",
       "'rope_scaling.rope_type' is 'dynamic', which is not supported"},
      {"hunyuan_v1_dense", R"({"rope_scaling": {"rope_type": "dynamic", "factor": 2}})",
       "'rope_scaling.rope_type' is 'dynamic', which is not supported without 'alpha'"},
      {"hunyuan_v1_dense", R"({"rope_scaling": {"rope_type": "dynamic", "alpha": 0.5}})",
       "'rope_scaling.alpha' is 0.5"},
      {"hunyuan_v1_dense", R"({"rope_scaling": {"rope_type": "linear", "factor": 2, "alpha": 1000}})",
       "unknown key 'rope_scaling.alpha'"},
      {"llama", R"({"rope_scaling": {"type": "longrope"}})", "'rope_scaling.short_factor' is missing"},
      {"llama", R"({"rope_scaling": {"type": "su", "short_factor": [1, -1]}})", "'rope_scaling.short_factor' holds -1"},
      {"llama", R"({"rope_scaling": {"type": "lineer"}})", "did you mean 'linear'?"},
      {"llama", R"({"rope_scaling": {"type": "linear", "rope_type": "yarn", "factor": 2}})", "they must agree"},
      {"llama", R"({"rope_scaling": {"rope_type": "linear"}})", "'rope_scaling.factor' is missing"},
      {"llama", R"({"rope_scaling": {"rope_type": "linear", "factor": 0.5}})", "'rope_scaling.factor' is 0.5"},
      {"llama", R"({"rope_scaling": {"rope_type": "linear", "factor": 2, "beta_fast": 3}})",
       "unknown key 'rope_scaling.beta_fast'"},
      {"llama", R"({"rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1}})",
       "'rope_scaling.high_freq_factor' is missing"},
      {"llama",
       R"({"rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 4}})",
       "the first must be greater"},
      {"llama", R"({"rope_scaling": {"rope_type": "yarn", "factor": 2, "beta_fast": 1, "beta_slow": 32}})",
       "must not be smaller"},
      {"llama", R"({"rope_scaling": {"rope_type": "yarn", "original_max_position_embeddings": 4096}})",
       "the factor must be at least 1"},
      {"llama", R"({"rope_scaling": {"rope_type": "yarn", "factor": 2, "truncate": 1}})",
       "'rope_scaling.truncate' is 1"},
      {"llama", R"({"rope_theta": 1, "rope_scaling": {"rope_type": "yarn", "factor": 2}})", "yarn needs more than 1"},
      {"llama", R"({"rope_theta": 10000, "rope_parameters": {"rope_theta": 500000}})",
       "'rope_theta' is 10000 and 'rope_parameters.rope_theta' is 500000; they must agree"},
      {"llama",
       R"({"rope_scaling": {"type": "linear", "factor": 2}, "rope_parameters": {"rope_type": "linear", "factor": 4}})",
       "'rope_scaling' and 'rope_parameters' disagree"},
      {"qwen3",
       R"({"rope_parameters": {"full_attention": {"rope_theta": 1e6}, "sliding_attention": {"rope_theta": 1e4}}})",
       "'rope_parameters' has an object for one kind of layer; this family reads one for all layers"},
      {"lfm3", R"({"rope_parameters": {"full_attention": {"rope_theta": 1e6}, "sliding_attention": {}}})",
       "give it to both"},
      {"llama", R"({"rope_scaling": {"type": "linear", "factor": 2},
                    "rope_parameters": {"rope_type": "linear", "factor": 2, "rope_theta": 5e5}})",
       "'rope_parameters' has a rope_theta, which the Python reference does not read beside 'rope_scaling'"},
      {"qwen3", R"({"rope_parameters": {"full_attention": {}, "linear_attention": {}}})",
       "unknown key 'rope_parameters.linear_attention'"},
      {"llama", R"({"rope_parameters": {"partial_rotary_factor": 0.5}})",
       "'partial_rotary_factor' is 0.5; only whole heads"},
  });
}

TEST(Config, RopeOfBothSpellings) {
  const char* llama3 = R"({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                           "original_max_position_embeddings": 8192, "rope_theta": 500000.0})";
  const Json parameters = Json::parse(llama3);
  Json scaling = parameters;
  scaling.erase("rope_theta");
  for (const Json& changes :
       {Json{{"rope_parameters", parameters}}, Json{{"rope_theta", 500000.0}, {"rope_scaling", scaling}},
        Json{{"rope_theta", 500000.0}, {"rope_scaling", scaling}, {"rope_parameters", parameters}}}) {
    const RopeConfig rope = read(tiny_with(changes)).rope;
    EXPECT_EQ(rope.scaling, RopeScaling::llama3);
    EXPECT_EQ(rope.base, 500000);
    EXPECT_EQ(rope.factor, 8);
    EXPECT_EQ(rope.low_frequency_factor, 1);
    EXPECT_EQ(rope.high_frequency_factor, 4);
    EXPECT_EQ(rope.original_max_positions, 8192);
  }
}

TEST(Config, RopeDefaults) {
  for (const char* changes : {"{}", R"({"rope_scaling": null})", R"({"rope_parameters": {"rope_type": "default"}})"}) {
    const RopeConfig rope = read(tiny_with(Json::parse(changes))).rope;
    EXPECT_EQ(rope.scaling, RopeScaling::none);
    EXPECT_EQ(rope.base, 10000);
  }
}

RopeConfig read_yarn(const char* keys) {
  Json scaling = Json::parse(keys);
  scaling["rope_type"] = "yarn";
  return read(tiny_with({{"rope_scaling", scaling}, {"max_position_embeddings", 4096}})).rope;
}

TEST(Config, YarnByHand) {
  const RopeConfig plain = read_yarn(R"({"factor": 4, "original_max_position_embeddings": 1024})");
  EXPECT_EQ(plain.factor, 4);
  EXPECT_EQ(plain.beta_fast, 32);
  EXPECT_EQ(plain.beta_slow, 1);
  EXPECT_TRUE(plain.truncate);
  EXPECT_DOUBLE_EQ(plain.attention_factor.value(), 0.1 * std::log(4.0) + 1);

  const RopeConfig derived =
      read_yarn(R"({"factor": null, "original_max_position_embeddings": 512, "beta_fast": 16, "beta_slow": 2,
                                           "truncate": false})");
  EXPECT_EQ(derived.factor, 8);  // 4096 / 512
  EXPECT_EQ(derived.beta_fast, 16);
  EXPECT_EQ(derived.beta_slow, 2);
  EXPECT_FALSE(derived.truncate);

  const RopeConfig mscale = read_yarn(R"({"factor": 4, "mscale": 1.0, "mscale_all_dim": 0.5})");
  EXPECT_DOUBLE_EQ(mscale.attention_factor.value(), (0.1 * std::log(4.0) + 1) / (0.05 * std::log(4.0) + 1));
  EXPECT_EQ(mscale.original_max_positions, 4096);
  EXPECT_DOUBLE_EQ(read_yarn(R"({"factor": 4, "mscale": 0.7, "mscale_all_dim": 0})").attention_factor.value(),
                   0.1 * std::log(4.0) + 1);
  EXPECT_EQ(read_yarn(R"({"factor": 4, "mscale": 1.0, "mscale_all_dim": 0.5, "attention_factor": 1.5})")
                .attention_factor.value(),
            1.5);
  EXPECT_EQ(read_yarn(R"({"factor": 1})").attention_factor.value(), 1);
}

/// The keys of a scaling with one factor for each of the rotated pairs of tiny_config().
Json longrope_with(const Json& more) {
  Json scaling = {{"rope_type", "longrope"}, {"short_factor", {1.5}}, {"long_factor", {3}}};
  scaling.update(more);
  return scaling;
}

// Where the trained length stands in two places. The logits are in checkpoint_forms_test.cpp.
TEST(Config, TrainedLengthInTwoPlaces) {
  const Json inner = {{"original_max_position_embeddings", 16}};
  const auto read_with = [&](const char* family, const Json& scaling, const Json& outer) {
    Json changes = {{"max_position_embeddings", 128}, {"rope_scaling", scaling}};
    changes.update(outer);
    return read(tiny_with(changes, family)).rope;
  };
  const Json outer = {{"original_max_position_embeddings", 32}};
  for (const char* family : {"llama", "phi3"}) {
    const RopeConfig both = read_with(family, longrope_with(inner), outer);
    EXPECT_EQ(both.original_max_positions, 32);
    EXPECT_DOUBLE_EQ(both.attention_factor.value(), std::sqrt(1 + std::log(4.0) / std::log(32.0)));
  }
  EXPECT_EQ(read_with("llama", longrope_with(inner), Json::object()).original_max_positions, 16);
  EXPECT_EQ(read_with("phi3", longrope_with(inner), Json::object()).original_max_positions, 4096);
  EXPECT_EQ(read_with("phi3", longrope_with({{"rope_type", "yarn"}}), outer).scaling, RopeScaling::longrope);
  Json yarn = {{"rope_type", "yarn"}, {"factor", 4}, {"original_max_position_embeddings", 32}};
  EXPECT_EQ(read_with("llama", yarn, outer).original_max_positions, 32);
  const Json llama3 = {{"rope_type", "llama3"}, {"factor", 4}, {"low_freq_factor", 1}, {"high_freq_factor", 4}};
  EXPECT_EQ(read_with("llama", llama3, outer).original_max_positions, 32);
  // In a family with an object for each kind of layer, the value outside is not read.
  EXPECT_EQ(read_with("olmo3", yarn, {{"rope_theta", 500000.0}}).original_max_positions, 32);
}

TEST(Config, WhereVersionsOfTheReferenceReadAnotherTrainedLength) {
  expect_refused({
      {"llama", R"({"max_position_embeddings": 128, "original_max_position_embeddings": 32,
                    "rope_scaling": {"rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 16}})",
       "'rope_scaling.original_max_position_embeddings' is 16 and 'original_max_position_embeddings' is 32; version "
       "4.57 "
       "of the Python reference computes with the first, version 5 with the second: give --ignore-config-key "
       "original_max_position_embeddings"},
      {"llama", R"({"max_position_embeddings": 128, "original_max_position_embeddings": 32,
                    "rope_scaling": {"rope_type": "yarn", "factor": 4}})",
       "'max_position_embeddings' is 128 and 'original_max_position_embeddings' is 32"},
      {"qwen3", R"({"max_position_embeddings": 128, "original_max_position_embeddings": 32,
                    "rope_scaling": {"rope_type": "llama3", "factor": 4, "low_freq_factor": 1, "high_freq_factor": 4,
                                     "original_max_position_embeddings": 16}})",
       "version 4.57 of the Python reference computes with the first"},
      {"llama", R"({"max_position_embeddings": 128,
                    "rope_scaling": {"type": "longrope", "short_factor": [1], "long_factor": [2], "factor": 4,
                                     "original_max_position_embeddings": 16}})",
       "'rope_scaling.original_max_position_embeddings' is 16 and 'max_position_embeddings' is 128; version 5"},
      {"llama", R"({"max_position_embeddings": 128, "original_max_position_embeddings": 32,
                    "rope_scaling": {"type": "longrope", "short_factor": [1], "long_factor": [2], "factor": 8}})",
       "'rope_scaling.factor' is 8 and max_position_embeddings / original_max_position_embeddings is 4; version 5"},
      {"olmo3", R"({"max_position_embeddings": 128, "original_max_position_embeddings": 32, "rope_theta": 5e5,
                    "rope_scaling": {"rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 16}})",
       "'original_max_position_embeddings' is 32, and the Python reference ignores it and computes with 16"},
      {"phi3", R"({"rope_scaling": {"rope_type": "linear", "factor": 4}})", "a scaling other than longrope"},
  });
}

TEST(Config, LinearFactor) {
  const RopeConfig rope = read(tiny_with({{"rope_scaling", {{"type", "linear"}, {"factor", 2.5}}}})).rope;
  EXPECT_EQ(rope.scaling, RopeScaling::linear);
  EXPECT_EQ(rope.factor, 2.5);
}

}  // namespace rope_config_test
}  // namespace gainlens::models
