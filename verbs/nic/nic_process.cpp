#include "verbs/nic/nic_process.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "link/explain.hpp"
#include "link/fabric/fabric_port.hpp"
#include "link/memory/fault_in.hpp"
#include "link/memory/fault_signal.hpp"
#include "link/memory/process_memory.hpp"
#include "link/not_cancelled.hpp"
#include "rnic/memory/trapped_copy.hpp"
#include "verbs/monitor/counters_seen.hpp"
#include "verbs/monitor/port_ledger.hpp"
#include "verbs/nic/fault_plan.hpp"
#include "verbs/nic/messages.hpp"

namespace weir::verbs {
namespace {

constexpr std::chrono::milliseconds connect_limit{1000};

link::Error out_of_memory(const char* what) {
  const int why = errno;
  const char* const limits = why == EMFILE  ? "limit of open files (ulimit -n)"
                             : why == EFBIG ? "limit of file sizes (ulimit -f): shared memory is a file"
                                            : "limits on memory or address space (ulimit -v)";
  return {static_cast<std::errc>(why),
          std::string("cannot make the NIC's ") + what + ": " + std::strerror(why) + "; raise the " + limits};
}

// For the user: the program will only see "transport retry counter exceeded".
std::string why_unreachable(rnic::Slot slot, const link::Error& error, const std::string& directory) {
  if (error.code != std::errc::no_such_device_or_address)
    return "the program with the peer's queue pair cannot be reached: " + error.what;
  const rnic::Qpn first(slot, 0), last(slot, rnic::max_qps - 1);
  return "no program in " + directory + " has the peer's queue pair (" + std::to_string(first.value()) +
         " to " + std::to_string(last.value()) +
         "), and no other user's has it: it has ended, or it runs in another network namespace, with another "
         "/dev/shm or WEIR_RUNTIME_DIR, or not on this NIC; start both ends with weir run, in one network "
         "namespace, as one user with the same /dev/shm";
}

rnic::Fault fault_of(std::uint64_t from_peer) {
  return from_peer <= static_cast<std::uint64_t>(rnic::Fault::access) ? static_cast<rnic::Fault>(from_peer)
                                                                      : rnic::Fault::operational;
}

// For the port's counters, which outlive the process.
void report_counters(const std::string& directory, const rnic::SegmentHeader& from, rnic::Slot slot) {
  auto ledger = PortLedger::open(directory, PortLedger::Missing::leave_it);
  if (!ledger) return;
  std::vector<QueuePairSeen> queue_pairs;
  const ProcessSeen seen = read_counters(from, slot, queue_pairs);
  ledger->report(seen.identity, seen.sums);
}

}  // namespace

link::Result<std::unique_ptr<NicProcess>> NicProcess::make(Options options) {
  using link::Mapping;
  link::UniqueFd segment_fd = link::make_shared_file("weir-segment", options.segment_bytes);
  link::UniqueFd table_fd = link::make_shared_file("weir-tpt", rnic::tpt_bytes);
  if (!segment_fd || !table_fd) return std::unexpected(out_of_memory("shared segment"));
  auto segment = Mapping::of_file(segment_fd.get(), options.segment_bytes, Mapping::Rights::read_write);
  auto table = Mapping::of_file(table_fd.get(), rnic::tpt_bytes, Mapping::Rights::read_write);
  if (!segment || !table) return std::unexpected(out_of_memory("mappings"));
  std::unique_ptr<NicProcess> nic(new NicProcess(std::move(*segment), std::move(*table), options));
  if (auto attached = nic->attach(std::move(options.directory), std::move(segment_fd), table_fd); !attached)
    return std::unexpected(attached.error());
  if (options.weak) nic->adapter_->set_weak(*options.weak);
  if (options.carrier) nic->put_carrier_in_front(*options.carrier);
  if (options.faults) nic->put_faults_in_front(std::move(*options.faults));
  return nic;
}

NicProcess::NicProcess(link::Mapping segment, link::Mapping table, const Options& options)
    : segment_mapping_(std::move(segment)),
      table_mapping_(std::move(table)),
      segment_(segment_mapping_.data(), segment_mapping_.size()),
      first_(options.first),
      wire_key_(options.wire_key),
      catches_faults_(link::mend_faults(SIGBUS, rnic::leave_copy) &&
                      link::mend_faults(SIGSEGV, rnic::leave_copy)) {}

// First the mover, whose thread may send to neighbours; then the link, after which no callback runs.
NicProcess::~NicProcess() {
  if (mover_) mover_->stop();
  if (network_) network_->stop();
  if (carrier_) carrier_->stop();
  link_.reset();
}

link::Result<void> NicProcess::draw_numbers() {
  std::array<std::uint64_t, 4> drawn{};
  if (::getrandom(drawn.data(), sizeof drawn, 0) == sizeof drawn) {
    probe_.emplace(drawn[3], drawn[0]);
    if (probe_->address() == 0) return std::unexpected(out_of_memory("probe"));
    segment_.header().counters.identity.store(drawn[1], std::memory_order_relaxed);
    secret_ = drawn[2];
    return {};
  }
  return std::unexpected(
      link::Error{static_cast<std::errc>(errno), "cannot draw random numbers for the NIC"});
}

link::Result<void> NicProcess::attach(std::string directory, link::UniqueFd segment_fd,
                                      const link::UniqueFd& table_fd) {
  link::allow_tracing();
  link::UniqueFd table_read_only = link::read_only_copy(table_fd.get());
  link::UniqueFd mover_fd(::fcntl(segment_fd.get(), F_DUPFD_CLOEXEC, 0));
  if (!table_read_only || !mover_fd) return std::unexpected(out_of_memory("descriptors"));
  if (auto drawn = draw_numbers(); !drawn) return drawn;
  mover_ = std::make_unique<Mover>(segment_.header(), std::move(mover_fd),
                                   reinterpret_cast<const rnic::TptEntry*>(table_mapping_.data()),
                                   [this] { notify_neighbours(message::kick, 0); });
  link::SameHostLink::Options options;
  options.directory = std::move(directory);
  const GreetingBody body{.probe = probe_->address(), .token = probe_->probe()->token};
  const auto bytes = std::as_bytes(std::span(&body, 1));
  options.greeting.body.assign(bytes.begin(), bytes.end());
  options.greeting.fds.push_back(std::move(segment_fd));
  options.greeting.fds.push_back(std::move(table_read_only));
  for (std::uint16_t kind = message::kick; kind <= message::last; ++kind) {
    options.messages.emplace_back(kind, [this](const link::NeighbourPtr& from, link::Message&& message) {
      handle(from, std::move(message));
    });
  }
  options.gone.emplace_back([this](const link::NeighbourPtr& neighbour) { neighbour_gone(neighbour); });
  auto attached = link::SameHostLink::attach(std::move(options));
  if (!attached) return std::unexpected(attached.error());
  link_ = std::move(*attached);
  adapter_ = std::make_unique<rnic::Adapter>(link_->slot(), segment_,
                                             reinterpret_cast<rnic::TptEntry*>(table_mapping_.data()), *this);
  adapter_->begin_numbers_at(secret_);
  connects_ = std::make_unique<BackgroundConnects>(
      *link_, connect_limit, [this](const link::NeighbourPtr& neighbour) { (void)adopt(neighbour); },
      [this] { adapter_->service(); });
  network_ = std::make_unique<PacketNetwork>(*link_, *adapter_, channels_, hash::SipKey{~secret_, secret_});
  packets_ = network_.get();
  groups_ = std::make_unique<GroupMemberships>(*network_);
  self_ = std::make_shared<OwnPeer>(link_->slot(), segment_mapping_, table_mapping_, *adapter_, *link_);
  attached_.store(true, std::memory_order_release);
  network_->open_to_other_users();
  return {};
}

void NicProcess::put_carrier_in_front(const CarrierSetting& setting) {
  carrier_ = std::make_unique<SecondCarrier>(
      setting, *network_, *link_, *adapter_,
      [this](link::Slot slot, link::UniqueFd connection, std::span<const std::byte> greeting) {
        hand_over(slot, std::move(connection), greeting);
      },
      [this](const rnic::PacketRoute& route, std::span<const std::byte> mad) {
        network_->send_management(route, mad);
      });
  packets_ = carrier_.get();
  network_->leave_through(*carrier_);
  network_->open_with(
      {.open = [this] { return carrier_->open(); },
       .carries = [this](const rnic::PacketRoute& route) { return carrier_->carries(route); }});
}

// To the process that a stream is for, as a packet that came to us. Without a connection to it there is none
// to hand over for a moment; a stranger's is dialled no more often than for packets.
void NicProcess::hand_over(link::Slot slot, link::UniqueFd connection, std::span<const std::byte> greeting) {
  if (const auto neighbour = link_->connected(slot)) {
    const int fd = connection.get();
    (void)neighbour->send(message::stream, greeting, {&fd, 1});
    return;
  }
  const bool may_dial = network_->admission().is_occupied(slot, link::Clock::now()) &&
                        network_->admission().may_dial(slot, link::Clock::now());
  if (!may_dial) return segment_.header().counters.count_drop(rnic::Dropped::over_budget);
  const auto kept = std::make_shared<link::UniqueFd>(std::move(connection));
  link_->connect_async(slot, connect_limit,
                       [kept, bytes = std::vector(greeting.begin(), greeting.end())](const auto& neighbour) {
                         const int fd = kept->get();
                         if (neighbour) (void)(*neighbour)->send(message::stream, bytes, {&fd, 1});
                       });
}

// Before the first packet: no port is open yet.
void NicProcess::put_faults_in_front(faults::Plan plan) {
  faults_ = std::make_unique<FaultyDevice>(
      std::move(plan), *packets_, *link_,
      [this](const rnic::PacketDatagram& late) { adapter_->take_packets({&late, 1}); },
      [this](std::uint32_t qpn, std::uint32_t from) { adapter_->withhold_receives(rnic::Qpn(qpn), from); },
      [this](std::chrono::microseconds wait) {
        segment_.header().counters.transmit_wait_us.fetch_add(static_cast<std::uint64_t>(wait.count()),
                                                              std::memory_order_relaxed);
      },
      wire_key());
  packets_ = faults_.get();
  network_->leave_through(*faults_);
}

void NicProcess::report_faults() const {
  const FaultReports& wanted = fault_reports();
  std::fputs(faults_->report().c_str(), stderr);
  if (wanted.annotations) std::fputs(faults_->report_as_annotations(wanted.faults_file).c_str(), stderr);
  if (wanted.json_file.empty()) return;
  const link::UniqueFd file(
      ::open(wanted.json_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  const std::string line = faults_->report_as_json();  // one write: the lines of several programs stay whole
  if (file && ::write(file.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size())) return;
  std::fprintf(stderr, "weir faults: cannot write to %s: %s\n", wanted.json_file.c_str(),
               std::strerror(errno));
}

void NicProcess::report_weakness() const {
  const rnic::weak::Weak& weak = *adapter_->weak();
  const auto count = [](const std::atomic<std::uint64_t>& counter) {
    return std::to_string(counter.load(std::memory_order_relaxed));
  };
  if (weak.tally.requests.load(std::memory_order_relaxed) == 0) return;
  std::string text = "weir weak: of " + count(weak.tally.requests) + " requests " + count(weak.tally.late) +
                     " executed late, " + count(weak.tally.split) + " in parts, " +
                     count(weak.tally.overtaken) + " READs saw later WRITEs; " + count(weak.tally.withheld) +
                     " polls cut short";
  if (weak.tally.lost.load(std::memory_order_relaxed) != 0)
    text += "; " + count(weak.tally.lost) + " datagrams lost";
  text += ". Again: weir run --weak=" + rnic::weak::text_of(weak.plan) + "\n";
  std::fputs(text.c_str(), stderr);
}

void NicProcess::leave() {
  // A hardware NIC would by now have sent what the program posted before it returned from main. Here a
  // datagram may still wait for the connection to its destination's process.
  connects_->finish(connect_limit);
  adapter_->hurry();
  network_->finish();
  if (adapter_->weak() != nullptr) report_weakness();
  if (faults_) {
    faults_->finish();
    report_faults();
  }
  if (carrier_) carrier_->finish();
  // Only contexts that were ever used: touching the others would allocate their pages.
  adapter_->for_each_used_qp([this](std::uint32_t index) {
    rnic::QpContext& qp = segment_.header().qps[index];
    const rnic::QpOpeners* const openers = rnic::openers_of(qp, segment_.base(), segment_.bytes());
    if (openers != nullptr && rnic::has_opener(*openers)) return;  // it now belongs to its openers
    qp.state.store(static_cast<std::uint32_t>(rnic::QpState::reset), std::memory_order_seq_cst);
  });
  report_counters(link_->directory(), segment_.header(), link_->slot());
  link_->withdraw();
}

// ---- memory

link::Result<std::uint32_t> NicProcess::register_memory(std::uint64_t addr, std::uint64_t length,
                                                        std::uint64_t iova, std::uint32_t access,
                                                        std::uint32_t pd) {
  WindowExports::Placed placed;
  // On-demand memory is looked up on each use, through the page tables: a window would keep showing
  // what was once mapped there.
  if (!(access & rnic::access::on_demand)) {
    const link::MemoryRange range = link::look_up_memory(addr, length);
    if (!range.mapped)
      return std::unexpected(link::Error{std::errc::bad_address, "not all of the range is mapped"});
    // The NIC may not do what the program itself may not: the copy would fault in the process that makes it.
    if (access & rnic::access::local_write ? !range.writable : !range.readable)
      return std::unexpected(
          link::Error{std::errc::bad_address, "the memory is protected against such access"});
    placed = exports_.acquire(range, addr);
  }
  const auto key = adapter_->table().insert({.addr = iova,
                                             .base = addr,
                                             .length = length,
                                             .access = access,
                                             .pd = pd,
                                             .window = placed.window,
                                             .window_offset = placed.offset});
  if (key) return *key;
  if (placed.window != 0) exports_.release(placed.window);
  return std::unexpected(link::Error{std::errc::not_enough_memory, "the protection table is full"});
}

void NicProcess::deregister_memory(std::uint32_t key) {
  const std::uint32_t window = adapter_->table().entry(key).window;
  adapter_->deregister(key);
  mover_->finish_copy();  // for an initiator that did not wait for it
  if (window != 0 && exports_.release(window)) notify_neighbours(message::window_gone, window);
}

bool NicProcess::fault_in(void* at, std::uint64_t length, rnic::Use use) {
  return link::fault_in(at, length, use == rnic::Use::write ? link::Touch::write : link::Touch::read);
}

bool NicProcess::traps_copies() { return catches_faults_ && link::faults_are_caught(now_ns()); }

// The packet is for another process of our user, with which we share the port.
void NicProcess::pass_on(rnic::Slot slot, const rnic::PacketDatagram& datagram) {
  const message::PassedOn from{datagram.source,      datagram.destination, datagram.interface,
                               datagram.source_port, datagram.likely_id,   datagram.traffic_class,
                               datagram.hop_limit};
  std::array<std::byte, link::max_message_bytes> body;
  if (sizeof from + datagram.bytes.size() > body.size()) return;
  std::memcpy(body.data(), &from, sizeof from);
  std::memcpy(body.data() + sizeof from, datagram.bytes.data(), datagram.bytes.size());
  const std::span<const std::byte> whole(body.data(), sizeof from + datagram.bytes.size());
  if (const auto neighbour = link_->connected(slot)) {
    (void)neighbour->send(message::packet, whole);
    return;
  }
  if (!network_->admission().may_dial(slot, link::Clock::now()))
    return segment_.header().counters.count_drop(rnic::Dropped::over_budget);
  // The first packet is lost or late while the two connect; its sender repeats it.
  link_->connect_async(slot, connect_limit,
                       [bytes = std::vector(whole.begin(), whole.end())](const auto& neighbour) {
                         if (neighbour) (void)(*neighbour)->send(message::packet, bytes);
                       });
}

void NicProcess::take_passed_on(std::span<const std::byte> body) {
  message::PassedOn from;
  if (body.size() < sizeof from) return;
  std::memcpy(&from, body.data(), sizeof from);
  const rnic::PacketDatagram datagram{.bytes = body.subspan(sizeof from),
                                      .source = from.source,
                                      .destination = from.destination,
                                      .source_port = from.source_port,
                                      .likely_id = from.likely_id,
                                      .interface = from.interface,
                                      .traffic_class = from.traffic_class,
                                      .hop_limit = from.hop_limit};
  const std::span arrived(&datagram, 1);
  if (faults_)
    faults_->take_arrived(arrived, [this](auto judged) { adapter_->take_packets(judged); });
  else
    adapter_->take_packets(arrived);
  network_->misled();
}

// ---- channels

link::Result<CompletionChannels::Opened> NicProcess::open_channel() {
  auto opened = channels_.open();
  network_->channels_change();
  return opened;
}

void NicProcess::close_channel(std::uint32_t channel) {
  network_->channels_change();
  channels_.close(channel);
  notify_neighbours(message::channel_gone, channel);
}

// ---- peers

rnic::PeerPtr NicProcess::peer(rnic::Slot slot, Wait may_block) {
  if (slot == self_->slot()) return self_;
  if (slot == 0 || slot >= link::max_slots) return nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (peers_[slot] && peers_[slot]->alive()) return peers_[slot];
  }
  if (link::NeighbourPtr neighbour = link_->connected(slot)) return adopt(neighbour);
  if (may_block == Wait::no || link_->on_progress_thread()) return nullptr;
  auto connected = link_->connect(slot, connect_limit);
  if (connected) return adopt(*connected);
  static std::atomic_flag said;
  if (link::first_time(said)) link::explain(why_unreachable(slot, connected.error(), link_->directory()));
  return nullptr;
}

rnic::HostPort::Reached NicProcess::reach(rnic::Slot slot, Ticket& ticket) {
  if (rnic::PeerPtr known = peer(slot, Wait::no)) {
    ticket = 0;
    return {std::move(known)};
  }
  if (slot == 0 || slot >= link::max_slots) return {};
  if (ticket == 0) {
    ticket = connects_->begin(slot);
    return {.undecided = ticket != 0, .silent = ticket == 0};
  }
  if (connects_->under_way(slot, ticket)) return {.undecided = true};
  ticket = 0;
  return {.peer = peer(slot, Wait::no), .silent = connects_->silent(slot)};
}

rnic::HostPort::Everybody NicProcess::everybody(Ticket& ticket) {
  if (ticket != 0 && connects_->any_under_way(ticket)) return {{}, true};
  const bool first_look = std::exchange(ticket, 0) == 0;
  Everybody all;
  for (const link::Slot slot : link_->occupied()) {
    if (rnic::PeerPtr known = peer(slot, Wait::no))
      all.peers.push_back(std::move(known));
    else if (first_look)
      ticket = std::max(ticket, connects_->begin(slot));
  }
  all.undecided = ticket != 0;
  return all;
}

rnic::PeerPtr NicProcess::adopt(const link::NeighbourPtr& neighbour) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<NeighbourPeer>& place = peers_[neighbour->slot()];
  if (place && place->neighbour()->incarnation() == neighbour->incarnation() && place->alive()) return place;
  // It may have ended since the caller found it, and its successor may have this place already. If we evicted
  // the successor, it would never return, because its greeting's descriptors are closed. If the process ends
  // from now on, neighbour_gone() runs after this lock, before any message of the successor.
  if (!neighbour->alive()) return nullptr;
  std::shared_ptr<NeighbourPeer> made = NeighbourPeer::adopt(neighbour, *link_, first_);
  if (made) place = made;
  return made;
}

void NicProcess::neighbour_gone(const link::NeighbourPtr& neighbour) {
  std::shared_ptr<NeighbourPeer> gone;
  {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<NeighbourPeer>& place = peers_[neighbour->slot()];
    if (place && place->neighbour()->incarnation() != neighbour->incarnation()) return;
    gone = std::move(place);
    place = nullptr;
  }
  if (gone) gone->died();
  if (!attached_.load(std::memory_order_acquire)) return;
  // Do this even for a process that we never dealt with: it may have been inside an operation here,
  // such as a datagram for us.
  mover_->reclaim(neighbour->slot());
  adapter_->peer_gone(neighbour->slot());
  if (gone) report_counters(link_->directory(), gone->segment(), gone->slot());
}

void NicProcess::notify_neighbours(std::uint16_t kind, std::uint32_t number) {
  const std::lock_guard lock(mutex_);
  for (const auto& peer : peers_)
    if (peer) (void)message::send(*peer->neighbour(), kind, number);
}

// ---- events

void NicProcess::handle(const link::NeighbourPtr& from, link::Message&& received) {
  if (received.kind == message::packet && attached_.load(std::memory_order_acquire))
    return take_passed_on(received.body);
  if (received.kind == message::stream && attached_.load(std::memory_order_acquire)) {
    if (carrier_ && received.fds.size() == 1) carrier_->adopt(std::move(received.fds[0]), received.body);
    return;
  }
  const auto body = message::parse(received.body);
  // The link assigns its slot before the adapter exists, so neighbours may already talk to us. None can
  // know an object of ours yet.
  if (!body || !attached_.load(std::memory_order_acquire)) return;
  if (received.kind == message::want_mover) return mover_->start();
  const std::uint32_t number = body->number;
  switch (received.kind) {
    case message::kick:
      if (number != 0) return adapter_->kicked(rnic::Qpn(number));
      if (from->slot() != link_->slot()) mover_runs(*from);
      return adapter_->service();
    case message::fault:
      return adapter_->faulted(rnic::Qpn(number), fault_of(body->extra));
    case message::cq_event:
      return adapter_->raise_cq(number);
    case message::srq_limit:
      return adapter_->srq_limit(number);
    case message::return_receive:
      return adapter_->receive_returned(from->slot(),
                                        {.srq_index = number,
                                         .incarnation = static_cast<std::uint32_t>(body->extra >> 32),
                                         .wqe = static_cast<std::uint32_t>(body->extra)});
    case message::withheld:
      return receive_withheld(rnic::Qpn(number), static_cast<std::uint32_t>(body->extra));
    case message::qp_closed:
      return adapter_->queue_pair_closed();
    case message::want_window:
      return answer_window(from, number);
    case message::want_channel:
      return answer_channel(from, number);
    default:
      break;
  }
  const auto peer = std::static_pointer_cast<NeighbourPeer>(adopt(from));
  if (!peer) return;
  if (received.kind == message::window && received.fds.size() == 1)
    peer->window_arrived(number, received.fds[0], body->extra);
  if (received.kind == message::channel && received.fds.size() == 1)
    peer->channel_arrived(number, std::move(received.fds[0]));
  if (received.kind == message::channel_gone) peer->channel_gone(number);
  if (received.kind == message::window_gone) {
    const auto window = peer->take_window(number);
    if (window) adapter_->quiesce(*peer);  // a copy of ours may still be running in it
  }
}

// The mover found copies that we had cancelled because it was late.
void NicProcess::mover_runs(link::Neighbour& neighbour) {
  const std::lock_guard lock(mutex_);
  if (const auto& peer = peers_[neighbour.slot()]) peer->mover_runs();
}

void NicProcess::answer_window(const link::NeighbourPtr& from, std::uint32_t id) {
  const auto exported = exports_.open(id);
  if (!exported) return;
  const int fd = exported->fd.get();
  (void)message::send(*from, message::window, id, exported->bytes, {&fd, 1});
}

void NicProcess::answer_channel(const link::NeighbourPtr& from, std::uint32_t channel) {
  channels_.pass_on(
      channel, [&](int events) { (void)message::send(*from, message::channel, channel, 0, {&events, 1}); });
}

void NicProcess::on_async_event(AsyncListener listener) {
  const std::lock_guard lock(mutex_);
  async_listener_ = std::move(listener);
}

void NicProcess::async_event(rnic::AsyncEvent event, rnic::QueuePair* qp, rnic::SharedReceiveQueue* srq) {
  AsyncListener listener;
  {
    const std::lock_guard lock(mutex_);
    listener = async_listener_;
  }
  if (listener) listener(event, qp, srq);
}

void NicProcess::receive_withheld(rnic::Qpn qpn, std::uint32_t message) {
  if (faults_) faults_->receiver().withheld(qpn.value(), message);
}

std::uint64_t NicProcess::now_ns() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(link::Clock::now().time_since_epoch()).count());
}

void NicProcess::runs_are_lost(const rnic::PacketRoute& route) {
  if (link::FabricPort::of_process() != nullptr)
    return;  // a simulated network loses packets, and knows no runs
  static std::atomic_flag said;
  if (link::first_time(said))
    link::explain(
        "the path to " + text_of(route.destination) +
        " loses packets that leave in runs (UDP_SEGMENT) and carries single ones: they leave one by one "
        "now, which costs more processor time; a newer kernel or driver there, or tx-udp-segmentation "
        "off, repairs it");
}

void NicProcess::watch_departures_at(std::uint64_t deadline_ns) {
  link_->at(link::Clock::time_point(std::chrono::nanoseconds(deadline_ns)),
            [this] { adapter_->departures().leave_overdue(); });
}

void NicProcess::wake_at(std::uint64_t deadline_ns) {
  link_->at(link::Clock::time_point(std::chrono::nanoseconds(deadline_ns)), [this] { adapter_->service(); });
}

}  // namespace weir::verbs
