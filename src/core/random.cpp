#include "core/random.h"

#include "core/check.h"

namespace gainlens {
namespace {

/// Spreads the bits of a small number (the finaliser of SplitMix64), so that seeds 1 and 2 do not start alike.
std::uint64_t spread(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

Random::Random(std::uint64_t seed, std::uint64_t stream) : engine_(spread(spread(seed) ^ stream)) {}

std::uint64_t Random::below(std::uint64_t bound) {
  ASSERT(bound > 0, "a random number below 0");
  // Numbers from the last, incomplete round of `bound` would make small remainders more likely. They are drawn again.
  const std::uint64_t incomplete = (UINT64_MAX % bound + 1) % bound;
  std::uint64_t drawn = engine_();
  while (drawn > UINT64_MAX - incomplete) drawn = engine_();
  return drawn % bound;
}

}  // namespace gainlens
