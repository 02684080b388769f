// A disk that is full for a moment. For each call with which a command writes, one run is made in which this call
// fails. Such a run either gives the right bytes, or it ends with one line and exit code 1, and the same command called
// again gives the right bytes.
#include "cli/tiny_checkpoint.h"
#include "core/json.h"
#include "language/language_testing.h"
#include "support/file_bytes.h"
#include "support/program.h"
#include "support/served_program.h"
#include "support/shared_data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace gainlens::testing {
namespace write_faults_test {

namespace fs = std::filesystem;

/// The bytes of every file and folder below a folder, without times and process ids.
std::map<std::string, std::string> files_below(const fs::path& folder) {
  std::map<std::string, std::string> files;
  if (!fs::exists(folder)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = fs::relative(entry.path(), folder);
    if (entry.is_directory()) files[name + "/"];
    if (!entry.is_regular_file()) continue;
    std::string& bytes = files[name] = bytes_of(entry.path());
    if (entry.path().filename() == "lock") bytes.clear();
    if (name != "log.json") continue;
    Json log = parse_json(bytes, name);
    log.erase("starts");
    bytes = log.dump();
  }
  return files;
}

/// Which call of a run fails; 0: none. Or whether each call writes half of its bytes.
struct Fault {
  long call = 0;
  bool half = false;
};

/// A command that writes below the folder `out` of its working folder, and of which one call can be made to fail.
class FaultyCommand {
 public:
  /// @param arguments  of the program
  explicit FaultyCommand(std::vector<std::string> arguments) : arguments_(std::move(arguments)) {}
  /// @param line   shell command; the word "FAULTY" marks the program whose calls fail
  /// @param below  only calls on files below this path can fail
  explicit FaultyCommand(std::string line, std::string below = "out")
      : line_(std::move(line)), below_(std::move(below)) {}

  /// Runs the command without a fault, keeps its files as the right ones, and returns the number of its writing calls.
  long measure() {
    const TemporaryFolder place;
    const ProgramResult result = run(place.path(), {});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    right_ = files_below(place.path() / "out");
    EXPECT_FALSE(right_.empty());
    const std::string log = bytes_of(place.path() / "calls");
    return std::count(log.begin(), log.end(), '\n');
  }

  /// "error", "right bytes", or a description of anything else.
  std::string outcome(const Fault& fault) {
    const TemporaryFolder place;
    const ProgramResult result = run(place.path(), fault);
    if (result.exit_code == 0) return wrong_files(place.path() / "out", "right bytes");
    const bool one_line = std::count(result.error.begin(), result.error.end(), '\n') == 1 &&
                          result.error.starts_with("gainlens: error: ");
    if (result.exit_code != 1 || !one_line) return fmt::format("exit code {}: {}", result.exit_code, result.error);
    const auto left = files_below(place.path() / "out");
    {
      const std::lock_guard lock(*proving_);
      if (proven_.contains(left)) return "error";
    }
    const ProgramResult again = run(place.path(), {});
    if (again.exit_code != 0)
      return fmt::format("after '{}' the same command gave exit code {}: {}", result.error, again.exit_code,
                         again.error);
    const std::string outcome = wrong_files(place.path() / "out", "error");
    const std::lock_guard lock(*proving_);
    if (outcome == "error") proven_.insert(left);
    return outcome;
  }

 private:
  using Files = std::map<std::string, std::string>;

  /// Several threads may call it at the same time.
  ProgramResult run(const fs::path& place, const Fault& fault) {
    if (line_.empty()) {
      std::unique_ptr<ServedProgram> program;
      {
        const std::lock_guard lock(*proving_);
        if (!idle_.empty()) {
          program = std::move(idle_.back());
          idle_.pop_back();
        }
      }
      if (!program) {
        std::vector<std::string> words = {GAINLENS_PROGRAM "-compute"};  // gainlens itself would only execute it
        words.insert(words.end(), arguments_.begin(), arguments_.end());
        program = std::make_unique<ServedProgram>(words, GAINLENS_FAILING_WRITES,
                                                  ServedProgram::Variables{{"XDG_CACHE_HOME", cache_.path().string()}});
      }
      const int status = program->run({std::to_string(fault.call), fault.half ? "1" : "0", place.string()});
      ProgramResult result{WIFEXITED(status) ? WEXITSTATUS(status) : -1, bytes_of(place / "stdout"),
                           bytes_of(place / "stderr")};
      const std::lock_guard lock(*proving_);
      idle_.push_back(std::move(program));
      return result;
    }
    const std::string faulty = fmt::format("env LD_PRELOAD='" GAINLENS_FAILING_WRITES
                                           "' GAINLENS_FAIL_PATH={} GAINLENS_FAIL_LOG={} GAINLENS_FAIL_CALL={}{}",
                                           (place / below_).string(), (place / "calls").string(), fault.call,
                                           fault.half ? " GAINLENS_FAIL_HALF=1" : "");
    std::string line = line_;
    line.replace(line.find("FAULTY"), 6, faulty);
    return run_shell(line, place);
  }

