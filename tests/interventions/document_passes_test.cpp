// The shared and batched passes against the plain way: one whole pass for each intervention, and all logits at once.
#include "interventions/document_passes.h"

#include "core/error.h"
#include "interventions/site_values.h"
#include "models/decoder/decoder_sites.h"
#include "models/random_decoder.h"
#include "support/refusal.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace gainlens::interventions {
namespace document_passes_test {

using gainlens::testing::every_option;
using gainlens::testing::NamedConfig;
using gainlens::testing::random_decoder;
using ::testing::HasSubstr;

constexpr std::int64_t length = 21;

/// Ids that are another text for each `shift`.
std::vector<std::int32_t> document(const models::DecoderConfig& config, std::int32_t shift) {
  std::vector<std::int32_t> ids;
  for (std::int32_t i = 0; i < length; ++i)
    ids.push_back((i * (17 + shift) + 5 * shift) % static_cast<std::int32_t>(config.vocabulary));
  return ids;
}

hooks::Tokens tokens_of(const std::vector<std::int32_t>& ids) {
  at::Tensor tokens = at::empty({1, std::ssize(ids)}, at::kLong);
  for (std::int64_t i = 0; i < std::ssize(ids); ++i) tokens[0][i] = ids[static_cast<std::size_t>(i)];
  return {tokens};
}

Arm arm_of(const std::string& text, const models::Decoder& model, at::ScalarType dtype) {
  return place_arm(parse_intervention(text), model.config(), model.sites(), length, dtype);
}

/// The site in a pass of a document.
at::Tensor seen_at(models::Decoder& model, const std::vector<std::int32_t>& ids, const std::string& site) {
  at::Tensor found;
  hooks::Hooks watch;
  watch.observe(hooks::Site{site}, [&](const hooks::Site&, const at::Tensor& tensor) { found = tensor.clone(); });
  model.forward(tokens_of(ids), {}, watch);
  return found;
}

struct Plain {
  at::Tensor logits;  // [position, vocabulary]
  double nll = 0;
};

Plain run_plain(models::Decoder& model, const std::vector<std::int32_t>& ids, const hooks::Hooks& hooks) {
  const hooks::Tokens tokens = tokens_of(ids);
  Plain plain{model.unembed(model.forward(tokens, {}, hooks).hidden)[0], 0};
  const at::Tensor log_p = plain.logits.to(at::kDouble).log_softmax(-1);
  for (std::int64_t i = 0; i + 1 < length; ++i) plain.nll -= log_p[i][tokens.ids[0][i + 1].item<long>()].item<double>();
  plain.nll /= static_cast<double>(length - 1);
  return plain;
}

/// What a single write puts at its place, by the words of docs/analyses/intervention.md.
at::Tensor plain_values(models::Decoder& model, const Write& write, const at::Tensor& part,
                        const std::vector<std::int32_t>& calibration, const std::vector<std::int32_t>& donor) {
  if (write.mode == Mode::zero) return part * 0;
  if (write.mode == Mode::scale) return part * write.factor;
  at::Tensor other = seen_at(model, write.mode == Mode::mean ? calibration : donor, write.site);
  if (write.head) other = other.slice(2, *write.head, *write.head + 1);
  if (write.mode == Mode::mean) return other.to(at::kDouble).mean(1, true).to(part.scalar_type()).expand_as(part);
  return write.position ? other.slice(1, write.position->first, write.position->end) : other;
}

class Passes : public ::testing::TestWithParam<NamedConfig> {};

TEST_P(Passes, EqualThePlainWay) {
  const c10::InferenceMode inference;
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat}) {
    const double tolerance = dtype == at::kDouble ? 1e-12 : 2e-6;
    models::Decoder model = random_decoder(GetParam().config, dtype);
    const auto ids = document(model.config(), 0), other = document(model.config(), 3);
    for (const char* text :
         {"blocks.1.attn.hook_z[head=2]=zero", "blocks.1.attn.hook_v[head=0]=mean", "blocks.0.hook_mlp_out=0.5",
          "blocks.1.hook_attn_out[position=4]=resample", "hook_embed[position=6]=zero",
          "ln_final.hook_normalized[position=20]=0.5", "blocks.1.attn.hook_result[head=1][position=9]=0.25",
          "blocks.1.attn.hook_k[head=0][position=3]=resample", "blocks.1.hook_resid_pre=mean"}) {
      const Arm arm = arm_of(text, model, dtype);
      const Write& write = arm.writes.front().write;
      double before = 0, after = 0;
      hooks::Hooks change, same;
      change.replace(hooks::Glob(write.site), [&](const hooks::Site&, const at::Tensor& tensor) {
        at::Tensor changed = tensor.clone();
        at::Tensor part = changed;
        if (write.head) part = part.slice(2, *write.head, *write.head + 1);
        if (write.position) part = part.slice(1, write.position->first, write.position->end);
        before = part.to(at::kDouble).norm().item<double>();
        part.copy_(plain_values(model, write, part.clone(), other, other));
        after = part.to(at::kDouble).norm().item<double>();
        return changed;
      });
      same.replace(hooks::Glob(write.site), [](const hooks::Site&, const at::Tensor& tensor) { return tensor; });
      const Plain native = run_plain(model, ids, {}), base = run_plain(model, ids, same),
                  changed = run_plain(model, ids, change);

      DocumentPasses passes(model, ids, {arm.start()}, {});
      const InterventionEffect found = passes.run({&arm}, site_means(model, {other}, arm.sites(Mode::mean), {}),
                                                  site_values(model, other, arm.sites(Mode::resample), {}))[0];
      EXPECT_NEAR(passes.native_nll(), native.nll, tolerance) << text;
      EXPECT_NEAR(found.nll, changed.nll, tolerance) << text;
      EXPECT_NEAR(found.site_norm_before, before, 1e-12 * before) << text;
      EXPECT_NEAR(found.site_norm_after, after, 1e-12 * after) << text;
      const double largest = (changed.logits - base.logits).abs().max().item<double>();
      EXPECT_NEAR(found.largest_logit_change, largest, 4 * tolerance) << text;
      EXPECT_GT(largest, 1e-3) << text;
    }
  }
}

