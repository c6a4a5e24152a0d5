// The place of each member is stated once for both directions: fields() walks a message with a visitor that
// either writes bits into the 232 bytes behind the MAD's header or reads them. Offsets are those of the
// specification (tables 99 to 122), in bits.
#include "wire/mad.hpp"

#include <algorithm>
#include <concepts>
#include <type_traits>

#include "wire/byte_order.hpp"

namespace weir::wire {
namespace {

constexpr std::size_t header_bytes = 24, body_bytes = mad_bytes - header_bytes;
constexpr std::uint8_t base_version = 1, class_cm = 7, class_version = 2, method_send = 3;

using Body = std::span<std::byte, body_bytes>;
using ConstBody = std::span<const std::byte, body_bytes>;

class BitWriter {
 public:
  explicit BitWriter(Body body) : body_(body) {}
  template <std::integral T>
  void operator()(std::size_t byte, unsigned bit, unsigned bits, const T& value) {
    const auto number = static_cast<std::uint64_t>(value);
    for (unsigned i = 0; i < bits; ++i) {
      const std::size_t at = byte * 8 + bit + bits - 1 - i;
      if (number >> i & 1) body_[at / 8] |= std::byte{0x80} >> (at % 8);
    }
  }
  template <class T, std::size_t n>
  void operator()(std::size_t byte, const std::array<T, n>& bytes) {
    std::ranges::copy(std::as_bytes(std::span(bytes)), body_.subspan(byte).begin());
  }

 private:
  Body body_;
};

class BitReader {
 public:
  explicit BitReader(ConstBody body) : body_(body) {}
  template <std::integral T>
  void operator()(std::size_t byte, unsigned bit, unsigned bits, T& value) {
    std::uint64_t number = 0;
    for (std::size_t at = byte * 8 + bit; at < byte * 8 + bit + bits; ++at)
      number = number << 1 | (std::to_integer<unsigned>(body_[at / 8]) >> (7 - at % 8) & 1u);
    value = static_cast<T>(number);
  }
  template <class T, std::size_t n>
  void operator()(std::size_t byte, std::array<T, n>& bytes) {
    std::ranges::copy(body_.subspan(byte).template first<n>(),
                      std::as_writable_bytes(std::span(bytes)).begin());
  }

