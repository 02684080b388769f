#include "cli/written_report.h"

#include "cli/given_run.h"
#include "core/atomic_file.h"
#include "core/check.h"
#include "core/console.h"

#include <fmt/ranges.h>

#include <string>

namespace gainlens::cli {

void check_report_folder(const std::string& report, const std::string& run) {
  const std::filesystem::path folder = std::filesystem::weakly_canonical(report);
  check_holds_no_run(folder, "--report");
  CHECK(folder != std::filesystem::weakly_canonical(run), "--report: {} is the folder of a run; choose another folder",
        printable(report));
  ensure_writable_folder(folder);
}

void tell_left_out(const reports::WrittenReport& written) {
  for (const std::string& reason : written.left_out) print_notice("gainlens: left out: {}\n", reason);
}

void check_made(const reports::WrittenReport& written, std::string_view command) {
  if (!written.failed.empty())
    throw_run_failed("{}: {} could not be made; the other sections are written", command,
                     printable(fmt::format("{}", fmt::join(written.failed, "; ")), 600));
}

void tell_written(const reports::WrittenReport& written, const std::filesystem::path& out, std::string_view command) {
  tell_left_out(written);
  print_notice("{}\n", printable((out / "report.html").string()));
  check_made(written, command);
}

}  // namespace gainlens::cli
