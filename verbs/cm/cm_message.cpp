#include "verbs/cm/cm_message.hpp"

#include <rdma/rdma_cma.h>

#include <concepts>

namespace weir::cm {
namespace {

constexpr std::uint8_t format_version = 2;
constexpr std::uint32_t max_24_bits = 0xffffff;
constexpr std::uint8_t max_retry_count = 7;  // a three-bit field on the wire

// Writes big-endian numbers, as on the wire.
class Writer {
 public:
  template <std::unsigned_integral T>
  void put(T value) {
    for (std::size_t i = sizeof value; i-- > 0;) bytes_.push_back(static_cast<std::byte>(value >> (8 * i)));
  }
  void put(const Endpoint& endpoint) {
    for (const auto byte : endpoint.ip) put(byte);
    put(endpoint.port);
    put(endpoint.scope_id);
  }
  void put(std::span<const std::byte> data) { bytes_.insert(bytes_.end(), data.begin(), data.end()); }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

// Reading past the end yields zeros and makes good() false.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}
  template <std::unsigned_integral T>
  void get(T& value) {
    value = 0;
    if (rest_.size() < sizeof value) {
      good_ = false;
      rest_ = {};
      return;
    }
    for (std::size_t i = 0; i < sizeof value; ++i) {
      value =
          static_cast<T>((static_cast<std::uint64_t>(value) << 8) | std::to_integer<std::uint8_t>(rest_[i]));
    }
    rest_ = rest_.subspan(sizeof value);
  }
  void get(Endpoint& endpoint) {
    for (auto& byte : endpoint.ip) get(byte);
    get(endpoint.port);
    get(endpoint.scope_id);
  }
  std::span<const std::byte> rest() const { return rest_; }
  bool good() const { return good_; }

 private:
  std::span<const std::byte> rest_;
  bool good_ = true;
};

bool names_service(MessageType type) { return type == MessageType::req || type == MessageType::sidr_req; }

bool legal(const CmMessage& message) {
  if (message.type < MessageType::req || message.type > MessageType::sidr_rep) return false;
  if (names_service(message.type)) {
    if (!is_port_space(message.port_space) || message.destination.is_any()) return false;
  } else if (message.remote_id == 0 && message.type != MessageType::rej) {
    return false;  // a rejection may withdraw a request before the peer's number is known
  }
  if (message.local_id == 0 && message.remote_id == 0) return false;
  // A refusal may come from a process that never chose a number for the connection.
  const bool refuses = message.type == MessageType::rej || message.type == MessageType::sidr_rep;
  if (message.local_id == 0 && !refuses) return false;
  if (message.transport > Transport::extended) return false;
  if (message.qpn > max_24_bits || message.psn > max_24_bits) return false;
  if (message.retry_count > max_retry_count || message.rnr_retry_count > max_retry_count) return false;
  return message.private_data.size() <= private_data_limit(message.type);
}

}  // namespace

bool is_port_space(std::uint32_t number) {
  return number == RDMA_PS_TCP || number == RDMA_PS_UDP || number == RDMA_PS_IPOIB || number == RDMA_PS_IB;
}

std::optional<CmMessage> answer_of_nobody(const CmMessage& message) {
  CmMessage answer;
  answer.local_id = message.remote_id;
  answer.remote_id = message.local_id;
  if (message.type == MessageType::dreq) {
    answer.type = MessageType::drep;
    return answer;
  }
  if (message.type != MessageType::rep && message.type != MessageType::rtu) return std::nullopt;
  answer.type = MessageType::rej;
  answer.status = static_cast<std::uint16_t>(RejectReason::invalid_communication_id);
  return answer;
}

std::size_t private_data_limit(MessageType type) {
  switch (type) {
    case MessageType::req:
      return req_private_bytes;
    case MessageType::rep:
      return rep_private_bytes;
    case MessageType::rej:
      return rej_private_bytes;
    case MessageType::sidr_req:
      return sidr_req_private_bytes;
    case MessageType::sidr_rep:
      return sidr_rep_private_bytes;
    case MessageType::mra:
    case MessageType::rtu:
    case MessageType::dreq:
    case MessageType::drep:
      break;
  }
  return 0;
}

std::vector<std::byte> encode(const CmMessage& message) {
  Writer writer;
  writer.put(format_version);
  writer.put(static_cast<std::uint8_t>(message.type));
  writer.put(message.local_id);
  writer.put(message.remote_id);
  writer.put(message.port_space);
  writer.put(message.source);
  writer.put(message.destination);
  writer.put(message.qpn);
  writer.put(message.psn);
  writer.put(message.qkey);
  writer.put(message.responder_resources);
  writer.put(message.initiator_depth);
  writer.put(message.flow_control);
  writer.put(message.retry_count);
  writer.put(message.rnr_retry_count);
  writer.put(message.srq);
  writer.put(static_cast<std::uint8_t>(message.transport));
  writer.put(message.ece.vendor_id);
  writer.put(message.ece.options);
  writer.put(message.ece.comp_mask);
  writer.put(message.status);
  writer.put(message.private_data);
  return writer.take();
}

std::optional<CmMessage> parse(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  CmMessage message;
  std::uint8_t version = 0, type = 0, transport = 0;
  reader.get(version);
  reader.get(type);
  message.type = static_cast<MessageType>(type);
  reader.get(message.local_id);
  reader.get(message.remote_id);
  reader.get(message.port_space);
  reader.get(message.source);
  reader.get(message.destination);
  reader.get(message.qpn);
  reader.get(message.psn);
  reader.get(message.qkey);
  reader.get(message.responder_resources);
  reader.get(message.initiator_depth);
  reader.get(message.flow_control);
  reader.get(message.retry_count);
  reader.get(message.rnr_retry_count);
  reader.get(message.srq);
  reader.get(transport);
  message.transport = static_cast<Transport>(transport);
  reader.get(message.ece.vendor_id);
  reader.get(message.ece.options);
  reader.get(message.ece.comp_mask);
  reader.get(message.status);
  if (!reader.good() || version != format_version) return std::nullopt;
  if (reader.rest().size() > max_private_bytes) return std::nullopt;
  message.private_data.assign(reader.rest().begin(), reader.rest().end());
  if (!legal(message)) return std::nullopt;
  return message;
}

}  // namespace weir::cm
