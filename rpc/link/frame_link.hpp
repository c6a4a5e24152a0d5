// Frames over a transport, for either end: what arrives is cut into frames, what is to be sent is collected
// and goes out once a round, or once it is much: many small calls share a system call.
//
// A frame is encoded in place (open_frame.hpp): begin_frame(), then its body, then end_frame(), which writes
// the header and queues it. Nothing else may be encoded between the two. What the body refers to is written
// by then, or copied.
//
// Ownership: shared; derived classes keep themselves alive through their owners, and every callback holds a
// reference while it runs. Threading: the io_context's thread.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "rpc/link/graceful_close.hpp"
#include "rpc/link/open_frame.hpp"
#include "rpc/link/out_queue.hpp"
#include "rpc/transport/reserved_block.hpp"
#include "rpc/transport/transport.hpp"
#include "rpc/wire/body.hpp"
#include "rpc/wire/compression.hpp"
#include "rpc/wire/frame.hpp"
#include "rpc/wire/hello.hpp"

namespace weir::rpc {

class Reply;
class StreamChannel;

// Something that writes to a link when there is room; told, once, that the queue got shorter.
class WaitsForRoom {
 public:
  virtual void on_link_progress() = 0;

 protected:
  ~WaitsForRoom() = default;
};

struct LinkStats {
  std::uint64_t frames_received = 0;
  std::uint64_t frames_sent = 0;
  std::uint64_t rounds = 0;
  std::uint64_t writes = 0;  // how often data was given to the transport
  std::uint64_t bytes_received = 0;
  std::uint64_t bytes_sent = 0;  // that the transport took

  CompressionCounts compressed_sent;
  CompressionCounts compressed_received;
};

class FrameLink : public std::enable_shared_from_this<FrameLink>, private TransportUser, private FrameSink {
 public:
  FrameLink(asio::io_context& io, TransportPtr transport, const FrameLimits& limits)
      : io_(io), transport_(std::move(transport)), frame_limits_(limits), reader_(limits) {}
  virtual ~FrameLink();
  FrameLink(const FrameLink&) = delete;
  FrameLink& operator=(const FrameLink&) = delete;

  void start() { transport_->start(*this); }
  // Compression that this end accepts, and uses if the other end accepts it. Call before start().
  void use_compression(const CompressionOptions& options) { compression_ = options; }
  // Tells the other end what this end knows and accepts. A client does so when it connects; the server
  // answers.
  void say_hello();
  // The other end's hello; nullopt before it came.
  const std::optional<Hello>& peer_hello() const { return peer_hello_; }
  bool peer_knows(Feature one) const { return peer_hello_ && peer_hello_->knows(one); }
  bool is_open() const { return !closed_; }
  asio::io_context& io() { return io_; }
  Transport& transport() { return *transport_; }
  const Transport& transport() const { return *transport_; }
  const LinkStats& stats() const { return stats_; }
  std::size_t waiting_bytes() const { return out_.bytes(); }
  // Bytes of the frame that is arriving (frame.hpp), and of items that wait to be read.
  std::size_t expected_bytes() const { return reader_.expected_bytes(); }
  std::size_t arrived_bytes() const { return reader_.arrived_bytes(); }
  std::size_t stream_bytes() const { return stream_bytes_; }

  // Closes now; queued data is lost. on_end() does not run.
  void close();

 protected:
  // How close_gracefully() ends; before start(). Without it: at once.
  void use_end_limits(const EndLimits& limits) { end_limits_ = limits; }
  // Closes after sending what is queued (graceful_close.hpp). The link is no longer open: on_end() runs now,
  // on_gone() once the transport is closed.
  void close_gracefully(const Error& cause);

  // Bodies are appended here, between begin_frame() and end_frame().
  Bytes& encoded() { return open_.encoded(); }
  BodyPlace body() { return open_.body(); }
  // Where the frame begins; pass it on. Of what is expected of the body only large ones matter.
  std::size_t begin_frame(BodySize expected = 0) { return open_.begin(expected, *transport_, !blocked_); }
  std::size_t body_bytes(std::size_t begin) { return open_.body_bytes(begin); }
  void end_frame(std::size_t begin, FrameHeader header, Buffer attachment = {});
  // The two halves of that: compresses the body, if that is to be, and says so in the header; queues.
  CompressionCounts pack_body(std::size_t begin, FrameHeader& header);
  void queue_frame(std::size_t begin, FrameHeader header, Buffer attachment = {});
  void drop_frame(std::size_t begin) { open_.drop(begin); }
  void send(const FrameHeader& header);  // without a body
  // The memory of the attachment of frame `id`, going out or coming in, may not be touched any more.
  void let_go_outgoing(std::uint64_t id);
  void let_go_incoming() { reader_.divert_attachment(); }
  void flush();
  void read_on(bool on) { transport_->read_on(on); }
  // Applies to frames that begin from now on.
  void set_frame_limits(const FrameLimits& limits) {
    frame_limits_ = limits;
    reader_.set_limits(limits);
  }
  // A frame beyond the limits begins. Return true if the limits may have been raised, false otherwise and
  // where the link has ended.
  virtual bool may_lift_limits(const FrameHeader&) { return false; }

