// What HSTU has of its own: weights without a softmax, times, arms with and without an MLP.
#include "recommend/hstu.h"
#include "bft/filter_pass.h"
#include "bft/filter_step.h"
#include "core/error.h"
#include "models/decoder/attention_ops.h"
#include "recommend/full_ranking.h"
#include "recommend/hstu_goldens.h"
#include "recommend/learned.h"
#include "recommend/small_data.h"
#include "recommend/small_training.h"
#include "support/refusal.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gainlens::recommend {
namespace hstu_test {

using gainlens::testing::refusal_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Hstu, PackedHistoriesAreThoseThatStandAlone) {
  const at::NoGradGuard no_gradients;
  for (const std::string& name : golden_names("hstu")) {
    SCOPED_TRACE(name);
    const HstuGolden golden = read_hstu_golden(name);
    const std::vector<data::History> histories = golden.histories();
    for (const auto type : {at::kDouble, at::kFloat}) {
      const Hstu model = golden.model(type);
      const PackedSequences packed = pack(histories, model.view());
      const at::Tensor together = model.run(packed);
      for (std::size_t i = 0; i < histories.size(); ++i) {
        const at::Tensor alone = model.run(pack(std::vector{histories[i]}, model.view()));
        const at::Tensor rows = together.narrow(0, packed.begin[i], packed.begin[i + 1] - packed.begin[i]);
        EXPECT_LT(relative(alone, rows.to(at::kDouble)), type == at::kDouble ? 1e-12 : 5e-6);
      }
    }
  }
}

TEST(Hstu, NothingDependsOnALaterItemOrTime) {
  const at::NoGradGuard no_gradients;
  for (const std::string& name : golden_names("hstu")) {
    SCOPED_TRACE(name);
    HstuGolden golden = read_hstu_golden(name);
    const Hstu model = golden.model(at::kFloat);  // in double, library calls sum in an order that the length changes
    const auto run = [&] { return model.run(pack(std::vector{golden.histories().at(2)}, model.view())); };
    const std::size_t first = golden.sequences[0].size() + golden.sequences[1].size();
    const std::int64_t positions = std::ssize(golden.sequences[2]);
    const at::Tensor before = run();
    for (std::int64_t changed = 1; changed < positions; ++changed) {
      const HstuGolden kept = golden;
      // The times from here on alone: the item, its bias and what follows move, if the model reads times.
      for (std::int64_t i = changed; i < positions; ++i) golden.times[first + static_cast<std::size_t>(i)] += 4e7;
      const at::Tensor later = run();
      EXPECT_TRUE(at::equal(later.narrow(0, 0, changed), before.narrow(0, 0, changed)));
      EXPECT_EQ(at::equal(later[changed], before[changed]), !golden.config.time_bias);
      golden.sequences[2][static_cast<std::size_t>(changed)] =
          golden.sequences[2][static_cast<std::size_t>(changed)] % 12 + 1;
      const at::Tensor other = run();
      EXPECT_TRUE(at::equal(other.narrow(0, 0, changed), before.narrow(0, 0, changed)));
      EXPECT_FALSE(at::allclose(other[changed], later[changed]));
      golden = kept;
    }
  }
}

TEST(Hstu, TheLastStatesAreTheLastRowsOfAPassOverAllPositions) {
  const at::NoGradGuard no_gradients;
  for (const std::string& name : golden_names("hstu")) {
    SCOPED_TRACE(name);
    const HstuGolden golden = read_hstu_golden(name);
    for (const auto type : {at::kDouble, at::kFloat}) {
      const Hstu model = golden.model(type);
      const PackedSequences packed = pack(golden.histories(), model.view());
      const double tolerance = type == at::kDouble ? 1e-12 : 2e-6;
      const LastStates found = model.last_states(packed);
      EXPECT_LT(relative(found.hidden, model.run(packed).index_select(0, packed.last_rows()).to(at::kDouble)),
                tolerance);
      ASSERT_EQ(found.precision.defined(), golden.config.has_gain());
      if (!golden.config.has_gain()) continue;
      at::Tensor before, observed;
      hooks::Hooks hooks;
      const auto take = [&](std::string_view site, at::Tensor& to) {
        hooks.observe(
            hooks::block_site(golden.config.layers - 1, site),
            [&to](const hooks::Site&, const at::Tensor& seen) { to = seen.flatten(0, 1).flatten(1).clone(); });
      };
      take(bft::precision_site, before);
      take(bft::observation_site, observed);
      model.run(packed, {}, hooks);
      const at::Tensor posterior = bft::posterior_precision(before, observed, model.armed_filter().options);
      EXPECT_LT(relative(found.precision, posterior.index_select(0, packed.last_rows()).to(at::kDouble)),
                100 * tolerance);
    }
  }
}

