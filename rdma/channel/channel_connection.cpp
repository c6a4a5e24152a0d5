// How a channel is set up and taken down, and how it notifies its user.
#include "rdma/channel/channel_connection.hpp"

#include <algorithm>
#include <asio/error.hpp>
#include <asio/post.hpp>
#include <string>
#include <utility>

#include "rdma/channel/shared_receives.hpp"
#include "rdma/device/work_id.hpp"
#include "rdma/engine.hpp"

namespace weir::rdma {

using channel_wire::Greeting;

namespace {

std::uint32_t window_of(const ChannelSettings& settings) {
  return settings.receive_blocks - channel_wire::reserved_receives(settings.rendezvous_depth);
}

}  // namespace

// Data uses 2 * send_blocks requests; READs, windows for offers, acknowledgements and probes use the rest.
std::uint32_t ChannelConnection::send_depth() const {
  return 2u * settings_.send_blocks + 8u + 3u * settings_.rendezvous_depth;
}

Result<ChannelConnection*> ChannelConnection::make(Engine& engine, Side side,
                                                   const ChannelSettings& settings) {
  if (Result<void> good = check(settings); !good) return std::unexpected(good.error());
  const auto make = [&](std::uint64_t tag) {
    return std::make_unique<ChannelConnection>(engine, tag, side, settings);
  };
  const Result<ConnectionLife*> made = engine.admit(make, settings.keepalive);
  if (!made) return std::unexpected(made.error());
  return static_cast<ChannelConnection*>(*made);
}

ChannelConnection::ChannelConnection(ConnectionHost& engine, std::uint64_t tag, Side side,
                                     const ChannelSettings& settings)
    : ConnectionLife(engine, tag, side, {settings.resolve_timeout, settings.ack_timeout, settings.linger}),
      settings_(settings),
      greeting_(channel_wire::encode(Greeting{.rendezvous_depth = settings.rendezvous_depth,
                                              .window = static_cast<std::uint16_t>(window_of(settings)),
                                              .block_bytes = settings.block_bytes,
                                              .max_message = settings.max_message_bytes})),
      ring_(send_depth(), settings.signal_interval),
      grants_(window_of(settings)) {}

ChannelConnection::~ChannelConnection() = default;

Result<void> ChannelConnection::greeted(std::span<const std::byte> bytes) {
  const std::expected<Greeting, Errc> theirs = channel_wire::parse_greeting(bytes);
  if (!theirs)
    return fail(theirs.error(), "the peer does not speak version " + std::to_string(channel_wire::version) +
                                    " of the channel protocol");
  peer_ = *theirs;
  credits_ = Credits(peer_.window);
  frame_bytes_ = std::min(settings_.block_bytes, peer_.block_bytes);
  return {};
}

Result<void> ChannelConnection::prepare() {
  if (settings_.shared_receives) {
    Result<SharedReceives*> shared = SharedReceives::of(*device_, settings_.block_bytes);
    if (!shared) return std::unexpected(shared.error());
    shared_ = *shared;
    queue_ = &shared_->queue();
  } else {
    Result<Device::Queue*> queue = device_->reserve(
        settings_.receive_blocks, settings_.solicited_only ? Device::Wake::solicited : Device::Wake::any);
    if (!queue) return std::unexpected(queue.error());
    queue_ = *queue;
  }
  Result<Device::Queue*> send_queue = device_->reserve(send_depth(), Device::Wake::any);
  if (!send_queue) return std::unexpected(send_queue.error());
  send_cq_ = *send_queue;

  store_ = BlockStore::make(*device_, settings_.block_bytes,
                            std::size_t{settings_.send_blocks} + settings_.receive_blocks,
                            2u * settings_.rendezvous_depth, *this, shared_);
  if (!settings_.keep_blocks) store_->keep_nothing();
  const QueuePairShape shape{.send_depth = send_depth(),
                             .receive_depth = settings_.receive_blocks,
                             .max_pieces = 1,
                             .inline_bytes = settings_.inline_bytes,
                             .send_cq = send_cq_->cq.get(),
                             .receive_cq = queue_->cq.get(),
                             .srq = shared_ != nullptr ? shared_->get() : nullptr};
  if (Result<void> made = create_queue_pair(shape); !made) return made;
  if (shared_ != nullptr) {
    shared_->join(id_->qp->qp_num, *this);
    return {};
  }
  for (std::uint32_t i = 0; i < settings_.receive_blocks; ++i) {
    Result<BlockRef> block = store_->frame(BlockUse::posted);
    if (!block) return std::unexpected(block.error());
    if (Result<void> posted = post_receive(std::move(*block)); !posted) return posted;
  }
  return {};
}

void ChannelConnection::on_established() {
  if (settings_.keepalive.count() > 0) next_keepalive_ = engine_.now() + settings_.keepalive;
}

void ChannelConnection::on_abandoned() {
  cancel_sends();
  cancel_receive();
  corks_ = 0;
  if (state_ == State::established) flush_open(true);
}

bool ChannelConnection::drained() {
  // Wait for messages taken but not sent, or offered but not fetched; `linger` bounds the wait.
  if (open_.block || !waiting_.empty() || !offered_.empty()) return false;
  if (ring_.outstanding() == 0) return true;
  if (ring_.has_unsignalled()) post_probe();
  return false;
}

void ChannelConnection::before_queue_pair_goes() {
  if (shared_ != nullptr && id_ && id_->qp != nullptr) shared_->leave(id_->qp->qp_num);
}

void ChannelConnection::revoke_rights() {
  if (store_) store_->revoke_rights();
}

void ChannelConnection::release_resources() {
  ring_.clear();
  open_ = {};
  posted_.clear();
  offered_.clear();
  assembly_.reset();
  fetching_into_.reset();
  // Messages that were not fetched, and all behind them, will never be complete.
  std::size_t ready = 0;
  while (ready < inbound_.size() && inbound_[ready].state == Inbound::State::ready) ++ready;
  while (ready > 0 && inbound_[ready - 1].is_part()) --ready;
  inbound_.truncate(ready);
  for (Outbound& each : waiting_) each.buffer = {};
  if (store_) store_->keep_nothing();
  if (queue_ != nullptr && shared_ == nullptr) Device::release(*queue_, settings_.receive_blocks);
  if (send_cq_ != nullptr) Device::release(*send_cq_, send_depth());
  send_cq_ = nullptr;
}

void ChannelConnection::release_unread() { inbound_.clear(); }

Error ChannelConnection::explain(const ibv_wc& completion) const {
  const bool too_long = completion.status == IBV_WC_LOC_LEN_ERR ||
                        completion.status == IBV_WC_LOC_QP_OP_ERR;  // Soft-RoCE reports this one
  if (too_long && WorkId::decode(completion.wr_id).kind == WorkKind::receive)
    return {Errc::bad_frame,
            "peer sent a frame of more than " + std::to_string(settings_.block_bytes) + " bytes"};
  return {};
}

void ChannelConnection::on_completion(const ibv_wc& completion) {
  if (state_ == State::ended) return;
  if (completion.status != IBV_WC_SUCCESS) return on_failed(completion);
  if (WorkId::decode(completion.wr_id).kind == WorkKind::send) return on_send_done();
  on_receive(completion);
}

// An empty WRITE uses no receive of the peer. Its completion covers all requests before it, and it
// fails if the peer is gone.
void ChannelConnection::on_tick(Clock::time_point now) {
  ConnectionLife::on_tick(now);
  if (state_ != State::established) return;
  store_->trim();
  if (unfetched_ > 0 || missing_ > 0 || wants_writable_ || !waiting_.empty())
    mark_dirty();  // the pool may have room again
  if (next_keepalive_ == Clock::time_point{} || now < next_keepalive_) return;
  next_keepalive_ = now + settings_.keepalive;
  if (ring_.outstanding() == 0 || ring_.has_unsignalled()) post_probe();
}

ChannelMemory ChannelConnection::memory() const {
  if (!store_) return {};
  const auto& bytes = store_->bytes_by_use();
  return {.posted_bytes = bytes[static_cast<std::size_t>(BlockUse::posted)],
          .held_bytes = bytes[static_cast<std::size_t>(BlockUse::held)],
          .sending_bytes = bytes[static_cast<std::size_t>(BlockUse::sending)],
          .kept_bytes = bytes[static_cast<std::size_t>(BlockUse::kept)],
          .lent_bytes = bytes[static_cast<std::size_t>(BlockUse::lent)]};
}

// --- notifying the user

// Order matters: receives are posted before a frame grants the window for them, and the user sends before we
// find that an explicit acknowledgement is needed.
void ChannelConnection::notify() {
  dirty_ = false;
  if (state_ == State::established || state_ == State::closing) {
    replenish();
    start_fetches();
    pump();
  }
  if (!abandoned_) notify_connector();
  if (!abandoned_) notify_reader();
  if (!abandoned_) notify_writer();
  if (state_ == State::established || state_ == State::closing) {
    replenish();
    acknowledge();
  }
  try_hang_up();
}

void ChannelConnection::notify_reader() {
  if (receive_op_ && (can_receive() || ended())) {
    ReceiveOpPtr op = std::exchange(receive_op_, nullptr);
    std::optional<Message> message = receive();
    const std::error_code failed = message ? std::error_code() : cause_.code;
    return op.release()->complete(failed, message ? std::move(*message) : Message());
  }
  if (!readable_callback_ || !((fresh_input_ && can_receive()) || (ended() && !end_told_))) return;
  fresh_input_ = false;
  end_told_ = ended();
  struct Cork {  // sends the callback's frames together for a batch of messages, even if it throws
    explicit Cork(ChannelConnection& which) : channel(which) { channel.cork(); }
    ~Cork() { channel.uncork(); }
    Cork(const Cork&) = delete;
    Cork& operator=(const Cork&) = delete;
    ChannelConnection& channel;
  } const corked(*this);
  readable_callback_();
}

void ChannelConnection::notify_writer() {
  if (ended()) {
    while (!waiting_.empty()) {
      Outbound gone = std::move(waiting_.front());
      waiting_.pop_front();
      if (gone.op) gone.op.release()->complete(cause_.code);
      if (abandoned_) return;
    }
    return;
  }
  if (!writable_callback_ || !wants_writable_ || !can_post() || open_.block) return;
  if (!waiting_.empty() && begun_total_ == 0) return;
  wants_writable_ = false;
  writable_callback_();
}

void ChannelConnection::on_readable(Callback callback) {
  readable_callback_.set(std::move(callback));
  if (!readable_callback_ || !(can_receive() || ended())) return;
  fresh_input_ = true;
  end_told_ = false;
  mark_dirty();
}

void ChannelConnection::on_writable(Callback callback) {
  writable_callback_.set(std::move(callback));
  if (writable_callback_ && wants_writable_) mark_dirty();
}

void ChannelConnection::cancel_receive() {
  if (!receive_op_) return;
  asio::post(engine_.io(), [op = std::exchange(receive_op_, nullptr)]() mutable {
    op.release()->complete(asio::error::operation_aborted, Message());
  });
}

// A message that is partly sent can only be withdrawn by ending the channel.
void ChannelConnection::cancel_sends() {
  std::deque<Outbound> stay;
  for (Outbound& each : waiting_) {
    if (each.op == nullptr || (each.sent > 0 && !abandoned_)) {
      stay.push_back(std::move(each));
      continue;
    }
    asio::post(engine_.io(), [op = std::move(each.op)]() mutable {
      op.release()->complete(asio::error::operation_aborted);
    });
  }
  waiting_ = std::move(stay);
}

void ChannelConnection::cancel_send(const SendOp* op) {
  const auto found =
      std::ranges::find_if(waiting_, [op](const Outbound& each) { return each.op.get() == op; });
  if (found == waiting_.end() || found->sent > 0) return;
  asio::post(engine_.io(), [op = std::move(found->op)]() mutable {
    op.release()->complete(asio::error::operation_aborted);
  });
  waiting_.erase(found);
}

void ChannelConnection::destroy_ops() {
  ConnectionLife::destroy_ops();
  receive_op_.reset();
  waiting_.clear();
  readable_callback_.set(nullptr);
  writable_callback_.set(nullptr);
}

}  // namespace weir::rdma
