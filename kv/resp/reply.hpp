// Writes RESP2 or RESP3 replies into a client's queue. Each client has one; HELLO changes the protocol.
//
// Replies can be muted; pushes are sent regardless.
//
// What RESP2 lacks is written as Redis does: maps as flat arrays, sets and pushes as arrays, doubles and big
// numbers as bulk strings, booleans as 0 and 1. Threading: the server's one thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "kv/resp/reply_queue.hpp"
#include "kv/text/bytes.hpp"

namespace weir::kv {

enum class Protocol : std::uint8_t { resp2 = 2, resp3 = 3 };

class Reply {
 public:
  // Values of this size or more are not copied into the queue.
  static constexpr std::size_t by_reference_size = 64 * 1024;

  explicit Reply(ReplyQueue& queue) : queue_(queue), target_(&queue) {}
  Reply(const Reply&) = delete;
  Reply& operator=(const Reply&) = delete;

  Protocol protocol = Protocol::resp2;
  std::uint64_t errors = 0;  // replies that began with '-'
  std::string last_code;     // first word of the last one: "WRONGTYPE"

  bool resp3() const { return protocol == Protocol::resp3; }

  // Discards whatever is written from now on. Call drop_lost() now and then to free it.
  void mute() {
    if (lost_ == nullptr) lost_ = std::make_unique<ReplyQueue>(queue_.pool());
    target_ = lost_.get();
  }
  void unmute() {
    target_ = &queue_;
    lost_.reset();
  }
  bool muted() const { return target_ != &queue_; }
  void drop_lost() {
    if (lost_ != nullptr) lost_->clear();
  }
  // While one exists, output is sent even if replies are muted.
  class Pushing {
   public:
    explicit Pushing(Reply& reply) : reply_(reply), target_(std::exchange(reply.target_, &reply.queue_)) {}
    ~Pushing() { reply_.target_ = target_; }
    Pushing(const Pushing&) = delete;
    Pushing& operator=(const Pushing&) = delete;

   private:
    Reply& reply_;
    ReplyQueue* target_;
  };

  // While one exists, output goes to another queue in another protocol: for commands that a script calls.
  class Diverting {
   public:
    Diverting(Reply& reply, ReplyQueue& to, Protocol protocol)
        : reply_(reply),
          target_(std::exchange(reply.target_, &to)),
          protocol_(std::exchange(reply.protocol, protocol)) {}
    ~Diverting() {
      reply_.target_ = target_;
      reply_.protocol = protocol_;
    }
    Diverting(const Diverting&) = delete;
    Diverting& operator=(const Diverting&) = delete;

   private:
    Reply& reply_;
    ReplyQueue* target_;
    Protocol protocol_;
  };

  void raw(std::string_view bytes) { target_->append(bytes); }
  void simple(std::string_view text);
  void ok() { raw("+OK\r\n"); }
  // `text` begins with its code: "ERR no such key". CR and LF become spaces, because an error is one line.
  void error(std::string_view text);
  void integer(std::int64_t value) { number(':', value); }
  void bulk(std::string_view bytes);
  void bulk(const Bytes& bytes);  // large values go by reference
  void bulk_int(std::int64_t value);
  void null() { raw(resp3() ? std::string_view("_\r\n") : std::string_view("$-1\r\n")); }
  void null_array() { raw(resp3() ? std::string_view("_\r\n") : std::string_view("*-1\r\n")); }
  void array(std::size_t count) { number('*', static_cast<std::int64_t>(count)); }
  void map(std::size_t pairs) { resp3() ? number('%', as_count(pairs)) : number('*', as_count(pairs * 2)); }
  void set(std::size_t count) { number(resp3() ? '~' : '*', as_count(count)); }
  void push(std::size_t count) { number(resp3() ? '>' : '*', as_count(count)); }
  void real(double value);
  void boolean(bool value);
  void verbatim(std::string_view format, std::string_view text);  // format: three letters
  void bulks(std::initializer_list<std::string_view> texts);      // an array of bulk strings

 private:
  static std::int64_t as_count(std::size_t n) { return static_cast<std::int64_t>(n); }
  void number(char kind, std::int64_t value);

  ReplyQueue& queue_;
  ReplyQueue* target_;                // queue_, or lost_
  std::unique_ptr<ReplyQueue> lost_;  // only while muted
};

}  // namespace weir::kv
