#include "sockets/far_messages.hpp"

#include <algorithm>
#include <bit>

namespace weir::sockets {
namespace {

constexpr std::uint8_t magic_0 = 'W', magic_1 = 'S', version = 1;
constexpr std::uint64_t return_magic = 0x5745'4952'4241'434b;  // "WEIRBACK"
constexpr std::uint8_t hello_kind = 1, words_kind = 2;
constexpr std::uint8_t asks_flag = 1, receives_flag = 2, done_flag = 4, gone_flag = 8, all_flags = 15;

class FarWriter {
 public:
  explicit FarWriter(std::span<std::byte> to) : to_(to) {}
  template <class T>
  void put(T value) {
    for (std::size_t i = sizeof(T); i-- > 0;) to_[at_++] = static_cast<std::byte>(value >> (8 * i));
  }
  void put(const std::array<std::uint8_t, 16>& address) {
    for (const auto byte : address) to_[at_++] = static_cast<std::byte>(byte);
  }

 private:
  std::span<std::byte> to_;
  std::size_t at_ = 0;
};

// The caller must have checked that enough bytes are left.
class FarReader {
 public:
  explicit FarReader(std::span<const std::byte> from) : from_(from) {}
  template <class T>
  T take() {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i)
      value = value << 8 | std::to_integer<std::uint8_t>(from_[at_++]);
    return static_cast<T>(value);
  }
  std::array<std::uint8_t, 16> take_address() {
    std::array<std::uint8_t, 16> address;
    for (auto& byte : address) byte = std::to_integer<std::uint8_t>(from_[at_++]);
    return address;
  }

 private:
  std::span<const std::byte> from_;
  std::size_t at_ = 0;
};

std::uint8_t exponent_of(std::uint32_t ring_bytes) {
  return static_cast<std::uint8_t>(std::countr_zero(ring_bytes));
}

std::optional<std::uint32_t> ring_bytes_of(std::uint8_t exponent) {
  if (exponent < exponent_of(least_ring_bytes) || exponent > exponent_of(most_ring_bytes))
    return std::nullopt;
  return std::uint32_t{1} << exponent;
}

bool begins_ours(FarReader& from) {
  const auto first = from.take<std::uint8_t>(), second = from.take<std::uint8_t>();
  return first == magic_0 && second == magic_1 && from.take<std::uint8_t>() == version;
}

}  // namespace

std::array<std::byte, FarRequest::bytes> bytes_of(const FarRequest& request) {
  std::array<std::byte, FarRequest::bytes> all{};
  FarWriter to(all);
  to.put(magic_0);
  to.put(magic_1);
  to.put(version);
  to.put(exponent_of(request.ring_bytes));
  for (const auto& end : {request.asker, request.asked}) {
    to.put(end.address);
    to.put(end.port);
  }
  to.put(request.sent_16);
  to.put(request.received_16);
  return all;
}

std::optional<FarRequest> read_request(std::span<const std::byte> bytes) {
  if (bytes.size() < FarRequest::bytes) return std::nullopt;
  FarReader from(bytes);
  if (!begins_ours(from)) return std::nullopt;
  FarRequest request;
  const auto ring_bytes = ring_bytes_of(from.take<std::uint8_t>());
  if (!ring_bytes) return std::nullopt;
  request.ring_bytes = *ring_bytes;
  for (auto* end : {&request.asker, &request.asked}) {
    end->address = from.take_address();
    end->port = from.take<std::uint16_t>();
  }
  request.sent_16 = from.take<std::uint64_t>();
  request.received_16 = from.take<std::uint64_t>();
  return request;
}

std::array<std::byte, FarRefusal::bytes> bytes_of(const FarRefusal& refusal) {
  std::array<std::byte, FarRefusal::bytes> all{};
  FarWriter to(all);
  to.put(magic_0);
  to.put(magic_1);
  to.put(version);
  to.put(std::uint8_t{0});
  to.put(refusal.ask_port);
  return all;
}

std::optional<FarRefusal> read_refusal(std::span<const std::byte> bytes) {
  if (bytes.size() < FarRefusal::bytes) return std::nullopt;
  FarReader from(bytes);
  if (!begins_ours(from)) return std::nullopt;
  from.take<std::uint8_t>();
  return FarRefusal{.ask_port = from.take<std::uint16_t>()};
}

