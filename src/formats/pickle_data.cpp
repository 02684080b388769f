#include "formats/pickle_data.h"

#include "core/check.h"
#include "formats/byte_cursor.h"

#include <bit>
#include <unordered_map>
#include <utility>

namespace gainlens::formats {
namespace {

constexpr std::size_t max_nodes = std::size_t{1} << 20;
constexpr std::size_t longest_name = 200;  // of a class: a file could have many nodes copy a long one

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

/// The machine that a pickle is a program for: a stack, marks in it, and a memo. Opcodes and their meaning:
/// Lib/pickletools.py of Python 3.
class PickleMachine {
 public:
  PickleMachine(std::span<const std::byte> bytes, const std::string& where) : cursor_(bytes, where), where_(where) {}

  PickleData run() {
    while (step()) {
    }
    CHECK(stack_.size() == 1 && marks_.empty(), "{}: the pickle ends with {} values; it must end with one", where_,
          stack_.size());
    data_.root_ = stack_.back();
    return std::move(data_);
  }

 private:
  using Ids = std::vector<PickleId>;

  /// @returns false at the end
  bool step() {
    at_ = cursor_.offset();
    const auto opcode = cursor_.number<std::uint8_t>("opcode");
    if (opcode == '.') return false;
    if (!framing(opcode) && !literal(opcode) && !container(opcode) && !memo(opcode) && !made(opcode))
      throw_invalid("{}: opcode 0x{:02x} of a pickle, which no state dictionary needs; it is not read", cursor_.at(at_),
                    opcode);
    return true;
  }

  bool framing(std::uint8_t opcode) {
    switch (opcode) {
      case 0x80: {
        const auto protocol = cursor_.number<std::uint8_t>("protocol");
        CHECK(protocol >= 2 && protocol <= 5, "{}: pickle protocol {}; 2 to 5 are read", cursor_.at(at_), protocol);
        return true;
      }
      case 0x95:
        cursor_.take(8, "length of a frame");
        return true;
      case '(':
        marks_.push_back(stack_.size());
        return true;
      case '0':
        pop();
        return true;
      case '1':
        pop_to_mark();
        return true;
      default:
        return false;
    }
  }

  bool literal(std::uint8_t opcode) {
    switch (opcode) {
      case 'N':
        push({PickleKind::none});
        return true;
      case 0x88:
      case 0x89:
        push({PickleKind::boolean, opcode == 0x88});
        return true;
      case 'J':
        push({PickleKind::integer, std::bit_cast<std::int32_t>(cursor_.number<std::uint32_t>("number"))});
        return true;
      case 'K':
        push({PickleKind::integer, cursor_.number<std::uint8_t>("number")});
        return true;
      case 'M':
        push({PickleKind::integer, cursor_.number<std::uint16_t>("number")});
        return true;
      case 0x8a:
        push({PickleKind::integer, long_number()});
        return true;
      case 'G': {
        std::uint64_t bits = 0;  // the one number in network order
        for (const std::byte byte : cursor_.take(8, "number")) bits = bits << 8 | std::to_integer<std::uint64_t>(byte);
        push({PickleKind::real, 0, std::bit_cast<double>(bits)});
        return true;
      }
      case 'X':
      case 'T':
        push_text(PickleKind::text, cursor_.number<std::uint32_t>("length of a text"));
        return true;
      case 0x8c:
      case 'U':
        push_text(PickleKind::text, cursor_.number<std::uint8_t>("length of a text"));
        return true;
      case 0x8d:
        push_text(PickleKind::text, cursor_.number<std::uint64_t>("length of a text"));
        return true;
      case 'B':
        push_text(PickleKind::bytes, cursor_.number<std::uint32_t>("length of bytes"));
        return true;
      case 'C':
        push_text(PickleKind::bytes, cursor_.number<std::uint8_t>("length of bytes"));
        return true;
      case 0x8e:
        push_text(PickleKind::bytes, cursor_.number<std::uint64_t>("length of bytes"));
        return true;
      default:
        return false;
    }
  }

