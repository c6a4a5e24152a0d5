// ibv_context.cmd_fd: a kernel device's command channel. Here nothing is commanded through it; it is the
// proof, for ibv_import_device(3), that whoever holds a duplicate was given this process's device.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir::verbs {

int make_command_fd(std::size_t device);  // -1 with errno
// Of a descriptor of this process: which device.
std::size_t device_of_command_fd(int fd);
// As a duplicate is of what it was made from: what belongs to one context belongs to the other, too.
bool same_command_file(int a, int b);

enum class CommandFdOf : std::uint8_t { this_process, another_process, nobody };
CommandFdOf whose_command_fd(int fd);

}  // namespace weir::verbs
