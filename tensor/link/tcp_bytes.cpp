#include "tensor/link/tcp_bytes.hpp"

#include <asio/buffer.hpp>
#include <vector>

namespace weir::tensor {

using Needs = TcpBytes::Step::Needs;

void TcpBytes::encrypt(transport::TlsSide side, Encryption how) {
  place_ = std::move(how.place);
  session_.emplace(std::move(how.context), side, socket_.native_handle(), how.server_name);
  if (side == transport::TlsSide::server) progress_.emplace(session_->native_handle(), place_);
}

void TcpBytes::may_leave(std::string_view address, transport::Newcomers::Leave leave) {
  if (progress_) place_.may_leave(address, std::move(leave));
}

void TcpBytes::handshake_is_over() {
  progress_.reset();
  place_.give_back();
}

TcpBytes::Step TcpBytes::shake_hands() {
  const Step step = session_->shake_hands();
  if (step.needs == Needs::nothing) handshake_is_over();
  return step;
}

TcpBytes::Step TcpBytes::read(std::span<std::byte> into) {
  if (session_) return session_->read(into);
  std::error_code error;
  std::size_t bytes = 0;
  do bytes = socket_.read_some(asio::buffer(into.data(), into.size()), error);
  while (error == asio::error::interrupted);
  if (error == asio::error::would_block) return {0, Needs::readable};
  return {bytes, error ? Needs::over : Needs::nothing};
}

TcpBytes::Step TcpBytes::write(std::span<const std::span<const std::byte>> pieces) {
  if (session_) return session_->write(pieces);
  std::vector<asio::const_buffer> buffers;
  buffers.reserve(pieces.size());
  for (const auto& each : pieces) buffers.emplace_back(each.data(), each.size());
  std::error_code error;
  const std::size_t bytes = socket_.write_some(buffers, error);
  if (error == asio::error::would_block) return {0, Needs::writable};
  return {bytes, error ? Needs::over : Needs::nothing};
}

void TcpBytes::close() {
  handshake_is_over();
  std::error_code ignored;
  socket_.shutdown(Socket::shutdown_both, ignored);
  socket_.close(ignored);
}

}  // namespace weir::tensor