TEST(Hstu, ABatchIsThatOfPackedSequencesWithEverySite) {
  const at::NoGradGuard no_gradients;
  const at::Tensor ids = at::tensor({3, 9, 4, 1, 8, 8, 2, 5}, at::kLong).view({2, 4});
  const std::vector<data::ItemId> first{3, 9, 4, 1}, second{8, 8, 2, 5};
  for (const std::string name : {"plain-no-times", "bft-blend"}) {
    SCOPED_TRACE(name);
    Hstu model = read_hstu_golden(name).model(at::kFloat);
    const at::Tensor packed = model.run(pack(std::vector<data::History>{{first, {}}, {second, {}}}, model.view()));
    std::size_t seen = 0;
    hooks::Hooks observers;
    observers.observe(hooks::Glob("*"), [&](const hooks::Site&, const at::Tensor&) { ++seen; });
    const at::Tensor found = model.forward({ids}, {}, observers).hidden;
    EXPECT_LT(relative(found.flatten(0, 1), packed.to(at::kDouble)), 1e-6);
    EXPECT_EQ(seen, model.sites().size());
    for (const hooks::SiteShape& site : model.sites()) {
      if (site.site == hooks::logits_site()) continue;  // cannot be replaced
      hooks::Hooks itself, changed;
      itself.replace(hooks::Glob(site.site.name), [](const hooks::Site&, const at::Tensor& x) { return x.clone(); });
      if (site.site.name.ends_with(training::balance_site)) {
        EXPECT_THAT(refusal_of([&] { model.forward({ids}, {}, itself); }), HasSubstr("replace attn.hook_pattern"));
        continue;
      }
      EXPECT_LT(relative(model.forward({ids}, {}, itself).hidden, found.to(at::kDouble)), 1e-5) << site.site.name;
      changed.replace(hooks::Glob(site.site.name), [](const hooks::Site&, const at::Tensor& x) {
        return x * 0.5 + 0.1 * (1 + at::arange(x.size(-1)));
      });
      EXPECT_FALSE(at::allclose(model.forward({ids}, {}, changed).hidden, found)) << site.site.name;
    }
    models::UsualAttention usual;
    hooks::ForwardOptions options;
    options.attention = &usual;
    EXPECT_THAT(refusal_of([&] { model.forward({ids}, options, {}); }), HasSubstr("are no softmax"));
    EXPECT_EQ(model.unembed(found[0])[0][0].item<float>(), -INFINITY);
  }
  Hstu timed = read_hstu_golden("plain").model(at::kFloat);
  EXPECT_THAT(refusal_of([&] { timed.forward({ids}, {}, {}); }), HasSubstr("--no-time-bias"));
}

TEST(Hstu, WhatWeightsOfBothSignsDoNotHaveIsRefused) {
  const auto refusal = [](Arm arm, const bft::FilterOptions& filter) {
    HstuConfig config;
    config.items = 9;
    config.arm = arm;
    config.filter = filter;
    return refusal_of([&] { check(config, "c"); });
  };
  const bft::FilterOptions usual{.estimator = bft::Estimator::sandwich, .output_projection = true};
  for (const Arm arm : {Arm::plain, Arm::ffn, Arm::bft, Arm::plain_no_wo, Arm::plain_decay, Arm::plain_popularity,
                        Arm::gate, Arm::constant_k}) {
    HstuConfig config;
    config.items = 9;
    config.arm = arm;
    config.filter = usual;
    EXPECT_NO_THROW(check(config, "c"));
  }
  EXPECT_THAT(refusal(Arm::textbook, usual), HasSubstr("has no arm textbook"));
  EXPECT_THAT(refusal(Arm::least_error, usual), HasSubstr("has no arm least-error"));
  bft::FilterOptions other = usual;
  other.estimator = bft::Estimator::reml;
  EXPECT_THAT(refusal(Arm::bft, other), HasSubstr("'estimator' is reml"));
  other = usual;
  other.kriging = bft::Kriging::per_dimension;
  EXPECT_THAT(refusal(Arm::bft, other), HasSubstr("'kriging' is per_dimension"));
  other = usual;
  other.initial_precision = bft::InitialPrecision::em;
  EXPECT_THAT(refusal(Arm::bft, other), HasSubstr("'initial_precision' is em"));
  EXPECT_THAT(refusal_of([] {
                settings_of({{"dropout", 0.5}}, "s", backbone_named("hstu", "b"));
              }),
              HasSubstr("'dropout' is 0.5; backbone hstu takes at most 0.2"));
  for (const char* name : {"sasrec", "bert4rec"}) {
    Settings settings = small(name);
    EXPECT_THAT(refusal_of([&] { settings.backbone->check(plan_of(settings, Arm::ffn, 9), "--arm ffn"); }),
                HasSubstr("--arm ffn: arm ffn is for a backbone without an MLP"));
  }
  EXPECT_THAT(refusal_of([] { check_training(small("hstu"), Arm::plain, ring_of(20, 9), "--arm plain"); }),
              AllOf(HasSubstr("needs the time of each interaction"), HasSubstr("--no-time-bias")));
}

TEST(Hstu, ArmsHaveAnMlpWhereTheFilterNeedsOne) {
  for (const auto& [arm, expected] : {std::pair{Arm::plain, false},
                                      {Arm::ffn, true},
                                      {Arm::bft, true},
                                      {Arm::gate, true},
                                      {Arm::constant_k, true},
                                      {Arm::plain_decay, false}}) {
    HstuConfig config;
    config.items = 9;
    config.arm = arm;
    HstuWeights weights;
    std::size_t found = 0;
    for (const WeightSlot& slot : hstu_slots(config, weights)) found += slot.name.ends_with("mlp.up.weight");
    EXPECT_EQ(found, expected ? 2 : 0) << name_of(arm);
    EXPECT_EQ(why_idle(config, "inner_width").empty(), expected) << name_of(arm);
  }
}

TEST(Hstu, LearnsWhatFollows) {
  expect_what_follows_is_learned("hstu", timed_ring_of(80, 23));
}

}  // namespace hstu_test
}  // namespace gainlens::recommend
