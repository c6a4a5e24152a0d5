// What a server may send to an rpc client with calls and streams under way, executed. Each call ends once and
// no later than its connection. Memory that was lent to a call is not touched after that. The client sends
// only whole frames, within the credit that it was given.
//
// The input is lines. "< reply 0 hello" is a frame from the server (rpc_frame_lines.hpp); 0 is the first
// call, and 2.0 is the second call in its place. Other lines are actions of the program: see act(). "@250"
// lets 250 ms pass, "eof" ends the connection, "room 100" lets the transport take that many bytes before it
// is full, and "quit" ends everything at once. Between two lines everything that can run runs, except before
// a line that begins with "+". "turn 2" runs at most two handlers. "options auth gate lz4 zstd" in the first
// line chooses how the client is created.
#include <array>
#include <asio/bind_cancellation_slot.hpp>
#include <asio/co_spawn.hpp>
#include <map>

#include "tests/fuzz/line_mutator.hpp"
#include "tests/fuzz/line_play.hpp"
#include "tests/fuzz/rpc_client_calls.hpp"
#include "tests/fuzz/rpc_frame_lines.hpp"
#include "tests/fuzz/rpc_held_transport.hpp"

namespace {

using namespace weir::rpc;
using namespace weir::fuzz;

constexpr std::size_t most_handlers = 400'000;   // that run for an input
constexpr std::size_t most_delivered = 1 << 20;  // by an input
constexpr std::size_t max_waiting = 64 << 10;    // before the client refuses calls
constexpr FrameLimits frame_limits{.body_bytes = 64 << 10, .attachment_bytes = 64 << 10};

// Refuses what says that it may run twice.
class Gate final : public ClientInterceptor {
 public:
  Result<void> before(OutgoingCall& call) override {
    if (call.options.idempotent) return fail(Errc::denied, "not twice");
    call.trace.emplace().trace_id[0] = 1;
    return {};
  }
};

class Play {
 public:
  explicit Play(const Words& options) {
    ConnectionLimits limits;
    limits.frame = frame_limits;
    limits.max_in_flight = 32;
    limits.max_waiting_bytes = max_waiting;
    limits.timeout = std::chrono::seconds(20);
    limits.stream_window_bytes = 96 << 10;
    const auto core = std::make_shared<ClientCore>(io_, transport_, limits);
    CompressionOptions compression;
    for (const std::string_view option : options) {
      if (option == "lz4") compression = {Compression::lz4, 64};
      if (option == "zstd") compression = {Compression::zstd, 64};
      if (option == "gate") core->intercept({std::make_shared<Gate>()});
    }
    core->use_compression(compression);
    core->start();
    if (compression.with != Compression::none) core->say_hello();
    if (std::ranges::find(options, "auth") != options.end())
      core->present([] { return std::string("alice"); });
    core_ = core;
    client_ = std::make_shared<Client>(core);
  }

  // What the program holds goes before its io_context; what runs there goes with it.
  ~Play() { let_go(); }

  // False: that was the last.
  bool line(std::string_view text) {
    const bool with_the_next = text.starts_with('+');
    if (with_the_next) text.remove_prefix(1);
    if (text.starts_with("turn")) return turn(number_of(text.substr(std::min<std::size_t>(5, text.size()))));
    pass_as_said(text);
    const Words words = words_of(text);
    if (words.empty()) return true;
    if (words[0] == "quit") return false;
    if (words[0] == "eof") transport_->end();
    if (words[0] == "room") transport_->room(words.size() > 1 ? number_of(words[1]) : SIZE_MAX);
    if (words[0] == "<")
      deliver(std::span(words).subspan(1));
    else if (calls_.size() < 200)
      act(words);
    if (!with_the_next) settle();
    return true;
  }

  // The connection goes: nothing may wait any more.
  void end() {
    transport_->end();
    settle();
    pass(std::chrono::seconds(60));
    settle();
    for (const CallPtr& call : calls_) {
      expect(call->ended || call->waiting);
      expect(!call->stream || call->stream->stream.ended());
    }
    let_go();
    settle();
    const auto core = core_.lock();
    expect(!core || core->in_flight() == 0);
  }

 private:
  void let_go() {
    for (const CallPtr& call : calls_) {
      call->waiting.reset();
      call->stream.reset();
    }
  }

  static std::uint64_t id_of(std::string_view word) {
    const std::size_t dot = word.find('.');
    const bool later = dot != std::string_view::npos;
    const std::uint64_t generation = later ? number_of(word.substr(0, dot)) : 1;
    return generation << 24 | number_of(later ? word.substr(dot + 1) : word);
  }

