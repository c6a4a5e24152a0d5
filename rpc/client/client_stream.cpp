#include "rpc/client/client_stream.hpp"

#include <asio/use_awaitable.hpp>

namespace weir::rpc {

namespace {
StreamLimits limits_of(const ClientCore& core) {
  StreamLimits limits;
  limits.window_bytes = core.limits().stream_window_bytes;
  limits.item_bytes = std::min(core.limits().request.body_bytes, max_item_bytes(limits.window_bytes));
  limits.max_waiting_bytes = std::min(core.limits().max_waiting_bytes, limits.max_waiting_bytes);
  return limits;
}
}  // namespace

StreamCall::StreamCall(asio::io_context& io, Error why)
    : channel_(std::make_shared<StreamChannel>(io, StreamLimits())), result_(std::unexpected(why)) {
  channel_->finish(std::move(why));
}

StreamCall::StreamCall(std::shared_ptr<ClientCore> core, std::uint64_t id)
    : core_(std::move(core)),
      id_(id),
      channel_(std::make_shared<StreamChannel>(core_->io(), limits_of(*core_))) {
  core_->claim(id_, *this);
  channel_->start(*core_, id_);
}

StreamCall::~StreamCall() { cancel(); }

void StreamCall::complete(Result<std::span<const std::byte>> body) {
  if (body) {
    result_.emplace().append(*body);
    channel_->finish({Errc::end_of_stream, "the function has written all that it would"});
  } else {
    result_ = std::unexpected(body.error());
    channel_->finish(std::move(body.error()));
  }
  core_.reset();
}

void StreamCall::abandon() { channel_->finish({Errc::closed, "the client is gone"}); }

void StreamCall::cancel() {
  if (const auto core = core_) core->cancel(id_);
}

asio::awaitable<Result<std::span<const std::byte>>> StreamCall::finish(std::shared_ptr<StreamCall> self) {
  StreamChannel& channel = *self->channel_;
  channel.end_writes();
  channel.discard();
  Result<void> ended = co_await channel.wait_finished();
  if (!ended) co_return std::unexpected(std::move(ended.error()));
  if (!self->result_) co_return std::unexpected(self->result_.error());
  co_return self->result_->span();
}

}  // namespace weir::rpc
