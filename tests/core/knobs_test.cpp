#include "core/knobs.h"

#include "support/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gainlens {
namespace knobs_test {

using ::testing::HasSubstr;

struct Owner {
  std::int64_t steps = 7;
  double rate = 0.5;
  bool later = true;
};

/// "later" came after the others. It is on today, and was off before it existed.
std::vector<Knob<Owner>> knobs() {
  return {whole_knob<Owner>(
              "steps", "steps", [](Owner & owner) -> auto& { return owner.steps; }, 1),
          real_knob<Owner>("rate", "rate", [](Owner & owner) -> auto& { return owner.rate; }, {0, 1}),
          flag_knob<Owner>(
              "later", "later", [](Owner & owner) -> auto& { return owner.later; })
              .absent_is(false)};
}

Owner read(const Json& stored) {
  const auto made = knobs();
  Owner owner;
  read_knobs(std::span<const Knob<Owner>>(made), owner, stored, "F");
  return owner;
}

TEST(Knobs, AnAbsentKeyMeansWhatHeldBeforeTheOption) {
  EXPECT_FALSE(read({{"steps", 2}, {"rate", 0.25}}).later);
  EXPECT_TRUE(read({{"steps", 2}, {"rate", 0.25}, {"later", true}}).later);
  const auto made = knobs();
  EXPECT_EQ(absent_values(std::span<const Knob<Owner>>(made)), (Json{{"later", false}}));
}

TEST(Knobs, AKeyOfEveryVersionMustBeThere) {
  EXPECT_EQ(testing::refusal_of([] { read({{"steps", 2}}); }), "F: 'rate' is missing");
}

TEST(Knobs, KeysOfANewerVersionAreNamed) {
  EXPECT_EQ(testing::refusal_of([] {
              read({{"steps", 2}, {"rate", 0}, {"b", 1}, {"a\x1b", 1}});
            }),
            "F: made by a newer version of gainlens; unknown keys: a\\x1b, b");
  EXPECT_THAT(testing::refusal_of([] { read({{"steps", 0}, {"rate", 0}}); }), HasSubstr("F: 'steps' is 0"));
  EXPECT_THAT(testing::refusal_of([] { read(3); }), HasSubstr("F: is 3; must be an object"));
}

}  // namespace knobs_test
}  // namespace gainlens
