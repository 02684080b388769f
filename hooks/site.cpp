#include "hooks/site.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "core/nearest.h"

namespace gainlens::hooks {
namespace {

constexpr std::size_t max_alternatives = 4096;

/// Position of the brace that closes the one at `open`.
std::size_t closing_brace(std::string_view pattern, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < pattern.size(); ++i) {
    if (pattern[i] == '{') ++depth;
    if (pattern[i] == '}' && --depth == 0) return i;
  }
  throw_invalid("hook pattern '{}': the '{{' at character {} is never closed; write alternatives as {{q,k}}",
                printable(pattern), open + 1);
}

/// Splits at the commas that lie outside inner braces.
std::vector<std::string> split_alternatives(std::string_view inside) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : inside) {
    if (c == '{') ++depth;
    if (c == '}') --depth;
    if (c == ',' && depth == 0) {
      parts.emplace_back();
    } else {
      parts.back().push_back(c);
    }
  }
  return parts;
}

void expand_braces(std::string_view pattern, std::string_view whole, std::vector<std::string>& expanded) {
  const std::size_t open = pattern.find('{');
  if (open == std::string_view::npos) {
    CHECK(pattern.find('}') == std::string_view::npos,
          "hook pattern '{}': a '}}' without its '{{'; write alternatives as {{q,k}}", printable(whole));
    CHECK(expanded.size() < max_alternatives, "hook pattern '{}': its braces stand for more than {} patterns",
          printable(whole), max_alternatives);
    expanded.emplace_back(pattern);
    return;
  }
  const std::string_view before = pattern.substr(0, open);
  CHECK(before.find('}') == std::string_view::npos,
        "hook pattern '{}': a '}}' without its '{{'; write alternatives as {{q,k}}", printable(whole));
  const std::size_t close = closing_brace(pattern, open);
  const std::string_view after = pattern.substr(close + 1);
  for (const std::string& alternative : split_alternatives(pattern.substr(open + 1, close - open - 1))) {
    expand_braces(fmt::format("{}{}{}", before, alternative, after), whole, expanded);
  }
}

/// A set of characters, as in [ab] or [!a]: a ']' right after its beginning belongs to it, as in fnmatch.
void check_brackets(std::string_view pattern) {
  for (std::size_t open = pattern.find('['); open != std::string_view::npos;) {
    std::size_t first = open + 1;
    if (first < pattern.size() && (pattern[first] == '!' || pattern[first] == '^')) ++first;
    const std::size_t close = pattern.find(']', first + 1);
    CHECK(close != std::string_view::npos,
          "hook pattern '{}': the '[' at character {} is never closed; write a set of characters as [ab]",
          printable(pattern), open + 1);
    open = pattern.find('[', close);
  }
}

}  // namespace

Site block_site(std::int64_t layer, std::string_view rest) {
  return {fmt::format("blocks.{}.{}", layer, rest)};
}

const Site& logits_site() {
  static const Site site{"hook_logits"};
  return site;
}

Glob::Glob(std::string pattern) : text_(std::move(pattern)) {
  CHECK(!text_.empty(), "hook pattern: it is empty; '*' matches every site");
  check_brackets(text_);
  expand_braces(text_, text_, alternatives_);
}

bool Glob::matches(const Site& site) const {
  // Without FNM_PATHNAME and FNM_PERIOD a star matches every character, also dots.
  return std::any_of(alternatives_.begin(), alternatives_.end(), [&](const std::string& alternative) {
    return ::fnmatch(alternative.c_str(), site.name.c_str(), FNM_NOESCAPE) == 0;
  });
}

std::vector<SiteShape> select_sites(const std::vector<Glob>& globs, const std::vector<SiteShape>& sites) {
  std::vector<bool> selected(sites.size(), false);
  for (const Glob& glob : globs) {
    bool any = false;
    for (std::size_t i = 0; i < sites.size(); ++i) {
      if (!glob.matches(sites[i].site)) continue;
      selected[i] = any = true;
    }
    if (any) continue;
    std::vector<std::string> names;
    names.reserve(sites.size());
    for (const SiteShape& shape : sites) names.push_back(shape.site.name);
    throw_invalid("hook pattern '{}': it matches none of the model's {} sites{}", printable(glob.text()), sites.size(),
                  did_you_mean(glob.text(), names));
  }
  std::vector<SiteShape> result;
  for (std::size_t i = 0; i < sites.size(); ++i) {
    if (selected[i]) result.push_back(sites[i]);
  }
  return result;
}

}  // namespace gainlens::hooks
