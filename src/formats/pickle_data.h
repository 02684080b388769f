#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::formats {

enum class PickleKind {
  none,
  boolean,
  integer,
  real,
  text,
  bytes,
  list,
  tuple,
  set,
  dictionary,
  global,     ///< the name of a class or function
  object,     ///< what a class or function would make of arguments. It is not called
  reference,  ///< to what the pickle keeps elsewhere: a persistent id
};

/// A node of a pickle, by its place in PickleData.
using PickleId = std::uint32_t;

struct PickleNode {
  PickleKind kind = PickleKind::none;
  std::int64_t integer = 0;  ///< of boolean and integer
  double real = 0;
  std::string text = {};  ///< of text and bytes: the content; of global: "module.name"
  /// Of list, tuple and set: entries. Of dictionary: key, value, key, value ... Of object: its class or function (a
  /// global), and a tuple of arguments. Of reference: the id, one node.
  std::vector<PickleId> parts = {};
  std::vector<PickleId> items = {};    ///< of object: key, value ... or entries that were added to it
  std::optional<PickleId> state = {};  ///< of object: what its attributes would be set from
};

/// What a pickle says, as a tree of nodes. Nothing that it names is imported or called, so that reading a pickle from a
/// stranger is safe: an object stays the name of its class with its arguments. Nodes may be shared, and may contain
/// themselves: whoever walks them has to bound the walk.
class PickleData {
 public:
  /// @param bytes  protocols 2 to 5
  /// @param where  names them in messages
  /// @throws InvalidArgument  cut short, malformed, an opcode that no state dictionary needs, more than a million
  ///     nodes, a whole number beyond 64 bits
  static PickleData parse(std::span<const std::byte> bytes, const std::string& where);

  PickleId root() const { return root_; }
  const PickleNode& at(PickleId id) const { return nodes_[id]; }
  /// The value of a text key of a dictionary, or of an object that was filled like one (OrderedDict). Nothing: another
  /// kind of node, or no such key. The last one counts, as in Python.
  std::optional<PickleId> value(PickleId dictionary, std::string_view key) const;
  /// Keys and values of a dictionary, or of an object that was filled like one; nothing: another kind of node.
  std::optional<std::span<const PickleId>> dictionary(PickleId id) const;
  /// The class or function of an object, "module.name"; empty: another kind of node.
  std::string_view class_of(PickleId id) const;
  /// The arguments of an object; none for another kind of node.
  std::span<const PickleId> arguments(PickleId id) const;
  /// What a value is, for messages: "a text", "a dictionary", "an object of class 'collections.OrderedDict'".
  std::string description(PickleId id) const;

 private:
  friend class PickleMachine;
  std::vector<PickleNode> nodes_;
  PickleId root_ = 0;
};

}  // namespace gainlens::formats