  // A link that lost a frame is no longer open; on_end() says why in a turn of its own.
  bool lost_a_frame() const { return lost_a_frame_; }
  static Error frame_loss();

  // The number of the call to which a frame beyond the limits belonged; the frame ended the link with
  // Errc::too_large. 0: unknown.
  std::uint64_t oversize_call() const { return oversize_ != 0 ? oversize_ : reader_.oversize(); }

  // A frame came. Return false if the link was closed.
  virtual bool on_arrival(Frame& frame) = 0;
  // Called before that, and before a compressed body is decompressed. Return true to keep the frame as it
  // came, for deliver() later.
  virtual bool put_aside(Frame&) { return false; }
  bool deliver(Frame& frame);  // on_arrival(); false: the link was closed
  // Nothing more will come; the link is no longer open.
  virtual void on_end(const Error& cause) = 0;
  virtual void on_hello() {}  // the other end's came
  // After on_end(): the transport is closed, too.
  virtual void on_gone() {}
  // What arrived cannot be understood. The link ends after what this sends.
  virtual void on_nonsense(const Error&) {}
  virtual void on_progress() {}  // the queue got shorter
  virtual void on_round_end() {}
  virtual void on_packed(const CompressionCounts&) {}    // a body that goes
  virtual void on_unpacked(const CompressionCounts&) {}  // one that came

  // They write frames.
  friend class Reply;
  friend class StreamChannel;
  void wake_when_emptier(WaitsForRoom& stream) { starved_.push_back(&stream); }
  void forget(WaitsForRoom& stream) { std::erase(starved_, &stream); }
  virtual Buffer make_attachment(const FrameHeader& header) { return Buffer(header.attachment_bytes); }
  virtual bool has_place_for(const FrameHeader&) { return false; }
  // Return false if so much waits to be sent that the peer, which does not read, gets no more pongs.
  virtual bool answers_pings() const { return true; }

 private:
  std::span<std::byte> wanted() override;
  bool keep(Buffer& bytes) override;
  void filled(std::size_t bytes) override;
  void received(std::span<const std::byte> bytes) override;
  void round_ended() override;
  void writable() override;
  bool writes_on() const override { return ending_ && !ending_->end.output_ended(); }
  void ended(Error cause) override;
  bool on_frame(Frame& frame) override;
  Buffer attachment_for(const FrameHeader& header) override { return make_attachment(header); }
  bool wants_attachment_elsewhere(const FrameHeader& header) override { return has_place_for(header); }
  bool lift_limits(const FrameHeader& header) override { return may_lift_limits(header); }
  template <class Read>
  void guard(Read read);
  void check(const Result<void>& read);
  void flush_soon();
  void write_out();
  void wake_starved();
  void on_settings(const FrameHeader& header);
  void ending_on(GracefulClose::Next next);
  void lose_frame();
  void report_frame_loss();
  bool unpack(Frame& frame, Bytes& into);

  // Queued data is sent before the round ends once it reaches this size: the queue stays within the memory
  // that it keeps, and the peer can begin meanwhile. This is far more than what makes a write worthwhile.
  static constexpr std::size_t write_early_bytes = large_piece_bytes;
  static constexpr std::size_t keep_unpacked_bytes = 64 << 10;

  asio::io_context& io_;
  TransportPtr transport_;
  FrameLimits frame_limits_;
  FrameReader reader_;
  CompressionOptions compression_;
  bool announced_ = false;  // what this end takes
  std::optional<Hello> peer_hello_;
  Bytes unpacked_;
  OutQueue out_;
  OpenFrame open_{out_};
  LinkStats stats_;
  std::vector<WaitsForRoom*> starved_;
  std::size_t stream_bytes_ = 0;  // in the inboxes of streams that have not ended
  bool closed_ = false;
  bool lost_a_frame_ = false;
  ReservedBlock frame_loss_report_;
  std::uint64_t oversize_ = 0;  // of the frame whose body turned out to be, when it was decompressed
  EndLimits end_limits_;
  struct Ending {
    GracefulClose end;
    asio::steady_timer timer;
  };
  std::unique_ptr<Ending> ending_;  // closed_, but the transport is not yet
  bool in_round_ = false;
  bool flush_posted_ = false;
  bool blocked_ = false;   // the transport took less than it was offered
  bool progress_ = false;  // the queue got shorter since on_progress() ran
};

}  // namespace weir::rpc
