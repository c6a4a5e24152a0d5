#include "verbs/cm/packet_carrier.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "link/error.hpp"
#include "link/explain.hpp"
#include "link/random_number.hpp"
#include "verbs/cm/explanations.hpp"
#include "verbs/cm/port_space.hpp"

namespace weir::cm {
namespace {

constexpr std::chrono::milliseconds first_pause{40}, longest_pause{2'000};
constexpr std::uint16_t passed_on_kind = link::kind::cm_first + 1;
constexpr std::chrono::milliseconds pass_on_limit{1'000};
constexpr int most_repeats = 15, most_repeats_when_promised = 80;
constexpr int last_copies = 2;  // if every twentieth packet is lost, one end of 8,000 stays unheard
constexpr std::size_t max_repeated = 65'536, max_final_answers = 4'096;
constexpr std::chrono::seconds final_answer_stands{120};  // as long as a requester asks

bool asks(MessageType type) {
  return type == MessageType::req || type == MessageType::rep || type == MessageType::dreq ||
         type == MessageType::sidr_req;
}

bool is_final(MessageType type) { return type == MessageType::rej || type == MessageType::sidr_rep; }

std::chrono::milliseconds pause_after(int sent) {
  return std::min(first_pause * (1 << std::min(sent - 1, 10)), longest_pause);
}

std::unexpected<link::Error> not_by_packets() {
  return link::failure(std::errc::operation_not_supported, "another host takes no messages of this kind");
}

}  // namespace

link::Result<void> RemoteHost::send(std::uint16_t, std::span<const std::byte>, std::span<const int>) {
  return not_by_packets();
}
link::Result<link::Message> RemoteHost::call(std::uint16_t, std::span<const std::byte>,
                                             std::chrono::milliseconds, std::span<const int>) {
  return not_by_packets();
}
link::Result<void> RemoteHost::reply(const link::Message&, std::span<const std::byte>, std::span<const int>) {
  return not_by_packets();
}

PacketCarrier::PacketCarrier(link::SameHostLink& link, verbs::ManagementPort& port, Receiver receiver,
                             Owner owner, Gone gone)
    : link_(link),
      port_(port),
      receiver_(std::move(receiver)),
      owner_(std::move(owner)),
      gone_(std::move(gone)),
      guid_(link::random_number()),
      transaction_key_{link::random_number(), link::random_number()} {
  port_.on_management([this](const auto& came, auto mad) { arrived(came, mad); });
  port_.on_process_gone([this](std::uint64_t process) { process_gone(process); });
  link_.on_message(passed_on_kind, [this](const link::NeighbourPtr&, link::Message&& message) {
    Addressing came;
    if (message.body.size() != came.source.size() + came.destination.size() + wire::mad_bytes) return;
    const std::span<const std::byte> body(message.body);
    std::memcpy(came.source.data(), body.data(), came.source.size());
    std::memcpy(came.destination.data(), body.data() + came.source.size(), came.destination.size());
    take(came, body.last(wire::mad_bytes), true);
  });
}

// Queue pair 1 is shared by all processes of an address, so its datagrams arrive at any of them. Strangers
// name processes as they like: only those that are there are dialled, and seldom.
void PacketCarrier::pass_on(link::Slot slot, const Addressing& came, std::span<const std::byte> bytes,
                            const CmMessage& message) {
  std::vector<std::byte> body;
  const auto put = [&](std::span<const std::byte> part) {
    body.insert(body.end(), part.begin(), part.end());
  };
  put(std::as_bytes(std::span(came.source)));
  put(std::as_bytes(std::span(came.destination)));
  put(bytes);
  if (const auto neighbour = link_.connected(slot)) {
    (void)neighbour->send(passed_on_kind, body);
    return;
  }
  if (!port_.may_dial(slot)) return port_.count_dropped(rnic::Dropped::over_budget);
  // One in that slot may have another directory.
  if (!port_.is_occupied(slot)) {
    if (link_.is_free(slot)) answer_for_ended(came, message);
    return;
  }
  link_.connect_async(
      slot, pass_on_limit, [this, slot, body, came, message](const link::Result<link::NeighbourPtr>& to) {
        if (to) (void)(*to)->send(passed_on_kind, body);
        // A stopped process is still there.
        else if (to.error().code == std::errc::no_such_device_or_address && link_.is_free(slot))
          answer_for_ended(came, message);
      });
}

void PacketCarrier::answer_for_ended(const Addressing& came, const CmMessage& message) {
  const auto answer = answer_of_nobody(message);
  if (!answer) return;
  const Addressing back{.source = came.destination, .destination = came.source, .guid = guid_};
  transmit(back, wire::encode_mad(mad_of(*answer, back, next_transaction())));
}

bool PacketCarrier::may_be_asked_from_elsewhere(const Endpoint& listening_at) {
  if (listening_at.is_v4()) return listening_at.ip[12] != 127;
  in6_addr v6;
  std::memcpy(&v6, listening_at.ip.data(), sizeof v6);
  return !IN6_IS_ADDR_LOOPBACK(&v6);
}

int PacketCarrier::open() {
  const auto opened = port_.open_port();
  if (opened) return 0;
  static std::atomic_flag said;
  const bool wanted = opened.error().code != std::errc::network_unreachable;  // otherwise it is switched off
  if (wanted && link::first_time(said)) link::explain(opened.error().what);
  return static_cast<int>(opened.error().code);
}

link::NeighbourPtr PacketCarrier::host(const Endpoint& local, const Endpoint& remote, std::uint64_t process) {
  const std::scoped_lock hold(mutex_);
  auto chosen = host({.source = local.ip, .destination = remote.ip, .guid = guid_, .process = process});
  chosen->prove();  // it was us that chose it
  return chosen;
}

std::string PacketCarrier::service_of(const Binding& listener) {
  const Endpoint& at = listener.endpoint;
  return std::string("weir-port-") + name_of_space(listener.port_space) + "-" + std::to_string(at.port) +
         "-" + text_of(at) + (at.ip == any_v6().ip && listener.sharing.v6_only ? "-v6only" : "");
}

bool PacketCarrier::find_server(std::uint16_t port_space, const Endpoint& destination,
                                const std::function<void(std::uint64_t)>& found) {
  constexpr Sharing only{.v6_only = true};
  Endpoint every = destination.is_v4() ? any_v4() : any_v6(), both = any_v6();
  every.port = both.port = destination.port;
  for (const Binding& listener : {Binding{port_space, destination, {}}, Binding{port_space, every, only},
                                  Binding{port_space, both, {}}})
    if (port_.find_server(service_of(listener), found)) return true;
  return false;
}

void PacketCarrier::transmit(const Addressing& to, std::span<const std::byte> mad) {
  port_.send_management({to.source, to.destination, to.process}, mad);
}

void PacketCarrier::process_gone(std::uint64_t process) {
  std::vector<std::shared_ptr<RemoteHost>> ended;
  {
    const std::scoped_lock hold(mutex_);
    for (const auto& [key, known] : hosts_)
      if (auto host = std::get<std::uint64_t>(key) == process ? known.lock() : nullptr)
        ended.push_back(std::move(host));
    std::erase_if(repeated_, [&](const auto& entry) {  // none of these is limited
      if (entry.second.addressing.process != process) return false;
      transactions_.erase(entry.first);
      return true;
    });
  }
  for (const auto& host : ended) {
    host->ended();
    gone_(host);
  }
}

std::shared_ptr<RemoteHost> PacketCarrier::known_host(const Addressing& addressing) const {
  const auto known = hosts_.find({addressing.source, addressing.destination, addressing.process});
  return known == hosts_.end() ? nullptr : known->second.lock();
}

// The kernel vouches for processes of other users.
std::shared_ptr<RemoteHost> PacketCarrier::host(const Addressing& addressing) {
  if (auto known = known_host(addressing)) return known;
  auto made = std::make_shared<RemoteHost>(addressing);
  if (addressing.process != 0) made->prove();
  hosts_[{addressing.source, addressing.destination, addressing.process}] = made;
  if (hosts_.size() >= sweep_at_) {
    std::erase_if(hosts_, [](const auto& entry) { return entry.second.expired(); });
    sweep_at_ = 2 * hosts_.size() + 64;
  }
  return made;
}

bool PacketCarrier::spend(RemoteHost& to) {
  if (to.is_proved()) return true;
  if (to.credit_ == 0) return false;
  --to.credit_;
  return true;
}

void PacketCarrier::forget(std::uint32_t local_id) {
  const auto found = repeated_.find(local_id);
  if (found == repeated_.end()) return;
  const Repeated& each = found->second;
  if (each.limited)
    limited_.erase({.ours = each.addressing.source,
                    .theirs = each.addressing.destination,
                    .request_id = each.request_id});
  repeated_.erase(found);
  transactions_.erase(local_id);
}

void PacketCarrier::send(RemoteHost& to, const CmMessage& message) {
  CmMessage said = message;
  const Addressing& there = to.addressing();
  if (said.type == MessageType::req) said.path_mtu = port_.path_mtu(there.source);
  std::array<std::byte, wire::mad_bytes> bytes;
  {
    const std::scoped_lock hold(mutex_);
    const std::uint64_t transaction = draw_transaction();
    bytes = wire::encode_mad(mad_of(said, there, transaction));
    // Any other message ends the identifier's question; an MRA only asks for patience.
    if (said.type != MessageType::mra) forget(said.local_id);
    if (asks(said.type) && repeated_.size() < max_repeated) {
      const bool limited = !to.is_proved();
      repeated_[said.local_id] = {.mad = bytes,
                                  .addressing = there,
                                  .type = said.type,
                                  .request_id = said.remote_id,
                                  .limited = limited};
      transactions_[said.local_id] = transaction;
      if (limited)
        limited_[{.ours = there.source, .theirs = there.destination, .request_id = said.remote_id}] =
            said.local_id;
      repeat_later(said.local_id, transaction, first_pause);
    }
    if (is_final(said.type)) remember_answer(said, there, bytes);
    if (!spend(to)) return;
  }
  transmit(there, bytes);
}

void PacketCarrier::repeat_later(std::uint32_t local_id, std::uint64_t transaction,
                                 std::chrono::milliseconds after) {
  link_.at(link::Clock::now() + after, [this, local_id, transaction] { repeat(local_id, transaction); });
}

void PacketCarrier::repeat(std::uint32_t local_id, std::uint64_t transaction) {
  Repeated again;
  {
    const std::scoped_lock hold(mutex_);
    const auto found = repeated_.find(local_id);
    if (found == repeated_.end() || transactions_[local_id] != transaction) return;
    const bool promised = found->second.promised;
    if (found->second.sent > (promised ? most_repeats_when_promised : most_repeats)) return forget(local_id);
    if (found->second.limited) {
      const auto to = known_host(found->second.addressing);
      if (to == nullptr) return forget(local_id);
      if (!spend(*to)) {
        found->second.waits = true;
        return;
      }
    }
    ++found->second.sent;
    again = found->second;
    repeat_later(local_id, transaction, promised ? longest_pause : pause_after(again.sent));
  }
  transmit(again.addressing, again.mad);
}

std::unique_ptr<link::PortProbe> PacketCarrier::ask(const RemoteHost& to, const CmMessage& message) {
  const Addressing& there = to.addressing();
  const auto mad = wire::encode_mad(mad_of(message, there, next_transaction()));
  return port_.ask({there.source, there.destination, there.process}, mad);
}

std::uint64_t PacketCarrier::next_transaction() {
  const std::scoped_lock hold(mutex_);
  return draw_transaction();
}

std::uint64_t PacketCarrier::draw_transaction() {
  return hash::siphash(transaction_key_, transactions_drawn_++);
}

void PacketCarrier::finish() {
  std::vector<Repeated> ends;
  {
    const std::scoped_lock hold(mutex_);
    for (const auto& [local_id, each] : repeated_)
      if (each.type == MessageType::dreq && each.addressing.process == 0) ends.push_back(each);
  }
  for (int copy = 0; copy < last_copies; ++copy)
    for (const Repeated& each : ends) transmit(each.addressing, each.mad);
}

// A message shows that its sender has what we repeat. Only the peer that we asked can show that.
bool PacketCarrier::answered(const CmMessage& by, const Addressing& came) {
  const auto found = repeated_.find(by.remote_id);
  if (found == repeated_.end()) return false;
  const Addressing& asked = found->second.addressing;
  if (asked.source != came.destination || asked.destination != came.source || asked.process != came.process)
    return false;
  if (by.type == MessageType::mra)
    found->second.promised = true;
  else
    forget(by.remote_id);
  return true;
}

// What waits for that request to come again.
std::optional<PacketCarrier::Repeated> PacketCarrier::resume(const CmMessage& request,
                                                             const Addressing& came) {
  const auto waiting =
      limited_.find({.ours = came.destination, .theirs = came.source, .request_id = request.local_id});
  if (waiting == limited_.end()) return std::nullopt;
  const std::uint32_t local_id = waiting->second;
  Repeated& answer = repeated_.at(local_id);
  const auto to = known_host(answer.addressing);
  if (!answer.waits || to == nullptr || !spend(*to)) return std::nullopt;
  answer.waits = false;
  ++answer.sent;
  repeat_later(local_id, transactions_[local_id], first_pause);
  return answer;
}

// Call with mutex_ held. An asker's number names one request of its address for a long time.
void PacketCarrier::remember_answer(const CmMessage& message, const Addressing& to, const MadBytes& mad) {
  if (message.remote_id == 0) return;
  const Asker asker{.ours = to.source,
                    .theirs = to.destination,
                    .process = to.process,
                    .request_id = message.remote_id,
                    .lookup = message.type == MessageType::sidr_rep};
  const FinalAnswer answer{mad, link::Clock::now() + final_answer_stands};
  if (!final_.insert_or_assign(asker, answer).second) return;
  final_order_.push_back(asker);
  if (final_order_.size() <= max_final_answers) return;
  final_.erase(final_order_.front());
  final_order_.pop_front();
}

bool PacketCarrier::answer_again(const CmMessage& request, const Addressing& came) {
  if (request.type != MessageType::req && request.type != MessageType::sidr_req) return false;
  MadBytes mad;
  {
    const std::scoped_lock hold(mutex_);
    const auto found = final_.find({.ours = came.destination,
                                    .theirs = came.source,
                                    .process = came.process,
                                    .request_id = request.local_id,
                                    .lookup = request.type == MessageType::sidr_req});
    if (found == final_.end() || found->second.until < link::Clock::now()) return false;
    mad = found->second.mad;
  }
  port_.send_management({came.destination, came.source, came.process}, mad);
  return true;
}

// A process of another user may claim any address; on UDP the kernel vouches for it.
void PacketCarrier::arrived(const verbs::ManagementRoute& came, std::span<const std::byte> bytes) {
  if (came.process != 0 && !(port_.is_ours(came.source) && port_.is_ours(came.destination))) return;
  take({.source = came.source, .destination = came.destination, .process = came.process}, bytes, false);
}

void PacketCarrier::take(const Addressing& came, std::span<const std::byte> bytes, bool passed_on) {
  const auto mad = wire::parse_mad(bytes);
  if (!mad) return;
  auto translated = message_of(*mad, came);
  if (!translated) return;
  // A process of another user connects to us alone.
  const bool for_us = passed_on || came.process != 0;
  const link::Slot owner = for_us ? link::Slot{0} : owner_(translated->message);
  if (owner != 0 && owner != link_.slot()) return pass_on(owner, came, bytes, translated->message);
  if (answer_again(translated->message, came)) return;
  if (translated->rewritten) {
    static std::atomic_flag said;
    if (link::first_time(said))
      link::explain(
          "a request for an RDMA connection names other addresses than it came from and to: its way is "
          "through "
          "NAT (a mapped container port, a masquerading router), which RoCEv2 cannot cross; let the two ends "
          "see each other's own addresses");
  }
  translated->message.source.scope_id = translated->message.destination.scope_id =
      port_.scope_of(came.destination);
  std::shared_ptr<RemoteHost> from;
  std::optional<Repeated> again;
  {
    const std::scoped_lock hold(mutex_);
    from = host(
        {.source = came.destination, .destination = came.source, .guid = guid_, .process = came.process});
    from->credit_ = std::min(from->credit_ + packets_for_one, 2 * packets_for_one);
    if (answered(translated->message, came)) from->prove();
    if (translated->message.type == MessageType::req) again = resume(translated->message, came);
  }
  if (again) transmit(again->addressing, again->mad);
  receiver_(from, std::move(translated->message));
}

}  // namespace weir::cm
