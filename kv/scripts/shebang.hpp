// The first line of a script that says how it is to be run: "#!lua flags=no-writes,allow-oom".
#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace weir::kv {

struct ScriptFlags {
  bool declared = false;  // the script has such a line; without one the rules of older Redis hold
  bool no_writes = false;
  bool allow_oom = false;
};

struct Shebang {
  ScriptFlags flags;
  std::string name;         // of a library: "name=..."
  std::string_view source;  // what Lua compiles; its first line is the one behind the shebang's end
};

// The error is the reply: "ERR Unexpected flag in script shebang: x".
std::expected<Shebang, std::string> read_shebang(std::string_view script, bool library);

// Sets the flag of that name; false: there is no such flag.
bool set_script_flag(ScriptFlags& flags, std::string_view name);

}  // namespace weir::kv
