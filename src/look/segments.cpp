#include "look/segments.h"

#include "core/check.h"
#include "core/json.h"

#include <set>

namespace gainlens::look {

std::vector<PromptSegment> read_segments(const std::filesystem::path& path, std::int64_t positions) {
  const std::string where = printable(path.string());
  const Json json = read_json_file(path);
  CHECK(json.is_array() && !json.empty(),
        "--segments: {}: must be a list, [{{\"name\": \"question\", \"begin\": 0, \"end\": 12}}, ..]", where);
  std::vector<PromptSegment> segments;
  std::set<std::string> names;
  std::int64_t covered = 0;
  for (const Json& entry : json) {
    const std::size_t place = segments.size();
    CHECK(entry.is_object() && entry.size() == 3 && entry.contains("name") && entry.contains("begin") &&
              entry.contains("end") && entry["name"].is_string() && entry["begin"].is_number_integer() &&
              entry["end"].is_number_integer(),
          "--segments: {}: entry {} must have a \"name\", and \"begin\" and \"end\" in tokens, and nothing else", where,
          place);
    PromptSegment segment{entry["name"], entry["begin"], entry["end"]};
    const std::string name = printable(segment.name, 40);
    CHECK(names.insert(segment.name).second, "--segments: {}: '{}' is there twice", where, name);
    CHECK(segment.begin >= 0, "--segments: {}: '{}' begins at token {}; the first is 0", where, name, segment.begin);
    CHECK(segment.begin == covered, "--segments: {}: '{}' begins at token {}, {} the end of those before it at {}",
          where, name, segment.begin, segment.begin < covered ? "which overlaps" : "which leaves a gap after", covered);
    CHECK(segment.end > segment.begin, "--segments: {}: '{}' holds no token ([{}, {}))", where, name, segment.begin,
          segment.end);
    CHECK(segment.end <= positions, "--segments: {}: '{}' ends at token {}, and the prompt has {} tokens", where, name,
          segment.end, positions);
    covered = segment.end;
    segments.push_back(std::move(segment));
  }
  CHECK(covered == positions, "--segments: {}: they cover {} of {} tokens; give each token to one", where, covered,
        positions);
  return segments;
}

}  // namespace gainlens::look
