#include "tensor/error.hpp"

#include <array>
#include <cstddef>

namespace weir::tensor {
namespace {

struct Row {
  std::string_view name, next_step;
};
// In the order of Errc.
constexpr std::array<Row, 15> rows = {{
    {"ok", "Nothing went wrong."},
    {"not_published", "Publish the array first, or give fetch a timeout to wait for it."},
    {"superseded", "Fetch again: a newer version exists. Use a larger keep at the hub for slow readers."},
    {"shape_mismatch", "Pass an out= of the array's shape and dtype, or none."},
    {"peer_gone",
     "Fetch again: the peer reconnects. Version numbers of the old hub mean nothing to the new one."},
    {"timed_out", "Use a longer timeout, or check whether the hub publishes."},
    {"unreachable", "Check the address and that the hub runs."},
    {"bad_address",
     "Write rdma://HOST:PORT, rdma://HOST:PORT?fallback=tcp or tcp://HOST:PORT; the message says which "
     "setting."},
    {"bad_array", "Publish a contiguous array of a supported dtype under a name of 1 to 1024 bytes."},
    {"too_much", "Do less at once, or raise the limit that the message names."},
    {"protocol", "Use the same version of the library at both ends."},
    {"refused",
     "Give both ends the same token; or open the hub with push_names that cover the name, and push_from that "
     "covers this peer, or none."},
    {"closed", "Connect again."},
    {"device", "See `weir devices`; the message says what the device refused."},
    {"no_gpu", "Install NVIDIA's driver, or copy the array to host memory first."},
}};

}  // namespace

std::string_view name_of(Errc code) {
  const auto number = static_cast<std::size_t>(code);
  return number < rows.size() ? rows[number].name : "unknown";
}

std::string_view next_step(Errc code) {
  const auto number = static_cast<std::size_t>(code);
  return number < rows.size() ? rows[number].next_step : "See the message.";
}

}  // namespace weir::tensor
