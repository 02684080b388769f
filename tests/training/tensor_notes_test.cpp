#include "training/training_folder.h"

#include "support/refusal.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace gainlens::training {
namespace tensor_notes_test {

TEST(TensorNotes, GiveTheSameNumbersBack) {
  const std::vector<models::NamedTensor> stored = {{"a", at::tensor({0.1F, -3e-30F})}, {"b", at::full({2, 1}, 7.5)}};
  const Json document = Json::parse(tensors_to_json(stored).dump());
  const std::vector<models::NamedTensor> read = {{"b", at::zeros({2, 1})}, {"a", at::zeros({2})}};
  tensors_from_json(document, read);
  EXPECT_TRUE(at::equal(read[0].tensor, stored[1].tensor));
  EXPECT_TRUE(at::equal(read[1].tensor, stored[0].tensor));
  const std::vector<models::NamedTensor> longer = {{"a", at::zeros({3})}};
  EXPECT_THAT(gainlens::testing::refusal_of([&] { tensors_from_json(document, longer); }),
              ::testing::HasSubstr("'a' has 2 numbers; must have 3"));
}

}  // namespace tensor_notes_test
}  // namespace gainlens::training
