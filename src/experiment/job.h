#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::experiment {

/// One training of an experiment: an arm, with a variant of the settings and a seed.
struct Job {
  std::string arm;
  std::string variant;  ///< name of a set of settings; empty: the settings of the run
  std::uint64_t seed = 0;
  std::filesystem::path folder;

  /// What results name it by, and its place in the folder of the run: "bft", or "bft/wide".
  std::string label() const { return variant.empty() ? arm : arm + "/" + variant; }
};

/// What is to be trained: each arm, with each variant and each seed.
struct Axes {
  std::vector<std::string> arms;
  std::vector<std::string> variants;  ///< "": the settings of the run; none: these alone
  std::uint64_t seed = 0;             ///< the first one
  std::int64_t seeds = 1;             ///< number of seeds: `seed`, `seed` + 1, ...
};

/// The jobs in the order arm, variant, seed. Their folders are OUT/ARM/seed-N, with variants OUT/ARM/VARIANT/seed-N.
std::vector<Job> jobs_of(const Axes& axes, const std::filesystem::path& out);

/// The seed in the name of a folder "seed-N"; empty for other names.
std::optional<std::uint64_t> seed_of_folder(std::string_view name);

/// @param seed, seeds  the first seed, and the number of seeds
/// @throws InvalidArgument  fewer seeds than one, too many, or seeds beyond 2^64 - 1
void check_seeds(std::uint64_t seed, std::int64_t seeds);

/// Whether a folder of a run can have this name: letters, digits, '-', '_', '.' and '+', the first one a letter or a
/// digit; not "seed-N" and not "training".
bool is_variant_name(std::string_view name);

}  // namespace gainlens::experiment
