#include "rdma/error.hpp"

#include <utility>

namespace weir::rdma {
namespace {

struct Category final : std::error_category {
  const char* name() const noexcept override { return "weir.rdma"; }

  std::string message(int value) const override {
    switch (static_cast<Errc>(value)) {
      case Errc::library_not_found:
        return "RDMA library not found";
      case Errc::library_unusable:
        return "RDMA library cannot be used";
      case Errc::provider_conflict:
        return "another RDMA provider is already loaded";
      case Errc::no_device:
        return "no RDMA device";
      case Errc::address_unresolved:
        return "no RDMA device reaches the address";
      case Errc::refused:
        return "connection refused";
      case Errc::unreachable:
        return "peer unreachable";
      case Errc::address_in_use:
        return "RDMA address already in use";
      case Errc::bad_setting:
        return "RDMA setting out of range";
      case Errc::memory_limit:
        return "registered memory limit reached";
      case Errc::connection_limit:
        return "connection limit reached";
      case Errc::device_error:
        return "RDMA device error";
      case Errc::bad_control_length:
        return "peer sent a control message of the wrong length";
      case Errc::unknown_opcode:
        return "peer sent an unknown control message";
      case Errc::unexpected_message:
        return "peer sent a control message that only it may receive";
      case Errc::unknown_feature:
        return "peer asked for an unknown feature";
      case Errc::bad_announcement:
        return "peer announced an impossible receive buffer";
      case Errc::immediate_beyond_buffer:
        return "peer claims more bytes than its buffer holds";
      case Errc::control_flood:
        return "peer floods control messages";
      case Errc::remote_access:
        return "peer's memory may not be accessed";
      case Errc::trespass:
        return "peer tried to reach memory that it has no right to";
      case Errc::not_a_channel:
        return "peer does not speak the channel protocol";
      case Errc::bad_frame:
        return "peer sent a malformed frame";
      case Errc::bad_immediate:
        return "peer sent an impossible immediate";
      case Errc::window_overrun:
        return "peer sends more than it was granted";
      case Errc::oversize_message:
        return "peer sends a message longer than allowed";
      case Errc::message_too_long:
        return "message longer than the peer takes";
      case Errc::connection_lost:
        return "connection lost";
      case Errc::closed:
        return "connection is closed";
    }
    return "unknown error";
  }

  std::error_condition default_error_condition(int value) const noexcept override {
    switch (static_cast<Errc>(value)) {
      case Errc::refused:
        return std::errc::connection_refused;
      case Errc::unreachable:
        return std::errc::host_unreachable;
      case Errc::address_in_use:
        return std::errc::address_in_use;
      case Errc::connection_lost:
        return std::errc::connection_reset;
      case Errc::closed:
        return std::errc::not_connected;
      case Errc::memory_limit:
        return std::errc::not_enough_memory;
      case Errc::message_too_long:
        return std::errc::message_size;
      default:
        return {value, *this};
    }
  }
};

}  // namespace

const std::error_category& error_category() noexcept {
  static const Category category;
  return category;
}

std::error_code make_error_code(Errc cause) noexcept { return {static_cast<int>(cause), error_category()}; }

std::unexpected<Error> fail(Errc cause, std::string what) {
  return std::unexpected(Error{cause, std::move(what)});
}

std::unexpected<Error> fail_os(Errc cause, std::string what, int os_error) {
  return fail(cause, std::move(what) + ": " + std::generic_category().message(os_error));
}

}  // namespace weir::rdma
