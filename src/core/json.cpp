#include "core/json.h"

#include "core/check.h"
#include "core/checked.h"
#include "core/regular_file.h"
#include "core/terminal_text.h"

#include <sys/stat.h>

#include <cerrno>
#include <set>

namespace gainlens {
namespace {

constexpr int max_depth = 64;

/// Builds the document and refuses what nlohmann's parser would accept: repeated keys and deep nesting.
class StrictBuilder : public nlohmann::detail::json_sax_dom_parser<Json> {
  using Base = nlohmann::detail::json_sax_dom_parser<Json>;

 public:
  /// @param one_line  the text has no line break
  StrictBuilder(Json& result, std::string_view where, bool one_line)
      : Base(result, /*allow_exceptions=*/false), where_(where), one_line_(one_line) {}

  bool start_object(std::size_t elements) {
    enter();
    keys_.emplace_back();
    return Base::start_object(elements);
  }
  bool key(std::string& name) {
    CHECK(keys_.back().insert(name).second, "{}: key '{}' appears twice in one object; remove one", where_,
          printable(name));
    return Base::key(name);
  }
  bool end_object() {
    --depth_;
    keys_.pop_back();
    return Base::end_object();
  }
  bool start_array(std::size_t elements) {
    enter();
    return Base::start_array(elements);
  }
  bool end_array() {
    --depth_;
    return Base::end_array();
  }
  template <typename Exception>
  bool parse_error(std::size_t position, const std::string& token, const Exception& error) {
    // nlohmann's text reads "[json.exception...] parse error at line L, column C: reason". The part in brackets is cut
    // off.
    std::string reason = error.what();
    if (const auto end = reason.find("] "); end != std::string::npos) reason.erase(0, end + 2);
    // The only line may be one of a file, whose number stands in `where_`.
    constexpr std::string_view place = "parse error at line ";
    if (const auto end = reason.find(": "); one_line_ && reason.starts_with(place) && end != std::string::npos)
      reason.erase(0, end + 2);
    throw_invalid("{}: not valid JSON at byte {}: {} (last read '{}')", where_, position, printable(reason, 300),
                  printable(token, 40));
  }

 private:
  void enter() { CHECK(++depth_ <= max_depth, "{}: JSON nested deeper than {} levels", where_, max_depth); }

  std::string_view where_;
  bool one_line_;
  int depth_ = 0;
  std::vector<std::set<std::string>> keys_;
};

}  // namespace

Json parse_json(std::string_view text, std::string_view where) {
  // nlohmann's lexer takes a NUL for the end of its input and would ignore what follows.
  const auto nul = text.find('\0');
  CHECK(nul == std::string_view::npos, "{}: not valid JSON at byte {}: a NUL byte; remove it", where, nul + 1);
  Json document;
  StrictBuilder builder(document, where, text.find('\n') == std::string_view::npos);
  Json::sax_parse(text.begin(), text.end(), &builder);
  return document;
}

std::string json_text(const OrderedJson& json, int indent) {
  return terminal_json(json.dump(indent, ' ', /*ensure_ascii=*/false, OrderedJson::error_handler_t::replace));
}

std::string read_text_file(const std::filesystem::path& path, std::uintmax_t max_bytes) {
  const FileDescriptor file = open_regular_file(path);
  const std::string where = printable(path.string());
  struct stat status {};
  CHECK(::fstat(file.get(), &status) == 0, "{}: cannot be read: {}", where, system_reason());
  const auto size = checked_cast<std::uintmax_t>(status.st_size, "file size");
  CHECK(size <= max_bytes, "{}: {} bytes; a file of this kind may have at most {}", where, size, max_bytes);
  std::string content(static_cast<std::size_t>(size), '\0');
  std::size_t filled = 0;
  while (filled < content.size()) {
    const ssize_t count = ::read(file.get(), content.data() + filled, content.size() - filled);
    if (count < 0 && errno == EINTR) continue;
    CHECK(count >= 0, "{}: cannot be read: {}", where, system_reason());
    if (count == 0) break;
    filled += static_cast<std::size_t>(count);
  }
  CHECK(filled == size, "{}: {} of its {} bytes could be read", where, filled, size);
  refuse_lfs_pointer(content, size, where);
  return content;
}

Json read_json_file(const std::filesystem::path& path, std::uintmax_t max_bytes) {
  return parse_json(read_text_file(path, max_bytes), printable(path.string()));
}

}  // namespace gainlens
