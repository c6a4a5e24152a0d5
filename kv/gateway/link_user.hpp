// What the owners of node links (topology_reader, own_links, subscriber) need from the code that uses them,
// and a base class that gives their links access to it.
#pragma once

#include <cstdint>
#include <memory>

#include "kv/gateway/node_link.hpp"

namespace weir::kv::cluster {

// See NodeLink::Owner.
class LinkUser {
 public:
  virtual LinkSettings link_settings() const = 0;
  virtual Opened<std::unique_ptr<Dialling>> dial_node(const NodeAddress& address, Dialled dialled) = 0;
  virtual BlockPool& blocks() = 0;
  virtual std::int64_t now_ms() = 0;
  virtual void round_is_over() = 0;

 protected:
  ~LinkUser() = default;
};

class LinkKeeper : protected NodeLink::Owner {
 protected:
  explicit LinkKeeper(LinkUser& user) : links_user_(user) {}
  ~LinkKeeper() = default;

  Opened<std::unique_ptr<Dialling>> dial_node(const NodeAddress& address, Dialled dialled) final {
    return links_user_.dial_node(address, std::move(dialled));
  }
  BlockPool& blocks() final { return links_user_.blocks(); }
  std::int64_t now_ms() final { return links_user_.now_ms(); }
  void round_is_over() final { links_user_.round_is_over(); }

  std::unique_ptr<NodeLink> make_link(const NodeAddress& address, LinkSettings settings) {
    NodeLink::Owner& self = *this;
    return std::make_unique<NodeLink>(self, address, std::move(settings));
  }
  std::unique_ptr<NodeLink> make_link(const NodeAddress& address, Protocol protocol) {
    LinkSettings settings = links_user_.link_settings();
    settings.protocol = protocol;
    return make_link(address, std::move(settings));
  }

 private:
  LinkUser& links_user_;
};

}  // namespace weir::kv::cluster
