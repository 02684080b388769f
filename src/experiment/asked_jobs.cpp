#include "experiment/asked_jobs.h"

#include "core/atomic_file.h"
#include "core/check.h"
#include "core/json.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace gainlens::experiment {
namespace {

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
