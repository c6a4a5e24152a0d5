#include "rnic/between_hosts/departures.hpp"

#include <algorithm>
#include <utility>

#include "rnic/between_hosts/laid_out.hpp"
#include "rnic/memory/per_thread.hpp"
#include "rnic/packet/message_opcodes.hpp"

namespace weir::rnic {
namespace {

std::uint64_t next_serial() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1) + 1;
}

bool is_whole_message(const packet::Outgoing& packet) {
  const auto operation = static_cast<wire::Operation>(static_cast<std::uint8_t>(packet.header[0]) & 0x1f);
  return packet::is_only(operation) || operation == wire::Operation::read_response_only;
}

}  // namespace

// ---- one thread's

bool DepartureStage::is_short(const packet::Outgoing& packet) {
  return packet.payload_bytes <= (is_whole_message(packet) ? 1024 : 512);
}

void DepartureStage::Place::follow(const Place& other) {
  if (other.stage == nullptr) return;
  if (stage == other.stage && departure == other.departure)
    bucket = std::max(bucket, other.bucket);
  else
    *this = other;
}

void DepartureStage::polled(std::size_t completions) {
  if (completions == 0) {
    found_nothing_ = true;
    return leave();
  }
  if (std::exchange(found_nothing_, false)) unanswered_ = in_a_row_ = 0;
  in_a_row_ += static_cast<std::uint32_t>(completions);
  // One that takes them one by one answers each before it knows of the next: 2 outlast the post.
  if (in_a_row_ > 1)
    unanswered_ =
        std::clamp(unanswered_ + static_cast<std::uint32_t>(completions), std::uint32_t{2}, max_unanswered);
  found_more();
}

// A thread that always finds something, be it strangers' packets, does not hold its own for ever.
void DepartureStage::found_more() {
  if (packets_.load(std::memory_order_relaxed) != 0 && ++polls_since_ == polls_held) leave();
}

// Asking costs a twentieth of a run. A thread with more to answer polls first, and finds that, or nothing.
void DepartureStage::answered_all() {
  if (packets_.load(std::memory_order_relaxed) == 0) return;
  if (of_ != nullptr && of_->host_.packets_wait())
    unanswered_ = 1;
  else
    leave();
}

bool DepartureStage::add(const PacketRoute& route, const wire::IcrcRoute& icrc,
                         const packet::Outgoing& packet, std::size_t run_limit, Place& place) {
  if (place.stage != nullptr && place.stage.get() != this) place.settle();
  const std::lock_guard lock(lock_);
  if (of_ == nullptr) return true;  // lost, as everything that a NIC which is gone had still to send
  const bool holds_more =
      place.stage.get() == this && place.departure == departure_.load(std::memory_order_relaxed);
  const std::size_t length = packet.udp_payload();
  const std::size_t way = route_of(route, icrc);
  // route_of() may have let everything go.
  const std::size_t not_before =
      holds_more && packets_.load(std::memory_order_relaxed) != 0 ? place.bucket : 0;
  const std::size_t at = bucket_of(way, length, run_limit, not_before);
  Bucket& bucket = buckets_[at];
  const std::size_t used = bucket.bytes.size();
  bucket.bytes.resize(used + length);
  if (!lay_out(packet, bucket.bytes.data() + used)) {
    bucket.bytes.resize(used);
    return false;
  }
  bucket.from.push_back(route.from);
  if (place.stage.get() != this) place.stage = of_->shared_here();
  place.departure = departure_.load(std::memory_order_relaxed);
  place.bucket = at;
  bytes_ += length;
  if (packets_.fetch_add(1, std::memory_order_seq_cst) == 0) {
    polls_since_ = 0;
    const std::uint64_t now_ns = of_->host_.now_ns();
    since_ns_.store(now_ns, std::memory_order_relaxed);
    if (rounds_ == 0) of_->watch(now_ns);
  }
  if (packets_.load(std::memory_order_relaxed) >= max_packets || bytes_ >= max_bytes) leave_locked();
  return true;
}

std::size_t DepartureStage::route_of(const PacketRoute& route, const wire::IcrcRoute& icrc) {
  const auto found =
      std::ranges::find_if(routes_, [&](const Route& each) { return each.route.is_same_way(route); });
  if (found != routes_.end()) return static_cast<std::size_t>(found - routes_.begin());
  if (routes_.size() == max_routes) leave_locked();
  routes_.push_back({route, icrc});
  return routes_.size() - 1;
}

std::size_t DepartureStage::bucket_of(std::size_t route, std::size_t length, std::size_t run_limit,
                                      std::size_t not_before) {
  for (std::size_t i = not_before; i < used_; ++i) {
    const Bucket& each = buckets_[i];
    if (each.route == route && each.length == length && each.from.size() < run_limit &&
        each.bytes.size() + length <= longest_run_bytes)
      return i;
  }
  if (used_ == buckets_.size()) buckets_.emplace_back();
  Bucket& made = buckets_[used_];
  made.route = route;
  made.length = length;
  return used_++;
}

