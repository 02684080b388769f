#pragma once

// For libraries that are preloaded into a program (LD_PRELOAD): the program stops where main begins, and forks there
// for each run, so that its libraries are loaded and initialised only once for many runs. A request on file descriptor
// 198 is a number of bytes (std::size_t) and so many bytes of words, each ended by a zero byte. When the run has ended,
// its wait status follows as a line on 199. The library defines what is declared here and not defined.

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace gainlens::testing {

/// With this variable in its environment, a program serves.
constexpr const char* serve_variable = "GAINLENS_SERVE";
constexpr int requests = 198, answers = 199;

/// Makes the child process ready for the run of a request. May replace the program's arguments, which begin with its
/// name and do not end with a null pointer. Ends the process if that cannot be done.
void prepare_run(const std::vector<std::string>& request, std::vector<char*>& arguments);

using Main = int (*)(int, char**, char**);
inline Main program_main = nullptr;

// What follows calls the system itself where a library like this may stand between the program and the C library.

inline int open_file(const char* path, int flags) {
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, 0600));
}

/// Sends stdout or stderr to a file.
inline void redirect(int stream, const char* path) {
  const int file = open_file(path, O_WRONLY | O_CREAT | O_TRUNC);
  if (file < 0 || ::dup2(file, stream) < 0) ::_exit(125);
  ::syscall(SYS_close, file);
}

/// Returns false at the end of the file.
inline bool read_bytes(void* bytes, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const long count = ::syscall(SYS_read, requests, static_cast<char*>(bytes) + done, size - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<std::size_t>(count);
  }
  return true;
}

inline bool read_request(std::vector<std::string>& words) {
  std::size_t size = 0;
  if (!read_bytes(&size, sizeof size)) return false;
  std::string bytes(size, '\0');
  if (!read_bytes(bytes.data(), size)) return false;
  words.clear();
  for (std::size_t begin = 0, end = 0; (end = bytes.find('\0', begin)) != std::string::npos; begin = end + 1)
    words.push_back(bytes.substr(begin, end - begin));
  return true;
}

inline int served_main(int argc, char** argv, char** environment) {
  if (std::getenv(serve_variable) == nullptr) return program_main(argc, argv, environment);
  std::vector<std::string> request;
  while (read_request(request)) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (const int file : {requests, answers}) ::syscall(SYS_close, file);
      ::unsetenv(serve_variable);
      std::vector<char*> arguments(argv, argv + argc);
      prepare_run(request, arguments);
      arguments.push_back(nullptr);
      return program_main(static_cast<int>(arguments.size()) - 1, arguments.data(), environ);
    }
    int status = -1;
    while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    char answer[32];
    const int length = std::snprintf(answer, sizeof answer, "%d\n", status);
    ::syscall(SYS_write, answers, answer, static_cast<std::size_t>(length));
  }
  ::_exit(0);
}

}  // namespace gainlens::testing

/// What the C library calls main by.
extern "C" int __libc_start_main(gainlens::testing::Main main, int argc, char** argv, void (*init)(), void (*fini)(),
                                 void (*loader_fini)(), void* stack_end) {
  gainlens::testing::program_main = main;
  const auto next = reinterpret_cast<decltype(&__libc_start_main)>(::dlsym(RTLD_NEXT, "__libc_start_main"));
  return next(gainlens::testing::served_main, argc, argv, init, fini, loader_fini, stack_end);
}