FarBytes bytes_of(const FarHello& hello) {
  FarBytes all{};
  FarWriter to(all);
  to.put(hello_kind);
  to.put(exponent_of(hello.ring_bytes));
  to.put(std::uint16_t{0});
  to.put(hello.rkey);
  to.put(hello.ring_address);
  for (const auto& one : {hello.conversation.sent, hello.conversation.received}) {
    to.put(one.after_16);
    to.put(one.after_64);
  }
  return all;
}

std::optional<FarHello> read_hello(std::span<const std::byte> bytes) {
  if (bytes.size() != far_message_bytes) return std::nullopt;
  FarReader from(bytes);
  if (from.take<std::uint8_t>() != hello_kind) return std::nullopt;
  FarHello hello;
  const auto ring_bytes = ring_bytes_of(from.take<std::uint8_t>());
  if (!ring_bytes) return std::nullopt;
  hello.ring_bytes = *ring_bytes;
  from.take<std::uint16_t>();
  hello.rkey = from.take<std::uint32_t>();
  hello.ring_address = from.take<std::uint64_t>();
  for (auto* one : {&hello.conversation.sent, &hello.conversation.received}) {
    one->after_16 = from.take<std::uint64_t>();
    one->after_64 = from.take<std::uint64_t>();
  }
  return hello;
}

FarBytes bytes_of(const FarWords& words) {
  FarBytes all{};
  FarWriter to(all);
  to.put(words_kind);
  to.put(static_cast<std::uint8_t>((words.asks ? asks_flag : 0) | (words.receives ? receives_flag : 0) |
                                   (words.done ? done_flag : 0) | (words.gone ? gone_flag : 0)));
  to.put(static_cast<std::uint8_t>(words.want));
  to.put(std::uint8_t{0});
  to.put(std::uint32_t{0});
  for (const auto word : {words.number, words.heard, words.produced, words.changes, words.ring_from,
                          words.tcp_from, words.consumed, words.changes_seen})
    to.put(word);
  return all;
}

std::optional<FarWords> read_words(std::span<const std::byte> bytes) {
  if (bytes.size() != far_message_bytes) return std::nullopt;
  FarReader from(bytes);
  if (from.take<std::uint8_t>() != words_kind) return std::nullopt;
  const auto flags = from.take<std::uint8_t>(), want = from.take<std::uint8_t>();
  if (flags > all_flags || want > static_cast<std::uint8_t>(Want::unread_back)) return std::nullopt;
  from.take<std::uint8_t>();
  from.take<std::uint32_t>();
  FarWords words{.asks = (flags & asks_flag) != 0,
                 .receives = (flags & receives_flag) != 0,
                 .done = (flags & done_flag) != 0,
                 .gone = (flags & gone_flag) != 0,
                 .want = static_cast<Want>(want)};
  for (auto* word : {&words.number, &words.heard, &words.produced, &words.changes, &words.ring_from,
                     &words.tcp_from, &words.consumed, &words.changes_seen})
    *word = from.take<std::uint64_t>();
  return words;
}

std::array<std::byte, FarReturn::bytes> bytes_of(const FarReturn& message) {
  std::array<std::byte, FarReturn::bytes> all{};
  FarWriter to(all);
  to.put(return_magic);
  to.put(message.arrived);
  for (const auto& one : {message.conversation.sent, message.conversation.received}) {
    to.put(one.after_16);
    to.put(one.after_64);
  }
  return all;
}

std::optional<FarReturn> read_return(std::span<const std::byte> bytes) {
  if (bytes.size() != FarReturn::bytes) return std::nullopt;
  FarReader from(bytes);
  if (from.take<std::uint64_t>() != return_magic) return std::nullopt;
  FarReturn message;
  message.arrived = from.take<std::uint64_t>();
  for (auto* one : {&message.conversation.sent, &message.conversation.received}) {
    one->after_16 = from.take<std::uint64_t>();
    one->after_64 = from.take<std::uint64_t>();
  }
  return message;
}

}  // namespace weir::sockets
