#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gainlens::runfile {

/// The window of a layer's attention kind: query t sees the keys t-N+1..t. A global layer has the largest int64. Empty
/// if the text is neither "global" nor "window:N" with N > 0.
std::optional<std::int64_t> attention_window(std::string_view attention);

/// Whether key 0 is inside the attention window of none, of some, or of all of the second-half queries, over which BOS
/// mass is averaged. run.h5 stores these numbers in /key_0_visible.
enum class FirstKey : std::int8_t { hidden = 0, partly_hidden = 1, seen = 2 };

/// @param attention  "global" or "window:N"
/// @param tokens     context length T of the chunk
/// @throws InvalidArgument  neither "global" nor "window:N"
FirstKey first_key_visibility(const std::string& attention, std::int64_t tokens);

}  // namespace gainlens::runfile
