#include "reports/sweep/run_names.h"

#include "core/error.h"
#include "core/json.h"
#include "runfile/run_log.h"

#include <filesystem>

namespace gainlens::reports {
namespace {

std::string file_name(const Json& entry, const char* key) {
  if (!entry.contains(key) || !entry[key].is_string()) return {};
  std::filesystem::path path = entry[key].get<std::string>();
  if (!path.has_filename()) path = path.parent_path();  // "models/plain/"
  return printable(path.filename().string());
}

}  // namespace

LastStart last_start(const SweepRun& run) {
  const runfile::RunLog log = runfile::RunLog::read(run.reader().path().parent_path());
  if (log.starts().empty() || !log.starts().back().is_object()) return {};
  const Json& entry = log.starts().back();
  const auto text = [&](const char* key) {
    return entry.contains(key) && entry[key].is_string() ? printable(entry[key].get<std::string>()) : std::string();
  };
  LastStart start{file_name(entry, "model"), file_name(entry, "text"), text("time"), text("gainlens")};
  if (start.text.empty()) start.text = file_name(entry, "tokens");
  return start;
}

std::string short_digest(const std::string& digest) {
  return digest.size() == 64 ? digest.substr(0, 12) : digest;
}

std::string weights_digest(const SweepRun& run) {
  std::string text;
  for (const auto& [file, digest] : run.request().model) {
    if (file != "config.json") text += (text.empty() ? "" : ", ") + short_digest(digest);
  }
  return text;
}

std::string model_name(const SweepRun& run) {
  std::string name = run.of(last_start).model;
  for (const std::string_view extension : {".gguf", ".safetensors"}) {
    if (name.size() > extension.size() && name.ends_with(extension)) name.resize(name.size() - extension.size());
  }
  return name.empty() ? "weights " + printable(weights_digest(run)) : name;
}

std::string text_name(const SweepRun& run) {
  const std::string& name = run.of(last_start).text;
  return name.empty() ? "text " + printable(short_digest(run.request().text)) : name;
}

}  // namespace gainlens::reports