  std::string wrong_files(const fs::path& out, const std::string& if_none) const {
    const auto found = files_below(out);
    for (const auto& [name, bytes] : found) {
      if (!right_.contains(name)) return fmt::format("{} is left over", name);
      if (right_.at(name) != bytes) return fmt::format("{} has other bytes", name);
    }
    for (const auto& [name, bytes] : right_) {
      if (!found.contains(name)) return fmt::format("{} is missing", name);
    }
    return if_none;
  }

  std::vector<std::string> arguments_;
  TemporaryFolder cache_;
  std::vector<std::unique_ptr<ServedProgram>> idle_;
  std::string line_, below_;
  Files right_;
  std::unique_ptr<std::mutex> proving_ = std::make_unique<std::mutex>();
  std::set<Files> proven_;  ///< files of failed runs from which the repeated command gave the right bytes
};

/// Test `number` of `of` tests that share the calls of a command, so that each stays within CTest's time limit.
struct Part {
  long number = 1, of = 1;
};

/// Lets every call of the command fail once, with two runs at the same time, and counts the outcomes. Then lets every
/// call write half of its bytes.
void fail_each_call(const std::string& name, FaultyCommand command, Part part = {}) {
  const long calls = command.measure();
  ASSERT_GT(calls, 0);
  std::atomic<long> next{part.number};
  std::map<std::string, long> counts;
  std::mutex counting;
  const auto work = [&] {
    for (long call = next.fetch_add(part.of); call <= calls; call = next.fetch_add(part.of)) {
      const std::string outcome = command.outcome({.call = call});
      const std::lock_guard lock(counting);
      ++counts[outcome];
      EXPECT_TRUE(outcome == "error" || outcome == "right bytes")
          << name << ", call " << call << " of " << calls << ": " << outcome;
    }
  };
  std::thread other(work);
  work();
  other.join();
  long failed = 0;
  for (const auto& [outcome, count] : counts) failed += count;
  const long errors = counts["error"], right = counts["right bytes"];
  std::cout << fmt::format(
      "{}, disk full for one call: {} of {} calls failed, {} errors, {} right bytes, {} other outcomes\n", name, failed,
      calls, errors, right, failed - errors - right);
  EXPECT_GT(errors, 0) << name << ": no call failed";
  EXPECT_EQ(command.outcome({.half = true}), "right bytes") << name;
}

class WriteFaults : public ::testing::Test {
 protected:
  /// A sweep of chunks of 16 tokens over one layer, with every kind of dataset.
  std::vector<std::string> sweep(const std::string& samples) const {
    return {"sweep",       tiny_checkpoint, "--tokens", ids_,      "--lengths", "16",  "--layers",  "0:1",
            "--per-query", "--threads",     "1",        "--quiet", "--out",     "out", "--samples", samples};
  }

  TemporaryFolder folder_;
  std::string ids_ = write_ids(folder_.path(), 64);
};

/// Calls come in small patterns (open, write, flush, rename), so every fifth call meets each kind of call in turn.
TEST_F(WriteFaults, EveryFifthCallOfASweep) {
  fail_each_call("sweep", FaultyCommand(sweep("1")), {1, 5});
}

/// In one of two processes, the calls fail with which the two communicate. The other would wait for minutes, so it is
/// ended.
TEST_F(WriteFaults, EveryCallOfARank) {
  for (const int rank : {0, 1}) {
    const auto process = [&](int of) {
      std::string line = fmt::format("RANK={} WORLD_SIZE=2 {}" QUOTED_PROGRAM, of, of == rank ? "FAULTY " : "");
      for (const std::string& word : sweep("2")) line += " " + shell_word(word);
      return line;
    };
    fail_each_call(fmt::format("rank {}", rank),
                   FaultyCommand(process(1 - rank) + " >/dev/null 2>&1 & other=$!; code=0; " + process(rank) +
                                     " || code=$?; [ $code = 0 ] || kill $other 2>/dev/null || true; "
                                     "wait $other || [ $code != 0 ] || code=99; exit $code",
                                 "out/ranks"));
  }
}

TEST_F(WriteFaults, EveryCallOfATraining) {
  Json recipe = small_recipe();
  recipe["stages"] = {{{"context", 16}, {"steps", 2}}};
  recipe["evaluate_every"] = 1;
  recipe["save_every"] = 1;
  const auto config = write_text(folder_.path() / "recipe.json", recipe.dump());
  const auto text = write_text(folder_.path() / "text.txt", made_up_text(300));
  fail_each_call("training", FaultyCommand({"train", "language-model", "--config", config, "--text", text, "--out",
                                            "out", "--quiet", "--threads", "1"}));
}

TEST_F(WriteFaults, EveryCallOfACapture) {
  fail_each_call("capture", FaultyCommand("mkdir -p out && rm -f out/* && FAULTY " QUOTED_PROGRAM " capture " +
                                          shell_word(tiny_checkpoint) + " --tokens " + ids_ +
                                          " --length 16 --hooks 'blocks.0.attn.hook_q' --out out/q.safetensors"));
}

TEST_F(WriteFaults, EveryCallOfInterventions) {
  fail_each_call("intervene",
                 FaultyCommand({"intervene", tiny_checkpoint, "--tokens", ids_, "--lengths", "16", "--samples", "1",
                                "--set", "blocks.0.hook_mlp_out=zero", "--out", "out", "--quiet", "--threads", "1"}));
}

}  // namespace write_faults_test
}  // namespace gainlens::testing
