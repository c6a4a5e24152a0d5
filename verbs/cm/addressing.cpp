// Binding, address and route resolution. On one host each is a look-up in the GID table and the host's routes
// and is done at once; its event is queued as if it had taken time.
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "link/explain.hpp"
#include "link/not_cancelled.hpp"
#include "link/unique_fd.hpp"
#include "verbs/cm/agent.hpp"
#include "verbs/cm/ephemeral_ports.hpp"
#include "verbs/cm/explanations.hpp"

namespace weir::cm {
namespace {

constexpr int most_ports_of_others = 16;  // tried for a program that asks for any port

EventPtr address_event(Id& id, rdma_cm_event_type type, int status) {
  auto event = std::make_unique<Event>();
  event->id = &id;
  event->event = type;
  event->status = status;
  return event;
}

// The address that the host would send from. Connecting a datagram socket consults the routing
// table and sends nothing.
std::expected<Endpoint, int> source_towards(const Endpoint& destination) {
  sockaddr_storage to{}, from{};
  Endpoint somewhere = destination;
  if (somewhere.port == 0) somewhere.port = 9;
  store(somewhere, to);
  const link::UniqueFd socket(::socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return std::unexpected(errno);
  const auto* address = reinterpret_cast<const sockaddr*>(&to);
  if (::connect(socket.get(), address, size_of(address)) != 0) return std::unexpected(errno);
  socklen_t size = sizeof from;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&from), &size) != 0)
    return std::unexpected(errno);
  auto source = endpoint_of(reinterpret_cast<const sockaddr*>(&from));
  if (!source) return std::unexpected(EAFNOSUPPORT);
  source->port = 0;
  return *source;
}

Endpoint loopback_for(const Endpoint& any) {
  Endpoint loopback = any;
  if (any.is_v4()) {
    loopback.ip[12] = 127;
  }
  loopback.ip[15] = 1;
  return loopback;
}

void fill_path(Id& id) {
  ibv_sa_path_rec& path = id.path;
  path = {};
  path.sgid = id.local.gid();
  path.dgid = id.remote.gid();
  path.hop_limit = 64;
  path.traffic_class = id.type_of_service;
  path.reversible = 1;
  path.numb_path = 1;
  path.pkey = 0xffff;
  path.mtu_selector = 2;  // exactly
  path.mtu = static_cast<std::uint8_t>(id.place->mtu);
  path.rate_selector = 2;
  path.rate = IBV_RATE_100_GBPS;
  path.packet_life_time_selector = 2;
  path.packet_life_time = 16;
  id.route.path_rec = &path;
  id.route.num_paths = 1;
}

}  // namespace

// A connecting identifier has a port only for people to recognize it by, so the port takes no
// place in the port space.
Endpoint Agent::ephemeral(Endpoint endpoint) {
  const std::scoped_lock hold(mutex_);
  endpoint.port = static_cast<std::uint16_t>(first_ephemeral + next_ephemeral_++ % ephemeral_count);
  return endpoint;
}

int Agent::bind(Id& id, const sockaddr* address) {
  const link::NotCancelled whole;
  if (id.stage != Stage::unbound) return EINVAL;
  const auto endpoint = endpoint_of(address);
  if (!endpoint) return EINVAL;
  const auto place = endpoint->is_any() ? std::nullopt : devices_.find(*endpoint);
  if (!endpoint->is_any() && !place) return EADDRNOTAVAIL;
  const auto space = static_cast<std::uint16_t>(id.ps);
  auto binding = ports_.bind(space, *endpoint, id.sharing);
  // Whoever asks for any port is to get one to listen on.
  for (int more = most_ports_of_others;
       more > 0 && endpoint->port == 0 && binding && packets_ && packets_->other_user_at(*binding); --more) {
    ports_.release(*binding);
    binding = ports_.bind(space, *endpoint, id.sharing);
  }
  if (!binding) return binding.error();
  id.binding = *binding;
  id.set_local(binding->endpoint);
  if (place) this->place(id, *place);
  id.stage = Stage::bound;
  return 0;
}

