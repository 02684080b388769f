#pragma once

#include "training/replicas.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <barrier>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace gainlens::testing {

/// Threads of a test in the place of processes.
class ThreadReplicas final : public training::Replicas {
 public:
  struct Shared {
    explicit Shared(std::int64_t size) : barrier(size), tensors(static_cast<std::size_t>(size)) {}
    std::barrier<> barrier;
    std::vector<std::vector<at::Tensor>> tensors;  // [rank]
    std::string text;
  };

  ThreadReplicas(Shared& shared, std::int64_t rank) : shared_(shared), rank_(rank) {}

  std::int64_t rank() const override { return rank_; }
  std::int64_t size() const override { return std::ssize(shared_.tensors); }

  void sum(const std::vector<at::Tensor>& tensors) override {
    replace(tensors, [&](std::size_t i) {
      at::Tensor total = shared_.tensors[0][i].clone();
      for (std::size_t rank = 1; rank < shared_.tensors.size(); ++rank) total += shared_.tensors[rank][i];
      return total;
    });
  }
  void copy_from(std::int64_t rank, const std::vector<at::Tensor>& tensors) override {
    replace(tensors, [&](std::size_t i) { return shared_.tensors[static_cast<std::size_t>(rank)][i].clone(); });
  }
  void copy_to(std::int64_t from, std::int64_t to, const std::vector<at::Tensor>& tensors) override {
    const at::NoGradGuard no_gradients;
    if (rank_ == from) shared_.tensors[static_cast<std::size_t>(from)] = tensors;
    shared_.barrier.arrive_and_wait();
    if (rank_ == to) {
      for (std::size_t i = 0; i < tensors.size(); ++i)
        tensors[i].detach().view({-1}).copy_(shared_.tensors[static_cast<std::size_t>(from)].at(i).view({-1}));
    }
    shared_.barrier.arrive_and_wait();
  }
  std::string text_of_first(const std::string& text) override {
    if (rank_ == 0) shared_.text = text;
    shared_.barrier.arrive_and_wait();
    const std::string found = shared_.text;
    shared_.barrier.arrive_and_wait();
    return found;
  }

 private:
  template <typename Make>
  void replace(const std::vector<at::Tensor>& tensors, const Make& make) {
    const at::NoGradGuard no_gradients;
    shared_.tensors[static_cast<std::size_t>(rank_)] = tensors;
    shared_.barrier.arrive_and_wait();
    std::vector<at::Tensor> made;
    for (std::size_t i = 0; i < tensors.size(); ++i) made.push_back(make(i));
    shared_.barrier.arrive_and_wait();
    for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i].detach().copy_(made[i]);
  }

  Shared& shared_;
  std::int64_t rank_;
};

/// Calls work(replicas) in one thread for each of `size` replicas.
inline void with_replicas(std::int64_t size, const std::function<void(training::Replicas&)>& work) {
  ThreadReplicas::Shared shared(size);
  std::vector<std::thread> threads;
  for (std::int64_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadReplicas replicas(shared, rank);
      work(replicas);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace gainlens::testing
