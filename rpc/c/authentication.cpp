// Wraps a C program's functions as a server's Authentication.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>

#include "rpc/c/options.hpp"

namespace weir::rpc::c {

namespace {

// The program's own error; `otherwise` if it gave none.
std::unexpected<Error> refused(int code, const weir_rpc_error& said, Errc otherwise) {
  const std::string message(said.message, strnlen(said.message, sizeof said.message));
  const bool ours = code > 0 && code < static_cast<int>(Errc::bad_reply);
  return fail(ours ? static_cast<Errc>(code) : otherwise,
              message.empty() ? "the server does not let this caller in" : message);
}

Result<Identity> authenticate(weir_rpc_authenticate ask, void* user, const Credentials& shown) {
  const weir_rpc_caller caller{sizeof(weir_rpc_caller), shown.token.c_str(), shown.token.size(),
                               shown.certificate.c_str(), shown.peer.c_str()};
  weir_rpc_identity answer{sizeof(weir_rpc_identity), {}, 0};
  weir_rpc_error error{};
  if (const int code = ask(user, &caller, &answer, &error); code != 0)
    return refused(code, error, Errc::unauthenticated);
  Identity identity;
  identity.name.assign(answer.name, strnlen(answer.name, sizeof answer.name));
  constexpr std::int64_t most_us = std::int64_t{1} << 50;  // 35 years
  if (answer.valid_us != 0)                                // if negative, it has already expired
    identity.expires = std::chrono::steady_clock::now() +
                       std::chrono::microseconds(std::clamp<std::int64_t>(answer.valid_us, 0, most_us));
  return identity;
}

}  // namespace

}  // namespace weir::rpc::c

using namespace weir::rpc;

extern "C" {

void weir_rpc_options_authenticate(weir_rpc_options* options, weir_rpc_authenticate authenticate,
                                   void* user) {
  auto& place = options->serve.authentication.authenticate;
  if (authenticate == nullptr) return void(place = nullptr);
  place = [authenticate, user](const Credentials& shown) {
    return c::authenticate(authenticate, user, shown);
  };
}

void weir_rpc_options_authorise(weir_rpc_options* options, weir_rpc_authorise authorise, void* user) {
  auto& place = options->serve.authentication.authorise;
  if (authorise == nullptr) return void(place = nullptr);
  place = [authorise, user](const Identity& who, std::string_view method) -> Result<void> {
    weir_rpc_error error{};
    const int code = authorise(user, who.name.c_str(), std::string(method).c_str(), &error);
    if (code != 0) return c::refused(code, error, Errc::denied);
    return {};
  };
}

}  // extern "C"
