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
constexpr std::string_view knockout_name = "knockout";  // of attention weights alone
constexpr std::string_view values = "zero, mean, resample, patch, knockout, a number (a factor) or a safetensors file";
constexpr std::string_view form = "SITE[head=H][position=P][key=K]=VALUE";
constexpr std::string_view brackets = "a bracket must be [head=H], [position=P] or [key=K]";

std::string value_text(const Write& write) {
  if (write.mode == Mode::scale) return fmt::format("{}", write.factor);
  if (write.mode == Mode::file) return write.file.string();
  if (write.mode == Mode::patch) return std::string(patch_name);
  if (write.mode == Mode::knockout) return std::string(knockout_name);
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
  if (value == patch_name || value == knockout_name) {
    write.mode = value == patch_name ? Mode::patch : Mode::knockout;
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

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

void check_count(std::int64_t writes, std::string_view text) {
  CHECK(writes <= static_cast<std::int64_t>(max_writes), "{}: it stands for {} writes or more; the most are {}",
        named(text), writes, max_writes);
}

/// "1,4:6": the numbers and ranges of a list.
std::vector<IndexRange> read_list(std::string_view list, std::string_view key, std::string_view text) {
  std::vector<IndexRange> ranges;
  for (const std::string_view item : split(list, ','))
    ranges.push_back(parse_index_range(item, fmt::format("{}: {}=", named(text), key)));
  return ranges;
}

/// The same, each number alone.
std::vector<std::int64_t> read_numbers(std::string_view list, std::string_view key, std::string_view text) {
  std::vector<std::int64_t> numbers;
  for (const IndexRange& range : read_list(list, key, text)) {
    check_count(range.size(), text);
    for (std::int64_t number = range.first; number < range.end; ++number) numbers.push_back(number);
  }
  return numbers;
}

/// A write with lists in the places of numbers.
struct WriteLists {
  std::vector<std::string> sites;
  std::vector<std::int64_t> heads;          // empty: all
  std::vector<IndexRange> positions, keys;  // empty: all
};

/// Reads "[head=3]" at the start of `rest`, and removes it.
void read_bracket(std::string_view& rest, std::string_view text, WriteLists& lists) {
  const std::size_t close = rest.find(']'), sign = rest.find('=');
  CHECK(close != std::string_view::npos && sign != std::string_view::npos && sign < close, "{}: {}", named(text),
        brackets);
  const std::string_view key = rest.substr(1, sign - 1), list = rest.substr(sign + 1, close - sign - 1);
  const auto once = [&](bool empty) {
    CHECK(empty, "{}: [{}=..] stands twice; join two writes with ' + '", named(text), key);
  };
  if (key == "head") {
    once(lists.heads.empty());
    lists.heads = read_numbers(list, key, text);
  } else {
    CHECK(key == "position" || key == "key", "{}: '[{}=': {}", named(text), printable(key, 40), brackets);
    std::vector<IndexRange>& ranges = key == "key" ? lists.keys : lists.positions;
    once(ranges.empty());
    ranges = read_list(list, key, text);
  }
  rest.remove_prefix(close + 1);
}

/// The sites that one with braces stands for: "blocks.{5,11}.hook_mlp_out", "blocks.{5:12}.hook_mlp_out".
std::vector<std::string> sites_of(std::string_view site, std::string_view text) {
  const std::size_t open = site.find('{');
  if (open == std::string_view::npos) return {std::string(site)};
  const std::size_t close = site.find('}', open);
  CHECK(close != std::string_view::npos, "{}: the brace '{{' is not closed", named(text));
  std::vector<std::string> all;
  for (const std::int64_t number : read_numbers(site.substr(open + 1, close - open - 1), "layer", text)) {
    for (const std::string& rest : sites_of(site.substr(close + 1), text))
      all.push_back(fmt::format("{}{}{}", site.substr(0, open), number, rest));
    check_count(std::ssize(all), text);
  }
  return all;
}

/// Every value of a list, or nothing where there is no list.
template <typename T>
std::vector<std::optional<T>> each_of(const std::vector<T>& list) {
  if (list.empty()) return {std::nullopt};
  return {list.begin(), list.end()};
}

/// The writes that a text without " + " stands for.
std::vector<Write> read_writes(std::string_view text) {
  WriteLists lists;
  const std::size_t end = text.find_first_of("[=");
  CHECK(end != std::string_view::npos && end > 0, "{}: must be {}; VALUE is {}", named(text), form, values);
  lists.sites = sites_of(text.substr(0, end), text);
  std::string_view rest = text.substr(end);
  while (rest.starts_with('[')) read_bracket(rest, text, lists);
  CHECK(rest.starts_with('=') && rest.size() > 1, "{}: after the site must stand =VALUE; VALUE is {}", named(text),
        values);
  Write write;
  read_value(rest.substr(1), text, write);
  const auto heads = each_of(lists.heads);
  const auto positions = each_of(lists.positions), keys = each_of(lists.keys);
  std::vector<Write> writes;
  for (const std::string& site : lists.sites) {
    for (const auto& head : heads) {
      for (const auto& position : positions) {
        for (const auto& key : keys) {
          write.site = site;
          write.head = head;
          write.position = position;
          write.key = key;
          writes.push_back(write);
          check_count(std::ssize(writes), text);
        }
      }
    }
  }
  return writes;
}

/// Whether both writes change a number in common. A knockout changes all keys of a query.
bool overlap(const Write& a, const Write& b) {
  const auto meet = [](const auto& one, const auto& other) { return !one || !other || one->meets(*other); };
  const bool all_keys = a.mode == Mode::knockout || b.mode == Mode::knockout;
  return a.site == b.site && (!a.head || !b.head || *a.head == *b.head) && meet(a.position, b.position) &&
         (all_keys || meet(a.key, b.key));
}

}  // namespace

std::string Write::text() const {
  std::string text = site;
  if (head) text += fmt::format("[head={}]", *head);
  if (position) text += fmt::format("[position={}]", position->text());
  if (key) text += fmt::format("[key={}]", key->text());
  return text + '=' + value_text(*this);
}

std::string Write::kind() const {
  constexpr std::string_view layers = "blocks.";
  const std::size_t dot = site.starts_with(layers) ? site.find('.', layers.size()) : std::string::npos;
  return fmt::format("{}={}", dot == std::string::npos ? site : site.substr(dot + 1), value_text(*this));
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
    for (const Write& write : read_writes(rest.substr(0, end))) {
      for (const Write& other : intervention.writes) {
        CHECK(!overlap(write, other), "{}: two writes change the same numbers of {}; write each place once{}",
              named(text), printable(write.site),
              write.mode == Mode::knockout ? ", and give a knockout one range of keys" : "");
      }
      intervention.writes.push_back(write);
      check_count(std::ssize(intervention.writes), text);
    }
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
