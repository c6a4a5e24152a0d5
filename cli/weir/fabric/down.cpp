// `weir fabric down`: ends networks, with the programs in them.
#include "cli/weir/command.hpp"
#include "cli/weir/fabric/fabric_command.hpp"
#include "cli/weir/launch/in_host.hpp"
#include "twin/hosts/folder.hpp"
#include "twin/hosts/running_network.hpp"

namespace weir::command {

int fabric_down(std::span<const std::string> arguments) {
  bool all = false;
  std::string name;
  const FabricOption options[] = {{.name = "--all", .flag = &all}, {.name = "--fabric", .value = &name}};
  const auto words = read_fabric_words("down", arguments, options);
  if (!words) return words.error();
  if (words->size() + (all ? 1 : 0) + (name.empty() ? 0 : 1) > 1)
    return complain("fabric down", "it wants one name, or --all; see weir fabric --help");
  if (!words->empty()) name = words->front();
  int status = 0;
  for (const std::string& each : all ? hosts::running_networks() : std::vector{name}) {
    const auto folder = find_fabric(each);
    if (!folder) return complain("fabric down", folder.error(), fabric_failed);
    if (const auto ended = hosts::end_network(*folder); !ended)
      status = complain("fabric down", ended.error().what, fabric_failed);
  }
  return status;
}

}  // namespace weir::command
