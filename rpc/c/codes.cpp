// Error numbers for C: their names, and advice for each. The numbers are those of Errc.
#include <algorithm>
#include <iterator>

#include "rpc/c/weir_rpc.h"
#include "rpc/error.hpp"

namespace {

using weir::rpc::Errc;

struct Row {
  Errc errc;
  weir_rpc_code code;
  const char* next_step;
};
constexpr Row rows[] = {
    {Errc::unknown_method, WEIR_RPC_UNKNOWN_METHOD, "See which functions it has: weir rpc list ADDRESS."},
    {Errc::bad_arguments, WEIR_RPC_BAD_ARGUMENTS, "See the types it takes: weir rpc list ADDRESS."},
    {Errc::too_large, WEIR_RPC_TOO_LARGE, "Send less at once, or raise body_bytes or attachment_bytes."},
    {Errc::deadline_exceeded, WEIR_RPC_DEADLINE_EXCEEDED,
     "It may have run: call again if that does no harm, or allow more time."},
    {Errc::cancelled, WEIR_RPC_CANCELLED, "The caller gave up; nothing is to be done."},
    {Errc::overloaded, WEIR_RPC_OVERLOADED, "It did not run: call again later, or call another server."},
    {Errc::draining, WEIR_RPC_DRAINING, "It did not run: connect to another server."},
    {Errc::failed, WEIR_RPC_FAILED, "The function ran and failed: its message says why."},
    {Errc::denied, WEIR_RPC_DENIED, "Ask whoever runs the server for the right to call it."},
    {Errc::version_mismatch, WEIR_RPC_VERSION_MISMATCH, "Update the older of the two programs."},
    {Errc::wrong_codec, WEIR_RPC_WRONG_CODEC, "See which codec it takes: weir rpc list ADDRESS."},
    {Errc::unauthenticated, WEIR_RPC_UNAUTHENTICATED, "Give a token or a certificate that the server takes."},
    {Errc::schema_mismatch, WEIR_RPC_SCHEMA_MISMATCH,
     "Bring both ends to releases that go together: weir rpc diff OLD NEW."},
    {Errc::bad_reply, WEIR_RPC_BAD_REPLY, "The server returns another type: see weir rpc list ADDRESS."},
    {Errc::connection_lost, WEIR_RPC_CONNECTION_LOST,
     "Connect again; the call may have run, so repeat it only if that does no harm."},
    {Errc::closed, WEIR_RPC_CLOSED, "Connect again."},
    {Errc::protocol, WEIR_RPC_PROTOCOL,
     "The other end is no Weir server, or a broken one: check the address."},
    {Errc::bad_address, WEIR_RPC_BAD_ADDRESS,
     "Write it like tcp://HOST:PORT, unix:///PATH or rdma://IP:PORT."},
    {Errc::unreachable, WEIR_RPC_UNREACHABLE, "Check that the server runs at that address."},
    {Errc::tls, WEIR_RPC_TLS, "Check the certificates of both ends."},
    {Errc::rdma, WEIR_RPC_RDMA, "See which RDMA devices there are: weir devices."},
    {Errc::bad_setting, WEIR_RPC_BAD_SETTING, "Correct the setting: weir_rpc.h says what it takes."},
};
static_assert(std::ranges::all_of(rows, [](const Row& row) {
  return static_cast<int>(row.errc) == static_cast<int>(row.code);
}));

const Row* find(int code) {
  const auto* row = std::ranges::find(rows, code, [](const Row& r) { return static_cast<int>(r.code); });
  return row == std::end(rows) ? nullptr : row;
}

}  // namespace

extern "C" {

const char* weir_rpc_code_name(int code) {
  if (code == 0) return "ok";
  const Row* row = find(code);
  return row != nullptr ? name_of(row->errc).data() : "unknown";
}

const char* weir_rpc_next_step(int code) {
  if (code == 0) return "";
  const Row* row = find(code);
  return row != nullptr ? row->next_step : "Its message says what happened.";
}

int weir_rpc_did_not_run(int code) {
  const Row* row = find(code);
  return row != nullptr && did_not_run(row->errc) ? 1 : 0;
}

const char* weir_rpc_version() { return WEIR_VERSION; }

}  // extern "C"
