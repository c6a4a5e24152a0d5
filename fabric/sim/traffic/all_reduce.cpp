#include "fabric/sim/traffic/all_reduce.hpp"

#include <algorithm>
#include <bit>
#include <vector>

namespace weir::fabric::sim {
namespace {

// Among whom, and of what.
struct Vector {
  std::span<const std::uint32_t> hosts;
  std::uint64_t bytes;
  Ticks start;
};

std::uint64_t part_of(std::uint64_t bytes, std::uint64_t parts) {
  return std::max<std::uint64_t>(1, bytes / parts);
}

// 2 (n - 1) steps: first the sums travel around the ring, then the results. Host i may send its part of a
// step once that of the previous step has reached it.
void ring(FlowWriter& flows, const Vector& all) {
  const auto n = static_cast<std::uint32_t>(all.hosts.size());
  const std::uint64_t part = part_of(all.bytes, n);
  std::vector<std::uint32_t> before, now(n);
  for (std::uint32_t step = 0; step < 2 * (n - 1); ++step) {
    for (std::uint32_t i = 0; i < n; ++i) {
      now[i] = flows.add(all.hosts[i], all.hosts[(i + 1) % n], part, step == 0 ? all.start : no_time);
      if (step > 0) flows.precede(before[(i + n - 1) % n], now[i]);
    }
    before = now;
  }
}

// Each host adds up one part: all send it theirs, and it sends the sum to all.
void direct(FlowWriter& flows, const Vector& all) {
  const auto n = static_cast<std::uint32_t>(all.hosts.size());
  const std::uint64_t part = part_of(all.bytes, n);
  std::vector<std::uint32_t> summed(n);
  for (std::uint32_t i = 0; i < n; ++i) summed[i] = flows.pause();
  // Each host begins with its neighbour, so that not all send to the same host first.
  for (std::uint32_t step = 1; step < n; ++step)
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::uint32_t to = (i + step) % n;
      flows.precede(flows.add(all.hosts[i], all.hosts[to], part, all.start), summed[to]);
    }
  for (std::uint32_t step = 1; step < n; ++step)
    for (std::uint32_t i = 0; i < n; ++i)
      flows.precede(summed[i], flows.add(all.hosts[i], all.hosts[(i + step) % n], part, no_time));
}

// log2 n exchanges of a half, a quarter, ... of the vector with hosts ever nearer, then the same backwards.
void halving_doubling(FlowWriter& flows, const Vector& all) {
  const auto n = static_cast<std::uint32_t>(all.hosts.size());
  const auto halvings = static_cast<unsigned>(std::bit_width(n) - 1);
  std::vector<std::uint32_t> before, now(n);
  for (unsigned step = 0; step < 2 * halvings; ++step) {
    const unsigned depth = step < halvings ? step + 1 : 2 * halvings - step;
    const std::uint32_t distance = n >> depth;
    const std::uint64_t part = part_of(all.bytes, std::uint64_t{1} << depth);
    for (std::uint32_t i = 0; i < n; ++i) {
      now[i] = flows.add(all.hosts[i], all.hosts[i ^ distance], part, step == 0 ? all.start : no_time);
      if (step == 0) continue;
      const unsigned last_depth = step <= halvings ? step : 2 * halvings - step + 1;
      flows.precede(before[i ^ (n >> last_depth)], now[i]);  // what reached it in the last step
    }
    before = now;
  }
}

// A binary tree in order: the leaves are the odd places, and an inner place is a multiple of 2^k, its
// children 2^(k-1) to either side.
class Tree {
 public:
  // `mirrored`: the leaves of the other tree are inner places of this one.
  Tree(std::uint32_t n, bool mirrored) : n_(n), mirrored_(mirrored) {}

  std::uint32_t host(std::uint32_t place) const {
    if (!mirrored_) return place;
    return n_ % 2 == 0 ? n_ - 1 - place : (place + 1) % n_;
  }
  // The root is place 0, and has one child.
  std::uint32_t parent(std::uint32_t place) const {
    const std::uint32_t bit = place & -place;
    const std::uint32_t up = (place ^ bit) | (bit << 1);
    return up < n_ ? up : place ^ bit;
  }

 private:
  const std::uint32_t n_;
  const bool mirrored_;
};

// Each half of the vector has its own tree, up to the root and down again, in chunks: a host sends a chunk on
// when all of its children sent theirs, and when the chunk before it has arrived.
void tree(FlowWriter& flows, const Vector& all, std::uint32_t chunks) {
  const auto n = static_cast<std::uint32_t>(all.hosts.size());
  const std::uint64_t chunk = part_of(all.bytes, std::uint64_t{2} * chunks);
  for (const bool mirrored : {false, true}) {
    const Tree shape(n, mirrored);
    const auto host = [&](std::uint32_t place) { return all.hosts[shape.host(place)]; };
    std::vector<bool> has_children(n);
    for (std::uint32_t i = 1; i < n; ++i) has_children[shape.parent(i)] = true;
    std::vector<std::uint32_t> last_up(n, none), last_down(n, none), gathered(n), up(n), down(n);
    for (std::uint32_t c = 0; c < chunks; ++c) {
      for (std::uint32_t i = 0; i < n; ++i)
        if (has_children[i]) gathered[i] = flows.pause();
      for (std::uint32_t i = 1; i < n; ++i) {
        const std::uint32_t to = shape.parent(i);
        up[i] = flows.add(host(i), host(to), chunk, has_children[i] || c > 0 ? no_time : all.start);
        down[i] = flows.add(host(to), host(i), chunk, no_time);
        if (has_children[i]) flows.precede(gathered[i], up[i]);
        flows.precede(up[i], gathered[to]);
        if (c > 0) {
          flows.precede(last_up[i], up[i]);
          flows.precede(last_down[i], down[i]);
        }
      }
      for (std::uint32_t i = 1; i < n; ++i) {
        const std::uint32_t from = shape.parent(i);
        flows.precede(from == 0 ? gathered[0] : down[from], down[i]);
      }
      last_up = up;
      last_down = down;
    }
  }
}

}  // namespace

bool is_power_of_two(std::size_t hosts) { return std::has_single_bit(hosts); }

const char* name_of(AllReduceBy algorithm) {
  switch (algorithm) {
    case AllReduceBy::ring:
      return "ring-allreduce";
    case AllReduceBy::direct:
      return "direct all-reduce";
    case AllReduceBy::halving_doubling:
      return "halving-doubling all-reduce";
    case AllReduceBy::tree:
      return "tree all-reduce";
  }
  return "";
}

void all_reduce(FlowWriter& flows, const AllReduce& how, std::span<const std::uint32_t> hosts,
                std::uint64_t bytes, Ticks start) {
  const Vector all{hosts, bytes, start};
  switch (how.algorithm) {
    case AllReduceBy::ring:
      return ring(flows, all);
    case AllReduceBy::direct:
      return direct(flows, all);
    case AllReduceBy::halving_doubling:
      return halving_doubling(flows, all);
    case AllReduceBy::tree:
      return tree(flows, all, how.chunks);
  }
}

double flows_of(const AllReduce& how, std::size_t hosts) {
  const auto n = static_cast<double>(hosts);
  switch (how.algorithm) {
    case AllReduceBy::ring:
    case AllReduceBy::direct:
      return n * 2 * (n - 1);
    case AllReduceBy::halving_doubling:
      return n * 2 * (std::bit_width(hosts) - 1);
    case AllReduceBy::tree:
      return 4 * (n - 1) * how.chunks;
  }
  return 0;
}

}  // namespace weir::fabric::sim
