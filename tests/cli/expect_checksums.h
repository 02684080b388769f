#pragma once

#include "support/file_bytes.h"
#include "support/program.h"
#include "support/refused_call.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace gainlens::testing {

/// Expects that every command that reads a finished run of units compares its result, and that a run without checksums
/// is read.
/// @param reported  whether there is a page of such runs
inline void expect_checksums(const std::string& run, const std::string& result, bool reported = true) {
  using ::testing::HasSubstr;
  const std::string file = run + "/" + result, whole = bytes_of(file), page = run + "-page";
  std::string changed = whole;
  changed[whole.find_last_of("0123456789")] ^= 1;
  write_file(file, changed);
  const std::string differs = result + ": its sha256 is ";
  expect_refusal_line(run_gainlens({"inspect", run}), differs);
  if (reported) expect_refused(run_gainlens({"report", run, "--out", page}), differs);
  const ProgramResult checked = run_gainlens({"check", run});
  EXPECT_EQ(checked.exit_code, 1);
  EXPECT_THAT(checked.out, HasSubstr(differs));
  write_file(file, whole);

  const std::string manifest = run + "/manifest.jsonl", lines = bytes_of(manifest);
  std::filesystem::remove(manifest);  // as earlier versions wrote it
  const std::string none = result + " has no checksum beside it; what it holds is not proven.";
  const ProgramResult inspected = run_gainlens({"inspect", run});
  EXPECT_EQ(inspected.exit_code, 0) << inspected.error;
  EXPECT_THAT(inspected.out, HasSubstr(none));
  EXPECT_THAT(run_gainlens({"check", run}).out, HasSubstr(none));
  if (reported) {
    const ProgramResult written = run_gainlens({"report", run, "--out", page});
    EXPECT_EQ(written.exit_code, 0) << written.error;
    EXPECT_THAT(written.error, HasSubstr(none));
  }
  write_file(manifest, lines);
  EXPECT_THAT(run_gainlens({"inspect", run}).out, HasSubstr("are as they were written (sha256)"));
}

}  // namespace gainlens::testing
