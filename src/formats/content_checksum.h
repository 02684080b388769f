#pragma once

#include "core/sha256.h"

#include <fmt/format.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace gainlens::formats {

/// The sha256 over a text and every tensor's name and bytes. A safetensors file that is made here keeps it in its
/// metadata, so that a file that was damaged on the disk is noticed when it is read.
/// @param head     what else the file says, with a line feed at its end
/// @param tensors  with the members `name` and `bytes`, sorted by name
template <typename Tensors>
std::string content_checksum(std::string_view head, const Tensors& tensors) {
  Sha256 hash;
  hash.update(head);
  for (const auto& tensor : tensors) {
    const std::span<const std::byte> bytes = tensor.bytes;
    hash.update(fmt::format("{} {}\n", tensor.name, bytes.size()));
    hash.update({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  return hash.hex();
}

}  // namespace gainlens::formats
