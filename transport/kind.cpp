#include "transport/kind.hpp"

#include <utility>

namespace weir::transport {

namespace {

// The name to be shown comes before others of its kind.
constexpr std::pair<std::string_view, Kind> names[] = {
    {"tcp", Kind::tcp},           {"unix", Kind::unix_socket},   {"tls", Kind::tls},
    {"rdma", Kind::rdma},         {"rdma+tls", Kind::rdma_tls},  {"tls+rdma", Kind::rdma_tls},
    {"rdma-tls", Kind::rdma_tls}, {"weirs+rdma", Kind::rdma_tls}};

}  // namespace

std::string_view name_of(Kind kind) {
  for (const auto& [name, value] : names)
    if (value == kind) return name;
  return "?";
}

std::optional<Kind> kind_named(std::string_view text) {
  for (const auto& [name, value] : names)
    if (name == text) return value;
  return std::nullopt;
}

}  // namespace weir::transport
