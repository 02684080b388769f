#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace gainlens::recommend {

/// What a user says of a file of another program, because the file does not.
struct ForeignOptions {
  std::optional<std::int64_t> heads = {};  ///< number of attention heads
  std::filesystem::path items = {};        ///< a table for data::read_item_ids(); empty: none was given
};

}  // namespace gainlens::recommend
