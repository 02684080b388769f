#include "kernels/linear/matrix_product.h"

#include "core/error.h"
#include "kernels/vector_targets.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace gainlens::kernels {
namespace matrix_product_test {

struct Shape {
  std::int64_t rows, inner, columns;
};

/// From a single number to several blocks of rows, of columns and of sums; with and without a remainder. The sums of
/// the last two are cut into parts.
const std::vector<Shape> shapes = {{1, 1, 1},      {1, 300, 1},    {5, 7, 3},      {12, 256, 32}, {13, 257, 33},
                                   {300, 96, 270}, {600, 20, 600}, {97, 2050, 96}, {3, 5000, 50}};

class MatrixProduct : public ::testing::Test {
 protected:
  void SetUp() override { at::manual_seed(3); }

  /// A matrix, or a transposed view of one.
  static at::Tensor matrix(std::int64_t rows, std::int64_t columns, bool transposed) {
    return transposed ? at::randn({columns, rows}).t() : at::randn({rows, columns});
  }

  /// The largest error, in units of the largest sum of sizes of terms.
  static double error(const at::Tensor& found, const at::Tensor& left, const at::Tensor& right,
                      const at::Tensor& added) {
    const at::Tensor wide_left = left.to(at::kDouble), wide_right = right.to(at::kDouble);
    const at::Tensor exact = at::mm(wide_left, wide_right) + added.to(at::kDouble);
    const at::Tensor sizes = at::mm(wide_left.abs(), wide_right.abs()) + added.to(at::kDouble).abs();
    return ((found.to(at::kDouble) - exact).abs() / sizes.max()).max().item<double>();
  }
};

TEST_F(MatrixProduct, IsThatOfLibtorchInFloat64) {
  testing::for_each_instruction_set([](const std::string& name) {
    for (const Shape& shape : shapes) {
      for (const ProductKernel kernel : {ProductKernel::strips, ProductKernel::libtorch}) {
        for (const int views : {0, 1, 2, 3}) {
          SCOPED_TRACE(name + " " + std::string(name_of(kernel)) + " " + std::to_string(shape.rows) + " x " +
                       std::to_string(shape.inner) + " x " + std::to_string(shape.columns) + ", views " +
                       std::to_string(views));
          const at::Tensor left = matrix(shape.rows, shape.inner, (views & 1) != 0);
          const at::Tensor right = matrix(shape.inner, shape.columns, (views & 2) != 0);
          EXPECT_LT(error(matrix_product(left, right, {}, kernel), left, right, at::zeros({})), 4e-7);
          const at::Tensor bias = at::randn({shape.columns}), residual = at::randn({shape.rows, shape.columns});
          EXPECT_LT(error(matrix_product(left, right, {.bias = bias}, kernel), left, right, bias), 4e-7);
          const at::Tensor both = matrix_product(left, right, {.bias = bias, .residual = residual}, kernel);
          EXPECT_LT(error(both, left, right, bias + residual), 4e-7);
          // A part of a larger tensor, that is the residual too.
          const at::Tensor whole = at::full({shape.rows, shape.columns + 3}, 7.0F);
          const at::Tensor part = whole.narrow(1, 2, shape.columns);
          part.copy_(residual);
          EXPECT_TRUE(matrix_product(left, right, {.residual = part, .output = part}, kernel).is_same(part));
          EXPECT_LT(error(part, left, right, residual), 4e-7);
          EXPECT_TRUE((whole.narrow(1, 0, 2) == 7).all().item<bool>() && (whole.select(1, -1) == 7).all().item<bool>());
        }
      }
    }
  });
}

TEST_F(MatrixProduct, BitsOfStripsDoNotDependOnThreads) {
  const int threads = at::get_num_threads();
  for (const Shape& shape : shapes) {
    const at::Tensor left = matrix(shape.rows, shape.inner, true), right = matrix(shape.inner, shape.columns, false);
    const auto product = [&](int count) {
      at::set_num_threads(count);
      return matrix_product(left, right, {}, ProductKernel::strips);
    };
    const at::Tensor one = product(1);
    for (const int count : {2, 3, 7}) EXPECT_TRUE(at::equal(one, product(count))) << shape.rows << ", " << count;
  }
  at::set_num_threads(threads);
}

TEST_F(MatrixProduct, ReadsNothingBesideItsMatrices) {
  for (const Shape& shape : shapes) {
    const at::Tensor around = at::full({shape.rows + 40, shape.inner + 40}, std::numeric_limits<float>::quiet_NaN());
    const at::Tensor left = around.narrow(0, 0, shape.rows).narrow(1, 0, shape.inner);
    left.copy_(at::randn({shape.rows, shape.inner}));
    const at::Tensor beside = at::full({shape.inner + 40, shape.columns + 40}, std::numeric_limits<float>::quiet_NaN());
    const at::Tensor right = beside.narrow(0, 0, shape.inner).narrow(1, 0, shape.columns);
    right.copy_(at::randn({shape.inner, shape.columns}));
    EXPECT_LT(error(matrix_product(left, right, {}, ProductKernel::strips), left, right, at::zeros({})), 4e-7);
  }
}

TEST_F(MatrixProduct, SumsOfNothingAreWhatIsAdded) {
  for (const ProductKernel kernel : {ProductKernel::strips, ProductKernel::libtorch}) {
    const at::Tensor left = at::ones({2, 0}), right = at::ones({0, 3}), bias = at::randn({3});
    EXPECT_TRUE(at::equal(matrix_product(left, right, {}, kernel), at::zeros({2, 3})));
    EXPECT_TRUE(at::equal(matrix_product(left, right, {.bias = bias, .residual = at::ones({2, 3})}, kernel),
                          at::ones({2, 3}) + bias));
  }
}

TEST_F(MatrixProduct, ResultsWithoutElements) {
  for (const ProductKernel kernel : {ProductKernel::strips, ProductKernel::libtorch}) {
    EXPECT_EQ(matrix_product(at::ones({0, 3}), at::ones({3, 2}), {}, kernel).sizes(), at::IntArrayRef({0, 2}));
    EXPECT_EQ(matrix_product(at::ones({2, 3}), at::ones({3, 0}), {}, kernel).sizes(), at::IntArrayRef({2, 0}));
  }
}

TEST_F(MatrixProduct, WhatDoesNotFitIsRefused) {
  const at::Tensor x = at::ones({4, 6}), y = at::ones({6, 8});
  EXPECT_THROW(matrix_product(x, x), InternalError);
  EXPECT_THROW(matrix_product(x.to(at::kDouble), y.to(at::kDouble)), InternalError);
  for (const ProductKernel kernel : {ProductKernel::strips, ProductKernel::libtorch})
    EXPECT_THROW(matrix_product(at::ones({8, 12}).slice(0, 0, 8, 2).slice(1, 0, 12, 2), y, {}, kernel), InternalError);
  EXPECT_THROW(matrix_product(x, y, {.bias = at::ones({6})}), InternalError);
  EXPECT_THROW(matrix_product(x, y, {.residual = at::ones({4, 6})}), InternalError);
  EXPECT_THROW(matrix_product(x, y, {.output = at::ones({8, 4}).t()}), InternalError);
  EXPECT_THROW(matrix_product(x, y, {}, ProductKernel::brgemm), InternalError);
  EXPECT_THROW(matrix_product(at::ones({4, 6}).requires_grad_(true), y), InternalError);
}

}  // namespace matrix_product_test
}  // namespace gainlens::kernels
