#include "tokenizers/bpe.h"

#include "core/check.h"
#include "tokenizers/code_points.h"

#include <algorithm>
#include <queue>

namespace gainlens::tokenizers {
namespace {

constexpr std::size_t longest_cached = 64;  // bytes: longer pieces are rarely repeated
constexpr std::size_t max_cached = std::size_t{1} << 17;

std::uint64_t pair_key(std::uint32_t left, std::uint32_t right) {
  return std::uint64_t{left} << 32 | right;
}

}  // namespace

Bpe::Bpe(Vocabulary vocabulary, const std::vector<Merge>& merges, BpeOptions options, std::string where)
    : vocabulary_(std::move(vocabulary)), options_(std::move(options)), where_(std::move(where)) {
  for (const auto& [token, id] : vocabulary_) {
    std::size_t position = 0;
    if (token.empty()) continue;
    const char32_t first = next_code_point(token, position);
    if (position == token.size()) characters_.emplace(first, id);
  }
  for (int byte = 0; byte < 256; ++byte) bytes_.push_back(vocabulary_.find(fmt::format("<0x{:02X}>", byte)));
  CHECK(merges.size() < std::size_t{INT32_MAX}, "{}: {} merges are too many", where_, merges.size());
  merges_.reserve(merges.size());
  for (std::size_t rank = 0; rank < merges.size(); ++rank) add_merge(merges[rank], rank);
  const auto is_byte = [](const std::string& side) { return side.size() == 6 && side.starts_with("<0x"); };
  bytes_stay_ = options_.byte_fallback &&
                std::all_of(bytes_.begin(), bytes_.end(), [](const auto& id) { return id.has_value(); }) &&
                std::none_of(merges.begin(), merges.end(),
                             [&](const Merge& merge) { return is_byte(merge.first) || is_byte(merge.second); });
}

void Bpe::add_merge(const Merge& merge, std::size_t rank) {
  CHECK(!merge.first.empty() && !merge.second.empty(), "{}: merge {} has an empty side; a merge joins two tokens",
        where_, rank);
  const std::string joined = merge.first + merge.second;
  const auto left = vocabulary_.find(merge.first);
  const auto right = vocabulary_.find(merge.second);
  const auto merged = vocabulary_.find(joined);
  CHECK(left && right && merged, "{}: merge {} ('{}' with '{}') needs '{}', which is not in the vocabulary", where_,
        rank, printable(merge.first), printable(merge.second),
        printable(!left    ? merge.first
                  : !right ? merge.second
                           : joined));
  // A pair listed twice has the rank of its last line, as in the reference.
  merges_.insert_or_assign(pair_key(static_cast<std::uint32_t>(*left), static_cast<std::uint32_t>(*right)),
                           Ranked{static_cast<std::int32_t>(rank), *merged});
  note_neighbours(joined);
}

void Bpe::note_neighbours(std::string_view token) {
  std::size_t position = 0;
  char32_t previous = next_code_point(token, position);
  while (position < token.size()) {
    const char32_t next = next_code_point(token, position);
    neighbours_.insert(pair_key(previous, next));
    previous = next;
  }
}

/// Whether no merge can ever join these two characters: both are known, and no merged token has them side by side, or
/// one of them becomes bytes, which are never merged. A word may be cut between them without changing its tokens.
/// Without such cuts a text without a pre-tokenizer would be one word of millions of characters.
bool Bpe::never_joined(char32_t left, char32_t right) const {
  const bool left_known = characters_.contains(left), right_known = characters_.contains(right);
  if (left_known && right_known) return !neighbours_.contains(pair_key(left, right));
  return bytes_stay_;  // every unknown character becomes bytes
}

bool Bpe::always_cut(char32_t left, char32_t right) const {
  return !options_.ignore_merges && never_joined(left, right);  // else a word that is a token is looked up whole
}

void Bpe::encode(std::string_view word, Cache& cache, std::vector<TokenId>& ids) const {
  if (word.empty()) return;
  if (options_.ignore_merges) {
    if (const auto whole = vocabulary_.find(word)) return ids.push_back(*whole);
  }
  if (word.size() <= longest_cached) return encode_piece(word, cache, ids);
  std::size_t start = 0, position = 0;
  char32_t previous = next_code_point(word, position);
  while (position < word.size()) {
    const std::size_t here = position;
    const char32_t next = next_code_point(word, position);
    if (never_joined(previous, next)) {
      encode_piece(word.substr(start, here - start), cache, ids);
      start = here;
    }
    previous = next;
  }
  encode_piece(word.substr(start), cache, ids);
}

/// The linked list of symbols of one piece, and its waiting merges in order of rank and place.
class Bpe::Merging {
 public:
  Merging(const Bpe& bpe, const std::vector<TokenId>& start) : bpe_(bpe) {
    const auto size = static_cast<std::int32_t>(start.size());
    symbols_.reserve(start.size());
    for (std::int32_t i = 0; i < size; ++i)
      symbols_.push_back({start[static_cast<std::size_t>(i)], i - 1, i + 1 < size ? i + 1 : none});
    for (std::int32_t i = 0; i + 1 < size; ++i) propose(i);
  }

