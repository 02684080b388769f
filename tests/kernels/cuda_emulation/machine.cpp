#include "kernels/cuda_emulation/machine.h"

#include "core/check.h"

#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <vector>

namespace gainlens::kernels::device {
namespace {

constexpr std::size_t stack_bytes = 256 * 1024;
constexpr std::size_t copy_bytes = 16;
constexpr int nan_byte = 0xff;  // bytes of this value are NaN in every floating type

struct Copy {
  void* shared;
  std::array<char, copy_bytes> bytes;
};

/// A point where threads wait for each other.
struct Meeting {
  int members = 0, arrived = 0;
  std::uint64_t rounds = 0;
};

struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack;
  bool ended = false;
  std::vector<Copy> open_copies;
  std::deque<std::vector<Copy>> groups;
};

struct Machine {
  Dimensions grid{}, block{};
  std::vector<Fiber> fibers;
  std::vector<char> shared;
  Meeting all;
  std::vector<Meeting> warps;
  std::vector<std::array<void*, 32>> arguments;  // [warp]
  int current = 0;
  int waiting = 0;  // number of fibers, one after the other, that could not continue
  ucontext_t caller;
  const std::function<void()>* body = nullptr;
  std::exception_ptr error;
};

thread_local Machine* machine = nullptr;

Fiber& self() {
  return machine->fibers[static_cast<std::size_t>(machine->current)];
}

[[noreturn]] void leave_block() {
  setcontext(&machine->caller);
  std::terminate();
}

/// Switches to the next thread that has not ended.
void give_way() {
  const int count = static_cast<int>(machine->fibers.size());
  const int before = machine->current;
  int next = before;
  do {
    next = (next + 1) % count;
  } while (machine->fibers[static_cast<std::size_t>(next)].ended && next != before);
  if (machine->fibers[static_cast<std::size_t>(next)].ended) leave_block();
  if (next == before) return;
  machine->current = next;
  Fiber& from = machine->fibers[static_cast<std::size_t>(before)];
  if (from.ended) {
    setcontext(&self().context);
  } else {
    swapcontext(&from.context, &self().context);
  }
}

template <typename Last>
void meet(Meeting& meeting, const Last& last) {
  machine->waiting = 0;
  if (++meeting.arrived == meeting.members) {
    last();
    meeting.arrived = 0;
    ++meeting.rounds;
    return;
  }
  const std::uint64_t round = meeting.rounds;
  while (meeting.rounds == round) {
    if (++machine->waiting > 2 * static_cast<int>(machine->fibers.size())) {
      machine->error = std::make_exception_ptr(InternalError(
          fmt::format("block ({}, {}): thread {} waits for {} of {} threads that never come", machine->block.x,
                      machine->block.y, machine->current, meeting.members - meeting.arrived, meeting.members)));
      leave_block();
    }
    give_way();
  }
  machine->waiting = 0;
}

void thread_body() {
  try {
    (*machine->body)();
  } catch (...) {
    machine->error = std::current_exception();
    leave_block();
  }
  self().ended = true;
  machine->waiting = 0;
  give_way();
}

void run_one_block(Machine& m, int threads) {
  std::fill(m.shared.begin(), m.shared.end(), static_cast<char>(nan_byte));
  m.all = {.members = threads};
  m.warps.assign(static_cast<std::size_t>(threads / 32), Meeting{.members = 32});
  m.arguments.resize(m.warps.size());
  for (Fiber& fiber : m.fibers) {
    fiber.ended = false;
    fiber.open_copies.clear();
    fiber.groups.clear();
    getcontext(&fiber.context);
    if (!fiber.stack) fiber.stack = std::make_unique<char[]>(stack_bytes);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = stack_bytes;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, thread_body, 0);
  }
  m.current = 0;
  m.waiting = 0;
  swapcontext(&m.caller, &m.fibers.front().context);
  if (m.error) std::rethrow_exception(m.error);
}

}  // namespace

void run_grid(Dimensions grid, int threads, std::size_t shared_bytes, const std::function<void()>& body) {
  ASSERT(threads % 32 == 0, "{} threads are not whole warps", threads);
  Machine m;
  m.grid = grid;
  m.fibers.resize(static_cast<std::size_t>(threads));
  m.shared.resize(shared_bytes + 128);
  m.body = &body;
  machine = &m;
  for (m.block.y = 0; m.block.y < grid.y; ++m.block.y) {
    for (m.block.x = 0; m.block.x < grid.x; ++m.block.x) run_one_block(m, threads);
  }
  machine = nullptr;
}

int thread_index() {
  return machine->current;
}
int block_x() {
  return machine->block.x;
}
int block_y() {
  return machine->block.y;
}
int grid_y() {
  return machine->grid.y;
}

char* shared_memory() {
  return reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(machine->shared.data()) + 127) / 128 * 128);
}

void block_barrier() {
  meet(machine->all, [] {});
}

void warp_barrier() {
  meet(machine->warps[static_cast<std::size_t>(machine->current / 32)], [] {});
}

void warp_together(void* argument, const std::function<void(void* const*)>& compute) {
  const auto warp = static_cast<std::size_t>(machine->current / 32);
  machine->arguments[warp][static_cast<std::size_t>(machine->current % 32)] = argument;
  meet(machine->warps[warp], [&] { compute(machine->arguments[warp].data()); });
}

void copy_async_16(void* shared, const void* global, bool inside) {
  ASSERT(reinterpret_cast<std::uintptr_t>(shared) % copy_bytes == 0 &&
             reinterpret_cast<std::uintptr_t>(global) % copy_bytes == 0,
         "a copy of 16 bytes from or to an address that is no multiple of 16");
  const char* begin = shared_memory();
  ASSERT(shared >= begin && static_cast<char*>(shared) + copy_bytes <= machine->shared.data() + machine->shared.size(),
         "a copy to outside of shared memory");
  Copy copy{.shared = shared, .bytes = {}};
  if (inside) std::memcpy(copy.bytes.data(), global, copy_bytes);
  std::memset(shared, nan_byte, copy_bytes);
  self().open_copies.push_back(copy);
}

void copy_async_commit() {
  self().groups.push_back(std::move(self().open_copies));
  self().open_copies.clear();
}

void copy_async_wait_for(int pending) {
  while (static_cast<int>(self().groups.size()) > pending) {
    for (const Copy& copy : self().groups.front()) std::memcpy(copy.shared, copy.bytes.data(), copy_bytes);
    self().groups.pop_front();
  }
}

}  // namespace gainlens::kernels::device
