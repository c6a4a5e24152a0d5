#include "kv/scripts/shebang.hpp"

#include "kv/command/command.hpp"

namespace weir::kv {

bool set_script_flag(ScriptFlags& flags, std::string_view name) {
  if (name == "no-writes") return flags.no_writes = true;
  if (name == "allow-oom") return flags.allow_oom = true;
  // These concern replicas and clusters and have no effect here.
  return name == "allow-stale" || name == "no-cluster" || name == "allow-cross-slot-keys";
}

namespace {

std::expected<void, std::string> read_flags(std::string_view names, ScriptFlags& flags) {
  while (!names.empty()) {
    const std::size_t comma = names.find(',');
    const std::string_view name = names.substr(0, comma);
    if (!set_script_flag(flags, name))
      return std::unexpected("ERR Unexpected flag in script shebang: " + std::string(name));
    names = comma == std::string_view::npos ? std::string_view() : names.substr(comma + 1);
  }
  return {};
}

std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size());
  return word;
}

}  // namespace

std::expected<Shebang, std::string> read_shebang(std::string_view script, bool library) {
  Shebang out{.flags = {}, .name = {}, .source = script};
  if (!script.starts_with("#!")) {
    if (library) return std::unexpected("ERR Missing library metadata");
    return out;
  }
  const std::size_t end = script.find('\n');
  if (end == std::string_view::npos) {
    return std::unexpected(library ? "ERR Invalid library metadata" : "ERR Invalid script shebang");
  }
  std::string_view line = script.substr(0, end);
  out.source = script.substr(end);
  out.flags.declared = true;
  const std::string_view engine = take_word(line);
  // The name of a library's engine ignores case, but a script's does not.
  const bool known = engine == "#!lua" || (library && is_word(engine.substr(2), "lua"));
  if (!known) {
    return std::unexpected(library ? "ERR Engine '" + std::string(engine.substr(2)) + "' not found"
                                   : "ERR Unexpected engine in script shebang: " + std::string(engine));
  }
  for (std::string_view word = take_word(line); !word.empty(); word = take_word(line)) {
    if (library && word.starts_with("name=")) {
      if (!out.name.empty())
        return std::unexpected("ERR Invalid metadata value, name argument was given multiple times");
      out.name = word.substr(5);
    } else if (!library && word.starts_with("flags=")) {
      if (auto read = read_flags(word.substr(6), out.flags); !read) return std::unexpected(read.error());
    } else {
      return std::unexpected(
          (library ? "ERR Invalid metadata value given: " : "ERR Unknown lua shebang option: ") +
          std::string(word));
    }
  }
  if (library && out.name.empty()) return std::unexpected("ERR Library name was not given");
  return out;
}

}  // namespace weir::kv
