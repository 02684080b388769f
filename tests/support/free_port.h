#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>
#include <string>

namespace gainlens::testing {

/// A port of this machine that was free a moment ago.
inline std::string free_port() {
  const int handle = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  const bool found = ::bind(handle, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
                     ::getsockname(handle, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  ::close(handle);
  if (!found) throw std::runtime_error("no free port");
  return std::to_string(ntohs(address.sin_port));
}

}  // namespace gainlens::testing
