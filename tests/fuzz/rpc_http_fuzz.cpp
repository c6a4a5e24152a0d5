// What a client sends to a server that answers HTTP. The server is this file: every second call fails. The
// same bytes give the same frames and responses however they are cut, as long as no line outgrows the head's
// bound.
#include <cstdlib>
#include <string>

#include "rpc/http/conversation.hpp"

namespace {

using namespace weir::rpc;

class Session final : private FrameSink {
 public:
  Session() {
    auto terms = std::make_shared<http::Terms>();
    terms->options.max_body_bytes = 4096;
    terms->options.origins = {"https://shop.example"};
    terms->registry = &registry_;
    terms->sends_credentials = true;
    conversation_ = std::make_unique<http::Conversation>(terms, true, now_);
  }

  void says(std::string_view text) {
    conversation_->received(text, now_);
    for (Bytes frames; go_on(frames) || take_responses();) frames.clear();
    if (conversation_->held_bytes() > (1u << 20)) std::abort();
  }
  const std::string& frames() const { return frames_; }
  const std::string& responses() const { return responses_; }

 private:
  bool go_on(Bytes& frames) {
    if (!conversation_->next(frames, now_)) return false;
    frames_.append(reinterpret_cast<const char*>(frames.data()), frames.size());
    if (!reader_.feed(frames.span(), *this)) std::abort();
    return true;
  }
  bool take_responses() {
    const std::string_view unsent = conversation_->unsent();
    if (unsent.empty()) return false;
    if (!unsent.starts_with("HTTP/1.1 ")) std::abort();
    constexpr std::string_view goes_on("HTTP/1.1 100 Continue\r\n\r\n");  // depends on how the body is cut
    responses_.append(unsent.starts_with(goes_on) ? unsent.substr(goes_on.size()) : unsent);
    conversation_->sent(unsent.size(), now_);
    return true;
  }
  bool on_frame(Frame& frame) override {
    if (frame.header.kind != FrameKind::request) return true;
    FrameHeader header;
    header.kind = FrameKind::reply;
    header.id = frame.header.id;
    header.status = header.id % 2 == 0 ? static_cast<std::uint16_t>(Errc::failed) : 0;
    const std::string_view body = header.status != 0 ? "\xff no" : "\x90";
    header.body_bytes = static_cast<std::uint32_t>(body.size());
    Bytes reply;
    encode(header, reply.grow(frame_header_bytes));
    reply.append(as_bytes(body));
    conversation_->replied(reply.span(), now_);
    return true;
  }

  Registry registry_;
  const http::Conversation::TimePoint now_{};
  std::unique_ptr<http::Conversation> conversation_;
  FrameReader reader_{FrameLimits()};
  std::string frames_, responses_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), std::min<std::size_t>(size, 16 << 10));
  Session whole;
  whole.says(input);
  Session cut;
  for (std::size_t at = 0, piece = 1; at < input.size(); at += piece, piece = piece % 7 + 1)
    cut.says(input.substr(at, piece));
  if (whole.frames() != cut.frames() || whole.responses() != cut.responses()) std::abort();
  return 0;
}