TEST_P(Passes, ReplacingBySameValuesKeepsBitsWhereItIsSaid) {
  const c10::InferenceMode inference;
  models::Decoder model = random_decoder(GetParam().config, at::kFloat);
  const hooks::Tokens tokens = tokens_of(document(model.config(), 0));
  const at::Tensor native = model.forward(tokens, {}, {}).hidden;
  int sites = 0;
  for (const hooks::SiteShape& shape : model.sites()) {
    if (!replacing_keeps_bits(shape.site)) continue;
    hooks::Hooks same;
    same.replace(hooks::Glob(shape.site.name), [](const hooks::Site&, const at::Tensor& tensor) {
      return tensor.clone(at::MemoryFormat::Contiguous);
    });
    EXPECT_TRUE(at::equal(model.forward(tokens, {}, same).hidden, native)) << shape.site.name;
    ++sites;
  }
  EXPECT_GE(sites, 8);
}

INSTANTIATE_TEST_SUITE_P(EveryOption, Passes, ::testing::ValuesIn(every_option()),
                         [](const auto& tested) { return tested.param.name; });

TEST(PassesOfSeveralArms, AreThoseOfEachAlone) {
  const c10::InferenceMode inference;
  models::Decoder model = random_decoder(gainlens::testing::small_config(), at::kFloat);
  const auto ids = document(model.config(), 0);
  std::vector<Arm> arms;
  for (const char* text : {"blocks.1.attn.hook_z[head=0]=zero", "blocks.1.attn.hook_z[head=1][position=7]=zero",
                           "blocks.1.hook_attn_out=0.5", "blocks.1.attn.hook_z[head=3]=2 + blocks.1.hook_mlp_out=zero"})
    arms.push_back(arm_of(text, model, at::kFloat));
  std::vector<const Arm*> all;
  for (const Arm& arm : arms) all.push_back(&arm);
  DocumentPasses together(model, ids, {1}, {});
  const auto found = together.run(all, {}, {});
  for (std::size_t i = 0; i < arms.size(); ++i) {
    DocumentPasses alone(model, ids, {1}, {});
    EXPECT_EQ(alone.run({&arms[i]}, {}, {})[0], found[i]) << arms[i].text;
  }
}

/// What is asked of the last position, beside the losses and alone.
TEST(PassesWithAQuestion, AnswerItFromTheLastLogits) {
  const c10::InferenceMode inference;
  models::Decoder model = random_decoder(gainlens::testing::small_config(), at::kFloat);
  const auto ids = document(model.config(), 0);
  const Arm arm = arm_of("blocks.1.attn.hook_z[head=2]=zero", model, at::kFloat);
  hooks::Hooks change;
  change.replace(hooks::Glob("blocks.1.attn.hook_z"), [](const hooks::Site&, const at::Tensor& tensor) {
    at::Tensor changed = tensor.clone();
    changed.select(2, 2).zero_();
    return changed;
  });
  const at::Tensor native = run_plain(model, ids, {}).logits[length - 1],
                   changed = run_plain(model, ids, change).logits[length - 1];
  for (const bool alone : {false, true}) {
    DocumentPasses passes(
        model, ids, {1}, {},
        {.pair = AnswerPair{3, 8}, .reference = {}, .targets = alone ? std::optional<std::int64_t>(0) : std::nullopt});
    EXPECT_NEAR(*passes.native_answer(), (native[3] - native[8]).item<double>(), 2e-6);
    const InterventionEffect found = passes.run({&arm}, {}, {})[0];
    EXPECT_NEAR(*found.answer, (changed[3] - changed[8]).item<double>(), 2e-6);
    EXPECT_EQ(found.nll == 0, alone);
    EXPECT_NEAR(alone ? found.largest_logit_change : 0, alone ? (changed - native).abs().max().item<double>() : 0,
                4e-6);
  }
  DocumentPasses passes(model, ids, {1}, {}, {.pair = {}, .reference = log_probabilities(native), .targets = 0});
  EXPECT_NEAR(*passes.native_answer(), 0, 1e-9);
  const at::Tensor p = native.to(at::kDouble).softmax(-1), q = changed.to(at::kDouble).softmax(-1);
  EXPECT_NEAR(*passes.run({&arm}, {}, {})[0].answer, (p * (p / q).log()).sum().item<double>(), 1e-6);
}

