// A library to preload into a program (LD_PRELOAD). It counts the program's calls that make, write, flush, rename or
// close files, and lets one of them fail with ENOSPC, as if the disk were full for a moment. The following environment
// variables control it. It removes them from the environment, so that child processes of the program are not affected:
//
//     GAINLENS_FAIL_CALL  number of the call that fails, from 1; absent or 0: no call fails
//     GAINLENS_FAIL_HALF  if set, no call fails, and each call that writes bytes writes only half of them
//     GAINLENS_FAIL_PATH  only calls on files whose path contains this text are counted
//     GAINLENS_FAIL_LOG   file that gets a line for each counted call: "17 pwrite64 /tmp/run/shards/T16-S0.h5.tmp"
//
// With GAINLENS_SERVE set, the program serves many runs (served_main.h). The words of a request: the two numbers for
// the first two variables above, and the working folder, with FOLDER/out and FOLDER/calls for the others. The output
// goes to FOLDER/stdout and FOLDER/stderr.
//
// Calls within the C library (fwrite, the open of mkstemp) cannot be seen from outside. The call of mkstemp can be
// seen.
#include "support/served_main.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

struct Plan {
  long failing_call = 0;
  bool half = false;
  char path[256] = "";
  int log = -1;
};

Plan plan;
std::atomic<long> calls{0};

void read_variable(const char* name, char* value, std::size_t size) {
  const char* found = std::getenv(name);
  std::snprintf(value, size, "%s", found != nullptr ? found : "");
}

/// Whether this is the first process with the library, and not a child of it. exec keeps the number of a process.
bool is_the_process() {
  char number[32], first[32];
  std::snprintf(number, sizeof number, "%ld", static_cast<long>(::getpid()));
  ::setenv("GAINLENS_FAIL_PROCESS", number, 0);
  read_variable("GAINLENS_FAIL_PROCESS", first, sizeof first);
  return std::strcmp(first, number) == 0;
}

__attribute__((constructor)) void read_plan() {
  if (!is_the_process()) return;
  char text[4096];
  read_variable("GAINLENS_FAIL_CALL", text, sizeof text);
  plan.failing_call = std::atol(text);
  read_variable("GAINLENS_FAIL_HALF", text, sizeof text);
  plan.half = text[0] != '\0';
  read_variable("GAINLENS_FAIL_PATH", plan.path, sizeof plan.path);
  read_variable("GAINLENS_FAIL_LOG", text, sizeof text);
  if (text[0] != '\0')
    plan.log = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, text, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
}

/// The next definition of a function, which is the one of the C library.
template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}
#define NEXT(function) next<decltype(&function)>(#function)

/// Counts a call on a file. Returns whether this call must fail.
bool fails(const char* name, const char* given) {
  char path[8192] = "";
  if (given[0] != '/' && ::getcwd(path, sizeof path / 2) != nullptr) std::strcat(path, "/");
  std::strncat(path, given, sizeof path / 2 - 1);
  if (plan.path[0] != '\0' && std::strstr(path, plan.path) == nullptr) return false;
  const long number = ++calls;
  if (plan.log >= 0) {
    char line[9000];
    const int length = std::snprintf(line, sizeof line, "%ld %s %s\n", number, name, path);
    ::syscall(SYS_write, plan.log, line, static_cast<std::size_t>(length));
  }
  return number == plan.failing_call;
}

/// As above, for an open file. Only files and folders are counted.
bool fails(const char* name, int file) {
  struct stat status {};
  if (::fstat(file, &status) != 0 || !(S_ISREG(status.st_mode) || S_ISDIR(status.st_mode))) return false;
  char link[64], path[4096];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = ::readlink(link, path, sizeof path - 1);
  path[length > 0 ? length : 0] = '\0';
  return fails(name, path);
}

template <typename Place>
bool no_room(const char* name, Place place) {
  if (!fails(name, place) || plan.half) return false;
  errno = ENOSPC;
  return true;
}

/// Number of bytes that a writing call may write: all or half of them, or -1 with errno set if the call must fail.
ssize_t allowed(const char* name, int file, std::size_t size) {
  if (no_room(name, file)) return -1;
  return static_cast<ssize_t>(plan.half && size > 1 ? size / 2 : size);
}