  void deliver(std::span<const std::string_view> words) {
    if (!words.empty() && words[0] == "bytes") {
      if (words.size() > 1) transport_->deliver(bytes_of_hex(words[1]));
      return transport_->end_round();
    }
    for (unsigned i = 0, times = 1; i < times; ++i) {
      const auto frame = frame_of(words, id_of, i);
      if (!frame || (delivered_ += frame->bytes.size()) > most_delivered) break;
      times = frame->times;
      transport_->ledger().delivered(frame->header);
      const std::string_view bytes = frame->bytes;
      const std::size_t first =
          std::min(frame->keep ? frame->attachment_at : frame->first_bytes, bytes.size());
      transport_->deliver(bytes.substr(0, first));
      if (first == bytes.size()) continue;
      if (!frame->keep) transport_->end_round();
      if (!frame->keep) settle();
      frame->keep ? transport_->deliver_kept(bytes.substr(first)) : transport_->deliver(bytes.substr(first));
    }
    transport_->end_round();
  }

  CallPtr spawn(asio::awaitable<void> work, CallPtr call = std::make_shared<Call>()) {
    asio::co_spawn(io_, std::move(work),
                   asio::bind_cancellation_slot(call->signal.slot(), [call](const std::exception_ptr&) {
                     expect(!std::exchange(call->ended, true));
                   }));
    return call;
  }
  // Of a call that is there already: what is done with its stream.
  void also(asio::awaitable<void> work) { calls_.push_back(spawn(std::move(work))); }

  void act(const Words& words) {
    if (words[0] == "close" && client_) return client_->close();
    if (words[0] == "drop" && words.size() == 1) return client_.reset();
    if (client_ && make(words)) return;
    if (words.size() < 2 || calls_.empty()) return;
    const CallPtr call = calls_[number_of(words[1]) % calls_.size()];
    if (words[0] == "cancel") call->signal.emit(asio::cancellation_type::terminal);
    if (words[0] == "await" && call->waiting) {
      auto waiting = std::move(*call->waiting);
      call->waiting.reset();
      spawn(finish_later(std::move(waiting), std::move(lent_[call])), call);
    }
    if (words[0] == "forget" && call->waiting) {
      call->waiting.reset();
      lent_.erase(call);
      call->ended = true;
    }
    if (call->stream) act_on_stream(call, words);
  }

  // New calls.
  bool make(const Words& words) {
    auto lent = std::make_shared<Lent>(words);
    const std::string text = words.size() > 1 ? std::string(words[1]) : std::string();
    if (words[0] == "echo") return keep(spawn(echo(client_, text, std::move(lent))));
    if (words[0] == "place") return keep(spawn(place(client_, std::move(lent))));
    if (words[0] == "nothing") return keep(spawn(nothing(client_, std::move(lent))));
    if (words[0] == "reflect") return keep(spawn(reflect(client_, std::move(lent))));
    if (words[0] == "chase") return keep(spawn(chase(client_, std::move(lent))));
    if (words[0] == "ping") return keep(spawn(ping(client_, lent->options.timeout)));
    if (words[0] == "start") {
      const auto call = std::make_shared<Call>();
      call->waiting = started(*client_, words, lent);
      lent_[call] = std::move(lent);
      return keep(call);
    }
    if (words[0] == "stream") {
      const auto call = std::make_shared<Call>();
      call->stream = std::make_shared<HeldStream>(lent, client_->stream<feed::shout>(lent->options, text));
      call->ended = true;  // its stream is another matter
      return keep(call);
    }
    return false;
  }
  bool keep(CallPtr call) {
    calls_.push_back(std::move(call));
    return true;
  }

