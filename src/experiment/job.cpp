#include "experiment/job.h"

#include "core/atomic_file.h"
#include "core/check.h"
#include "core/json.h"
#include "core/listener.h"
#include "experiment/result_file.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace gainlens::experiment {
namespace {

/// Of one call: run.h5 holds all of them, and each has a folder.
constexpr std::int64_t max_seeds = 10'000;

constexpr std::string_view seed_prefix = "seed-";

/// The trainings of one arm, with one variant, in its folder.
struct FinishedArm {
  std::string label;
  std::map<std::uint64_t, Result> finished;
  std::map<std::uint64_t, std::int64_t> begun;  ///< the epochs of those that go on
};

FinishedArm finished_arm(const std::filesystem::path& out, const SoughtArm& sought) {
  FinishedArm arm{Job{sought.arm, sought.variant, 0, {}}.label(), {}, {}};
  for (const auto& entry : std::filesystem::directory_iterator(out / arm.label)) {
    const auto seed = seed_of_folder(entry.path().filename().string());
    if (!seed || !std::filesystem::exists(entry.path() / result_name)) continue;
    Result result = sought.rules.prove({sought.arm, sought.variant, *seed, entry.path()});
    if (is_finished(result, sought.rules.epochs, sought.rules.patience))
      arm.finished[*seed] = std::move(result);
    else
      arm.begun[*seed] = runfile::epochs_of(result);
  }
  for (const auto& [seed, epochs] : arm.begun)
    tell_note("{} seed {}: has {} of {} epochs and is left out of run.h5; ask for it, to continue", arm.label, seed,
              epochs, sought.rules.epochs);
  return arm;
}

namespace fs = std::filesystem;
using Asked = std::map<std::string, std::set<std::uint64_t>>;  // seeds by label

bool is_label(const std::string& label) {
  const std::size_t slash = label.find('/');
  return is_variant_name(label.substr(0, slash)) &&
         (slash == std::string::npos || is_variant_name(label.substr(slash + 1)));
}

Asked read_asked(const fs::path& file) {
  constexpr std::string_view repair = "delete it and repeat the command that trains, which writes it again";
  const Json json = read_json_file(file);
  CHECK(json.is_object(), "{}: is no list of trainings; {}", printable(file.string()), repair);
  Asked asked;
  for (const auto& [label, seeds] : json.items()) {
    CHECK(is_label(label) && seeds.is_array() &&
              std::ranges::all_of(seeds, [](const Json& seed) { return seed.is_number_unsigned(); }),
          "{}: '{}' is no arm with its seeds; {}", printable(file.string()), printable(label, 60), repair);
    for (const Json& seed : seeds) asked[label].insert(seed.get<std::uint64_t>());
  }
  return asked;
}

/// The trainings that have a folder in `folder`, and in its folders.
/// @param above  the label of the folder; empty: it is the run's
void find_begun(const fs::path& folder, const std::string& above, Asked& begun) {
  std::error_code ignored;
  for (fs::directory_iterator at(folder, ignored), end; !ignored && at != end; at.increment(ignored)) {
    const std::string name = at->path().filename().string();
    if (const auto seed = seed_of_folder(name); seed && !above.empty()) begun[above].insert(*seed);
    const bool is_variant = !above.empty();
    if (at->is_directory(ignored) && is_variant_name(name) && above.find('/') == std::string::npos)
      find_begun(at->path(), is_variant ? above + "/" + name : name, begun);
  }
}

/// What the file of the run says; without one, as of an earlier version, what has begun.
Asked asked_or_begun(const fs::path& run) {
  if (fs::exists(run / asked_name)) return read_asked(run / asked_name);
  Asked begun;
  find_begun(run, "", begun);
  return begun;
}

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

void add_finished(runfile::TrainedRun& run, const std::filesystem::path& out, const std::vector<SoughtArm>& sought) {
  std::vector<FinishedArm> arms;
  std::set<std::uint64_t> seeds;
  for (const SoughtArm& one : sought) {
    if (!std::filesystem::is_directory(out / Job{one.arm, one.variant, 0, {}}.label())) continue;
    FinishedArm found = finished_arm(out, one);
    const auto has_variants = [&](const SoughtArm& other) { return other.arm == one.arm && !other.variant.empty(); };
    // The folder of an arm may hold those of variants alone.
    if (found.finished.empty() && found.begun.empty() && one.variant.empty() &&
        std::ranges::any_of(sought, has_variants))
      continue;
    for (const auto& [seed, result] : found.finished) seeds.insert(seed);
    for (const auto& [seed, epochs] : found.begun) seeds.insert(seed);
    arms.push_back(std::move(found));
  }
  run.seeds.assign(seeds.begin(), seeds.end());
  for (FinishedArm& arm : arms) {
    run.arms.push_back(arm.label);
    for (const std::uint64_t seed : run.seeds) {
      auto& result = run.results.emplace_back();
      const auto done = arm.finished.find(seed);
      if (done != arm.finished.end()) result = std::move(done->second);
    }
  }
}

void note_asked(const fs::path& run, const std::vector<Job>& jobs) {
  const fs::path file = run / asked_name;
  Asked asked = asked_or_begun(run);
  for (const Job& job : jobs) asked[job.label()].insert(job.seed);
  const std::string text = json_text(Json(asked), 1) + "\n";
  if (!fs::exists(file) || read_text_file(file) != text) write_file_atomically(file, text);
}

AskedJobs asked_jobs(const fs::path& run) {
  AskedJobs found{{}, fs::exists(run / asked_name)};
  for (const auto& [label, seeds] : asked_or_begun(run)) {
    const std::size_t slash = label.find('/');
    for (const std::uint64_t seed : seeds) {
      const Axes axes{.arms = {label.substr(0, slash)},
                      .variants = {slash == std::string::npos ? std::string() : label.substr(slash + 1)},
                      .seed = seed,
                      .seeds = 1};
      found.jobs.push_back(jobs_of(axes, run).front());
    }
  }
  return found;
}

}  // namespace gainlens::experiment