bool is_written(int file) {
  const int flags = ::fcntl(file, F_GETFL);
  return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

mode_t mode_of(int flags, std::va_list arguments) {
  return (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

namespace gainlens::testing {

void prepare_run(const std::vector<std::string>& request, std::vector<char*>&) {
  if (request.size() != 3 || ::chdir(request[2].c_str()) != 0) ::_exit(125);
  plan.failing_call = std::atol(request[0].c_str());
  plan.half = request[1] != "0";
  std::snprintf(plan.path, sizeof plan.path, "%s/out", request[2].c_str());
  redirect(STDOUT_FILENO, "stdout");
  redirect(STDERR_FILENO, "stderr");
  plan.log = open_file("calls", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC);
  calls = 0;
}

}  // namespace gainlens::testing

extern "C" {

#define OPEN(function)                                     \
  int function(const char* path, int flags, ...) {         \
    std::va_list arguments;                                \
    va_start(arguments, flags);                            \
    const mode_t mode = mode_of(flags, arguments);         \
    va_end(arguments);                                     \
    const bool makes = (flags & (O_CREAT | O_TRUNC)) != 0; \
    if (makes && no_room(#function, path)) return -1;      \
    return NEXT(function)(path, flags, mode);              \
  }
OPEN(open)
OPEN(open64)

#define MAKE_TEMPORARY(function)                \
  int function(char* pattern) {                 \
    if (no_room(#function, pattern)) return -1; \
    return NEXT(function)(pattern);             \
  }
MAKE_TEMPORARY(mkstemp)
MAKE_TEMPORARY(mkstemp64)

char* mkdtemp(char* pattern) noexcept {
  if (no_room("mkdtemp", pattern)) return nullptr;
  return NEXT(mkdtemp)(pattern);
}

int mkdir(const char* path, mode_t mode) noexcept {
  if (no_room("mkdir", path)) return -1;
  return NEXT(mkdir)(path, mode);
}

ssize_t write(int file, const void* data, std::size_t size) {
  const ssize_t bytes = allowed("write", file, size);
  return bytes < 0 ? -1 : NEXT(write)(file, data, static_cast<std::size_t>(bytes));
}

#define PWRITE(function, offset_type)                                                            \
  ssize_t function(int file, const void* data, std::size_t size, offset_type offset) {           \
    const ssize_t bytes = allowed(#function, file, size);                                        \
    return bytes < 0 ? -1 : NEXT(function)(file, data, static_cast<std::size_t>(bytes), offset); \
  }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

ssize_t writev(int file, const iovec* parts, int count) {
  std::size_t size = 0;
  for (int i = 0; i < count; ++i) size += parts[i].iov_len;
  const ssize_t bytes = allowed("writev", file, size);
  if (bytes < 0) return -1;
  if (static_cast<std::size_t>(bytes) == size) return NEXT(writev)(file, parts, count);
  return NEXT(write)(file, parts[0].iov_base, parts[0].iov_len < size ? parts[0].iov_len : size / 2);
}

#define RESIZE(function, offset_type)                 \
  int function(int file, offset_type size) noexcept { \
    if (no_room(#function, file)) return -1;          \
    return NEXT(function)(file, size);                \
  }
RESIZE(ftruncate, off_t)
RESIZE(ftruncate64, off64_t)

#define FLUSH(function)                      \
  int function(int file) {                   \
    if (no_room(#function, file)) return -1; \
    return NEXT(function)(file);             \
  }
FLUSH(fsync)
FLUSH(fdatasync)

int rename(const char* from, const char* to) noexcept {
  if (no_room("rename", to)) return -1;
  return NEXT(rename)(from, to);
}

/// Closes the file in any case, as the system does. Returns the failure only afterwards, and only for a file open for
/// writing.
int close(int file) {
  const bool failed = is_written(file) && no_room("close", file);
  const int result = NEXT(close)(file);
  if (!failed) return result;
  errno = ENOSPC;
  return -1;
}

}  // extern "C"
