#include "bench/attention_case.h"

#include "core/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gainlens::bench {
namespace attention_case_test {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(AttentionCase, VisiblePairsByHand) {
  EXPECT_EQ(visible_pairs({.length = 4}), 10);               // 1 + 2 + 3 + 4
  EXPECT_EQ(visible_pairs({.length = 4, .window = 2}), 7);   // 1 + 2 + 2 + 2
  EXPECT_EQ(visible_pairs({.length = 4, .window = 1}), 4);   // each query sees only itself
  EXPECT_EQ(visible_pairs({.length = 4, .window = 9}), 10);  // the window hides nothing
  EXPECT_EQ(visible_pairs({.length = 8192, .window = 512}), 511.0 * 512 / 2 + (8192 - 511) * 512.0);
}

TEST(AttentionCase, OperationsAndTrafficByHand) {
  const AttentionCase shape{.length = 4, .heads = 2, .kv_heads = 1, .head_dim = 16, .dtype = at::kBFloat16};
  EXPECT_EQ(product_operations(shape, 3), 3 * 2 * 16 * 10 * 2);  // products, multiply-add, dimensions, pairs, heads
  EXPECT_EQ(min_traffic(shape), (2 + 2 + 1 + 1) * 4 * 16 * 2);   // query, output, key, value; 2 bytes
  EXPECT_EQ(shape.group(), 2);
}

TEST(AttentionCase, InputsHaveTheShapeAndAreRepeatable) {
  const AttentionCase shape{.length = 5, .heads = 4, .kv_heads = 2, .head_dim = 16, .dtype = at::kHalf};
  const AttentionInputs in = random_inputs(shape), again = random_inputs(shape);
  EXPECT_EQ(in.query.sizes(), (std::vector<std::int64_t>{4, 5, 16}));
  EXPECT_EQ(in.value.sizes(), (std::vector<std::int64_t>{2, 5, 16}));
  EXPECT_EQ(in.key.scalar_type(), at::kHalf);
  EXPECT_TRUE(in.key.equal(again.key));
  EXPECT_FALSE(in.key.equal(in.value));
}

TEST(AttentionCase, ImpossibleShapesAreNamed) {
  EXPECT_THAT([] { check_case({.heads = 16, .kv_heads = 3}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("--kv-heads: 3 does not divide the 16")));
  EXPECT_THAT([] { check_case({.head_dim = 12}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("--head-dims: 12; must be a multiple of 8")));
  EXPECT_THAT([] { check_case({.length = 1 << 21}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("--lengths: 2097152; must be at most")));
  EXPECT_THAT([] { dtype_named("float31"); }, ThrowsMessage<InvalidArgument>(HasSubstr("did you mean 'float32'?")));
  EXPECT_EQ(dtype_named(dtype_name(at::kBFloat16)), at::kBFloat16);
}

}  // namespace attention_case_test
}  // namespace gainlens::bench