  bool container(std::uint8_t opcode) {
    switch (opcode) {
      case '}':
        push({PickleKind::dictionary});
        return true;
      case ']':
        push({PickleKind::list});
        return true;
      case ')':
        push({PickleKind::tuple});
        return true;
      case 0x8f:
        push({PickleKind::set});
        return true;
      case 0x85:
      case 0x86:
      case 0x87: {
        Ids parts(static_cast<std::size_t>(opcode - 0x84));
        for (std::size_t i = parts.size(); i-- > 0;) parts[i] = pop();
        push_parts(PickleKind::tuple, std::move(parts));
        return true;
      }
      case 't':
        push_parts(PickleKind::tuple, pop_to_mark());
        return true;
      case 'l':
        push_parts(PickleKind::list, pop_to_mark());
        return true;
      case 0x91:
        push_parts(PickleKind::set, pop_to_mark());
        return true;
      case 'd':
        push_parts(PickleKind::dictionary, even(pop_to_mark()));
        return true;
      case 'a':
        add(PickleKind::list, {pop()});
        return true;
      case 'e':
        add(PickleKind::list, pop_to_mark());
        return true;
      case 0x90:
        add(PickleKind::set, pop_to_mark());
        return true;
      case 's': {
        const PickleId value = pop(), key = pop();
        add(PickleKind::dictionary, {key, value});
        return true;
      }
      case 'u':
        add(PickleKind::dictionary, even(pop_to_mark()));
        return true;
      default:
        return false;
    }
  }

  bool memo(std::uint8_t opcode) {
    switch (opcode) {
      case 'q':
        memo_[cursor_.number<std::uint8_t>("place in the memo")] = top();
        return true;
      case 'r':
        memo_[cursor_.number<std::uint32_t>("place in the memo")] = top();
        return true;
      case 0x94:
        memo_[static_cast<std::uint32_t>(memo_.size())] = top();
        return true;
      case 'h':
        stack_.push_back(remembered(cursor_.number<std::uint8_t>("place in the memo")));
        return true;
      case 'j':
        stack_.push_back(remembered(cursor_.number<std::uint32_t>("place in the memo")));
        return true;
      default:
        return false;
    }
  }

  /// What Python would import and call. Here it becomes nodes.
  bool made(std::uint8_t opcode) {
    switch (opcode) {
      case 'c': {
        const std::string module = line();
        push_global(module, line());
        return true;
      }
      case 0x93: {
        const PickleId name = pop(), module = pop();
        CHECK(node(name).kind == PickleKind::text && node(module).kind == PickleKind::text,
              "{}: the name of a class is no text; the file is damaged", cursor_.at(at_));
        push_global(node(module).text, node(name).text);
        return true;
      }
      case 'R':
      case 0x81: {
        const PickleId arguments = pop(), of = pop();
        CHECK(node(of).kind == PickleKind::global && node(arguments).kind == PickleKind::tuple,
              "{}: an object of what is no class; the file is damaged", cursor_.at(at_));
        push_parts(PickleKind::object, {of, arguments});
        return true;
      }
      case 'b': {
        const PickleId state = pop();
        PickleNode& object = node(top());
        CHECK(object.kind == PickleKind::object && !object.state,
              "{}: attributes of what is no object, or for a second time; the file is damaged", cursor_.at(at_));
        object.state = state;
        return true;
      }
      case 'Q':
        push_parts(PickleKind::reference, {pop()});
        return true;
      default:
        return false;
    }
  }

  PickleNode& node(PickleId id) { return data_.nodes_[id]; }

  void push(PickleNode made) {
    CHECK(data_.nodes_.size() < max_nodes, "{}: a pickle of more than {} values; it is not read", where_, max_nodes);
    data_.nodes_.push_back(std::move(made));
    stack_.push_back(static_cast<PickleId>(data_.nodes_.size() - 1));
  }
  void push_parts(PickleKind kind, Ids parts) { push({kind, 0, 0, {}, std::move(parts)}); }
  void push_global(std::string_view module, std::string_view name) {
    CHECK(module.size() + name.size() < longest_name, "{}: the name of a class has {} bytes; at most {} are read",
          cursor_.at(at_), module.size() + name.size() + 1, longest_name);
    push({PickleKind::global, 0, 0, fmt::format("{}.{}", module, name)});
  }
  void push_text(PickleKind kind, std::uint64_t bytes) {
    push({kind, 0, 0, std::string(text_of(cursor_.take(bytes, "text")))});
  }

  /// The first value above the last mark.
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  PickleId top() const {
    CHECK(stack_.size() > floor(), "{}: takes a value that is not there; the file is damaged", cursor_.at(at_));
    return stack_.back();
  }
  PickleId pop() {
    const PickleId id = top();
    stack_.pop_back();
    return id;
  }
  Ids pop_to_mark() {
    CHECK(!marks_.empty(), "{}: takes values up to a mark that is not there; the file is damaged", cursor_.at(at_));
    const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    Ids ids(first, stack_.end());
    stack_.erase(first, stack_.end());
    marks_.pop_back();
    return ids;
  }
  Ids even(Ids ids) const {
    CHECK(ids.size() % 2 == 0, "{}: a key without a value; the file is damaged", cursor_.at(at_));
    return ids;
  }

