#include "reports/page/compact_svg.h"

#include <algorithm>
#include <vector>

namespace gainlens::reports {
namespace {

/// Whether two groups with this tag, one after the other, are drawn as one is. An id is of one alone; what is painted
/// as a whole could differ where the groups overlap.
bool is_merged(std::string_view tag) {
  for (const std::string_view name : {" id=", "opacity", "filter", "clip", "mask", "style="}) {
    if (tag.find(name) != tag.npos) return false;
  }
  return true;
}

/// The commands M, L and Z of a path, with V and H for lines along an axis. Another path comes back as it is.
std::string short_path(std::string_view path) {
  std::string text;
  std::string_view x, y, start_x, start_y;
  for (std::size_t at = 0; at < path.size();) {
    if (path[at] == ' ' || path[at] == '\n' || path[at] == '\t') {
      ++at;
      continue;
    }
    const auto end = std::min(path.find_first_of(" \n\t", at), path.size());
    const std::string_view word = path.substr(at, end - at);
    at = end;
    if (word == "Z") {
      text += word;
      continue;
    }
    const auto comma = word.find(',');
    if ((word[0] != 'M' && word[0] != 'L') || comma == word.npos) return std::string(path);
    const std::string_view to_x = word.substr(1, comma - 1), to_y = word.substr(comma + 1);
    if (to_y.find_first_not_of("0123456789.-") != to_y.npos) return std::string(path);  // several commands
    const bool moves = word[0] == 'M', closes = path.find_first_not_of(" \n\t", at) != path.npos &&
                                                path[path.find_first_not_of(" \n\t", at)] == 'Z';
    if (moves) {
      text += word;
      start_x = to_x;
      start_y = to_y;
    } else if (closes && to_x == start_x && to_y == start_y) {
      // Z draws this line.
    } else if (to_x == x) {
      text += 'V';
      text += to_y;
    } else if (to_y == y) {
      text += 'H';
      text += to_x;
    } else {
      text += word;
    }
    x = to_x;
    y = to_y;
  }
  return text;
}

std::string short_tag(std::string_view tag) {
  std::string text(tag);
  if (tag.starts_with("<use ")) {
    if (const auto at = text.find("xlink:href="); at != text.npos) text.erase(at, 6);
  }
  if (tag.starts_with("<path ")) {
    const auto start = text.find(" d='"), end = start == text.npos ? start : text.find('\'', start + 4);
    if (end != text.npos) text.replace(start + 4, end - start - 4, short_path(text.substr(start + 4, end - start - 4)));
  }
  return text;
}

}  // namespace

std::string compact_svg(std::string_view svg) {
  std::string text;
  text.reserve(svg.size());
  std::vector<std::string_view> open;  // tags of groups
  bool in_text = false;
  for (std::size_t at = 0; at < svg.size();) {
    if (svg[at] == '\n' && !in_text) {
      text += '\n';
      at = std::min(svg.find_first_not_of("\n\t ", at), svg.size());
      continue;
    }
    const auto end = svg[at] == '<' ? svg.find('>', at) : svg.npos;
    if (end == svg.npos) {
      text += svg[at++];
      continue;
    }
    const std::string_view tag = svg.substr(at, end + 1 - at);
    at = end + 1;
    if (tag.starts_with("<text")) in_text = true;
    if (tag == "</text>") in_text = false;
    if (tag.starts_with("<g") && !tag.ends_with("/>") && (tag[2] == ' ' || tag[2] == '>')) open.push_back(tag);
    if (tag == "</g>" && !open.empty()) {
      const std::string_view closed = open.back();
      const auto next = std::min(svg.find_first_not_of("\n\t ", at), svg.size());
      if (is_merged(closed) && svg.substr(next).starts_with(closed)) {
        at = next + closed.size();
        continue;
      }
      open.pop_back();
    }
    text += short_tag(tag);
  }
  return text;
}

}  // namespace gainlens::reports
