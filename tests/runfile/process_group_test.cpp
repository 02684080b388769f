#include "runfile/process_group.h"

#include "core/error.h"
#include "support/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace gainlens::runfile {
namespace process_group_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

ProcessGroup read(const Variables& variables) {
  return read_process_group([&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

std::string refusal(const Variables& variables) {
  return testing::refusal_of([&] { read(variables); });
}

void expect_group(const Variables& variables, std::int64_t rank, std::int64_t size) {
  const ProcessGroup group = read(variables);
  EXPECT_EQ(group.rank, rank);
  EXPECT_EQ(group.size, size);
}

TEST(ProcessGroup, OneProcessWithoutALauncher) {
  expect_group({}, 0, 1);
  expect_group({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"LOCAL_RANK", "0"}}, 0, 1);
}

TEST(ProcessGroup, Torchrun) {
  expect_group({{"RANK", "3"}, {"WORLD_SIZE", "4"}}, 3, 4);
  EXPECT_EQ(read({{"RANK", "3"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "1"}}).local_rank, 1);
  EXPECT_FALSE(read({{"RANK", "3"}, {"WORLD_SIZE", "4"}}).local_rank);
}

TEST(ProcessGroup, Slurm) {
  expect_group({{"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "8"}, {"SLURM_LOCALID", "1"}}, 5, 8);
  EXPECT_EQ(read({{"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "8"}, {"SLURM_LOCALID", "1"}}).local_rank, 1);
}

TEST(ProcessGroup, AnAllocationWithoutStartedTasksIsOneProcess) {
  expect_group({{"SLURM_NTASKS", "4"}}, 0, 1);                         // salloc: no process id
  expect_group({{"SLURM_PROCID", "0"}}, 0, 1);                         // a batch script without a number of tasks
  expect_group({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}, 0, 1);  // one task
}

TEST(ProcessGroup, BothLaunchers) {
  const Variables one_task = {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}, {"RANK", "2"}, {"WORLD_SIZE", "4"}};
  expect_group(one_task, 2, 4);
  expect_group({{"SLURM_PROCID", "2"}, {"SLURM_NTASKS", "4"}, {"RANK", "2"}, {"WORLD_SIZE", "4"}}, 2, 4);
  Variables two_tasks = {{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}, {"RANK", "2"}, {"WORLD_SIZE", "4"}};
  EXPECT_EQ(refusal(two_tasks),
            "RANK: this is process 2 of 4 by RANK and WORLD_SIZE, and 1 of 2 by SLURM_PROCID and SLURM_NTASKS; unset "
            "the wrong pair");
  two_tasks["TORCHELASTIC_RUN_ID"] = "none";  // srun started two torchruns, which started four processes
  expect_group(two_tasks, 2, 4);
}

TEST(ProcessGroup, WrongVariablesAreNamed) {
  for (const char* rank : {"", "x", "1.5", "-1", "4", " 1", "99999999999999999999"}) {
    EXPECT_THAT(refusal({{"RANK", rank}, {"WORLD_SIZE", "4"}}),
                AllOf(HasSubstr(std::string("RANK: '") + rank + "' in the environment"),
                      HasSubstr("must be a whole number from 0 to 3")));
  }
  for (const char* size : {"", "0", "-2", "many", "1000000"}) {
    EXPECT_THAT(refusal({{"RANK", "0"}, {"WORLD_SIZE", size}}), HasSubstr(std::string("WORLD_SIZE: '") + size + "'"));
    EXPECT_THAT(refusal({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", size}}),
                HasSubstr(std::string("SLURM_NTASKS: '") + size + "'"));
  }
  EXPECT_THAT(refusal({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "2"}}), HasSubstr("LOCAL_RANK: '2'"));
  EXPECT_THAT(refusal({{"SLURM_PROCID", "2"}, {"SLURM_NTASKS", "2"}}), HasSubstr("SLURM_PROCID: '2'"));
}

TEST(ProcessGroup, APartnerThatIsNotSetIsNamed) {
  EXPECT_EQ(refusal({{"RANK", "0"}}),
            "RANK: is set in the environment and WORLD_SIZE is not; set both, or neither for a single process");
  EXPECT_THAT(refusal({{"WORLD_SIZE", "2"}}), HasSubstr("WORLD_SIZE: is set in the environment and RANK is not"));
  EXPECT_THAT(refusal({{"SLURM_PROCID", "3"}}), HasSubstr("SLURM_PROCID: '3' in the environment without SLURM_NTASKS"));
}

TEST(ProcessGroup, OfThisProcess) {
  ::setenv("RANK", "1", 1);
  ::setenv("WORLD_SIZE", "3", 1);
  const ProcessGroup group = read_process_group();
  ::unsetenv("RANK");
  ::unsetenv("WORLD_SIZE");
  EXPECT_EQ(group.rank, 1);
  EXPECT_EQ(group.size, 3);
}

}  // namespace process_group_test
}  // namespace gainlens::runfile