  void run() {
    while (!waiting_.empty()) {
      const Candidate best = waiting_.top();
      waiting_.pop();
      if (still_stands(best)) merge(best);
    }
  }

  void append_to(std::vector<TokenId>& ids) const {
    for (std::int32_t i = symbols_.empty() ? none : 0; i != none; i = at(i).next) ids.push_back(at(i).id);
  }

 private:
  static constexpr std::int32_t none = -1;
  struct Symbol {
    TokenId id;  // none once merged into its left neighbour
    std::int32_t previous, next;
  };
  struct Candidate {
    std::int32_t rank, left;
    TokenId merged;
    bool operator<(const Candidate& other) const { return rank != other.rank ? rank > other.rank : left > other.left; }
  };

  const Symbol& at(std::int32_t i) const { return symbols_[static_cast<std::size_t>(i)]; }
  Symbol& at(std::int32_t i) { return symbols_[static_cast<std::size_t>(i)]; }

  void propose(std::int32_t left) {
    const std::int32_t right = at(left).next;
    if (right == none) return;
    if (const Ranked* found = bpe_.find_merge(at(left).id, at(right).id))
      waiting_.push({found->rank, left, found->merged});
  }

  // As in the reference, a candidate stays valid as long as the pair that is there now gives the same token, even by
  // another merge.
  bool still_stands(const Candidate& candidate) const {
    const Symbol& left = at(candidate.left);
    if (left.id == none || left.next == none) return false;
    const Ranked* found = bpe_.find_merge(left.id, at(left.next).id);
    return found != nullptr && found->merged == candidate.merged;
  }

  void merge(const Candidate& candidate) {
    Symbol& left = at(candidate.left);
    Symbol& right = at(left.next);
    left.id = candidate.merged;
    left.next = right.next;
    right.id = none;
    if (left.next != none) at(left.next).previous = candidate.left;
    if (left.previous != none) propose(left.previous);
    propose(candidate.left);
  }

  const Bpe& bpe_;
  std::vector<Symbol> symbols_;
  std::priority_queue<Candidate> waiting_;
};

void Bpe::encode_piece(std::string_view piece, Cache& cache, std::vector<TokenId>& ids) const {
  const bool cached = piece.size() <= longest_cached;
  if (cached) {
    if (const auto found = cache.find(piece); found != cache.end()) {
      ids.insert(ids.end(), found->second.begin(), found->second.end());
      return;
    }
  }
  Merging merging(*this, initial_symbols(piece));
  merging.run();
  const auto before = static_cast<std::ptrdiff_t>(ids.size());
  merging.append_to(ids);
  if (cached && cache.size() < max_cached) cache.emplace(piece, std::vector<TokenId>(ids.begin() + before, ids.end()));
}

std::vector<TokenId> Bpe::initial_symbols(std::string_view piece) const {
  std::vector<TokenId> symbols;
  symbols.reserve(piece.size());
  constexpr TokenId nothing = -1;
  TokenId pending = nothing;  // an unknown token not yet written: the next one may be fused with it
  for (std::size_t position = 0; position < piece.size();) {
    const std::size_t start = position;
    const char32_t character = next_code_point(piece, position);
    if (const auto known = characters_.find(character); known != characters_.end()) {
      if (pending != nothing) symbols.push_back(pending);
      pending = nothing;
      symbols.push_back(known->second);
    } else if (!append_bytes(piece.substr(start, position - start), symbols)) {
      if (pending != nothing && !options_.fuse_unknown) symbols.push_back(pending);
      pending = unknown_id(character);
    }
  }
  if (pending != nothing) symbols.push_back(pending);
  return symbols;
}

/// An unknown token that is pending before the bytes stays pending after them, as in the reference. This can happen
/// only if some byte tokens are missing.
bool Bpe::append_bytes(std::string_view character, std::vector<TokenId>& symbols) const {
  if (!options_.byte_fallback) return false;
  for (const char byte : character) {
    if (!bytes_[static_cast<unsigned char>(byte)]) return false;
  }
  for (const char byte : character) symbols.push_back(*bytes_[static_cast<unsigned char>(byte)]);
  return true;
}

TokenId Bpe::unknown_id(char32_t character) const {
  const auto id = options_.unknown_token ? vocabulary_.find(*options_.unknown_token) : std::nullopt;
  CHECK(id.has_value(),
        "{}: the text has character U+{:04X}, which is not in the vocabulary, and there is no unknown token; give ids "
        "with --tokens FILE.json",
        where_, static_cast<std::uint32_t>(character));
  return *id;
}

const Bpe::Ranked* Bpe::find_merge(TokenId left, TokenId right) const {
  const auto found = merges_.find(pair_key(static_cast<std::uint32_t>(left), static_cast<std::uint32_t>(right)));
  return found == merges_.end() ? nullptr : &found->second;
}

Bpe::Merge parse_merge(std::string_view line, std::string_view where) {
  const auto space = line.find(' ');
  CHECK(space != std::string_view::npos && line.find(' ', space + 1) == std::string_view::npos,
        "{}: '{}'; a merge is two tokens with one space between", where, printable(line));
  return {std::string(line.substr(0, space)), std::string(line.substr(space + 1))};
}

}  // namespace gainlens::tokenizers
