// What one end of an rpc connection may send, given what both ends have sent: whole frames, one reply for
// each request, and items within their credit.
#pragma once

#include <map>
#include <utility>

#include "rpc/wire/frame.hpp"
#include "tests/fuzz/line_play.hpp"

namespace weir::fuzz {

using rpc::Frame;
using rpc::FrameFlag;
using rpc::FrameHeader;
using rpc::FrameKind;
using rpc::FrameReader;
inline constexpr rpc::FrameLimits all_frames{.body_bytes = 1 << 24, .attachment_bytes = 1 << 24};

// What a client said, and what it may therefore hear.
class ServerLedger final : public rpc::FrameSink {
 public:
  void sent(std::string_view bytes) {
    sends_ = true;
    nonsense_ |= !out_.feed(rpc::as_bytes(bytes), *this).has_value();
  }
  void came(std::span<const std::byte> bytes) {
    sends_ = false;
    expect(in_.feed(bytes, *this).has_value());
  }

 private:
  bool on_frame(Frame& frame) override {
    sends_ ? ask(frame.header) : answer(frame.header);
    return true;
  }
  void ask(const FrameHeader& header) {
    if (header.kind == FrameKind::request) {
      ++requests_[header.id];
      ++uses_[header.id];
      credit_[header.id] += rpc::stream_start_credit;
    }
    if (header.kind == FrameKind::ping) ++pings_[header.id];
    if (header.kind == FrameKind::credit) credit_[header.id] += header.credit;
  }
  void answer(const FrameHeader& header) {
    expect(!over_);
    switch (header.kind) {
      case FrameKind::reply:
        over_ = header.id == 0 && requests_[0] == 0;
        expect(over_ || requests_[header.id]-- > 0);
        break;
      case FrameKind::item:
        expect(credit_[header.id] > 0 || uses_[header.id] > 1);
        credit_[header.id] -= static_cast<std::int64_t>(rpc::frame_header_bytes + header.body_bytes);
        break;
      case FrameKind::pong:
        expect(pings_[header.id]-- > 0);
        break;
      default:
        expect(header.kind == FrameKind::credit || header.kind == FrameKind::goodbye ||
               header.kind == FrameKind::settings);
    }
  }

  FrameReader in_{all_frames}, out_{all_frames};
  bool sends_ = false, nonsense_ = false;
  bool over_ = false;  // the server said why it ends the connection
  std::map<std::uint64_t, int> requests_, uses_, pings_;
  std::map<std::uint64_t, std::int64_t> credit_;
};

// What the client sent, and what it was allowed.
class ClientLedger final : public rpc::FrameSink {
 public:
  void sent(std::span<const std::byte> bytes) { expect(out_.feed(bytes, *this).has_value()); }
  void delivered(const FrameHeader& header) {
    if (header.kind == FrameKind::credit) calls_[header.id].credit += header.credit;
  }

 private:
  struct Call {
    std::int64_t credit = rpc::stream_start_credit;
    bool begun = false, streaming = false, ended = false;
  };
  bool on_frame(Frame& frame) override {
    const FrameHeader& header = frame.header;
    Call& call = calls_[header.id];
    switch (header.kind) {
      case FrameKind::request:
        expect(!std::exchange(call.begun, true));
        call.streaming = (header.flags & FrameFlag::streaming) != 0;
        break;
      case FrameKind::item:
        expect(call.begun && call.streaming && !call.ended && call.credit > 0);
        call.credit -= static_cast<std::int64_t>(rpc::frame_header_bytes + header.body_bytes);
        break;
      case FrameKind::end:
        expect(call.begun && call.streaming && !std::exchange(call.ended, true));
        break;
      case FrameKind::credit:
        expect(call.begun && call.streaming);
        break;
      default:
        expect(header.kind == FrameKind::cancel || header.kind == FrameKind::ping ||
               header.kind == FrameKind::pong || header.kind == FrameKind::credentials ||
               header.kind == FrameKind::settings);
    }
    return true;
  }

  FrameReader out_{all_frames};
  std::map<std::uint64_t, Call> calls_;
};

}  // namespace weir::fuzz
