#include "core/available_memory.h"

#include "support/shared_data.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <string>

namespace gainlens {
namespace available_memory_test {

namespace fs = std::filesystem;

constexpr std::uint64_t mebi = 1 << 20;

/// A made system, in which the machine has 1,000 MiB left and cgroups have no limits until a test writes some.
class AvailableMemory : public ::testing::Test {
 protected:
  AvailableMemory() {
    put("proc/meminfo", "MemTotal:  2048000 kB\nMemFree:  1 kB\nMemAvailable:  1024000 kB\nSwapFree: 9 kB\n");
    put("proc/self/cgroup", "0::/\n");
    put("proc/self/statm", "1000 400 100 10 0 500 0\n");
  }
  void put(const std::string& name, const std::string& text) const {
    const fs::path path = folder_.path() / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  void put_v2(const std::string& folder, const std::string& max, std::uint64_t current, std::uint64_t inactive) const {
    put("cgroup/" + folder + "/memory.max", max + "\n");
    put("cgroup/" + folder + "/memory.current", std::to_string(current) + "\n");
    put("cgroup/" + folder + "/memory.stat",
        "anon 7\nactive_file 5\ninactive_file " + std::to_string(inactive) + "\nactive_anon 3\n");
  }
  void put_v1(const std::string& folder, std::uint64_t limit, std::uint64_t usage, std::uint64_t inactive) const {
    put("cgroup/memory/" + folder + "/memory.limit_in_bytes", std::to_string(limit) + "\n");
    put("cgroup/memory/" + folder + "/memory.usage_in_bytes", std::to_string(usage) + "\n");
    put("cgroup/memory/" + folder + "/memory.stat",
        "inactive_file 1\ntotal_inactive_file " + std::to_string(inactive) + "\n");
  }
  std::optional<std::uint64_t> available() const {
    return available_memory({folder_.path() / "proc", folder_.path() / "cgroup"});
  }

  testing::TemporaryFolder folder_;
};

TEST_F(AvailableMemory, WithoutLimitsIsThatOfTheMachine) {
  EXPECT_EQ(available(), 1000 * mebi);
  fs::remove(folder_.path() / "proc/self/cgroup");  // a system without cgroups
  EXPECT_EQ(available(), 1000 * mebi);
}

TEST_F(AvailableMemory, IsWhatTheCgroupLeavesWithItsDroppableFilePages) {
  put("proc/self/cgroup", "0::/user/job\n");
  put_v2("user/job", std::to_string(500 * mebi), 300 * mebi, 100 * mebi);
  EXPECT_EQ(available(), 300 * mebi);  // 500 - (300 - 100)
  put_v2("user/job", std::to_string(500 * mebi), 600 * mebi, 0);
  EXPECT_EQ(available(), 0u);
  put_v2("user/job", "max", 300 * mebi, 0);
  EXPECT_EQ(available(), 1000 * mebi);
  put_v2("user/job", std::to_string(5000 * mebi), 0, 0);
  EXPECT_EQ(available(), 1000 * mebi);
}

TEST_F(AvailableMemory, TheTightestCgroupAboveCounts) {
  put("proc/self/cgroup", "0::/user/job/step\n");
  put_v2("user/job/step", "max", 10 * mebi, 0);
  put_v2("user/job", std::to_string(500 * mebi), 100 * mebi, 0);
  put_v2("user", std::to_string(400 * mebi), 150 * mebi, 50 * mebi);
  EXPECT_EQ(available(), 300 * mebi);
}

TEST_F(AvailableMemory, AContainerSeesItsCgroupAtTheRoot) {
  put("proc/self/cgroup", "0::/outside/of/the/container\n");
  put_v2("", std::to_string(200 * mebi), 50 * mebi, 0);
  EXPECT_EQ(available(), 150 * mebi);
  put("proc/self/cgroup", "0::/../other\n");
  put_v2("other", std::to_string(mebi), 0, 0);  // not the one that is meant
  EXPECT_EQ(available(), 150 * mebi);
}

TEST_F(AvailableMemory, CgroupsOfVersionOne) {
  put("proc/self/cgroup", "5:cpu,cpuacct:/else\n4:hugetlb,memory:/user/job\n1:name=systemd:/x\n0::/\n");
  put_v1("user/job", 500 * mebi, 300 * mebi, 100 * mebi);
  put_v1("user", 9223372036854771712u, 300 * mebi, 0);  // no limit
  EXPECT_EQ(available(), 300 * mebi);
  put_v1("else", mebi, 0, 0);
  EXPECT_EQ(available(), 300 * mebi);
}

TEST_F(AvailableMemory, WhatCannotBeReadMakesItUnknown) {
  put("proc/self/cgroup", "0::/job\n");
  put_v2("job", std::to_string(500 * mebi), 300 * mebi, 100 * mebi);
  EXPECT_TRUE(available());
  for (const auto& [name, text] : {std::pair{"cgroup/job/memory.max", "many"},
                                   {"cgroup/job/memory.current", "-3"},
                                   {"cgroup/job/memory.stat", "anon 3\n"},
                                   {"proc/meminfo", "MemFree: 3 kB\n"},
                                   {"proc/self/cgroup", "nonsense\n"}}) {
    std::ifstream file(folder_.path() / name);
    const std::string before((std::istreambuf_iterator<char>(file)), {});
    put(name, text);
    EXPECT_EQ(available(), std::nullopt) << name;
    put(name, before);
  }
  EXPECT_TRUE(available());
  fs::remove_all(folder_.path() / "proc");
  EXPECT_EQ(available(), std::nullopt);
}

/// Runs in a child process, whose limits do not stay. @returns whether `check` returned true there
bool in_child(const std::function<bool()>& check) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(check() ? 0 : 1);
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_F(AvailableMemory, LimitsOfTheProcessCount) {
  put("proc/meminfo", "MemAvailable: 99999999999999 kB\n");
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  // Limits so large that they do not stop the child itself.
  const rlim_t limit = rlim_t{1} << 50;
  const auto with = [&](__rlimit_resource resource) {
    const struct rlimit value { limit, limit };
    return ::setrlimit(resource, &value) == 0 ? available() : std::nullopt;
  };
  EXPECT_TRUE(in_child([&] { return with(RLIMIT_AS) == limit - 1000 * page; }));
  EXPECT_TRUE(in_child([&] { return with(RLIMIT_DATA) == limit - 500 * page; }));
  put("proc/self/statm", "1000 400\n");
  EXPECT_TRUE(in_child([&] { return with(RLIMIT_DATA) == std::nullopt; }));
}

TEST(AvailableMemoryOfThisMachine, IsKnownOnLinux) {
  const auto available = available_memory();
  ASSERT_TRUE(available);
  EXPECT_GT(*available, mebi);
  EXPECT_LT(*available, std::uint64_t{1} << 50);
}

}  // namespace available_memory_test
}  // namespace gainlens
