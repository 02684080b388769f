#include "core/sha256.h"
#include "reports/page/embedded_data.h"
#include "reports/page/page_script.h"

namespace gainlens::reports {

std::string script_source(std::string_view script) {
  const std::string hex = sha256_hex(script);
  std::string digest;
  for (std::size_t at = 0; at < hex.size(); at += 2)
    digest += static_cast<char>(std::stoi(hex.substr(at, 2), nullptr, 16));
  return "sha256-" + base64(digest);
}

}  // namespace gainlens::reports
