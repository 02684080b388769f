#include "recommend/sasrec.h"
#include "recommend/sasrec_goldens.h"
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
namespace sasrec_hooks_test {

using gainlens::testing::refusal_of;
using ::testing::HasSubstr;

/// Sites of packed histories.
std::vector<hooks::Site> packed_sites(const SasRec& model) {
  std::vector<hooks::Site> sites;
  for (const hooks::SiteShape& site : model.sites()) {
    if (!site.on_request) sites.push_back(site.site);
  }
  return sites;
}

TEST(SasRecHooks, ObservingAnySiteChangesNoBit) {
  std::int64_t combinations = 0;
  for (const std::string& name : golden_names()) {
    SCOPED_TRACE(name);
    Golden golden = read_golden(name);
    const SasRecConfig& config = golden.checkpoint.config;
    const PackedSequences packed = pack(golden.spans(), config);
    for (const bool training : {true, false}) {
      // The stream, the gradients and the sums of the stretch.
      const auto results = [&](const hooks::Hooks& hooks) {
        const SasRec model(config, converted(config, golden.checkpoint.weights, at::kFloat));
        std::vector<at::Tensor> found;
        RunOptions options = noisy(7, 0);
        options.training = training;
        options.stretch_sums = training ? &found : nullptr;
        const at::Tensor hidden = model.run(packed, options, hooks);
        hidden.square().sum().backward();
        found.push_back(hidden.detach());
        SasRecWeights weights = model.weights();
        for (const SasRecSlot& slot : sasrec_slots(config, weights))
          found.push_back(slot.tensor->grad().defined() ? slot.tensor->grad() : at::zeros({1}));
        return found;
      };
      const std::vector<at::Tensor> alone = results({});
      for (const hooks::Site& site : packed_sites(model_of(name))) {
        std::int64_t seen = 0;
        hooks::Hooks observers;
        observers.observe(hooks::Glob(site.name), [&](const hooks::Site&, const at::Tensor&) { ++seen; });
        const std::vector<at::Tensor> observed = results(observers);
        EXPECT_EQ(seen, 1) << site.name;
        ASSERT_EQ(alone.size(), observed.size());
        for (std::size_t i = 0; i < alone.size(); ++i) ASSERT_TRUE(at::equal(alone[i], observed[i])) << site.name;
        ++combinations;
      }
    }
  }
  RecordProperty("combinations", static_cast<int>(combinations));
  EXPECT_GT(combinations, 500);
}

TEST(SasRecHooks, AnInterventionActsInTrainingToo) {
  Golden golden = read_golden("filter-bft-paper");
  const SasRec model = model_of("filter-bft-paper");
  const PackedSequences packed = pack(golden.spans(), model.config());
  const at::NoGradGuard no_gradients;
  for (const hooks::Site& site : packed_sites(model)) {
    hooks::Hooks changed;
    changed.replace(hooks::Glob(site.name), [](const hooks::Site&, const at::Tensor& x) {
      return x * 0.5 + 0.1 * (1 + at::arange(x.size(-1)));
    });
    const RunOptions options{.training = true};
    EXPECT_FALSE(at::allclose(model.run(packed, options, changed), model.run(packed, options))) << site.name;
  }
  hooks::Hooks none;
  none.replace(hooks::Glob("*.hook_gain"), [](const hooks::Site&, const at::Tensor& x) { return at::zeros_like(x); });
  none.replace(hooks::Glob("*.hook_mlp_out"),
               [](const hooks::Site&, const at::Tensor& x) { return at::zeros_like(x); });
  at::Tensor first, last;
  none.observe(hooks::Glob("blocks.0.hook_resid_pre"), [&](const auto&, const at::Tensor& x) { first = x; });
  none.observe(hooks::Glob("blocks.1.hook_resid_post"), [&](const auto&, const at::Tensor& x) { last = x; });
  model.run(packed, {.training = true}, none);
  EXPECT_TRUE(at::equal(first, last));  // without gain and MLP nothing is added to the stream
}

TEST(SasRecHooks, WhatCannotActIsAnError) {
  Golden golden = read_golden("filter-bft-paper");
  SasRec model = model_of("filter-bft-paper");
  const PackedSequences packed = pack(golden.spans(), model.config());
  const auto same = [](const hooks::Site&, const at::Tensor& x) { return x; };
  hooks::Hooks pattern, gain;
  pattern.replace(hooks::Glob("blocks.0.attn.hook_pattern"), same);
  gain.replace(hooks::Glob("blocks.1.attn.hook_gain"), same);
  EXPECT_THAT(refusal_of([&] { model.run(packed, {}, pattern); }),
              HasSubstr("hook blocks.0.attn.hook_pattern: does not exist for packed histories"));
  model.initial_precision_weights().strength.fill_(0);
  EXPECT_THAT(refusal_of([&] { model.run(packed, {}, gain); }),
              HasSubstr("hook blocks.1.attn.hook_gain: the filter is not in force"));
}

}  // namespace sasrec_hooks_test
}  // namespace gainlens::recommend
