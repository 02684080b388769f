#include "tokenizers/added_tokens.h"

#include "core/check.h"
#include "tokenizers/code_points.h"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <algorithm>

namespace gainlens::tokenizers {
namespace {

// The classes \w and \s of the reference's Rust patterns.
bool is_word(UChar32 c) {
  const auto category = U_MASK(u_charType(c));
  return u_hasBinaryProperty(c, UCHAR_ALPHABETIC) || u_hasBinaryProperty(c, UCHAR_JOIN_CONTROL) ||
         (category & (U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK)) != 0;
}
bool is_space(UChar32 c) {
  return u_hasBinaryProperty(c, UCHAR_WHITE_SPACE) != 0;
}

/// Returns the code point that ends at `end` (> 0), and moves `end` to its start.
UChar32 previous_code_point(std::string_view text, std::size_t& end) {
  const char* bytes = text.data();
  UChar32 c = 0;
  U8_PREV_UNSAFE(bytes, end, c);
  return c;
}

UChar32 code_point_at(std::string_view text, std::size_t position) {
  return static_cast<UChar32>(next_code_point(text, position));
}

std::size_t without_space_before(std::string_view text, std::size_t end) {
  while (end > 0) {
    std::size_t start = end;
    if (!is_space(previous_code_point(text, start))) break;
    end = start;
  }
  return end;
}

std::size_t behind_space(std::string_view text, std::size_t begin) {
  while (begin < text.size() && is_space(code_point_at(text, begin))) next_code_point(text, begin);
  return begin;
}

}  // namespace

void AddedTokenFinder::add(const AddedToken& token, std::string_view written) {
  ASSERT(!written.empty(), "an added token without text");
  std::size_t node = 0;
  for (const char byte : written) {
    const auto [edge, is_new] = nodes_[node].next.try_emplace(static_cast<unsigned char>(byte), nodes_.size());
    node = edge->second;
    if (is_new) nodes_.emplace_back();
  }
  if (nodes_[node].token != nothing) return;
  nodes_[node].token = tokens_.size();
  tokens_.push_back(token);
  longest_ = std::max(longest_, written.size());
  takes_space_ = takes_space_ || token.left_strip || token.right_strip;
}

std::optional<AddedTokenFinder::Match> AddedTokenFinder::longest_at(std::string_view text, std::size_t begin) const {
  std::optional<Match> longest;
  std::size_t node = 0;
  for (std::size_t position = begin; position < text.size(); ++position) {
    const auto edge = nodes_[node].next.find(static_cast<unsigned char>(text[position]));
    if (edge == nodes_[node].next.end()) break;
    node = edge->second;
    if (nodes_[node].token != nothing) longest = {begin, position + 1, nodes_[node].token};
  }
  return longest;
}

bool AddedTokenFinder::stands_alone(std::string_view text, const Match& match) const {
  std::size_t before = match.begin;
  const bool word_before = match.begin > 0 && is_word(previous_code_point(text, before));
  const bool word_behind = match.end < text.size() && is_word(code_point_at(text, match.end));
  return !word_before && !word_behind;
}

/// No text that is looked for crosses the place, touches it, or touches the white space around it where white space is
/// taken. Texts that are found and passed over (single_word) count as well.
bool AddedTokenFinder::may_cut(std::string_view text, std::size_t place) const {
  if (empty()) return true;
  const std::size_t begin = takes_space_ ? without_space_before(text, place) : place;
  const std::size_t end = takes_space_ ? behind_space(text, place) : place;
  if (takes_space_ && (begin == 0 || end == text.size())) return false;
  if (end + longest_ > text.size()) return false;  // what stands there is not known whole
  for (std::size_t from = begin - std::min(begin, longest_); from <= end; ++from) {
    const auto match = longest_at(text, from);
    if (match && match->end >= begin) return false;
  }
  return true;
}

std::vector<AddedTokenFinder::Part> AddedTokenFinder::split(std::string_view text) const {
  std::vector<Part> parts;
  std::size_t covered = 0;  // everything before is in `parts`
  const auto close_gap = [&](std::size_t end) {
    if (covered < end) parts.push_back({text.substr(covered, end - covered), covered, std::nullopt});
  };
  for (std::size_t position = 0; !empty() && position < text.size();) {
    const auto match = longest_at(text, position);
    if (!match) {
      ++position;
      continue;
    }
    position = match->end;
    const AddedToken& token = tokens_[match->token];
    if (token.single_word && !stands_alone(text, *match)) continue;
    // White space that the token before has taken is not taken again.
    const std::size_t begin =
        token.left_strip ? std::max(without_space_before(text, match->begin), covered) : match->begin;
    const std::size_t end = token.right_strip ? behind_space(text, match->end) : match->end;
    close_gap(begin);
    parts.push_back({text.substr(begin, end - begin), begin, token.id});
    covered = end;
  }
  close_gap(text.size());
  return parts;
}

}  // namespace gainlens::tokenizers
