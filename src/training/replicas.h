#pragma once

#include "core/error.h"
#include "runfile/process_group.h"

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace gainlens::training {

/// Another process of the training has ended.
class ReplicaLost : public RunFailed {
 public:
  using RunFailed::RunFailed;
};

/// A half-open range of pieces.
struct Range {
  std::int64_t first = 0, last = 0;
};

/// The processes that train one model together. Each of them holds the whole model and works on its part of a batch.
/// All of them call these functions in the same order.
/// @throws ReplicaLost  every function that communicates
class Replicas {
 public:
  virtual ~Replicas() = default;
  virtual std::int64_t rank() const = 0;  ///< of this process, in [0, size)
  virtual std::int64_t size() const = 0;
  /// Replaces each tensor by its sum over the processes. Every process gets the same bits.
  /// @param tensors  contiguous, of the same shapes and types in every process
  virtual void sum(const std::vector<at::Tensor>& tensors) = 0;
  /// Replaces each tensor by that of one process.
  /// @param tensors  contiguous, of the same shapes and types in every process
  virtual void copy_from(std::int64_t rank, const std::vector<at::Tensor>& tensors) = 0;
  void copy_from_first(const std::vector<at::Tensor>& tensors) { copy_from(0, tensors); }
  /// Process `to` gets the numbers of process `from` into its own tensors. The others call it too, and do nothing.
  /// @param tensors  contiguous, in both processes of the same types with as many elements; elsewhere not read
  virtual void copy_to(std::int64_t from, std::int64_t to, const std::vector<at::Tensor>& tensors) = 0;
  /// @returns  the text of rank 0
  virtual std::string text_of_first(const std::string& text) = 0;

  bool leads() const { return rank() == 0; }
  /// The part of `count` pieces that this process works on. The parts follow each other in the order of the ranks, and
  /// differ in length by at most 1.
  Range part_of(std::int64_t count) const { return {count * rank() / size(), count * (rank() + 1) / size()}; }
};

/// One process: sums and copies change nothing.
class SingleReplica final : public Replicas {
 public:
  std::int64_t rank() const override { return 0; }
  std::int64_t size() const override { return 1; }
  void sum(const std::vector<at::Tensor>&) override {}
  void copy_from(std::int64_t, const std::vector<at::Tensor>&) override {}
  void copy_to(std::int64_t, std::int64_t, const std::vector<at::Tensor>&) override {}
  std::string text_of_first(const std::string& text) override { return text; }
};

/// How long a process waits for the others to start, and after which time it says so on standard error.
struct MeetingTimes {
  std::chrono::milliseconds patience = std::chrono::minutes(5);
  std::chrono::milliseconds notice = std::chrono::seconds(5);
};

/// Whether this build can connect processes: it was compiled with the headers of gloo.
bool can_connect_replicas();

/// Connects the processes of a group through libtorch's c10d, with gloo. Processes that torchrun has started use the
/// store of its agent. Else rank 0 listens on MASTER_ADDR:MASTER_PORT. GLOO_SOCKET_IFNAME names the network interface,
/// as for PyTorch. A group of one process needs none of that.
/// @throws InvalidArgument  MASTER_ADDR or MASTER_PORT is not set or wrong; this build has no gloo
/// @throws RunFailed        the others did not start in time
std::unique_ptr<Replicas> connect_replicas(const runfile::ProcessGroup& group, const Environment& environment,
                                           const MeetingTimes& times = {});

}  // namespace gainlens::training
