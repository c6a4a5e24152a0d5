// `weir fabric link`: pulls a cable, of a host or between switches, and plugs it in.
#include "cli/weir/command.hpp"
#include "cli/weir/fabric/fabric_command.hpp"
#include "cli/weir/launch/in_host.hpp"
#include "twin/hosts/running_network.hpp"

namespace weir::command {

int fabric_link(std::span<const std::string> arguments) {
  std::string name;
  const FabricOption options[] = {{.name = "--fabric", .value = &name}};
  const auto words = read_fabric_words("link", arguments, options);
  if (!words) return words.error();
  if (words->size() < 2 || words->size() > 3 || (words->back() != "up" && words->back() != "down"))
    return complain(
        "fabric link",
        "it wants a host or two nodes, and down or up: weir fabric link h2 down, weir fabric link "
        "leaf1 spine1 down");
  const auto folder = find_fabric(name);
  if (!folder) return complain("fabric link", folder.error(), fabric_failed);
  const bool in = words->back() == "up";
  const auto done = words->size() == 2 ? hosts::plug(*folder, words->front(), in)
                                       : hosts::plug_between(*folder, words->front(), (*words)[1], in);
  return done ? 0 : complain("fabric link", done.error().what, fabric_failed);
}

}  // namespace weir::command
