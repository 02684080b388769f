#include "runfile/request.h"

#include "core/error.h"
#include "runfile/made_run.h"
#include "support/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gainlens::runfile {
namespace request_test {

using ::testing::HasSubstr;
using testing::made_request;
using ::testing::ThrowsMessage;

Json altered(const std::string& key, const Json& value) {
  Json json = made_request().to_json();
  json[key] = value;
  return json;
}

std::string refusal(const Json& json) {
  return testing::refusal_of([&] { Request::from_json(json, "F"); });
}

TEST(Request, IsTheSameAfterJson) {
  Request request = made_request();
  EXPECT_EQ(Request::from_json(request.to_json(), "F").to_json(), request.to_json());
  request.bos.reset();
  EXPECT_TRUE(request.to_json().at("bos").is_null());
  EXPECT_FALSE(Request::from_json(request.to_json(), "F").bos.has_value());
}

TEST(Request, JsonIsCanonical) {
  const std::string text = made_request().to_json().dump();
  EXPECT_EQ(text.find("{\"allow_extrapolation\":false,\"attention\":[\"global\",\"window:512\"],\"bos\":1,"), 0u);
}

TEST(Request, MissingSurplusAndMistypedKeysAreNamed) {
  Json json = made_request().to_json();
  json.erase("head_dim");
  EXPECT_EQ(refusal(json), "F: key 'head_dim' is missing; this is not a request of gainlens sweep");
  EXPECT_EQ(refusal(altered("headdim", 3)), "F: key 'headdim' is not known; did you mean 'head_dim'?");
  EXPECT_EQ(refusal(altered("heads", 1.5)), "F: 'heads' is 1.5; it must be an integer");
  EXPECT_EQ(refusal(altered("heads", 18446744073709551615u)),
            "F: 'heads' is 18446744073709551615; it must be an integer");
  EXPECT_EQ(refusal(altered("gated", 1)), "F: 'gated' is 1; it must be true or false");
  EXPECT_EQ(refusal(altered("dtype", nullptr)), "F: 'dtype' is null; it must be a string");
  EXPECT_EQ(refusal(altered("lengths", 8)), "F: 'lengths' is 8; it must be an array");
  EXPECT_EQ(refusal(altered("lengths", {"8"})), "F: 'lengths' is \"8\"; it must be an integer");
  EXPECT_EQ(refusal(altered("model", "x")), "F: 'model' is \"x\"; it must be an object of file names and checksums");
  EXPECT_EQ(refusal(altered("bos", "x")), "F: 'bos' is \"x\"; it must be an integer");
  EXPECT_EQ(refusal(Json::array()), "F: is not a JSON object; a request of gainlens sweep is one");
}

TEST(Request, AnotherStatisticsVersionIsRefused) {
  EXPECT_THAT(refusal(altered("statistics_version", statistics_version + 1)),
              HasSubstr("statistics_version is 5; this gainlens reads versions 1 to 4: use the gainlens"));
  EXPECT_THAT(refusal(altered("statistics_version", 0)), HasSubstr("statistics_version is 0"));
  EXPECT_THAT(refusal(altered("statistics_version", "1")),
              HasSubstr("'statistics_version' is \"1\"; it must be an integer"));
  Json json = made_request().to_json();
  json.erase("statistics_version");
  EXPECT_THAT(refusal(json), HasSubstr("key 'statistics_version' is missing"));
}

TEST(Request, ALowerStatisticsVersionIsReadAndNotMixed) {
  const Request older = Request::from_json(altered("statistics_version", 1), "F");
  EXPECT_EQ(older.version, 1);
  EXPECT_EQ(older.to_json().at("statistics_version"), 1);
  EXPECT_EQ(older.difference(made_request()), "statistics_version is 1 in the stored request and 4 in this one");
}

TEST(Request, ValuesOutOfRangeAreNamed) {
  EXPECT_THAT(refusal(altered("lengths", {24, 8})), HasSubstr("'lengths' is [24, 8]; it must be increasing"));
  EXPECT_THAT(refusal(altered("lengths", {8, 8})), HasSubstr("'lengths' is [8, 8]"));
  EXPECT_THAT(refusal(altered("lengths", Json::array())), HasSubstr("'lengths' is []"));
  EXPECT_THAT(refusal(altered("lengths", {0, 8})), HasSubstr("'lengths' is [0, 8]"));
  EXPECT_THAT(refusal(altered("layers", {-1, 5})), HasSubstr("'layers' is [-1, 5]"));
  EXPECT_THAT(refusal(altered("layers", {3})), HasSubstr("'attention' names 2 layers; 'layers' has 1"));
  EXPECT_THAT(refusal(altered("attention", {"global", "window:0"})),
              HasSubstr("'attention' has 'window:0'; allowed are 'global' and 'window:N'"));
  EXPECT_THAT(refusal(altered("attention", {"global", "window:5x"})), HasSubstr("'window:5x'"));
  EXPECT_THAT(refusal(altered("samples", 0)), HasSubstr("'samples' is 0; it must be at least 1"));
  EXPECT_THAT(refusal(altered("dtype", "float8")),
              HasSubstr("'dtype' is 'float8'; allowed are float64, float32, bfloat16, float16"));
  EXPECT_THAT(refusal(altered("device", "tpu")),
              HasSubstr("'device' is 'tpu'; allowed are cpu, cpu:composed, cuda, cuda:fused"));
  EXPECT_THAT(refusal(altered("samples", std::int64_t{1} << 62)), HasSubstr("size of the largest dataset"));
}

TEST(Request, FirstDifferenceIsNamedWithBothValues) {
  const Request stored = made_request();
  Request asked = stored;
  asked.lengths = {64};
  asked.samples = 9;
  EXPECT_EQ(stored.difference(asked), "");
  asked.threads = 1;
  EXPECT_EQ(stored.difference(asked), "--threads is 2 in the stored request and 1 in this one");
  asked.dtype = "bfloat16";
  EXPECT_EQ(stored.difference(asked), "--dtype is \"float32\" in the stored request and \"bfloat16\" in this one");
  asked.bos.reset();
  EXPECT_EQ(stored.difference(asked), "bos is 1 in the stored request and null in this one");

  asked = stored;
  asked.model["model.safetensors"] = "e";
  EXPECT_EQ(stored.difference(asked),
            "model/model.safetensors is \"" + std::string(64, 'b') + "\" in the stored request and \"e\" in this one");
  asked.model = {{"config.json", std::string(64, 'a')}};
  EXPECT_THAT(stored.difference(asked), HasSubstr("and null in this one"));
}

TEST(Request, TheModelAndTheTextAreNamedBeforeOptions) {
  const Request stored = made_request();
  Request asked = stored;
  asked.dtype = "bfloat16";
  asked.gated = !stored.gated;
  asked.text = std::string(64, 'f');
  const InputNames before{"data/demo/gated", "a.txt"};
  EXPECT_EQ(stored.difference(asked, before, {"data/demo/gated", "b.txt"}),
            "the text is a.txt in the stored request and b.txt in this one");
  asked.model["model.safetensors"] = std::string(64, 'e');
  EXPECT_EQ(stored.difference(asked, before, {"data/demo/plain", "b.txt"}),
            "the model is data/demo/gated in the stored request and data/demo/plain in this one");
  EXPECT_THAT(stored.difference(asked, before, before),
              HasSubstr("the model data/demo/gated has changed since: model/model.safetensors is \"bbbb"));
  EXPECT_THAT(stored.difference(asked), HasSubstr("model/model.safetensors is \"bbbb"));
}

TEST(Request, TheBosIsNamedByItsOption) {
  const Request stored = made_request();
  Request asked = stored;
  asked.bos.reset();
  asked.bos_policy = "no BOS (--bos never)";
  EXPECT_EQ(stored.difference(asked),
            "--bos is \"" + stored.bos_policy + "\" in the stored request and \"no BOS (--bos never)\" in this one");
}

TEST(Request, NestedRunsKeepTheirLongestLength) {
  Request stored = made_request();
  stored.nested = true;
  Request asked = stored;
  asked.lengths = {16, 24};
  EXPECT_EQ(stored.difference(asked), "");
  asked.lengths = {8, 24, 32};
  EXPECT_EQ(stored.difference(asked),
            "the longest of lengths is 24 in the stored request and 32 in this one, and nested chunks are cut from the "
            "longest");
}

TEST(Request, OneFromBeforeSpreadIsAsItWas) {
  const Json json = made_request().to_json();
  EXPECT_FALSE(json.contains("spread"));
  EXPECT_FALSE(Request::from_json(json, "F").spread.has_value());
}

TEST(Request, SpreadIsKeptAndChecked) {
  Request request = made_request();
  request.spread = 500;
  EXPECT_EQ(Request::from_json(request.to_json(), "F").spread, 500);
  EXPECT_EQ(refusal(altered("spread", nullptr)), "F: 'spread' is null; it must be an integer");
  EXPECT_EQ(refusal(altered("spread", 45)), "F: 'spread' is 45; 2 samples of length 24 need at least 46 tokens");
  EXPECT_EQ(refusal(altered("spread", 46)), "accepted");
  EXPECT_THAT(refusal(altered("spread", INT64_MAX)), HasSubstr("is too large"));
}

TEST(Request, TheEstimatorIsStoredIfItIsNotReml) {
  Request request = made_request();
  EXPECT_FALSE(request.to_json().contains("estimator"));
  request.estimator = {Estimator::kish};
  EXPECT_EQ(request.to_json().at("estimator"), "kish");
  EXPECT_FALSE(request.to_json().contains("score_noise"));
  EXPECT_EQ(Request::from_json(request.to_json(), "F").estimator, request.estimator);
  request.estimator = {Estimator::delta_weight_free, 0.1};
  EXPECT_EQ(Request::from_json(request.to_json(), "F").estimator, request.estimator);
  EXPECT_EQ(made_request().difference(request),
            "the estimator (--estimator, --score-noise) is reml in the stored request and delta_weight_free with "
            "score noise 0.1 in this one");
  EXPECT_THAT(refusal(altered("estimator", "kisch")), HasSubstr("F: 'estimator': no estimator 'kisch'"));
  EXPECT_THAT(refusal(altered("estimator", "delta")), HasSubstr("'estimator' is delta; a sweep does not have it"));
  EXPECT_THAT(refusal(altered("estimator", 3)), HasSubstr("'estimator' is 3; it must be a string"));
  EXPECT_THAT(refusal(altered("estimator", "delta_weight_free")), HasSubstr("key 'score_noise' is missing"));
  EXPECT_THAT(refusal(altered("score_noise", 0.1)), HasSubstr("'score_noise' is 0.1; only delta_weight_free has one"));
}

TEST(Request, IgnoredKeysAreKeptAndCompared) {
  const Request stored = made_request();
  EXPECT_FALSE(stored.to_json().contains("ignored_config_keys"));
  EXPECT_TRUE(Request::from_json(stored.to_json(), "F").ignored_config_keys.empty());
  Request asked = stored;
  asked.ignored_config_keys = {"a", "rope_scaling.b"};
  EXPECT_EQ(Request::from_json(asked.to_json(), "F").ignored_config_keys, asked.ignored_config_keys);
  EXPECT_EQ(stored.difference(asked),
            "what is not read of config.json (--ignore-config-key) is nothing in the stored request and a, "
            "rope_scaling.b in this one");
  EXPECT_NE(asked.difference(stored), "");
  EXPECT_EQ(asked.difference(asked), "");
  EXPECT_EQ(refusal(altered("ignored_config_keys", {"b", "a"})),
            "F: 'ignored_config_keys' is [b, a]; it must be sorted names, each once");
  EXPECT_EQ(refusal(altered("ignored_config_keys", "a")), "F: 'ignored_config_keys' is \"a\"; it must be an array");
}

TEST(Request, KvHeadsOfLayersAreKeptAndChecked) {
  Request request = made_request();
  EXPECT_FALSE(request.to_json().contains("layer_kv_heads")) << "requests of other models are as they were before";
  EXPECT_EQ(kv_heads_in_words(request), fmt::format("{} KV heads", request.kv_heads));
  request.layer_kv_heads.assign(request.layers.size(), request.kv_heads);
  request.layer_kv_heads.front() = 1;
  EXPECT_EQ(Request::from_json(request.to_json(), "F").layer_kv_heads, request.layer_kv_heads);
  EXPECT_EQ(kv_heads_in_words(request), fmt::format("1 or {} KV heads", request.kv_heads));
  const auto refused = [&](std::vector<std::int64_t> numbers) {
    request.layer_kv_heads = std::move(numbers);
    return refusal(request.to_json());
  };
  EXPECT_THAT(refused(std::vector<std::int64_t>(request.layers.size(), request.kv_heads + 1)),
              HasSubstr("each must divide 'kv_heads'"));
  EXPECT_THAT(refused(std::vector<std::int64_t>(request.layers.size(), 0)), HasSubstr("'layer_kv_heads' holds 0"));
  EXPECT_THAT(refused(std::vector<std::int64_t>(request.layers.size() + 1, 1)), HasSubstr("'layer_kv_heads' has"));
}

TEST(Request, AFilterIsKept) {
  Request request = made_request();
  EXPECT_FALSE(request.to_json().contains("filtered")) << "requests without a filter are as they were before";
  EXPECT_FALSE(Request::from_json(request.to_json(), "F").filtered);
  request.filtered = true;
  EXPECT_TRUE(Request::from_json(request.to_json(), "F").filtered);
  EXPECT_EQ(refusal(altered("filtered", 1)), "F: 'filtered' is 1; it must be true or false");
}

TEST(Request, SpreadRunsKeepTheirSamples) {
  Request stored = made_request();
  stored.spread = 500;
  Request asked = stored;
  asked.lengths = {16, 24, 64};
  EXPECT_EQ(stored.difference(asked), "");  // more lengths do not move a chunk
  EXPECT_FALSE(stored.covers(asked));
  for (const std::int64_t samples : {1, 3}) {
    asked.samples = samples;
    EXPECT_EQ(stored.difference(asked), "samples is 2 in the stored request and " + std::to_string(samples) +
                                            " in this one, and this number decides where every spread chunk lies");
    EXPECT_FALSE(stored.covers(asked));
  }
  asked = made_request();
  EXPECT_EQ(stored.difference(asked),
            "chunks are spread over 500 tokens in the stored request and consecutive in this one");
  EXPECT_EQ(asked.difference(stored),
            "chunks are consecutive in the stored request and spread over 500 tokens in this one");
  asked.spread = 501;
  EXPECT_NE(stored.difference(asked), "");
}

TEST(Request, UnionAndCover) {
  const Request stored = made_request();  // lengths 8, 24; 2 samples
  Request asked = stored;
  asked.lengths = {16, 24};
  asked.samples = 1;
  const Request both = stored.united(asked);
  EXPECT_EQ(both.lengths, (std::vector<std::int64_t>{8, 16, 24}));
  EXPECT_EQ(both.samples, 2);
  EXPECT_FALSE(stored.covers(asked));
  EXPECT_TRUE(both.covers(asked));
  EXPECT_TRUE(both.covers(stored));
  asked.samples = 3;
  EXPECT_FALSE(both.covers(asked));
  asked.dtype = "float64";
  EXPECT_THROW(stored.united(asked), InternalError);
}

}  // namespace request_test
}  // namespace gainlens::runfile
