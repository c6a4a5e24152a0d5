#include "link/udp/steering.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string>
#include <utility>

#include "link/abstract_socket.hpp"

namespace weir::link {
namespace {

constexpr std::string_view prefix = "weir-udp-", place_prefix = "weir-udp-at-",
                           service_prefix = "weir-udp-for-";
constexpr std::uint16_t likely_spread = 8;  // how far from the end of the list a newcomer is sought first
constexpr std::uint16_t unknown = 64;       // processes that have published nothing yet, at most
constexpr std::uint16_t most_places = 1024;
constexpr std::size_t least_known = 8;  // a program of that many fits anywhere
constexpr int most_programs = 4;        // given in a row, while others publish at the same time

std::string name_of(std::string_view kind, Slot slot, std::uint32_t number) {
  return std::string(kind) + std::to_string(slot) + "-" + std::to_string(number);
}

// The slot and the number of a name of that kind.
std::optional<std::pair<Slot, std::uint32_t>> read_name(std::string_view name, std::string_view kind) {
  if (!name.starts_with(kind)) return std::nullopt;
  Slot slot = 0;
  std::uint32_t number = 0;
  const char* const end = name.data() + name.size();
  const auto first = std::from_chars(name.data() + kind.size(), end, slot);
  if (first.ec != std::errc{} || first.ptr == end || *first.ptr != '-') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, number);
  if (second.ec != std::errc{} || second.ptr != end || slot >= max_slots) return std::nullopt;
  return std::pair(slot, number);
}

// From 127.0.0.0/8 nothing comes that this host has not sent.
bool is_loopback(const IpAddress& ip) { return ip[10] == 0xff && ip[11] == 0xff && ip[12] == 127; }

// Sends probes from a port of its own.
class Prober {
 public:
  explicit Prober(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    to_.sin_family = AF_INET;
    to_.sin_port = htons(port);
    to_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  }
  void send(std::uint16_t place, std::uint16_t copy, std::uint32_t nonce) const {
    const PlaceProbe probe{htonl(probe_magic), htonl(nonce), htons(place), htons(copy)};
    (void)::sendto(socket_.get(), &probe, sizeof probe, MSG_DONTWAIT | MSG_NOSIGNAL,
                   reinterpret_cast<const sockaddr*>(&to_), sizeof to_);
  }

 private:
  UniqueFd socket_;
  sockaddr_in to_{};
};

}  // namespace

Steering::Steering(Options options) : options_(std::move(options)), nonce_(options_.seed) {}

std::optional<std::uint16_t> Steering::place() const {
  const std::lock_guard lock(mutex_);
  return place_;
}

Steering::Published Steering::published() {
  Published known;
  for (const std::string& name : names_of_user(::geteuid(), prefix)) {
    if (const auto at = read_name(name, place_prefix); at && at->second < most_places)
      known.places.push_back({at->first, static_cast<std::uint16_t>(at->second)});
    if (const auto listens = read_name(name, service_prefix)) known.services.push_back(*listens);
  }
  std::ranges::sort(known.places, {}, [](const PortPlace& it) { return std::pair(it.slot, it.place); });
  std::ranges::sort(known.services);
  return known;
}

std::vector<sock_filter> Steering::program_of(const Published& known) const {
  std::vector<ServicePlace> services;
  for (const auto& [slot, service] : known.services) {
    const auto at = std::ranges::find(known.places, slot, &PortPlace::slot);
    if (at != known.places.end() && services.size() < most_known_) services.push_back({service, at->place});
  }
  const std::size_t count = std::min(known.places.size(), most_known_);
  return steering_program(std::span(known.places).first(count), services, options_.shifts);
}

// 0, or an errno.
int Steering::give(std::vector<sock_filter> code) const {
  sock_fprog program{};  // its padding, too, goes to the kernel, and valgrind minds
  program.len = static_cast<unsigned short>(code.size());
  program.filter = code.data();
  const int given =
      ::setsockopt(options_.socket, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof program);
  return given == 0 ? 0 : errno;
}

// A program for nobody also steers probes.
void Steering::give_program() {
  Published known = published();
  for (int i = 0; i < most_programs; ++i) {
    int error = give(program_of(known));
    // net.core.optmem_max limits its size.
    while (error == ENOMEM && most_known_ > least_known) {
      most_known_ /= 2;
      error = give(program_of(known));
    }
    off_ = error != 0;
    if (off_) return;
    // Who published before ours was in force may have been given a program before it, which ours replaced.
    Published now = published();
    if (now == known) return;
    known = std::move(now);
  }
}