  void act_on_stream(const CallPtr& call, const Words& words) {
    const StreamPtr held = call->stream;
    if (words[0] == "read" && !std::exchange(call->reading, true))
      also(read(call, held, words.size() > 2 ? number_of(words[2]) : 1));
    if (words[0] == "write" && !std::exchange(call->writing, true)) {
      const std::string text = words.size() > 2 && words[2][0] == '*'
                                   ? std::string(number_of(words[2].substr(1)) % 60'000, 'w')
                                   : std::string(words.back());
      also(write(call, held, text));
    }
    if (words[0] == "ends") held->stream.close_write();
    if (words[0] == "finish" && !std::exchange(call->finishing, true)) also(finish(call, held));
    if (words[0] == "stop") held->stream.cancel();
    if (words[0] == "drop") call->stream.reset();
  }

  // What the program may have waiting, a frame beyond that, and pongs.
  static constexpr std::size_t most_queued =
      max_waiting + frame_limits.body_bytes + frame_limits.attachment_bytes + 5000 * frame_header_bytes;

  // Some of the handlers that are ready.
  bool turn(std::uint64_t handlers) {
    if (io_.stopped()) io_.restart();
    for (; handlers > 0 && io_.poll_one() > 0; --handlers) expect(++handlers_ < most_handlers);
    return true;
  }

  void settle() {
    if (io_.stopped()) io_.restart();
    while (io_.poll_one() > 0) expect(++handlers_ < most_handlers);
    if (const auto core = core_.lock()) expect(core->waiting_bytes() < most_queued);
    heap_.look();
  }

  const HeapWatch heap_;
  std::size_t handlers_ = 0, delivered_ = 0;
  const std::shared_ptr<HeldTransport> transport_ = std::make_shared<HeldTransport>();
  std::vector<CallPtr> calls_;
  std::map<CallPtr, std::shared_ptr<Lent>> lent_;  // to those that wait to be awaited
  asio::io_context io_{1};
  std::weak_ptr<ClientCore> core_;
  std::shared_ptr<Client> client_;
};

constexpr std::string_view lines[] = {"echo hello",
                                      "+echo hello",
                                      "+< reply 0 hello",
                                      "+eof",
                                      "+await 0",
                                      "+stream !",
                                      "+close",
                                      "echo hello :t=3000",
                                      "echo *9 :a=50",
                                      "place",
                                      "nothing :a=40000",
                                      "reflect :take",
                                      "reflect :into=100 :take",
                                      "reflect :a=60000 :into=60000 :take :t=2000",
                                      "chase",
                                      "chase :t=2000",
                                      "ping :t=1000",
                                      "start hello",
                                      "start hello :a=100 :into=50",
                                      "await 0",
                                      "forget 0",
                                      "stream !",
                                      "stream ! :t=2000",
                                      "read 0 1",
                                      "read 0 100",
                                      "write 0 text",
                                      "write 0 *40000",
                                      "ends 0",
                                      "finish 0",
                                      "stop 0",
                                      "drop 0",
                                      "cancel 0",
                                      "close",
                                      "drop",
                                      "eof",
                                      "quit",
                                      "+",
                                      "turn 1",
                                      "turn 2",
                                      "room 0",
                                      "room 50",
                                      "room",
                                      "@1",
                                      "@30000",
                                      "< reply 0 hello",
                                      "< reply 0",
                                      "< reply 0 5 :a=100",
                                      "< reply 0 5 :a=100 :keep",
                                      "< reply 0 5 :a=50000 :split=200",
                                      "< reply 0 5 :a=100 :split=90",
                                      "< reply 0 [ 1 [ [ a 2 ] ] nil nil { b 3 } 1 ]",
                                      "< reply 0 *3000 :z=1",
                                      "< fail 0 12 who",
                                      "< fail 0 4 late",
                                      "< fail 0.0 3 why",
                                      "< item 0 text",
                                      "< item 0 *3000 :x=30",
                                      "< item 0 *3000 :z=2",
                                      "< credit 0 100000",
                                      "< goodbye 0",
                                      "< ping 1",
                                      "< ping 1 :x=900",
                                      "< pong 0",
                                      "< settings 0 6",
                                      "< settings 7 6",
                                      "< reply 0 hello :M",
                                      "< fail 0 8 $93a3776879a3542e41c0c0 :f=64",
                                      "< cancel 0",
                                      "< call 0 shop.echo x :a=10",
                                      "< bytes 5772010200",
                                      "options auth",
                                      "options gate",
                                      "options lz4",
                                      "options zstd auth"};
constexpr std::string_view words[] = {
    "0",      "1",      "2",         "3",       "2.0",     "2.1",      "3.0",       "<",           "reply",
    "item",   "credit", "fail",      ":a=100",  ":a=0",    ":into=0",  ":into=100", ":into=60000", ":take",
    ":twice", ":t=1",   ":t=3000",   ":z=1",    ":z=2",    ":f=8",     ":c=1",      ":k=1",        ":k=7",
    ":l=1",   ":h=2.2", ":h=31.255", ":cut=50", ":cut=39", ":split=1", ":split=41", ":split=50",   ":x=3",
    ":keep",  "[",      "nil",       "-1",      "*100",    "*40000",   "$c1",       "$dd00000009"};

}  // namespace

const Grammar weir::fuzz::grammar{lines, words};

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  play_lines<Play>(data, size);
  expect(Lent::alive == 0);  // coroutines that never ended went with their io_context
  return 0;
}