 private:
  ConstBody body_;
};

template <class M, class Message>
concept Is = std::same_as<std::remove_const_t<M>, Message>;

template <class Visit, Is<CmReq> M>
void fields(Visit& at, M& m) {
  at(0, 0, 32, m.local_id);
  at(8, 0, 64, m.service_id);
  at(16, 0, 64, m.ca_guid);
  at(28, 0, 32, m.qkey);
  at(32, 0, 24, m.qpn);
  at(35, 0, 8, m.responder_resources);
  at(39, 0, 8, m.initiator_depth);
  at(43, 0, 5, m.remote_cm_timeout);
  at(43, 5, 2, m.transport);
  at(43, 7, 1, m.flow_control);
  at(44, 0, 24, m.starting_psn);
  at(47, 0, 5, m.local_cm_timeout);
  at(47, 5, 3, m.retry_count);
  at(48, 0, 16, m.pkey);
  at(50, 0, 4, m.path_mtu);
  at(50, 4, 1, m.rdc_exists);
  at(50, 5, 3, m.rnr_retry_count);
  at(51, 0, 4, m.max_cm_retries);
  at(51, 4, 1, m.srq);
  at(51, 5, 3, m.extended_transport);
  at(52, 0, 16, m.local_lid);
  at(54, 0, 16, m.remote_lid);
  at(56, m.local_gid);
  at(72, m.remote_gid);
  at(88, 0, 20, m.flow_label);
  at(91, 2, 6, m.packet_rate);
  at(92, 0, 8, m.traffic_class);
  at(93, 0, 8, m.hop_limit);
  at(94, 0, 4, m.sl);
  at(94, 4, 1, m.subnet_local);
  at(95, 0, 5, m.ack_timeout);
  at(140, m.private_data);
}

template <class Visit, Is<CmMra> M>
void fields(Visit& at, M& m) {
  at(0, 0, 32, m.local_id);
  at(4, 0, 32, m.remote_id);
  at(8, 0, 2, m.message);
  at(9, 0, 5, m.service_timeout);
  at(10, m.private_data);
}

template <class Visit, Is<CmRej> M>
void fields(Visit& at, M& m) {
  at(0, 0, 32, m.local_id);
  at(4, 0, 32, m.remote_id);
  at(8, 0, 2, m.message);
  at(9, 0, 7, m.info_length);
  at(10, 0, 16, m.reason);
  at(12, m.info);
  at(84, m.private_data);
}

template <class Visit, Is<CmRep> M>
void fields(Visit& at, M& m) {
  at(0, 0, 32, m.local_id);
  at(4, 0, 32, m.remote_id);
  at(8, 0, 32, m.qkey);
  at(12, 0, 24, m.qpn);
  at(16, 0, 24, m.eecn);
  at(20, 0, 24, m.starting_psn);
  at(24, 0, 8, m.responder_resources);
  at(25, 0, 8, m.initiator_depth);
  at(26, 0, 5, m.target_ack_delay);
  at(26, 5, 2, m.failover);
  at(26, 7, 1, m.flow_control);
  at(27, 0, 3, m.rnr_retry_count);
  at(27, 3, 1, m.srq);
  at(28, 0, 64, m.ca_guid);
  at(36, m.private_data);
}

template <class Visit, class M>
  requires(Is<M, CmRtu> || Is<M, CmDrep>)
void fields(Visit& at, M& m) {
  at(0, 0, 32, m.local_id);
  at(4, 0, 32, m.remote_id);
  at(8, m.private_data);
}

template <class Visit, Is<CmDreq> M>
void fields(Visit& at, M& m) {
  at(0, 0, 32, m.local_id);
  at(4, 0, 32, m.remote_id);
  at(8, 0, 24, m.remote_qpn);
  at(12, m.private_data);
}

template <class Visit, Is<CmSidrReq> M>
void fields(Visit& at, M& m) {
  at(0, 0, 32, m.request_id);
  at(4, 0, 16, m.pkey);
  at(8, 0, 64, m.service_id);
  at(16, m.private_data);
}

template <class Visit, Is<CmSidrRep> M>
void fields(Visit& at, M& m) {
  at(0, 0, 32, m.request_id);
  at(4, 0, 8, m.status);
  at(5, 0, 8, m.info_length);
  at(8, 0, 24, m.qpn);
  at(12, 0, 64, m.service_id);
  at(20, 0, 32, m.qkey);
  at(24, m.info);
  at(96, m.private_data);
}

template <std::size_t i = 0>
bool read_message(std::uint16_t attribute, ConstBody body, decltype(Mad::message)& message) {
  if constexpr (i < std::variant_size_v<std::decay_t<decltype(message)>>) {
    using Message = std::variant_alternative_t<i, std::decay_t<decltype(message)>>;
    if (Message::attribute != attribute) return read_message<i + 1>(attribute, body, message);
    BitReader reader(body);
    fields(reader, message.emplace<Message>());
    return true;
  }
  return false;
}

}  // namespace

std::array<std::byte, mad_bytes> encode_mad(const Mad& mad) {
  std::array<std::byte, mad_bytes> to{};
  const auto attribute = std::visit([](const auto& message) { return message.attribute; }, mad.message);
  to[0] = std::byte{base_version};
  to[1] = std::byte{class_cm};
  to[2] = std::byte{class_version};
  to[3] = std::byte{method_send};
  const auto put_number = [&](std::size_t at, std::uint64_t value, std::size_t bytes) {
    while (bytes-- > 0) to[at++] = static_cast<std::byte>(value >> (8 * bytes));
  };
  put_number(4, mad.status, 2);
  put_number(8, mad.transaction, 8);
  put_number(16, attribute, 2);
  BitWriter writer(Body(to.data() + header_bytes, body_bytes));
  std::visit([&](const auto& message) { fields(writer, message); }, mad.message);
  return to;
}

std::optional<Mad> parse_mad(std::span<const std::byte> bytes) {
  if (bytes.size() < mad_bytes) return std::nullopt;
  Reader from(bytes.first(mad_bytes));
  const auto base = from.number<std::uint8_t>(), management_class = from.number<std::uint8_t>(),
             version = from.number<std::uint8_t>(), method = from.number<std::uint8_t>();
  if (base != base_version || management_class != class_cm || version != class_version ||
      method != method_send)
    return std::nullopt;
  Mad mad;
  mad.status = from.number<std::uint16_t>();
  from.take(2);  // class-specific
  mad.transaction = from.number<std::uint64_t>();
  const auto attribute = from.number<std::uint16_t>();
  from.take(6);  // reserved, modifier
  if (!read_message(attribute, bytes.subspan<header_bytes, body_bytes>(), mad.message)) return std::nullopt;
  return mad;
}

}  // namespace weir::wire