void Steering::probe_all(std::uint16_t from, std::uint16_t to) {
  came_.clear();
  ++nonce_;
  for (std::uint16_t copy = 0; copy < copies; ++copy) {
    const Prober prober(options_.port);
    for (std::uint16_t place = from; place < to; ++place) prober.send(place, copy, nonce_);
  }
}

bool Steering::begin(Clock::time_point now) {
  if (off_ || looking_ || (looked_ != Clock::time_point{} && now - looked_ < pause_)) return false;
  looked_ = now;
  give_program();
  if (off_) return false;
  looking_ = true;
  second_round_ = false;
  const auto others =
      static_cast<std::uint16_t>(std::min<std::size_t>(published().places.size(), most_places / 2));
  // A newcomer is the last of the list; who was moved is before its old place. (Who is alone gets all
  // probes.)
  const std::uint16_t from = !place_ && others > likely_spread ? others - likely_spread : 0;
  below_ = std::max(others, place_.value_or(0)) + likely_spread;
  probe_all(from, below_);
  return true;
}

void Steering::look(Clock::time_point now) {
  {
    const std::lock_guard lock(mutex_);
    if (!begin(now)) return;
  }
  options_.settle_later();
}

bool Steering::take(const UdpArrival& arrival) {
  PlaceProbe probe;
  if (arrival.payload.size() != sizeof probe) return false;
  std::memcpy(&probe, arrival.payload.data(), sizeof probe);
  if (ntohl(probe.magic) != probe_magic) return false;
  const std::uint16_t place = ntohs(probe.place), copy = ntohs(probe.copy);
  if (!is_loopback(arrival.source) || copy >= copies || place >= most_places) return true;
  {
    const std::lock_guard lock(mutex_);
    if (ntohl(probe.nonce) == nonce_) {
      came_[place] |= static_cast<std::uint16_t>(1u << copy);
      return true;
    }
  }
  if (options_.another_looks) options_.another_looks();
  return true;
}

// A probe of a place that nobody has comes to whom the kernel chooses by the port that it came from: its
// copies hardly all come here. Our own place is before those places.
std::optional<std::uint16_t> Steering::found() const {
  for (const auto& [place, which] : came_)
    if (which == all_copies) return place;
  return std::nullopt;
}

void Steering::settle(Clock::time_point now) {
  {
    const std::lock_guard lock(mutex_);
    if (!looking_) return;
    if (const auto place = found()) {
      looking_ = false;
      looked_ = now;
      return publish(*place);
    }
    if (second_round_) {
      looking_ = false;
      lost_ = true;  // what was published before may still be right
      pause_ = longest_pause;
      return;
    }
    second_round_ = true;
    below_ += unknown;
    probe_all(0, below_);
  }
  options_.settle_later();
}

void Steering::publish(std::uint16_t place) {
  const bool changed = !name_ || place_ != place;
  pause_ = changed ? check_interval : std::min(2 * pause_ + check_interval, longest_pause);
  place_ = place;
  checking_ = lost_ = false;
  if (changed) {
    name_.reset();
    if (auto held = hold_name(name_of(place_prefix, options_.slot, place))) name_ = std::move(*held);
  }
  give_program();
}

void Steering::listen(std::uint32_t service) {
  const std::lock_guard lock(mutex_);
  if (!services_.contains(service) && services_.size() >= max_services) return;
  Service& it = services_[service];
  if (it.listeners++ != 0) return;
  if (auto held = hold_name(name_of(service_prefix, options_.slot, service))) it.name = std::move(*held);
  if (!off_) give_program();
}

void Steering::leave(std::uint32_t service) {
  const std::lock_guard lock(mutex_);
  const auto known = services_.find(service);
  if (known == services_.end() || --known->second.listeners != 0) return;
  services_.erase(known);
  if (!off_) give_program();
}

void Steering::check(Clock::time_point now) {
  const Clock::rep at = now.time_since_epoch().count();
  Clock::rep due = next_check_.load(std::memory_order_relaxed);
  const auto next = (now + check_interval).time_since_epoch().count();
  if (at < due || !next_check_.compare_exchange_strong(due, next, std::memory_order_relaxed)) return;
  {
    const std::lock_guard lock(mutex_);
    if (off_ || looking_) return;
    const bool missed = std::exchange(checking_, false) && found() != place_;
    if (place_ && !missed) {
      checking_ = true;
      probe_all(*place_, *place_ + 1);
      return;
    }
    if (missed && !lost_) pause_ = {};
    if (!begin(now)) return;
  }
  options_.settle_later();
}

}  // namespace weir::link
