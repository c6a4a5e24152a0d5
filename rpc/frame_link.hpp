// Frames over a transport, for either end: what arrives is cut into frames, what is to be sent is collected
// and goes out once a round, or once it is much: many small calls share a system call.
//
// A frame is encoded in place: begin_frame() leaves room for the header at the end of the queue, the body is
// appended to encoded(), end_frame() writes the header. Nothing else may be encoded between the two.
//
// Ownership: shared; derived classes keep themselves alive through their owners, and every callback holds a
// reference while it runs. Threading: the io_context's thread.
#pragma once

#include <asio/io_context.hpp>
#include <memory>
#include <vector>

#include "rpc/compression.hpp"
#include "rpc/frame.hpp"
#include "rpc/out_queue.hpp"
#include "rpc/transport.hpp"

namespace weir::rpc {

class StreamChannel;

struct LinkStats {
  std::uint64_t frames_received = 0;
  std::uint64_t frames_sent = 0;
  std::uint64_t rounds = 0;
  std::uint64_t writes = 0;  // times that something was given to the transport

  // Of bodies: how many were compressed, from how much to how much.
  struct Compressed {
    std::uint64_t bodies = 0;
    std::uint64_t bytes_before = 0;
    std::uint64_t bytes_after = 0;
  };
  Compressed compressed_sent;
  Compressed compressed_received;
};

class FrameLink : public std::enable_shared_from_this<FrameLink>, private TransportUser, private FrameSink {
 public:
  FrameLink(asio::io_context& io, TransportPtr transport, const FrameLimits& limits)
      : io_(io), transport_(std::move(transport)), frame_limits_(limits), reader_(limits) {}
  virtual ~FrameLink();
  FrameLink(const FrameLink&) = delete;
  FrameLink& operator=(const FrameLink&) = delete;

  void start() { transport_->start(*this); }
  // What this end takes, and sends where the other end takes it. Before start(). A client then tells the
  // server, which answers.
  void use_compression(const CompressionOptions& options) { compression_ = options; }
  void announce_compression();
  bool is_open() const { return !closed_; }
  asio::io_context& io() { return io_; }
  Transport& transport() { return *transport_; }
  const Transport& transport() const { return *transport_; }
  const LinkStats& stats() const { return stats_; }
  std::size_t waiting_bytes() const { return out_.bytes(); }

  // What was queued is lost. on_end() does not run.
  void close();

 protected:
  // Bodies are appended here, between begin_frame() and end_frame().
  Bytes& encoded() { return out_.encoded(); }
  // A frame with a body of this or more is a piece of its own for the transport.
  static constexpr std::size_t large_body_bytes = 64 << 10;
  std::size_t begin_frame();  // where the frame begins; pass it on
  std::size_t body_bytes(std::size_t begin) { return encoded().size() - begin - frame_header_bytes; }
  void end_frame(std::size_t begin, FrameHeader header, Buffer attachment = {});
  void drop_frame(std::size_t begin) { encoded().truncate(begin); }
  void send(const FrameHeader& header);  // without a body
  // The memory of the attachment of frame `id`, going out or coming in, may not be touched any more.
  void let_go_outgoing(std::uint64_t id) { out_.own(id); }
  void let_go_incoming() { reader_.divert_attachment(); }
  void flush();
  void read_on(bool on) { transport_->read_on(on); }

  // A frame came. False: the link was closed.
  virtual bool on_arrival(Frame& frame) = 0;
  // Nothing more will come; the link is closed.
  virtual void on_end(const Error& cause) = 0;
  // What arrives cannot be understood. The link ends after what this sends.
  virtual void on_nonsense(const Error&) {}
  virtual void on_progress() {}  // the queue got shorter
  virtual void on_round_end() {}

  // Streams that write to this link hear when the queue got shorter, once.
  friend class StreamChannel;
  void wake_when_emptier(StreamChannel& stream) { starved_.push_back(&stream); }
  void forget(StreamChannel& stream) { std::erase(starved_, &stream); }
  virtual Buffer make_attachment(const FrameHeader& header) { return Buffer(header.attachment_bytes); }
  virtual bool has_place_for(const FrameHeader&) { return false; }

 private:
  std::span<std::byte> wanted() override { return reader_.wanted(*this); }
  bool keep(Buffer& bytes) override;
  void filled(std::size_t bytes) override;
  void received(std::span<const std::byte> bytes) override;
  void round_ended() override;
  void writable() override;
  void ended(Error cause) override;
  bool on_frame(Frame& frame) override;
  Buffer attachment_for(const FrameHeader& header) override { return make_attachment(header); }
  bool wants_attachment_elsewhere(const FrameHeader& header) override { return has_place_for(header); }
  void check(const Result<void>& read);
  void flush_soon();
  void write_out();
  void wake_starved();
  void on_settings(const FrameHeader& header);
  void pack(std::size_t begin, FrameHeader& header);
  bool unpack(Frame& frame);

  // What waits goes out before the round ends once it is this much: the queue stays within the memory that it
  // keeps, and the peer begins meanwhile. Far more than a write is worth.
  static constexpr std::size_t write_early_bytes = 64 << 10;
  static constexpr std::size_t keep_unpacked_bytes = 64 << 10;
  static constexpr std::size_t never = SIZE_MAX;

  asio::io_context& io_;
  TransportPtr transport_;
  const FrameLimits frame_limits_;
  FrameReader reader_;
  CompressionOptions compression_;
  bool announced_ = false;         // what this end takes
  std::size_t pack_from_ = never;  // bytes of a body from which on it is compressed
  Bytes packed_, unpacked_;
  OutQueue out_;
  LinkStats stats_;
  std::vector<StreamChannel*> starved_;
  bool closed_ = false;
  bool in_round_ = false;
  bool flush_posted_ = false;
  bool blocked_ = false;   // the transport took less than it was offered
  bool progress_ = false;  // the queue got shorter since on_progress() ran
};

}  // namespace weir::rpc
