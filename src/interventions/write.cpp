#include "interventions/write.h"

#include "core/check.h"
#include "core/json.h"
#include "core/nearest.h"
#include "core/plain_text.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <string>

namespace gainlens::interventions {
namespace {

const std::array<std::string, 3> mode_names = {"zero", "mean", "resample"};
constexpr std::string_view patch_name = "patch";  // of two prompts alone: not a mode of --modes
constexpr std::string_view joint = " + ";
constexpr std::string_view values = "zero, mean, resample, patch, a number (a factor) or a safetensors file";

std::string value_text(const Write& write) {
  if (write.mode == Mode::scale) return fmt::format("{}", write.factor);
  if (write.mode == Mode::file) return write.file.string();
  if (write.mode == Mode::patch) return std::string(patch_name);
  return mode_names[static_cast<std::size_t>(write.mode)];
}

/// What stands in front of the message about one write.
std::string named(std::string_view text) {
  return fmt::format("intervention '{}'", printable(text));
}

/// Whether a text is meant as a number that no write can have.
bool is_no_finite_number(std::string_view value) {
  std::string lower = ascii_lower(value);
  if (lower.starts_with('-') || lower.starts_with('+')) lower.erase(0, 1);
  if (lower == "nan" || lower == "inf" || lower == "infinity") return true;
  double number = 0;
  const auto [end, error] = std::from_chars(lower.data(), lower.data() + lower.size(), number);
  return end == lower.data() + lower.size() && error == std::errc::result_out_of_range;
}

void read_value(std::string_view value, std::string_view text, Write& write) {
  if (value == patch_name) {
    write.mode = Mode::patch;
    return;
  }
  const auto named_mode = std::find(mode_names.begin(), mode_names.end(), value);
  if (named_mode != mode_names.end()) {
    write.mode = static_cast<Mode>(named_mode - mode_names.begin());
    return;
  }
  CHECK(!is_no_finite_number(value), "{}: the factor '{}' must be a finite number", named(text), printable(value, 40));
  if (const auto factor = finite_number(value)) {
    CHECK(*factor != 1, "{}: a factor of 1 changes nothing; give another one", named(text));
    if (*factor == 0) return;  // it is `zero`
    write.mode = Mode::scale;
    write.factor = *factor;
    return;
  }
  write.mode = Mode::file;
  write.file = std::string(value);
  std::error_code error;
  CHECK(std::filesystem::is_regular_file(write.file, error), "{}: '{}' is no file; the value must be {}{}", named(text),
        printable(value, 80), values, did_you_mean(value, mode_names));
}

std::int64_t read_index(std::string_view index, std::string_view key, std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(index.data(), index.data() + index.size(), number);
  CHECK(error == std::errc() && end == index.data() + index.size() && number >= 0,
        "{}: {}={} must be a whole number from 0 on", named(text), key, printable(index, 40));
  return number;
}

/// Reads "[head=3]" at the start of `rest`, and removes it.
void read_bracket(std::string_view& rest, std::string_view text, Write& write) {
  const std::size_t close = rest.find(']'), sign = rest.find('=');
  CHECK(close != std::string_view::npos && sign != std::string_view::npos && sign < close,
        "{}: a bracket must be [head=H] or [position=P]", named(text));
  const std::string_view key = rest.substr(1, sign - 1);
  CHECK(key == "head" || key == "position", "{}: '[{}=': a bracket must be [head=H] or [position=P]", named(text),
        printable(key, 40));
  std::optional<std::int64_t>& place = key == "head" ? write.head : write.position;
  CHECK(!place, "{}: [{}=..] stands twice; join two writes with ' + '", named(text), key);
  place = read_index(rest.substr(sign + 1, close - sign - 1), key, text);
  rest.remove_prefix(close + 1);
}

Write read_write(std::string_view text) {
  Write write;
  const std::size_t end = text.find_first_of("[=");
  CHECK(end != std::string_view::npos && end > 0, "{}: must be SITE[head=H][position=P]=VALUE; VALUE is {}",
        named(text), values);
  write.site = text.substr(0, end);
  std::string_view rest = text.substr(end);
  while (rest.starts_with('[')) read_bracket(rest, text, write);
  CHECK(rest.starts_with('=') && rest.size() > 1, "{}: after the site must stand =VALUE; VALUE is {}", named(text),
        values);
  read_value(rest.substr(1), text, write);
  return write;
}

/// Whether both writes change a number in common.
bool overlap(const Write& a, const Write& b) {
  const auto meet = [](const auto& one, const auto& other) { return !one || !other || *one == *other; };
  return a.site == b.site && meet(a.head, b.head) && meet(a.position, b.position);
}

}  // namespace

std::string Write::text() const {
  std::string text = site;
  if (head) text += fmt::format("[head={}]", *head);
  if (position) text += fmt::format("[position={}]", *position);
  return text + '=' + value_text(*this);
}

std::string Intervention::key() const {
  std::vector<std::string> texts(writes.size());
  std::transform(writes.begin(), writes.end(), texts.begin(), [](const Write& write) { return write.text(); });
  std::sort(texts.begin(), texts.end());
  return fmt::format("{}", fmt::join(texts, joint));
}

std::string Intervention::text() const {
  std::vector<std::string> texts(writes.size());
  std::transform(writes.begin(), writes.end(), texts.begin(), [](const Write& write) { return write.text(); });
  return fmt::format("{}", fmt::join(texts, joint));
}

Intervention parse_intervention(std::string_view text) {
  Intervention intervention;
  for (std::string_view rest = text;;) {
    const std::size_t end = rest.find(joint);
    const Write write = read_write(rest.substr(0, end));
    for (const Write& other : intervention.writes) {
      CHECK(!overlap(write, other), "{}: two writes change the same numbers of {}; write each place once", named(text),
            printable(write.site));
    }
    intervention.writes.push_back(write);
    if (end == std::string_view::npos) return intervention;
    rest.remove_prefix(end + joint.size());
  }
}

Mode parse_mode(const std::string& name, std::string_view what) {
  const auto found = std::find(mode_names.begin(), mode_names.end(), name);
  CHECK(found != mode_names.end(), "{}: '{}'; must be zero, mean or resample{}", what, printable(name, 40),
        did_you_mean(name, mode_names));
  return static_cast<Mode>(found - mode_names.begin());
}

std::vector<Intervention> read_interventions(const std::filesystem::path& file) {
  const std::string where = printable(file.string());
  const Json json = read_json_file(file);
  CHECK(json.is_object() && json.size() == 1 && json.contains("interventions") && json["interventions"].is_array(),
        "{}: must hold {{\"interventions\": [\"SITE[head=H]=zero\", ..]}} and nothing else", where);
  std::vector<Intervention> all;
  for (const Json& entry : json["interventions"]) {
    CHECK(entry.is_string(), "{}: an intervention must be a text such as \"blocks.0.attn.hook_z[head=1]=zero\"", where);
    try {
      all.push_back(parse_intervention(entry.get<std::string>()));
    } catch (const InvalidArgument& error) {
      throw_invalid("{}: {}", where, error.what());
    }
  }
  CHECK(!all.empty(), "{}: it holds no intervention; give at least one", where);
  return all;
}

void check_each_once(const std::vector<Intervention>& all) {
  std::set<std::string> texts;
  for (const Intervention& one : all) {
    CHECK(texts.insert(one.key()).second, "intervention '{}': is asked for twice; give it once", printable(one.text()));
  }
}

std::string interventions_text(const std::vector<Intervention>& interventions) {
  Json texts = Json::array();
  for (const Intervention& intervention : interventions) texts.push_back(intervention.text());
  return json_text({{"interventions", texts}}, 2) + "\n";
}

}  // namespace gainlens::interventions