int Agent::resolve_address(Id& id, const sockaddr* source, const sockaddr* destination) {
  const link::NotCancelled whole;
  auto to = endpoint_of(destination);
  const auto from = endpoint_of(source);
  if (!to || (source != nullptr && !from)) return EINVAL;
  if (id.stage == Stage::unbound && from && from->port != 0) {
    if (const int error = bind(id, source); error != 0) return error;
  }
  if (id.stage != Stage::unbound && id.stage != Stage::bound) return EINVAL;
  if (to->is_any()) to = loopback_for(*to);
  id.set_remote(*to);
  id.route.addr.addr.ibaddr.dgid = to->gid();

  const auto fail = [&](int error) {
    const std::scoped_lock hold(mutex_);
    push(id, address_event(id, RDMA_CM_EVENT_ADDR_ERROR, -error));
    return 0;
  };
  Endpoint local = id.stage == Stage::bound ? id.local : from.value_or(any_v4());
  if (local.is_any()) {
    const auto found = source_towards(*to);
    if (!found) {
      static std::atomic_flag said;
      if (link::first_time(said))
        link::explain("there is no way to " + text_of(*to) + ": " + std::strerror(found.error()) +
                      "; check the address, and the routes of this network namespace (ip route)");
      return fail(found.error());
    }
    const auto port = local.port;
    local = *found;
    local.port = port;
  }
  const auto place = devices_.find(local);
  if (!place) {
    // The application named the address, or the route leads through an interface without an RDMA device.
    if (from && !from->is_any()) return EADDRNOTAVAIL;
    return fail(ENODEV);
  }
  if (packets_ && packets_->leads_to(*to)) {
    if (const int error = packets_->open(); error != 0) return fail(error);
  } else if (!is_multicast(*to) && !devices_.find(*to)) {
    static std::atomic_flag said;
    if (link::first_time(said)) link::explain(why_not_reached(*to));
    return fail(EHOSTUNREACH);
  }
  id.set_local(local.port != 0 ? local : ephemeral(local));
  this->place(id, *place);
  id.stage = Stage::address_resolved;
  const std::scoped_lock hold(mutex_);
  push(id, address_event(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0));
  return 0;
}

int Agent::resolve_route(Id& id) {
  if (id.stage != Stage::address_resolved) return EINVAL;
  fill_path(id);
  id.stage = Stage::route_resolved;
  const std::scoped_lock hold(mutex_);
  push(id, address_event(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0));
  return 0;
}

// As with TCP, an address and port have one listener, whoever's it is: clients of other users could not tell
// two apart. 0 or an errno.
int Agent::serve(Id& id, const Binding& binding) {
  id.served = packets_->serve(binding);
  if (id.served) return 0;
  const auto user = packets_->other_user_at(binding);
  if (!user) return 0;  // our own user has a listener there in another runtime folder
  static std::atomic_flag said;
  if (link::first_time(said))
    link::explain(
        "cannot listen on RDMA port " + std::to_string(binding.endpoint.port) + " of " +
        text_of(binding.endpoint) + ": a program of user " + std::to_string(*user) +
        " listens there; choose another port or address, or set WEIR_WIRE=0 to be found by programs "
        "of this user alone");
  return EADDRINUSE;
}

int Agent::listen(Id& id, int backlog) {
  const link::NotCancelled whole;
  if (id.stage == Stage::unbound) {
    sockaddr_storage any{};
    store(any_v4(), any);
    if (const int error = bind(id, reinterpret_cast<const sockaddr*>(&any)); error != 0) return error;
  }
  std::unique_lock hold(mutex_);
  id.requests.set_backlog(backlog > 0 ? std::min(backlog, max_backlog) : max_backlog);
  if (id.stage == Stage::listening) return 0;
  if (id.stage != Stage::bound) return EINVAL;
  for (const Id* other : listeners_) {
    // An address that is shared for binding is not shared for listening.
    if (other->ps == id.ps && other->local.port == id.local.port && other->local.same_ip(id.local))
      return EADDRINUSE;
  }
  id.stage = Stage::listening;
  listeners_.push_back(&id);
  const auto binding = id.binding;
  hold.unlock();
  int error = binding && packets_ ? serve(id, *binding) : 0;
  if (error == 0 && binding) error = ports_.listening(*binding);
  if (error == 0 && packets_ && binding && PacketCarrier::may_be_asked_from_elsewhere(id.local)) {
    // Programs on this host reach the listener, whatever prevents access from other hosts.
    id.heard_of = packets_->open() == 0;
    if (id.heard_of) packets_->listens(*binding);
  }
  if (error == 0) return 0;
  if (std::exchange(id.served, false)) packets_->stop_serving(*binding);
  hold.lock();
  std::erase(listeners_, &id);
  id.stage = Stage::bound;
  return error;
}

}  // namespace weir::cm
