// Identifies a connection's client and decides which functions it may call.
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "rpc/server/server_connection.hpp"

namespace weir::rpc {

// Limits for a client that is not yet identified.
FrameLimits ServerConnection::first_limits(const ServerRules& rules) {
  const ServerLimits& limits = rules.limits;
  FrameLimits first = with_items(limits.frame, limits.stream_window_bytes);
  if (!rules.authentication.authenticate) return first;
  first.body_bytes = std::min(first.body_bytes, limits.max_unauthenticated_bytes);
  first.attachment_bytes = std::min(first.attachment_bytes, limits.max_unauthenticated_bytes);
  return first;
}

// False: refused, and the connection has ended; nothing ran on it. If calls have run already, they continue,
// and only later ones are refused.
bool ServerConnection::authenticate(std::string token) {
  if (!rules_->authentication.authenticate) return true;
  const Credentials credentials{std::move(token), transport().peer_certificate(), transport().peer()};
  Result<Identity> identity;
  try {
    identity = rules_->authentication.authenticate(credentials);
  } catch (const std::exception& thrown) {
    identity =
        fail(Errc::unauthenticated, std::string("the credentials cannot be checked: ") + thrown.what());
  } catch (...) {
    identity = fail(Errc::unauthenticated,
                    "the credentials cannot be checked: what was thrown is no std::exception");
  }
  if (identity) {
    identity_ = std::make_shared<const Identity>(std::move(*identity));
    set_frame_limits(with_items(limits_.frame, limits_.stream_window_bytes));
    refusal_.reset();
    stay_.settle();
    return true;
  }
  if (identity_ != nullptr) {
    refusal_ = std::move(identity.error());
    return true;
  }
  dismiss(identity.error());
  return false;
}

// A request beyond the limits for strangers: by now the client has sent all the credentials it will send.
bool ServerConnection::may_lift_limits(const FrameHeader& header) {
  const bool fits_then = with_items(limits_.frame, limits_.stream_window_bytes).hold(header);
  return header.kind == FrameKind::request && fits_then && !known() && authenticate({});
}

Result<void> ServerConnection::admit(const Registered& method) {
  if (refusal_) return std::unexpected(*refusal_);
  if (identity_ != nullptr && identity_->expires <= Context::Clock::now())
    return fail(Errc::unauthenticated, "the credentials have expired: send new ones");
  if (!rules_->authentication.authorise) return {};
  static const Identity anonymous;
  try {
    return rules_->authentication.authorise(identity_ != nullptr ? *identity_ : anonymous, method.name);
  } catch (const std::exception& thrown) {
    return fail(Errc::denied, std::string("the caller's rights cannot be checked: ") + thrown.what());
  } catch (...) {
    return fail(Errc::denied, "the caller's rights cannot be checked: what was thrown is no std::exception");
  }
}

}  // namespace weir::rpc
