#include "formats/pickle.h"

#include "core/check.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>

namespace gainlens::formats {
namespace {

/// One word of a shell command: whatever the name holds, the shell takes it as a name and as nothing else. A name that
/// a terminal would not show as it is becomes $'...' with \xNN, which bash and zsh read back.
std::string quoted_for_shell(const std::string& name) {
  const bool plain = printable(name, name.size()) == name;
  std::string quoted = plain ? "'" : "$'";
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\'') {
      quoted += plain ? R"('\'')" : R"(\')";
    } else if (!plain && (byte < 0x20 || byte >= 0x7f || c == '\\')) {
      quoted += fmt::format("\\x{:02x}", byte);
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

}  // namespace

bool looks_pickled(std::span<const std::byte> content) {
  constexpr std::string_view zip = "PK\x03\x04";
  if (content.size() >= zip.size() && std::memcmp(content.data(), zip.data(), zip.size()) == 0) return true;
  constexpr std::byte protocol_mark{0x80};
  return content.size() >= 2 && content[0] == protocol_mark && content[1] >= std::byte{2} && content[1] <= std::byte{5};
}

bool named_like_pickle(const std::filesystem::path& path) {
  constexpr std::array<std::string_view, 5> extensions{".bin", ".pt", ".pth", ".ckpt", ".pkl"};
  return std::find(extensions.begin(), extensions.end(), path.extension().string()) != extensions.end();
}

std::vector<std::filesystem::path> pickled_weights(const std::filesystem::path& folder) {
  constexpr std::array<std::string_view, 4> beside_the_weights{"training_args", "optimizer", "scheduler", "rng_state"};
  std::vector<std::filesystem::path> found;
  std::error_code error;
  for (const auto& item : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = item.path().filename().string();
    const bool other = std::any_of(beside_the_weights.begin(), beside_the_weights.end(),
                                   [&](std::string_view stem) { return name.starts_with(stem); });
    if (!other && named_like_pickle(item.path())) found.push_back(item.path());
  }
  CHECK(!error, "{}: cannot be listed: {}", printable(folder.string()), error.message());
  std::sort(found.begin(), found.end());
  return found;
}

std::string conversion_command(const std::vector<std::filesystem::path>& pickled) {
  std::string command =
      "python -c \"import sys, torch; from safetensors.torch import save_file; "
      "save_file({k: v.clone().contiguous() for f in sys.argv[2:] "
      "for k, v in torch.load(f, map_location='cpu', weights_only=True).items()}, sys.argv[1])\" model.safetensors";
  for (const auto& file : pickled) command.append(1, ' ').append(quoted_for_shell(file.filename().string()));
  return command;
}

}  // namespace gainlens::formats
