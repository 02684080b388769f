#include "experiment/job.h"

#include "core/check.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace gainlens::experiment {
namespace {

/// Of one call: run.h5 holds all of them, and each has a folder.
constexpr std::int64_t max_seeds = 10'000;

constexpr std::string_view seed_prefix = "seed-";

}  // namespace

std::vector<Job> jobs_of(const Axes& axes, const std::filesystem::path& out) {
  const std::vector<std::string> alone = {""};
  std::vector<Job> jobs;
  for (const std::string& arm : axes.arms) {
    for (const std::string& variant : axes.variants.empty() ? alone : axes.variants) {
      for (std::int64_t i = 0; i < axes.seeds; ++i) {
        Job job{arm, variant, axes.seed + static_cast<std::uint64_t>(i), {}};
        job.folder = out / job.label() / fmt::format("{}{}", seed_prefix, job.seed);
        jobs.push_back(std::move(job));
      }
    }
  }
  return jobs;
}

std::optional<std::uint64_t> seed_of_folder(std::string_view name) {
  if (!name.starts_with(seed_prefix)) return std::nullopt;
  name.remove_prefix(seed_prefix.size());
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), seed);
  if (error != std::errc() || end != name.data() + name.size() || std::to_string(seed) != name) return std::nullopt;
  return seed;
}

void check_seeds(std::uint64_t seed, std::int64_t seeds) {
  CHECK(seeds >= 1, "--seeds: {}; at least 1 is needed", seeds);
  CHECK(seeds <= max_seeds, "--seeds: {}; at most {} are supported", seeds, max_seeds);
  CHECK(static_cast<std::uint64_t>(seeds) - 1 <= std::numeric_limits<std::uint64_t>::max() - seed,
        "--seeds: {} seeds from {} on (--seed) go beyond 2^64 - 1, the largest seed; give a smaller --seed", seeds,
        seed);
}

bool is_variant_name(std::string_view name) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  constexpr std::string_view others = "-_.+";
  const auto fits = [&](char c) {
    return letters.find(c) != std::string_view::npos || others.find(c) != std::string_view::npos;
  };
  return !name.empty() && name.size() <= 60 && letters.find(name.front()) != std::string_view::npos &&
         std::ranges::all_of(name, fits) && !name.starts_with(seed_prefix) && name != "training";
}

}  // namespace gainlens::experiment