  /// Adds to the container on the top, or to an object that is one.
  void add(PickleKind kind, const Ids& ids) {
    PickleNode& to = node(top());
    const bool object = to.kind == PickleKind::object;
    CHECK(object || to.kind == kind, "{}: adds to {}; the file is damaged", cursor_.at(at_), data_.description(top()));
    Ids& list = object ? to.items : to.parts;
    list.insert(list.end(), ids.begin(), ids.end());
  }

  PickleId remembered(std::uint32_t place) const {
    const auto found = memo_.find(place);
    CHECK(found != memo_.end(), "{}: place {} of the memo is empty; the file is damaged", cursor_.at(at_), place);
    return found->second;
  }

  /// The text up to a line feed.
  std::string line() {
    std::string text;
    while (true) {
      const auto byte = static_cast<char>(cursor_.number<std::uint8_t>("name of a class"));
      if (byte == '\n') return text;
      text += byte;
    }
  }

  /// Little-endian two's complement of a stated number of bytes.
  std::int64_t long_number() {
    const auto size = cursor_.number<std::uint8_t>("length of a number");
    CHECK(size <= 8, "{}: a whole number of {} bytes; at most 8 are read", cursor_.at(at_), size);
    if (size == 0) return 0;
    const auto bytes = cursor_.take(size, "number");
    std::uint64_t bits = (bytes.back() & std::byte{0x80}) != std::byte{} ? ~std::uint64_t{0} : 0;
    for (std::size_t i = bytes.size(); i-- > 0;) bits = bits << 8 | std::to_integer<std::uint64_t>(bytes[i]);
    return std::bit_cast<std::int64_t>(bits);
  }

  ByteCursor cursor_;
  std::string where_;
  std::size_t at_ = 0;  // of the opcode
  PickleData data_;
  Ids stack_;
  std::vector<std::size_t> marks_;  // sizes of the stack
  std::unordered_map<std::uint32_t, PickleId> memo_;
};

PickleData PickleData::parse(std::span<const std::byte> bytes, const std::string& where) {
  return PickleMachine(bytes, where).run();
}

std::optional<std::span<const PickleId>> PickleData::dictionary(PickleId id) const {
  const PickleNode& node = at(id);
  if (node.kind == PickleKind::dictionary) return node.parts;
  // Objects that were filled one entry after the other may have an odd number of them.
  if (node.kind == PickleKind::object && node.items.size() % 2 == 0) return node.items;
  return std::nullopt;
}

std::optional<PickleId> PickleData::value(PickleId id, std::string_view key) const {
  const auto pairs = dictionary(id);
  if (!pairs) return std::nullopt;
  for (std::size_t i = pairs->size(); i >= 2; i -= 2) {
    const PickleNode& name = at((*pairs)[i - 2]);
    if (name.kind == PickleKind::text && name.text == key) return (*pairs)[i - 1];
  }
  return std::nullopt;
}

std::string_view PickleData::class_of(PickleId id) const {
  const PickleNode& node = at(id);
  return node.kind == PickleKind::object ? std::string_view(at(node.parts[0]).text) : std::string_view();
}

std::span<const PickleId> PickleData::arguments(PickleId id) const {
  const PickleNode& node = at(id);
  if (node.kind != PickleKind::object) return {};
  return at(node.parts[1]).parts;
}

std::string PickleData::description(PickleId id) const {
  const PickleNode& node = at(id);
  switch (node.kind) {
    case PickleKind::none:
      return "None";
    case PickleKind::boolean:
      return node.integer != 0 ? "True" : "False";
    case PickleKind::integer:
      return fmt::format("{}", node.integer);
    case PickleKind::real:
      return fmt::format("{}", node.real);
    case PickleKind::text:
      return fmt::format("'{}'", printable(node.text, 60));
    case PickleKind::bytes:
      return "bytes";
    case PickleKind::list:
      return "a list";
    case PickleKind::tuple:
      return "a tuple";
    case PickleKind::set:
      return "a set";
    case PickleKind::dictionary:
      return "a dictionary";
    case PickleKind::global:
      return fmt::format("the class '{}'", printable(node.text, 60));
    case PickleKind::object:
      return fmt::format("an object of '{}'", printable(class_of(id), 60));
    case PickleKind::reference:
      return "a reference";
  }
  ASSERT(false, "unknown kind of a node");
}

}  // namespace gainlens::formats
