// One message with descriptors over a unix socket.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "link/unique_fd.hpp"
#include "twin/hosts/host_error.hpp"

namespace weir::hosts {

inline constexpr std::size_t max_descriptors = 8;

// False if the whole message did not go.
bool send_with_descriptors(int socket, std::string_view text, std::span<const int> descriptors);

struct Message {
  std::string text;
  std::vector<link::UniqueFd> descriptors;
};
// Waits for a message. An empty text: the other end has closed.
Result<Message> receive_with_descriptors(int socket);

}  // namespace weir::hosts
