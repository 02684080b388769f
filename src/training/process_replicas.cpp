#include "training/replicas.h"

#include "core/check.h"
#include "core/listener.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Logging.h>

#include <charconv>
#include <condition_variable>
#include <cstring>
#include <ctime>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#ifdef GAINLENS_GLOO
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#endif

namespace gainlens::training {
namespace {

#ifdef GAINLENS_GLOO

/// A process may train or evaluate for long before it meets the others again. One that has ended is noticed at once,
/// because its connection closes.
constexpr std::chrono::hours longest_wait{24 * 7};

/// Tensors below this size are exchanged as one, because each exchange waits for the network.
constexpr std::int64_t small_tensor = std::int64_t{1} << 16;

std::string first_line(const c10::Error& error) {
  const std::string text = error.what_without_backtrace();
  return printable(text.substr(0, text.find('\n')), 200);
}

std::string required(const Environment& environment, const char* name) {
  const auto value = environment(name);
  CHECK(value && !value->empty(), "{}: not set in the environment; torchrun sets it, with srun set it to the {}", name,
        std::string_view(name) == "MASTER_ADDR" ? "name of the machine of rank 0" : "number of a free port there");
  return *value;
}

std::uint16_t port_of(const std::string& text) {
  std::uint16_t port = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  CHECK(error == std::errc() && rest == text.data() + text.size() && port > 0,
        "MASTER_PORT: '{}' in the environment; must be a whole number from 1 to 65535", printable(text, 40));
  return port;
}

/// Says once, if the object lives long enough, that this process waits for others.
class WaitingNotice {
 public:
  WaitingNotice(std::string text, std::chrono::milliseconds after)
      : waiter_([this, text = std::move(text), after] {
          std::unique_lock lock(mutex_);
          if (!over_.wait_for(lock, after, [this] { return met_; })) tell_note("{}", text);
        }) {}
  WaitingNotice(const WaitingNotice&) = delete;
  WaitingNotice& operator=(const WaitingNotice&) = delete;
  ~WaitingNotice() {
    {
      const std::lock_guard lock(mutex_);
      met_ = true;
    }
    over_.notify_one();
    waiter_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable over_;
  bool met_ = false;
  std::thread waiter_;  // last: it uses the others
};

std::string waiting_text(const runfile::ProcessGroup& group, const Environment& environment,
                         std::chrono::milliseconds patience) {
  const std::string address = required(environment, "MASTER_ADDR");
  const std::uint16_t port = port_of(required(environment, "MASTER_PORT"));
  const std::time_t until = std::chrono::system_clock::to_time_t(
      std::chrono::system_clock::now() + std::chrono::duration_cast<std::chrono::system_clock::duration>(patience));
  std::tm parts{};
  ::gmtime_r(&until, &parts);
  return fmt::format(
      "process {} of {} waits for {} at {}:{}, until {:02}:{:02}:{:02} UTC; start every process, or end this one",
      group.rank, group.size, group.rank == 0 ? "the others" : "process 0 and the others", printable(address, 100),
      port, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

/// c10d has a line and a stack of its own for each attempt to connect; what it throws says the same once.
void silence_c10d() {
  [[maybe_unused]] static const int level = FLAGS_caffe2_log_level = 3;  // fatal errors alone
}

c10::intrusive_ptr<c10d::Store> open_store(const runfile::ProcessGroup& group, const Environment& environment,
                                           std::chrono::milliseconds patience) {
  c10d::TCPStoreOptions options;
  options.port = port_of(required(environment, "MASTER_PORT"));
  options.isServer = group.rank == 0 && environment("TORCHELASTIC_USE_AGENT_STORE").value_or("") != "True";
  options.timeout = patience / 2;  // c10d tries twice
  auto store = c10::make_intrusive<c10d::TCPStore>(required(environment, "MASTER_ADDR"), options);
  store->setTimeout(patience);
  // The agent of torchrun keeps its store when it starts the processes again.
  const std::string attempt = environment("TORCHELASTIC_RESTART_COUNT").value_or("0");
  return c10::make_intrusive<c10d::PrefixStore>("gainlens-" + attempt, std::move(store));
}

c10::intrusive_ptr<c10d::ProcessGroupGloo> connect(const runfile::ProcessGroup& group, const Environment& environment,
                                                   const MeetingTimes& times) {
  silence_c10d();
  const WaitingNotice notice(waiting_text(group, environment, times.patience), times.notice);
  auto options = c10d::ProcessGroupGloo::Options::create(times.patience);
  const auto interface = environment("GLOO_SOCKET_IFNAME");
  const std::string address = required(environment, "MASTER_ADDR");
  const bool one_machine = address == "localhost" || address.starts_with("127.");
  options->devices.push_back(interface     ? c10d::ProcessGroupGloo::createDeviceForInterface(*interface)
                             : one_machine ? c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1")
                                           : c10d::ProcessGroupGloo::createDefaultDevice());
  return c10::make_intrusive<c10d::ProcessGroupGloo>(open_store(group, environment, times.patience),
                                                     static_cast<int>(group.rank), static_cast<int>(group.size),
                                                     std::move(options));
}

class GlooReplicas final : public Replicas {
 public:
  GlooReplicas(const runfile::ProcessGroup& group, const Environment& environment, const MeetingTimes& times)
      : rank_(group.rank), size_(group.size) {
    try {
      group_ = connect(group, environment, times);
    } catch (const c10::Error& error) {
      const std::string text = first_line(error);
      throw_run_failed("process {} of {} could not connect to the others: {}", rank_, size_,
                       text.find("timed out") == std::string::npos ? text : "nobody answered in time");
    }
  }

  std::int64_t rank() const override { return rank_; }
  std::int64_t size() const override { return size_; }

  void sum(const std::vector<at::Tensor>& tensors) override {
    together(tensors, [this](const at::Tensor& tensor) {
      meet([&] {
        std::vector<at::Tensor> one{tensor.detach()};
        c10d::AllreduceOptions options;
        options.timeout = longest_wait;
        return group_->allreduce(one, options);
      });
    });
  }

  void copy_from(std::int64_t rank, const std::vector<at::Tensor>& tensors) override {
    together(tensors, [this, rank](const at::Tensor& tensor) {
      meet([&] {
        std::vector<at::Tensor> one{tensor.detach()};
        c10d::BroadcastOptions options;
        options.rootRank = rank;
        options.timeout = longest_wait;
        return group_->broadcast(one, options);
      });
    });
  }

  void copy_to(std::int64_t from, std::int64_t to, const std::vector<at::Tensor>& tensors) override {
    if (rank_ != from && rank_ != to) return;
    for (const at::Tensor& tensor : tensors) {
      ASSERT(tensor.is_contiguous(), "processes exchange contiguous tensors");
      if (tensor.numel() == 0) continue;
      meet([&] {
        std::vector<at::Tensor> one{tensor.detach().view({-1})};
        return rank_ == from ? group_->send(one, static_cast<int>(to), 0)
                             : group_->recv(one, static_cast<int>(from), 0);
      });
    }
  }

  std::string text_of_first(const std::string& text) override {
    const at::Tensor length = at::scalar_tensor(static_cast<std::int64_t>(text.size()), at::kLong);
    copy_from_first({length});
    const at::Tensor bytes = at::zeros({length.item<std::int64_t>()}, at::kByte);
    if (leads()) std::memcpy(bytes.mutable_data_ptr<std::uint8_t>(), text.data(), text.size());
    if (bytes.numel() > 0) copy_from_first({bytes});
    return {reinterpret_cast<const char*>(bytes.const_data_ptr<std::uint8_t>()),
            static_cast<std::size_t>(bytes.numel())};
  }

 private:
  /// Hands over each large tensor by itself, and the small ones of a type as one.
  template <typename Exchange>
  static void together(const std::vector<at::Tensor>& tensors, const Exchange& exchange) {
    const at::NoGradGuard no_gradients;
    std::map<at::ScalarType, std::vector<at::Tensor>> small;
    for (const at::Tensor& tensor : tensors) {
      ASSERT(tensor.is_contiguous(), "processes exchange contiguous tensors");
      if (tensor.numel() < small_tensor)
        small[tensor.scalar_type()].push_back(tensor);
      else
        exchange(tensor);
    }
    for (const auto& [type, same_type] : small) {
      std::vector<at::Tensor> flat;
      for (const at::Tensor& tensor : same_type) flat.push_back(tensor.flatten());
      const at::Tensor joined = at::cat(flat);
      if (joined.numel() == 0) continue;
      exchange(joined);
      std::int64_t at = 0;
      for (const at::Tensor& tensor : same_type) {
        tensor.detach().copy_(joined.narrow(0, at, tensor.numel()).view_as(tensor));
        at += tensor.numel();
      }
    }
  }

  template <typename Start>
  void meet(const Start& start) {
    try {
      start()->wait(longest_wait);
    } catch (const std::exception&) {  // gloo throws errors of its own
      throw ReplicaLost(fmt::format(
          "process {} of {}: another process has ended; start all of them again to go on from the last saved state",
          rank_, size_));
    }
  }

  std::int64_t rank_, size_;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
};

#endif

}  // namespace

bool can_connect_replicas() {
#ifdef GAINLENS_GLOO
  return true;
#else
  return false;
#endif
}

std::unique_ptr<Replicas> connect_replicas(const runfile::ProcessGroup& group, const Environment& environment,
                                           const MeetingTimes& times) {
  if (group.size == 1) return std::make_unique<SingleReplica>();
#ifdef GAINLENS_GLOO
  return std::make_unique<GlooReplicas>(group, environment, times);
#else
  (void)environment;
  (void)times;
  throw_invalid(
      "{} processes: this build cannot connect them, because it was made without the headers of gloo "
      "(libgloo-dev); unset RANK and WORLD_SIZE for a single process",
      group.size);
#endif
}

}  // namespace gainlens::training
