#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace gainlens {

/// SHA-256 of data given in pieces (OpenSSL).
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(std::string_view bytes);
  /// 64 lower-case hex digits. The object cannot be used afterwards.
  std::string hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256_hex(std::string_view bytes);

/// @throws InvalidArgument  the file cannot be opened or read
std::string sha256_file(const std::filesystem::path& path);

}  // namespace gainlens
