#include "language/recipe.h"

#include "core/error.h"
#include "language/language_testing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>

namespace gainlens::language {
namespace recipe_test {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Recipe, IsReadWhole) {
  Json document = testing::small_recipe();
  document["dtype"] = "float32";
  document["weight_decay"] = 0.2;
  const Recipe recipe = parse_recipe(document, "recipe.json");
  EXPECT_EQ(recipe.model["hidden_size"], 16);
  EXPECT_EQ(recipe.tokenizer.vocabulary, 320);
  ASSERT_EQ(recipe.stages.size(), 2u);
  EXPECT_EQ(recipe.stages[1].context, 32);
  EXPECT_EQ(recipe.schedule.total_steps, 40);
  EXPECT_EQ(recipe.schedule.warmup_steps, 4);
  EXPECT_EQ(recipe.optimizer.learning_rate, 0.01);
  EXPECT_EQ(recipe.weight_decay, 0.2);
  EXPECT_EQ(recipe.dtype, at::kFloat);
  EXPECT_EQ(recipe.document, document);
}

struct WrongRecipe {
  const char* name;
  void (*change)(Json&);
  const char* message;
};
void PrintTo(const WrongRecipe& wrong, std::ostream* out) {
  *out << wrong.name;
}

class WrongRecipes : public ::testing::TestWithParam<WrongRecipe> {};

TEST_P(WrongRecipes, AreRefusedInOneLine) {
  Json document = testing::small_recipe();
  GetParam().change(document);
  EXPECT_THAT([&] { parse_recipe(document, "recipe.json"); },
              ThrowsMessage<InvalidArgument>(HasSubstr(GetParam().message)));
}

INSTANTIATE_TEST_SUITE_P(
    All, WrongRecipes,
    ::testing::Values(WrongRecipe{"idle_factor",
                                  [](Json& r) {
                                    r["schedule"] = "constant";
                                    r["final_factor"] = 0.5;
                                  },
                                  "'final_factor' has no effect, because 'schedule' is constant"},
                      WrongRecipe{"unknown_key", [](Json& r) { r["learning_rat"] = 1; }, "learning_rat"},
                      WrongRecipe{"no_model", [](Json& r) { r.erase("model"); }, "'model' is missing"},
                      WrongRecipe{"no_rate", [](Json& r) { r.erase("learning_rate"); }, "learning_rate"},
                      WrongRecipe{"no_stages", [](Json& r) { r["stages"] = Json::array(); }, "'stages'"},
                      WrongRecipe{"stage_key", [](Json& r) { r["stages"][0]["length"] = 3; }, "stages[0].length"},
                      WrongRecipe{"stage_type", [](Json& r) { r["stages"][1] = 5; }, "recipe.json"},
                      WrongRecipe{"vocabulary_given", [](Json& r) { r["model"]["vocab_size"] = 5; },
                                  "is given; remove it, the trained tokenizer decides it"},
                      WrongRecipe{"uneven_step", [](Json& r) { r["tokens_per_step"] = 100; },
                                  "multiple of every context"},
                      WrongRecipe{"uneven_part", [](Json& r) { r["tokens_at_once"] = 96; }, "divide 'tokens_per_step'"},
                      WrongRecipe{"negative_rate", [](Json& r) { r["learning_rate"] = -1; }, "learning_rate"},
                      WrongRecipe{"schedule", [](Json& r) { r["schedule"] = "cosin"; }, "did you mean 'cosine'"},
                      WrongRecipe{"fraction", [](Json& r) { r["validation_fraction"] = 0.9; }, "validation_fraction"},
                      WrongRecipe{"tokenizer_key", [](Json& r) { r["tokenizer"]["size"] = 1; }, "tokenizer.size"},
                      WrongRecipe{"dtype", [](Json& r) { r["dtype"] = "float8"; }, "float8"}),
    [](const auto& test) { return test.param.name; });

}  // namespace recipe_test
}  // namespace gainlens::language
