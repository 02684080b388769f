#include "interventions/text_overlap.h"

#include "core/check.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace gainlens::interventions {
namespace {

/// Calls `see(run)` with the bytes of every run of `size` tokens; ends where it returns false.
template <typename See>
void each_run(const std::vector<std::int32_t>& tokens, std::int64_t first, std::int64_t size, See&& see) {
  const auto* const bytes = reinterpret_cast<const char*>(tokens.data());
  for (std::int64_t begin = first; begin + size <= std::ssize(tokens); ++begin) {
    const auto token = static_cast<std::size_t>(begin);
    see(std::string_view(bytes + token * sizeof(std::int32_t), static_cast<std::size_t>(size) * sizeof(std::int32_t)));
  }
}

}  // namespace

void check_disjoint(const std::vector<std::vector<std::int32_t>>& calibration,
                    const std::vector<std::vector<std::int32_t>>& test, std::int64_t first) {
  std::int64_t size = shared_run;
  for (const auto* documents : {&calibration, &test}) {
    for (const std::vector<std::int32_t>& tokens : *documents) size = std::min(size, std::ssize(tokens) - first);
  }
  std::unordered_map<std::string_view, std::size_t> known;
  for (std::size_t document = 0; document < test.size(); ++document)
    each_run(test[document], first, size, [&](std::string_view run) { known.emplace(run, document); });
  for (std::size_t document = 0; document < calibration.size(); ++document) {
    each_run(calibration[document], first, size, [&](std::string_view run) {
      const auto found = known.find(run);
      CHECK(
          found == known.end(),
          "--calibration: its document {} and document {} of the test have {} tokens in a row in common; take another "
          "text",
          document, found->second, size);
    });
  }
}

}  // namespace gainlens::interventions
