// A hub and a reader of its arrays, in one program so that it can be run on its own. In two programs, one
// does the hub's part and the other the peer's.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rdma/provider.hpp"
#include "tensor/hub.hpp"
#include "tensor/peer.hpp"

namespace {

template <class T, class E>
T must(std::expected<T, E> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "%s\n", result.error().what.c_str());
  std::exit(1);
}

}  // namespace

int main() {
  namespace tensor = weir::tensor;
  const weir::rdma::Provider provider = must(weir::rdma::load_provider({}));

  // The hub: the array stays where it is; the shared_ptr keeps it alive as long as it is being read.
  const auto hub = must(tensor::Hub::listen("rdma://127.0.0.1:0", provider));
  const tensor::DType float32{2, 32, 1};
  const auto publish = [&](float value) {
    const auto weights = std::make_shared<std::vector<float>>(6, value);
    return must(hub->publish("layer1.w", {"", float32, {2, 3}, weights->data()}, weights));
  };
  publish(1.5F);

  // The peer: it fetches one whole version.
  const auto peer = must(tensor::Peer::connect(hub->address(), provider));
  tensor::Fetched fetched = must(peer->fetch("layer1.w"));
  const auto print = [](const tensor::Fetched& each) {
    float first = 0;
    std::memcpy(&first, each.data.data(), sizeof first);
    std::printf("version %llu: %zu bytes, first element %.1f\n",
                static_cast<unsigned long long>(each.version), each.data.size(), static_cast<double>(first));
  };
  print(fetched);

  // Waits for a version newer than that one.
  const auto next =
      peer->start("layer1.w", {.newer_than = fetched.version, .timeout = std::chrono::seconds(10)});
  publish(2.5F);
  print(must(peer->wait(next, std::chrono::seconds(10))));
}
