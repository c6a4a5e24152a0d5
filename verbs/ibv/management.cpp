// Queue pair 1 for librdmacm.so.1: PacketNetwork, with source addresses from the GID table.
#include <cstring>

#include "link/udp/udp_port.hpp"
#include "verbs/ibv/objects.hpp"
#include "verbs/ibv/private_link.hpp"
#include "verbs/nic/management_port.hpp"
#include "wire/mad.hpp"

namespace weir::verbs {
namespace {

ibv_gid gid_of(const GidBytes& bytes) {
  ibv_gid gid;
  std::memcpy(gid.raw, bytes.data(), bytes.size());
  return gid;
}

class Management final : public ManagementPort {
 public:
  explicit Management(NicProcess& nic) : nic_(nic) {}

  link::Result<void> open_port() override { return nic_.network().open(); }
  void on_management(Handler handler) override { nic_.network().on_management(std::move(handler)); }
  void send_management(const ManagementRoute& to, std::span<const std::byte> mad) override {
    nic_.network().send_management(route_of(to), mad);
  }
  std::unique_ptr<link::PortProbe> ask(const ManagementRoute& to, std::span<const std::byte> mad) override {
    return nic_.network().ask(route_of(to), mad);
  }
  bool is_ours(const GidBytes& address) override { return find_gid(gid_of(address)).has_value(); }
  void listens(std::uint32_t service) override { nic_.network().listens(service); }
  void listens_no_more(std::uint32_t service) override { nic_.network().listens_no_more(service); }
  bool serve(const std::string& service) override {
    return nic_.network().users() != nullptr && nic_.network().users()->listen(service);
  }
  std::optional<unsigned> other_user_serving(const std::string& service) override {
    return nic_.network().users() != nullptr ? nic_.network().users()->other_user_with(service)
                                             : std::nullopt;
  }
  void stop_serving(const std::string& service) override { nic_.network().users()->leave(service); }
  bool find_server(const std::string& service, std::function<void(std::uint64_t)> found) override {
    // The callback runs in the receiving thread, which holds the NIC's locks: defer `found`.
    const auto later = [this, found = std::move(found)](std::uint64_t process) {
      nic_.link().post([found, process] { found(process); });
    };
    return nic_.network().users() != nullptr && nic_.network().users()->find(service, later);
  }
  bool is_occupied(link::Slot slot) override {
    return nic_.network().admission().is_occupied(slot, link::Clock::now());
  }
  bool may_dial(link::Slot slot) override {
    return nic_.network().admission().may_dial(slot, link::Clock::now());
  }
  void count_dropped(rnic::Dropped why) override {
    nic_.adapter().segment().header().counters.count_drop(why);
  }
  void on_process_gone(std::function<void(std::uint64_t)> handler) override {
    nic_.network().on_process_gone(std::move(handler));
  }
  bool leads_to(const GidBytes& destination) override {
    ibv_ah_attr to{};
    to.is_global = 1;
    to.grh.dgid = gid_of(destination);
    return reach_of(to, rnic::QpType::rc) == Reach::packets;
  }
  std::uint8_t path_mtu(const GidBytes& source) override {
    const auto index = find_gid(gid_of(source));
    return index ? static_cast<std::uint8_t>(mtu_of(*gid_at(*index))) : std::uint8_t{IBV_MTU_1024};
  }
  std::uint32_t scope_of(const GidBytes& own) override {
    if (!link::is_link_local(own)) return 0;
    const auto index = find_gid(gid_of(own));
    const auto entry = index ? gid_at(*index) : std::nullopt;
    return entry ? entry->interface_index : 0;
  }

 private:
  rnic::PacketRoute route_of(const ManagementRoute& to) {
    return {.source = to.source,
            .destination = to.destination,
            .interface = scope_of(to.source),
            .from = rnic::Qpn(wire::cm_qpn),
            .process = to.process};
  }

  NicProcess& nic_;
};

}  // namespace

ManagementPort* make_management_port(NicProcess& nic) { return new Management(nic); }

}  // namespace weir::verbs
