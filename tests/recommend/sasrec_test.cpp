#include "recommend/sasrec.h"

#include "core/json.h"
#include "models/decoder/attention_ops.h"
#include "recommend/sasrec_goldens.h"
#include "support/file_bytes.h"
#include "support/refusal.h"
#include "support/shared_data.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::recommend {
namespace sasrec_test {

using gainlens::testing::refusal_of;
using gainlens::testing::TemporaryFolder;
using ::testing::HasSubstr;

TEST(SasRecForward, OfABatchIsThatOfPackedSequences) {
  for (const char* name : {"sasrec-pre-end", "sasrec-pre-start", "sasrec-post-end"}) {
    SasRec model = model_of(name);
    const std::vector<std::vector<data::ItemId>> sequences = {{3, 9, 40, 1, 7}, {8, 8, 2, 5, 11}};
    const std::vector<std::span<const data::ItemId>> spans(sequences.begin(), sequences.end());
    at::Tensor ids = at::zeros({2, 5}, at::kLong);
    for (std::int64_t i = 0; i < 10; ++i)
      ids[i / 5][i % 5] = sequences[static_cast<std::size_t>(i / 5)][static_cast<std::size_t>(i % 5)];
    const at::NoGradGuard no_gradients;
    const at::Tensor packed = model.run(pack(spans, model.config()));
    const hooks::Hooks none;
    EXPECT_LT(relative(model.forward({ids}, {}, none).hidden.flatten(0, 1), packed.to(at::kDouble)), 1e-6);
    // With statistics instead of libtorch's attention, and with an observer at every site.
    std::int64_t layers = 0;
    models::StatisticsAttention statistics([&](std::int64_t, kernels::QueryStatistics&& found) {
      ++layers;
      EXPECT_NEAR(found.n_eff[0][0].item<double>(), 1, 1e-6);
      EXPECT_LE(found.n_eff.max().item<double>(), 5);
    });
    hooks::ForwardOptions options;
    options.attention = &statistics;
    hooks::Hooks observers;
    std::map<std::string, std::vector<std::int64_t>> seen;
    observers.observe(hooks::Glob("*"), [&](const hooks::Site& site, const at::Tensor& tensor) {
      seen[site.name] = tensor.sizes().vec();
    });
    EXPECT_LT(relative(model.forward({ids}, options, observers).hidden.flatten(0, 1), packed.to(at::kDouble)), 1e-6);
    EXPECT_EQ(layers, 4);  // two layers of two sequences
    for (const hooks::SiteShape& site : model.sites()) {
      ASSERT_TRUE(seen.contains(site.site.name)) << site.site.name;
      EXPECT_EQ(seen[site.site.name].size(), site.shape.size()) << site.site.name;
    }
    EXPECT_EQ(seen.size(), model.sites().size());
  }
}

std::vector<std::string> filter_names() {
  std::vector<std::string> names = golden_names();
  std::erase_if(names, [](const std::string& name) { return !name.starts_with("filter-"); });
  return names;
}

TEST(SasRecForward, OfABatchIsThatOfPackedSequencesForEveryArm) {
  const std::vector<std::vector<data::ItemId>> sequences = {{3, 9, 4, 1, 7}, {8, 8, 2, 5, 11}};
  const std::vector<std::span<const data::ItemId>> spans(sequences.begin(), sequences.end());
  const at::Tensor ids = at::tensor({3, 9, 4, 1, 7, 8, 8, 2, 5, 11}, at::kLong).view({2, 5});
  const at::NoGradGuard no_gradients;
  for (const std::string& name : filter_names()) {
    SCOPED_TRACE(name);
    SasRec model = model_of(name);
    const at::Tensor packed = model.run(pack(spans, model.config()));
    std::map<std::string, std::vector<std::int64_t>> seen;
    hooks::Hooks observers;
    observers.observe(hooks::Glob("*"), [&](const hooks::Site& site, const at::Tensor& tensor) {
      seen[site.name] = tensor.sizes().vec();
    });
    EXPECT_LT(relative(model.forward({ids}, {}, observers).hidden.flatten(0, 1), packed.to(at::kDouble)), 1e-5);
    for (const hooks::SiteShape& site : model.sites()) {
      ASSERT_TRUE(seen.contains(site.site.name)) << site.site.name;
      EXPECT_EQ(seen[site.site.name].size(), site.shape.size()) << site.site.name;
    }
    EXPECT_EQ(seen.size(), model.sites().size());
    // What a site is replaced by acts: all but the last layer's precision of observations change what follows.
    const at::Tensor plain = model.forward({ids}, {}, {}).hidden;
    for (const hooks::SiteShape& site : model.sites()) {
      if (site.site == hooks::logits_site()) continue;  // cannot be replaced
      hooks::Hooks changed;
      changed.replace(hooks::Glob(site.site.name), [](const hooks::Site&, const at::Tensor& x) {
        return x * 0.5 + 0.1 * (1 + at::arange(x.size(-1)));
      });
      EXPECT_FALSE(at::allclose(model.forward({ids}, {}, changed).hidden, plain)) << site.site.name;
    }
  }
}

TEST(SasRecForward, FillsTheSumsOfTheStretchOfATrainingStep) {
  const std::vector<std::vector<data::ItemId>> sequences = {{3, 9, 4, 1, 7}, {8, 8, 2, 5, 11}};
  const std::vector<std::span<const data::ItemId>> spans(sequences.begin(), sequences.end());
  const at::Tensor ids = at::tensor({3, 9, 4, 1, 7, 8, 8, 2, 5, 11}, at::kLong).view({2, 5});
  std::int64_t layers = 0;
  for (const std::string& name : filter_names()) {
    SCOPED_TRACE(name);
    SasRec model = model_of(name);
    std::vector<at::Tensor> found, packed, shown;
    hooks::Hooks observers;
    observers.observe(hooks::Glob("*"), [&](const hooks::Site& site, const at::Tensor& tensor) {
      if (site.name.ends_with(bft::stretch_site)) shown.push_back(tensor.detach().flatten(0, 1).sum(0));
    });
    model.forward({ids}, {.training = true, .stretch_sums = &found}, observers);
    model.run(pack(spans, model.config()), {.training = true, .stretch_sums = &packed});
    const bool has_jacobian = model.config().armed_filter().has_jacobian();
    ASSERT_EQ(std::ssize(found), has_jacobian ? model.config().layers - 1 : 0);
    ASSERT_EQ(found.size(), shown.size());
    ASSERT_EQ(found.size(), packed.size());
    for (std::size_t layer = 0; layer < found.size(); ++layer) {
      EXPECT_EQ(found[layer].sizes(), at::IntArrayRef({model.config().width}));
      EXPECT_FALSE(found[layer].requires_grad());
      EXPECT_LT(relative(found[layer], shown[layer].to(at::kDouble)), 1e-5) << layer;
      EXPECT_LT(relative(found[layer], packed[layer].to(at::kDouble)), 1e-5) << layer;
      ++layers;
    }
  }
  EXPECT_GT(layers, 0);
}

TEST(SasRecFilter, WithAGainOfOneAndEqualPrecisionsIsThePlainLayer) {
  const at::Tensor ids = at::tensor({3, 9, 4, 1, 7, 8}, at::kLong).unsqueeze(0);
  const at::NoGradGuard no_gradients;
  for (const char* name : {"filter-bft-paper", "filter-bft-conjugate", "filter-bft-per-dimension"}) {
    Golden golden = read_golden(name);
    SasRecConfig config = golden.checkpoint.config, plain_config = config;
    plain_config.arm = Arm::plain_no_wo;
    SasRecWeights weights = golden.checkpoint.weights;
    for (SasRecLayerWeights& layer : weights.layers) {
      if (layer.filter.recency.defined()) layer.filter.recency.fill_(40);  // rho is 1
    }
    SasRec model(config, weights), plain(plain_config, weights);
    hooks::Hooks forced;
    forced.replace(hooks::Glob("*.hook_gain"),
                   [](const hooks::Site&, const at::Tensor& x) { return at::ones_like(x); });
    forced.replace(hooks::Glob("*.hook_precision"),
                   [](const hooks::Site&, const at::Tensor& x) { return at::full_like(x, 3); });
    const at::Tensor expected = plain.forward({ids}, {}, {}).hidden;
    EXPECT_LT(relative(model.forward({ids}, {}, forced).hidden, expected.to(at::kDouble)), 1e-6) << name;
    // While the filter warms up, the same without hooks, and with the same bits.
    const std::vector<data::ItemId> items{3, 9, 4, 1, 7, 8};
    const std::vector<std::span<const data::ItemId>> one{items};
    const PackedSequences packed = pack(one, config);
    weights.precision.strength.fill_(0);
    EXPECT_TRUE(at::equal(model.run(packed), plain.run(packed))) << name;
  }
}

TEST(SasRecFilter, RefusesWhatDoesNotFit) {
  SasRec model = model_of("filter-bft-paper");
  models::UsualAttention other;
  hooks::ForwardOptions options;
  options.attention = &other;
  const at::Tensor ids = at::ones({1, 3}, at::kLong);
  EXPECT_THAT(refusal_of([&] { model.forward({ids}, options, {}); }), HasSubstr("arm bft adds biases"));
  SasRecConfig config = model.config();
  config.arm = Arm::plain_popularity;
  config.filter.initial_precision = bft::InitialPrecision::em;
  EXPECT_THAT(refusal_of([&] { check(config, "c"); }), HasSubstr("arm plain-popularity has no gain"));
  Json document = Json(to_json(model.config()));
  document["arm"] = "bfd";
  EXPECT_THAT(refusal_of([&] { parse_sasrec_config(document, "c"); }),
              HasSubstr("c: 'arm' is \"bfd\"; must be one of plain, bft, "));
  document["arm"] = 3;
  EXPECT_EQ(refusal_of([&] { parse_sasrec_config(document, "c"); }), "c: 'arm' is 3; must be a name");
  document["arm"] = "bft";
  document["filter"] = "x";
  EXPECT_EQ(refusal_of([&] { parse_sasrec_config(document, "c"); }), "c: 'filter' is \"x\"; must be an object");
  document["filter"] = Json::object();
  document.erase("arm");
  EXPECT_THAT(refusal_of([&] { parse_sasrec_config(document, "c"); }), HasSubstr("'filter' is given without 'arm'"));
  document = Json(to_json(model.config()));
  document["filter"] = {{"jacobian_rank", 4}};  // what a file does not say is what held before the option existed
  EXPECT_EQ(parse_sasrec_config(document, "c"), model.config());
  document["filter"]["new_option"] = 1;
  document["filter"]["newer"] = 1;
  EXPECT_THAT(refusal_of([&] { parse_sasrec_config(document, "c"); }),
              HasSubstr("c: 'filter': made by a newer version of gainlens; unknown keys: new_option, newer"));
  document = Json(to_json(model.config()));
  document["rotary"] = true;
  EXPECT_THAT(refusal_of([&] { parse_sasrec_config(document, "c"); }),
              HasSubstr("c: made by a newer version of gainlens; unknown keys: rotary"));
  document.erase("rotary");
  document.erase("width");
  EXPECT_THAT(refusal_of([&] { parse_sasrec_config(document, "c"); }), HasSubstr("'width' is missing"));
  document = Json(to_json(model.config()));
  document.erase("filter");
  EXPECT_THAT(refusal_of([&] { parse_sasrec_config(document, "c"); }), HasSubstr("'arm' is given without 'filter'"));
}

TEST(SasRecForward, InterventionsChangeWhatFollows) {
  SasRec model = model_of("sasrec-pre-end");
  const at::NoGradGuard no_gradients;
  const at::Tensor ids = at::tensor({3, 9, 40, 1}, at::kLong).unsqueeze(0);
  const hooks::Hooks none;
  const at::Tensor plain = model.forward({ids}, {}, none).hidden;
  for (const hooks::SiteShape& site : model.sites()) {
    if (site.site == hooks::logits_site()) continue;  // cannot be replaced
    hooks::Hooks changed;
    changed.replace(hooks::Glob(site.site.name),
                    [](const hooks::Site&, const at::Tensor& x) { return x * 0.5 + 0.1 * at::arange(x.size(-1)); });
    EXPECT_FALSE(at::allclose(model.forward({ids}, {}, changed).hidden, plain)) << site.site.name;
  }
}

TEST(SasRecForward, LaterItemsLeaveEarlierOnesAsTheyAre) {
  const SasRec model = model_of("sasrec-pre-start");
  const std::vector<data::ItemId> one{3, 9, 40, 1, 7}, other{3, 9, 40, 1, 30};
  const std::vector<std::span<const data::ItemId>> first{one}, second{other};
  const at::NoGradGuard no_gradients;
  const at::Tensor before = model.run(pack(first, model.config())), after = model.run(pack(second, model.config()));
  EXPECT_TRUE(at::equal(before.narrow(0, 0, 4), after.narrow(0, 0, 4)));
  EXPECT_FALSE(at::equal(before[4], after[4]));
}

TEST(SasRecForward, RefusesWhatItCannotTake) {
  SasRec model = model_of("sasrec-pre-end");
  const hooks::Hooks none;
  const auto refusal = [&](const at::Tensor& ids) { return refusal_of([&] { model.forward({ids}, {}, none); }); };
  EXPECT_THAT(refusal(at::zeros({1, 3}, at::kLong)), HasSubstr("ids from 0 to 0; the catalogue has 1 to 40"));
  EXPECT_THAT(refusal(at::full({1, 3}, 41, at::kLong)), HasSubstr("ids from 41 to 41"));
  EXPECT_THAT(refusal(at::ones({1, 8}, at::kLong)), HasSubstr("8 positions; the model was made for 7"));
  EXPECT_THAT(refusal(at::ones({1, 3})), HasSubstr("int64"));
}

TEST(SasRecForward, LossOfTargetsIsThatOfTheLogits) {
  SasRec model = model_of("sasrec-post-end");
  const at::NoGradGuard no_gradients;
  const at::Tensor hidden = model.forward({at::tensor({3, 9, 40, 1}, at::kLong).unsqueeze(0)}, {}, {}).hidden[0];
  const at::Tensor targets = at::tensor({1, 40, 17, 2}, at::kLong);
  const at::Tensor logits = model.unembed(hidden);
  EXPECT_EQ(logits.size(1), 41);
  const at::Tensor expected = at::cross_entropy_loss(logits.to(at::kDouble), targets);
  EXPECT_NEAR(model.target_losses(hidden, targets).mean().item<double>(), expected.item<double>(), 1e-5);
  EXPECT_NEAR(model.mean_loss(hidden, targets).item<double>(), expected.item<double>(), 1e-5);
}

TEST(SasRecDevices, ATrainingStepRunsOnTheMetaDevice) {
  for (const char* name : {"sasrec-pre-end", "sasrec-post-end"}) {
    Golden golden = read_golden(name);
    const SasRecConfig& config = golden.checkpoint.config;
    const SasRec model(config, converted(config, golden.checkpoint.weights, at::TensorOptions(at::kMeta)));
    const PackedSequences packed = pack(golden.spans(), config, at::kMeta);
    const at::Tensor hidden = model.run(packed, noisy(7, 0));
    const at::Tensor targets = at::ones({packed.positions()}, at::TensorOptions(at::kMeta).dtype(at::kLong));
    model.mean_loss(hidden, targets).backward();
    SasRecWeights weights = model.weights();
    for (const models::NamedTensor& parameter : parameters_of(sasrec_slots(config, weights), WeightRole::weight)) {
      ASSERT_TRUE(parameter.tensor.grad().defined()) << parameter.name;
      EXPECT_TRUE(parameter.tensor.grad().is_meta()) << parameter.name;
    }
  }
}

TEST(SasRecDropout, DependsOnTheKeyAlone) {
  const SasRec model = model_of("sasrec-pre-end");
  const std::vector<std::vector<data::ItemId>> sequences = {{3, 9, 40, 1, 7}, {8, 8, 2}};
  const std::vector<std::span<const data::ItemId>> both(sequences.begin(), sequences.end());
  const at::NoGradGuard no_gradients;
  const at::Tensor whole = model.run(pack(both, model.config()), noisy(7, 0));
  EXPECT_TRUE(at::equal(whole, model.run(pack(both, model.config()), noisy(7, 0))));
  EXPECT_FALSE(at::equal(whole, model.run(pack(both, model.config()), noisy(8, 0))));
  // The second sequence alone, with the number of positions before it.
  const at::Tensor part = model.run(pack(std::span(both).subspan(1), model.config()), noisy(7, 5));
  EXPECT_LT(relative(part, whole.narrow(0, 5, 3).to(at::kDouble)), 1e-6);
}

TEST(SasRecStart, WeightsOfTheSameNameStartAlike) {
  SasRecConfig config;
  config.items = 30;
  config.width = 8;
  config.inner_width = 16;
  SasRecConfig deeper = config;
  deeper.layers = 3;
  const SasRecWeights one = initial_sasrec_weights(config, 5), two = initial_sasrec_weights(deeper, 5),
                      other = initial_sasrec_weights(config, 6);
  EXPECT_TRUE(at::equal(one.layers[1].query.weight, two.layers[1].query.weight));
  EXPECT_FALSE(at::equal(one.layers[1].query.weight, one.layers[0].query.weight));
  EXPECT_FALSE(at::equal(one.item_embedding, other.item_embedding));
  EXPECT_NEAR(one.item_embedding.narrow(0, 1, 30).std().item<double>(), 0.02, 0.003);
  EXPECT_EQ(one.item_embedding[0].abs().max().item<double>(), 0);
  EXPECT_TRUE(at::equal(one.final_norm.weight, at::ones({8})));
}

TEST(SasRecCheckpointFile, IsReadAsItWasWritten) {
  const TemporaryFolder folder;
  SasRec model = model_of("sasrec-pre-start");
  save_recommender(folder.path() / "m", model,
                   {.item_names = "names", .split = "s", .ties = "item", .min_item_count = 3});
  const RecommenderCheckpoint read = open_recommender(folder.path() / "m");
  EXPECT_EQ(read.model->kind().name, "sasrec");
  EXPECT_EQ(Json(read.model->document()), Json(to_json(model.config())));
  EXPECT_EQ(read.data.item_names, "names");
  EXPECT_EQ(read.data.split, "s");
  EXPECT_EQ(read.data.ties, "item");
  EXPECT_EQ(read.data.min_item_count, 3);
  const auto expected = model.slots(), found = read.model->slots();
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(at::equal(*found[i].tensor, *expected[i].tensor));
}

TEST(SasRecCheckpointFile, BrokenOnesAreRefused) {
  const auto refusal = [](const std::string& path, std::string_view layout) {
    return refusal_of([&] { open_recommender(path, layout); });
  };
  EXPECT_THAT(refusal("/no/such", own_layout), HasSubstr("no such file"));
  const TemporaryFolder folder;
  SasRec model = model_of("sasrec-pre-start");
  save_recommender(folder.path(), model, {});
  EXPECT_THAT(refusal(folder.path(), "iclrec"), HasSubstr("item_embeddings.weight"));
  EXPECT_THAT(refusal_of([&] { parse_sasrec_config(Json{{"model_type", "gpt2"}}, "c"); }), HasSubstr("'gpt2'"));
  Json document = Json(to_json(model.config()));
  document["with"] = 3;
  EXPECT_THAT(refusal_of([&] { parse_sasrec_config(document, "c"); }), HasSubstr("with"));
  document = Json(to_json(model.config()));
  document["heads"] = 3;
  EXPECT_THAT(refusal_of([&] { parse_sasrec_config(document, "c"); }), HasSubstr("must divide"));
  document = Json(to_json(model.config()));
  document["model_type"] = "gainlens-sasrek";
  gainlens::testing::write_file(folder.path() / "config.json", document.dump());
  EXPECT_THAT(refusal(folder.path(), own_layout),
              HasSubstr("'sasrek'; must be sasrec or bert4rec or hstu; did you mean 'sasrec'"));
  EXPECT_THAT(refusal_of([] { check_layout("iclerc"); }), HasSubstr("did you mean 'iclrec'"));
}

}  // namespace sasrec_test
}  // namespace gainlens::recommend
