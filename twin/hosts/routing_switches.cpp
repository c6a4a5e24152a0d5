#include "twin/hosts/routing_switches.hpp"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "twin/hosts/namespaces.hpp"
#include "twin/hosts/user_namespace.hpp"

namespace weir::hosts {
namespace {

// A switch's own, by which its neighbours find it: 10.78.0.1 and so on.
std::uint32_t address_of_switch(std::size_t index) {
  constexpr std::uint32_t first = 0x0a4e0001;
  return first + static_cast<std::uint32_t>(index);
}

// Their order matters: ip_forward resets others.
constexpr std::pair<const char*, const char*> settings[] = {
    {"ipv4/ip_forward", "1"},
    {"ipv4/fib_multipath_hash_policy", "1"},  // by ports, too: else a pair of hosts had one way
    {"ipv4/conf/default/proxy_arp", "1"},     // hosts ask for each other as on one network
    {"ipv4/neigh/default/proxy_delay", "0"},  // and are answered at once
    {"ipv4/conf/all/rp_filter", "0"},         // answers may come another way
    {"ipv4/conf/default/rp_filter", "0"},
    {"ipv4/conf/all/send_redirects", "0"},
    {"ipv4/conf/default/send_redirects", "0"},
    {"ipv6/conf/default/disable_ipv6", "1"},
};

}  // namespace

std::string port_of(std::size_t cable) { return "port" + std::to_string(cable + 1); }

template <class Visit>
Result<void> RoutingSwitches::visit(std::size_t index, Visit&& at) const {
  if (::setns(networks_[index].get(), CLONE_NEWNET) != 0)
    return failure_errno(errno, "cannot enter a switch");
  auto links = Links::open();
  Result<void> done = links ? at(*links) : std::unexpected(links.error());
  if (::setns(home_.get(), CLONE_NEWNET) != 0) return failure_errno(errno, "cannot return from a switch");
  return done;
}

Result<RoutingSwitches> RoutingSwitches::make(const NetworkPlan& plan) {
  RoutingSwitches made;
  auto home = own(network);
  if (!home) return std::unexpected(home.error());
  made.home_ = std::move(*home);
  for (std::size_t index = 0; index < plan.switches.size(); ++index) {
    if (::unshare(CLONE_NEWNET) != 0) return std::unexpected(refused_namespace(errno));
    auto network_of_switch = own(network);
    if (!network_of_switch) return std::unexpected(network_of_switch.error());
    made.networks_.push_back(std::move(*network_of_switch));
    if (const auto up = made.set_up_switch(index); !up) return std::unexpected(up.error());
  }
  made.routes_.assign(plan.switches.size(), std::vector<std::vector<std::size_t>>(plan.hosts.size()));
  return made;
}

Result<void> RoutingSwitches::set_up_switch(std::size_t index) const {
  for (const auto& [name, value] : settings) std::ofstream(std::string("/proc/sys/net/") + name) << value;
  return visit(index, [&](Links& links) -> Result<void> {
    if (const auto up = links.set_up("lo", true); !up) return up;
    return links.add_address("lo", address_of_switch(index), 32);
  });
}

int RoutingSwitches::network_at(const NetworkPlan& plan, std::size_t host) const {
  return networks_[plan.cables[host].b - plan.hosts.size()].get();
}

Result<void> RoutingSwitches::join(const NetworkPlan& plan) {
  const std::size_t hosts = plan.hosts.size();
  auto links = Links::open();
  if (!links) return std::unexpected(links.error());
  for (std::size_t cable = hosts; cable < plan.cables.size(); ++cable) {
    const auto& [a, b] = plan.cables[cable];
    const auto laid = links->add_cable_between(port_of(cable), networks_[a - hosts].get(),
                                               networks_[b - hosts].get(), plan.mtu_bytes);
    if (!laid) return laid;
  }
  std::vector<std::vector<std::size_t>> ports(plan.switches.size());
  for (std::size_t cable = 0; cable < plan.cables.size(); ++cable)
    for (const std::size_t node : {plan.cables[cable].a, plan.cables[cable].b})
      if (node >= hosts) ports[node - hosts].push_back(cable);
  for (std::size_t index = 0; index < ports.size(); ++index) {
    const auto up = visit(index, [&](Links& here) -> Result<void> {
      for (const std::size_t cable : ports[index])
        if (const auto done = here.set_up(port_of(cable), true); !done) return done;
      return {};
    });
    if (!up) return up;
  }
  return apply(plan, shortest_routes(plan, std::vector<bool>(plan.cables.size(), true)), {});
}

Result<void> RoutingSwitches::plug(const NetworkPlan& plan, std::size_t cable,
                                   const std::vector<bool>& plugged) {
  std::vector<std::size_t> ends;
  for (const std::size_t node : {plan.cables[cable].a, plan.cables[cable].b})
    if (node >= plan.hosts.size()) ends.push_back(node - plan.hosts.size());
  for (const std::size_t index : ends) {
    const auto done =
        visit(index, [&](Links& links) { return links.set_up(port_of(cable), plugged[cable]); });
    if (!done) return done;
  }
  return apply(plan, shortest_routes(plan, plugged), ends);
}

// Of the switches in `anew` the kernel has forgotten what led through the cable; of the others it has all.
Result<void> RoutingSwitches::apply(const NetworkPlan& plan, SwitchRoutes routes,
                                    const std::vector<std::size_t>& anew) {
  const auto way = [&](std::size_t index, std::size_t cable) {
    if (cable < plan.hosts.size()) return Links::Way{port_of(cable), 0};
    const auto& [a, b] = plan.cables[cable];
    const std::size_t other = (a - plan.hosts.size() == index ? b : a) - plan.hosts.size();
    return Links::Way{port_of(cable), address_of_switch(other)};
  };
  for (std::size_t index = 0; index < routes.size(); ++index) {
    const bool all = std::ranges::find(anew, index) != anew.end();
    const auto done = visit(index, [&](Links& links) -> Result<void> {
      for (std::size_t host = 0; host < plan.hosts.size(); ++host) {
        const auto& cables = routes[index][host];
        if (!all && cables == routes_[index][host]) continue;
        std::vector<Links::Way> ways;
        for (const std::size_t cable : cables) ways.push_back(way(index, cable));
        const std::uint32_t to = plan.hosts[host].ipv4;
        if (const auto set = ways.empty() ? links.remove_route(to) : links.set_route(to, ways); !set)
          return set;
      }
      return {};
    });
    if (!done) return done;
  }
  routes_ = std::move(routes);
  return {};
}

Result<std::map<std::string, Links::Counters>> RoutingSwitches::counters(const NetworkPlan& plan) const {
  std::map<std::string, Links::Counters> all;
  for (std::size_t index = 0; index < networks_.size(); ++index) {
    const auto read = visit(index, [&](Links& links) -> Result<void> {
      const auto found = links.counters();
      if (!found) return std::unexpected(found.error());
      for (std::size_t cable = 0; cable < plan.cables.size(); ++cable) {
        const std::size_t counted = cable < plan.hosts.size() ? plan.cables[cable].b : plan.cables[cable].a;
        if (counted - plan.hosts.size() != index) continue;
        if (const auto port = found->find(port_of(cable)); port != found->end()) all.insert(*port);
      }
      return {};
    });
    if (!read) return std::unexpected(read.error());
  }
  return all;
}

}  // namespace weir::hosts
