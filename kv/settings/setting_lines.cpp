#include "kv/settings/setting_lines.hpp"

#include <strings.h>

#include "cluster/node_address.hpp"
#include "kv/cpu_list.hpp"
#include "kv/settings/event_classes.hpp"
#include "kv/settings/primary_address.hpp"
#include "kv/text/number.hpp"

namespace weir::kv {

std::string joined_words(std::span<const std::string> words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
  return line;
}

SettingLine event_classes_line(std::span<const std::string> words) {
  if (words.size() != 1) return std::unexpected("wrong number of arguments");
  const auto classes = EventClasses::parse(words[0]);
  if (!classes) return std::unexpected("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.");
  return classes->text();
}

SettingLine file_name(std::span<const std::string> words) {
  if (words.size() != 1) return std::unexpected("wrong number of arguments");
  if (words[0].empty()) return std::unexpected("dbfilename can't be empty");
  if (words[0].find('/') != std::string::npos || words[0] == "." || words[0] == "..")
    return std::unexpected("dbfilename can't be a path, just a filename");
  return words[0];
}

SettingLine cpu_line(std::span<const std::string> words) {
  std::string line = joined_words(words);
  if (!line.empty() && !parse_cpu_list(line))
    return std::unexpected("argument must be a list of CPUs such as 0-2,4");
  return line;
}

SettingLine primary_line(std::span<const std::string> words) {
  const std::string line = joined_words(words);
  if (line.empty() || ::strcasecmp(line.c_str(), "no one") == 0) return std::string();
  const std::size_t blank = line.rfind(' ');
  if (blank == std::string::npos) return std::unexpected("wrong number of arguments");
  if (!repl::PrimaryAddress::may_be_host(line.substr(0, blank)))
    return std::unexpected("Invalid master host");
  const auto port = parse_int(std::string_view(line).substr(blank + 1));
  if (!port || *port < 0 || *port > 65535) return std::unexpected("Invalid master port");
  return line;
}

SettingLine node_line(std::span<const std::string> words) {
  const std::string line = joined_words(words);
  if (!line.empty() && !weir::cluster::read_address(line))
    return std::unexpected("argument must be HOST:PORT");
  return line;
}

}  // namespace weir::kv
