#include "hooks/hooks.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "hooks/hooked_model.h"

namespace gainlens::hooks {
namespace hooks_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const Site query_site{"blocks.0.attn.hook_q"};

Intervention add(double amount) {
  return [amount](const Site&, const at::Tensor& tensor) { return tensor + amount; };
}

TEST(Hooks, WithoutHooksTheTensorItselfComesBack) {
  const at::Tensor tensor = at::ones({2, 3});
  EXPECT_TRUE(Hooks().at(query_site, tensor).is_same(tensor));
  EXPECT_FALSE(Hooks().wants(query_site));
}

TEST(Hooks, ObserverSeesTheTensorAndChangesNothing) {
  Hooks hooks;
  std::vector<std::string> seen;
  hooks.observe(Glob("*hook_q"), [&](const Site& site, const at::Tensor& tensor) {
    seen.push_back(site.name + " " + std::to_string(tensor.numel()));
  });
  const at::Tensor tensor = at::ones({2, 3});
  EXPECT_TRUE(hooks.at(query_site, tensor).is_same(tensor));
  hooks.at(Site{"hook_embed"}, tensor);
  EXPECT_THAT(seen, ElementsAre("blocks.0.attn.hook_q 6"));
}

TEST(Hooks, InterventionsRunInOrderAndObserversSeeTheResult) {
  Hooks hooks;
  double seen = 0;
  hooks.observe(Glob("*"), [&](const Site&, const at::Tensor& tensor) { seen = tensor.item<double>(); });
  hooks.replace(Glob("*hook_q"), add(1));
  hooks.replace(Glob("blocks.*"), [](const Site&, const at::Tensor& tensor) { return tensor * 10; });
  EXPECT_EQ(hooks.at(query_site, at::scalar_tensor(2.0)).item<double>(), 30);  // (2 + 1) 10, not 2 10 + 1
  EXPECT_EQ(seen, 30);
}

TEST(Hooks, WantsAndReplacesTellObserversFromInterventions) {
  Hooks hooks;
  hooks.observe(Glob("*hook_q"), [](const Site&, const at::Tensor&) {});
  hooks.replace(Glob("*hook_k"), add(1));
  EXPECT_TRUE(hooks.wants(query_site));
  EXPECT_FALSE(hooks.replaces(query_site));
  EXPECT_TRUE(hooks.replaces(Site{"blocks.0.attn.hook_k"}));
  EXPECT_TRUE(hooks.wants(Site{"blocks.0.attn.hook_k"}));
  EXPECT_FALSE(hooks.wants(Site{"blocks.0.attn.hook_v"}));
}

TEST(Hooks, ReplacementOfAnotherShapeOrTypeNamesTheSite) {
  const auto replaced_by = [](at::Tensor replacement) {
    Hooks hooks;
    hooks.replace(Glob("*"), [replacement](const Site&, const at::Tensor&) { return replacement; });
    hooks.at(query_site, at::ones({2, 3}));
  };
  EXPECT_THAT(
      [&] {
        replaced_by(at::ones({3, 2}));
      },
      ThrowsMessage<InvalidArgument>(
          AllOf(HasSubstr("hook blocks.0.attn.hook_q"), HasSubstr("Float [3, 2]"), HasSubstr("must be Float [2, 3]"))));
  EXPECT_THAT(
      [&] {
        replaced_by(at::ones({2, 3}, at::kDouble));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("Double [2, 3]")));
  EXPECT_THAT([&] { replaced_by(at::Tensor()); }, ThrowsMessage<InvalidArgument>(HasSubstr("undefined")));
}

TEST(Hooks, AHookThatWouldNeverFireIsNamed) {
  const std::vector<SiteShape> sites{{query_site, {"batch", "position", "2", "4"}}};
  Hooks hooks;
  hooks.observe(Glob("*hook_q"), [](const Site&, const at::Tensor&) {});
  EXPECT_NO_THROW(hooks.check_served_by(sites));
  hooks.replace(Glob("blocks.0.attn.hook_qq"), add(1));
  EXPECT_THAT([&] { hooks.check_served_by(sites); },
              ThrowsMessage<InvalidArgument>(HasSubstr("did you mean 'blocks.0.attn.hook_q'?")));
}

TEST(AttentionLayout, KindNamesTheWindow) {
  AttentionLayout layout;
  layout.window = {512, 0};
  EXPECT_EQ(layout.kind(0), "window:512");
  EXPECT_EQ(layout.kind(1), "global");
}

}  // namespace hooks_test
}  // namespace gainlens::hooks