TEST(PassesThatDoNothing, AreRefused) {
  const c10::InferenceMode inference;
  models::Decoder model = random_decoder(gainlens::testing::small_config(), at::kFloat);
  const auto ids = document(model.config(), 0);
  const auto refusal = [&](const std::string& text, const SiteValues& donor) {
    const Arm arm = arm_of(text, model, at::kFloat);
    return gainlens::testing::refusal_of([&] { DocumentPasses(model, ids, {arm.start()}, {}).run({&arm}, {}, donor); });
  };
  const std::string site = "blocks.1.attn.hook_z";
  EXPECT_THAT(refusal(site + "[head=1]=resample", site_values(model, ids, {site}, {})),
              HasSubstr("intervention 'blocks.1.attn.hook_z[head=1]=resample': it changes nothing at " + site));
}

/// One of many units may be dead: it is measured as exactly nothing.
TEST(PassesThatDoNothing, AreMeasuredAmongManyUnits) {
  const c10::InferenceMode inference;
  models::Decoder model = random_decoder(gainlens::testing::small_config(), at::kFloat);
  const auto ids = document(model.config(), 0);
  const std::string site = "blocks.1.attn.hook_z";
  for (const std::string& text : {site + "[head=1]=resample", std::string("blocks.1.attn.hook_q[position=0]=zero")}) {
    Arm arm = arm_of(text, model, at::kFloat);
    arm.may_do_nothing = true;
    DocumentPasses passes(model, ids, {1}, {});
    const InterventionEffect found = passes.run({&arm}, {}, site_values(model, ids, {site}, {}))[0];
    EXPECT_EQ(found.nll, passes.native_nll()) << text;
    EXPECT_EQ(found.largest_logit_change, 0) << text;
    EXPECT_GT(found.site_norm_before, 0) << text;
  }
}

/// Two writes that undo each other, at sites where a pass that is watched takes another way, and up to rounding alone.
TEST(PassesThatDoNothing, AreRefusedIfTheirWritesCancel) {
  const c10::InferenceMode inference;
  models::Decoder model = random_decoder(gainlens::testing::small_config(), at::kFloat);
  const auto ids = document(model.config(), 0);
  for (const char* text :
       {"blocks.1.attn.hook_rot_q=4 + blocks.1.attn.hook_rot_k=0.25",
        "blocks.1.attn.hook_v=2 + blocks.1.attn.hook_z=0.5", "blocks.1.attn.hook_pattern=2 + blocks.1.attn.hook_z=0.5",
        "blocks.1.attn.hook_z=2 + blocks.1.attn.hook_result=0.5",
        "blocks.1.attn.hook_rot_q=3 + blocks.1.attn.hook_rot_k=0.3333333333333333",
        "blocks.1.attn.hook_v=3 + blocks.1.attn.hook_z=0.3333333333333333"}) {
    const Arm arm = arm_of(text, model, at::kFloat);
    EXPECT_THAT(gainlens::testing::refusal_of([&] { DocumentPasses(model, ids, {1}, {}).run({&arm}, {}, {}); }),
                ::testing::AnyOf(HasSubstr("and no logit"),
                                 HasSubstr("cancel each other: no logit changed by more than rounding")))
        << text;
  }
}

/// Query 0 sees one key alone, so its query vector has no effect on anything.
TEST(PassesThatDoNothing, AreRefusedIfNoLogitMoves) {
  const c10::InferenceMode inference;
  models::Decoder model = random_decoder(gainlens::testing::small_config(), at::kFloat);
  const Arm arm = arm_of("blocks.1.attn.hook_q[position=0]=zero", model, at::kFloat);
  EXPECT_THAT(gainlens::testing::refusal_of(
                  [&] { DocumentPasses(model, document(model.config(), 0), {1}, {}).run({&arm}, {}, {}); }),
              HasSubstr("and no logit"));
}

}  // namespace document_passes_test
}  // namespace gainlens::interventions
