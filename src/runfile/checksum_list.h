#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace gainlens::runfile {

/// A file that is missing or has changed.
struct FileFault {
  std::filesystem::path file;
  std::string message;  ///< what is wrong with it, and how to repair it
};

/// The message of the first fault, and the names of the other files. Empty: there is none.
std::string faults_in_words(std::span<const FileFault> faults);

/// The list of checksums in a folder of files that were written once. `sha256sum -c files.sha256` reads it too.
inline constexpr const char* checksum_list_name = "files.sha256";

/// Writes the sha256 of each file into the list of the folder.
/// @param names  of the files, as paths below the folder
/// @throws InvalidArgument  a file cannot be read
/// @throws RunFailed        the disk is full
void write_checksum_list(const std::filesystem::path& folder, std::span<const std::string> names);

/// What a comparison with the list of a folder has found.
struct ComparedFolder {
  bool has_list = false;
  std::vector<FileFault> faults;
};

/// Which of the listed files are compared.
enum class Listed {
  all,
  here,  ///< those of the folder itself; files in folders of it are left out
};

/// Compares the files of a folder with its list.
/// @param repair  how to repair a file, behind "put it back, or "
/// @throws InvalidArgument  the list is broken, or names a file outside the folder
ComparedFolder compare_with_list(const std::filesystem::path& folder, const std::string& repair,
                                 Listed which = Listed::all);

}  // namespace gainlens::runfile
