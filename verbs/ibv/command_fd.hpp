// ibv_context.cmd_fd: a kernel device's command channel. Our device takes no commands through it. A duplicate
// of it proves to ibv_import_device(3) that its holder was given this process's device.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir::verbs {

int make_command_fd(std::size_t device);  // -1 with errno
// The device of a descriptor that this process made.
std::size_t device_of_command_fd(int fd);
// Whether one is a duplicate of the other; then objects of one context may be used with the other.
bool same_command_file(int a, int b);

enum class CommandFdOf : std::uint8_t { this_process, another_process, nobody };
CommandFdOf whose_command_fd(int fd);

}  // namespace weir::verbs
