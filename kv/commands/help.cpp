#include "kv/commands/help.hpp"

#include <algorithm>
#include <cctype>
#include <string>

namespace weir::kv {

void reply_help(const Call& call, std::initializer_list<std::string_view> lines) {
  std::string name(call.command.container.empty() ? call.command.name : call.command.container);
  std::ranges::transform(name, name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  call.reply.array(lines.size() + 3);
  call.reply.simple(name + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
  for (std::string_view line : lines) call.reply.simple(line);
  call.reply.simple("HELP");
  call.reply.simple("    Prints this help.");
}

}  // namespace weir::kv
