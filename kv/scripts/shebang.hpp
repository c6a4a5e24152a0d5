// The first line of a script, which says how to run it: "#!lua flags=no-writes,allow-oom".
#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace weir::kv {

struct ScriptFlags {
  bool declared = false;  // the script has such a line; if not, older Redis's rules hold
  bool no_writes = false;
  bool allow_oom = false;
};

struct Shebang {
  ScriptFlags flags;
  std::string name;         // a library's: "name=..."
  std::string_view source;  // the text that Lua compiles; starts at the end of the shebang
};

// The error is the reply: "ERR Unexpected flag in script shebang: x".
std::expected<Shebang, std::string> read_shebang(std::string_view script, bool library);

// Sets the flag of that name; false: the name is unknown.
bool set_script_flag(ScriptFlags& flags, std::string_view name);

}  // namespace weir::kv