void DepartureStage::leave() {
  if (packets_.load(std::memory_order_seq_cst) == 0) return;
  const std::lock_guard lock(lock_);
  leave_locked();
}

void DepartureStage::leave_locked() {
  for (std::size_t route = 0; route < routes_.size() && of_ != nullptr; ++route) send_route(route);
  for (Bucket& bucket : std::span(buckets_).first(used_)) {
    bucket.bytes.clear();
    bucket.from.clear();
  }
  routes_.clear();
  used_ = bytes_ = 0;
  departure_.fetch_add(1, std::memory_order_release);
  packets_.store(0, std::memory_order_release);
}

void DepartureStage::send_route(std::size_t route) {
  std::array<PacketRun, max_packets> runs;
  std::size_t count = 0;
  const Route& way = routes_[route];
  for (Bucket& bucket : std::span(buckets_).first(used_)) {
    if (bucket.route != route || bucket.from.empty()) continue;
    const std::span<std::byte> bytes(bucket.bytes);
    for (std::size_t i = 0; i < bucket.from.size(); ++i)
      seal(way.route, way.icrc, bytes.subspan(i * bucket.length, bucket.length),
           static_cast<std::uint16_t>(i));
    runs[count++] = {bytes, static_cast<std::uint16_t>(bucket.length), bucket.from};
  }
  if (count != 0) of_->host_.send_packets(way.route, std::span(runs).first(count));
}

void DepartureStage::close() {
  const std::lock_guard lock(lock_);
  leave_locked();
  of_ = nullptr;
}

// ---- all threads'

namespace {

// What this thread has, to look at without making anything.
struct Known {
  std::uint64_t serial;
  DepartureStage* stage;
};
constinit thread_local Known known{};

}  // namespace

struct Departures::Mine {
  std::shared_ptr<DepartureStage> stage;
  ~Mine() {
    known = {};
    if (stage != nullptr) stage->will_sleep();
  }
};

Departures::Departures(HostPort& host) : host_(host), serial_(next_serial()) {}

Departures::~Departures() {
  for (const auto& stage : stages_) stage->close();
}

const std::shared_ptr<DepartureStage>& Departures::shared_here() {
  Mine& mine = per_thread<Mine>();
  if (known.serial == serial_) return mine.stage;
  if (mine.stage != nullptr) mine.stage->will_sleep();
  mine.stage = std::make_shared<DepartureStage>(*this);
  known = {serial_, mine.stage.get()};
  const std::lock_guard lock(mutex_);
  std::erase_if(stages_, [](const auto& stage) { return stage.use_count() == 1; });  // of threads that ended
  stages_.push_back(mine.stage);
  return mine.stage;
}

DepartureStage& Departures::here() { return known.serial == serial_ ? *known.stage : *shared_here(); }

void Departures::will_sleep() {
  if (known.serial == serial_) known.stage->will_sleep();
}

std::vector<std::shared_ptr<DepartureStage>> Departures::all() {
  const std::lock_guard lock(mutex_);
  return stages_;
}

void Departures::watch(std::uint64_t now_ns) {
  if (watched_.load(std::memory_order_seq_cst) || watched_.exchange(true, std::memory_order_seq_cst)) return;
  host_.watch_departures_at(now_ns + watch_ns_.load(std::memory_order_relaxed));
}

// Whoever adds from here on asks for the next look itself; what was added before is seen now.
void Departures::leave_overdue() {
  if (!watched_.exchange(false, std::memory_order_seq_cst)) return;
  const std::uint64_t now_ns = host_.now_ns();
  bool any_late = false, any_left = false;
  for (const auto& stage : all()) {
    if (stage->packets_.load(std::memory_order_seq_cst) == 0) continue;
    if (now_ns - stage->since_ns_.load(std::memory_order_relaxed) < shortest_watch_ns) {
      any_left = true;
      continue;
    }
    any_late = true;
    stage->leave();
  }
  const std::uint64_t last_ns = watch_ns_.load(std::memory_order_relaxed);
  watch_ns_.store(any_late ? shortest_watch_ns : std::min(2 * last_ns, longest_watch_ns),
                  std::memory_order_relaxed);
  if (any_left) watch(now_ns);
}

void Departures::leave_all() {
  for (const auto& stage : all()) {
    if (!stage->lock_.lock_soon()) continue;
    const std::lock_guard lock(stage->lock_, std::adopt_lock);
    stage->leave_locked();
  }
}

}  // namespace weir::rnic
