#include "rpc/error.hpp"

#include <algorithm>
#include <array>

namespace weir::rpc {

namespace {
struct Row {
  Errc code;
  std::string_view name;
  bool did_not_run;
};
constexpr std::array all_rows{
    Row{Errc::unknown_method, "unknown_method", true},
    Row{Errc::bad_arguments, "bad_arguments", true},
    Row{Errc::too_large, "too_large", false},
    Row{Errc::deadline_exceeded, "deadline_exceeded", false},
    Row{Errc::cancelled, "cancelled", false},
    Row{Errc::overloaded, "overloaded", true},
    Row{Errc::draining, "draining", true},
    Row{Errc::failed, "failed", false},
    Row{Errc::denied, "denied", true},
    Row{Errc::version_mismatch, "version_mismatch", true},
    Row{Errc::wrong_codec, "wrong_codec", true},
    Row{Errc::unauthenticated, "unauthenticated", true},
    Row{Errc::schema_mismatch, "schema_mismatch", true},
    Row{Errc::bad_reply, "bad_reply", false},
    Row{Errc::connection_lost, "connection_lost", false},
    Row{Errc::closed, "closed", false},
    Row{Errc::protocol, "protocol", false},
    Row{Errc::bad_address, "bad_address", true},
    Row{Errc::unreachable, "unreachable", true},
    Row{Errc::tls, "tls", true},
    Row{Errc::rdma, "rdma", true},
    Row{Errc::bad_setting, "bad_setting", true},
    Row{Errc::end_of_stream, "end_of_stream", false},
};
const Row* find(Errc code) {
  const auto* row = std::ranges::find(all_rows, code, &Row::code);
  return row == all_rows.end() ? nullptr : row;
}
constexpr std::uint16_t last_on_the_wire = 63;
}  // namespace

std::string_view name_of(Errc code) {
  const Row* row = find(code);
  return row != nullptr ? row->name : "unknown";
}

Errc errc_of(std::uint16_t status) {
  const auto code = static_cast<Errc>(status);
  return status <= last_on_the_wire && find(code) != nullptr ? code : Errc::failed;
}

bool did_not_run(Errc code) {
  const Row* row = find(code);
  return row != nullptr && row->did_not_run;
}

Error named(Error error, std::string_view function) {
  constexpr std::string_view unnamed = "of that name";
  const auto at = error.what.find(unnamed);
  if (error.code == Errc::unknown_method && !function.empty() && at != std::string::npos)
    error.what.replace(at, unnamed.size(), "'" + std::string(function) + "'");
  return error;
}

std::unexpected<Error> fail(Errc code, std::string what) {
  return std::unexpected(Error{code, std::move(what), nullptr});
}

}  // namespace weir::rpc
