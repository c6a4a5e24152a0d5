// A C++ peer of a hub in any language (python_hub.py is one): fetches a tree, adds up each of its tensors,
// and pushes the sums back.
//
//   tensor_peer_of_python ADDRESS
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "rdma/provider.hpp"
#include "tensor/peer.hpp"

namespace {

template <class T, class E>
T must(std::expected<T, E> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "%s\n", result.error().what.c_str());
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  namespace tensor = weir::tensor;
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s ADDRESS\n", argv[0]);
    return 2;
  }
  const weir::rdma::Provider provider = must(weir::rdma::load_provider({}));
  const auto peer = must(tensor::Peer::connect(argv[1], provider));
  const tensor::Fetched model = must(peer->fetch("model"));

  const tensor::DType float32{2, 32, 1};
  std::vector<float> sums;
  for (const tensor::TensorInfo& each : model.metadata->tensors) {
    if (each.dtype != float32) continue;
    std::vector<float> values(*each.bytes() / sizeof(float));
    std::memcpy(values.data(), model.data.data() + each.offset, *each.bytes());
    sums.push_back(std::accumulate(values.begin(), values.end(), 0.0F));
    std::printf("%s: %s, sum %.1f\n", each.name.c_str(), tensor::description(each.dtype, each.shape).c_str(),
                static_cast<double>(sums.back()));
  }
  std::fflush(stdout);
  must(peer->push("sums", {"", float32, {sums.size()}, sums.data()}));
}
