#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>

namespace gainlens::testing {

/// Largest |gradient - central difference| over the largest |central difference|, over the elements of the leaf that
/// `moves` allows. Fails if all differences are 0.
/// @param leaf   float64; becomes a leaf of its own
/// @param loss   one number that depends on the leaf
/// @param moves  bool, of the shape of the leaf; undefined: all elements
inline double gradient_error(at::Tensor& leaf, const std::function<at::Tensor()>& loss, const at::Tensor& moves = {}) {
  leaf = leaf.detach().clone(at::MemoryFormat::Contiguous).requires_grad_();
  loss().backward();
  EXPECT_TRUE(leaf.grad().defined());
  const at::Tensor gradient = leaf.grad().defined() ? leaf.grad().clone() : at::zeros_like(leaf);
  leaf = leaf.detach().clone(at::MemoryFormat::Contiguous);
  double worst = 0, largest = 0;
  double* const numbers = leaf.data_ptr<double>();
  for (std::int64_t i = 0; i < leaf.numel(); ++i) {
    if (moves.defined() && !moves.flatten()[i].item<bool>()) continue;
    const double at = numbers[i], step = 1e-5 * std::max(1.0, std::abs(at));
    numbers[i] = at + step;
    const double above = loss().item<double>();
    numbers[i] = at - step;
    const double below = loss().item<double>();
    numbers[i] = at;
    const double difference = (above - below) / (2 * step);
    worst = std::max(worst, std::abs(gradient.flatten()[i].item<double>() - difference));
    largest = std::max(largest, std::abs(difference));
  }
  EXPECT_GT(largest, 1e-4);
  return worst / largest;
}

}  // namespace gainlens::testing
