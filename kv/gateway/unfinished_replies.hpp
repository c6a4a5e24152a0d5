// Bytes of replies that have not all arrived, of all links to nodes together.
//
// A reply may be long, and there may be a thousand links: nodes that begin replies and end none would make a
// gateway hold the product. Beyond the limit a link ends: the one that holds most, of the node that has the
// most. Threading: the server's one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::kv::cluster {

class UnfinishedReplies {
 public:
  static constexpr std::size_t most = std::size_t{2} << 30;

  explicit UnfinishedReplies(std::size_t limit = most) : limit_(limit) {}

  // What one link holds. `end` ends it, and is called only while it exists.
  class Part {
   public:
    Part(std::shared_ptr<UnfinishedReplies> of, std::string node, std::function<void()> end)
        : of_(std::move(of)), node_(std::move(node)), end_(std::move(end)) {
      if (of_ != nullptr) of_->parts_.push_back(this);
    }
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;
    ~Part() {
      hold(0);
      if (of_ != nullptr) std::erase(of_->parts_, this);
    }
    // May end this link or another.
    void hold(std::size_t bytes) {
      if (of_ == nullptr) return;
      of_->held_ += bytes - held_;
      held_ = bytes;
      if (bytes > 0 && of_->held_ > of_->limit_) of_->end_one();
    }

   private:
    friend class UnfinishedReplies;
    const std::shared_ptr<UnfinishedReplies> of_;
    const std::string node_;
    const std::function<void()> end_;
    std::size_t held_ = 0;
  };

  std::size_t held() const { return held_; }

 private:
  void end_one() {
    std::map<std::string_view, std::size_t> of_node;
    for (const Part* each : parts_) of_node[each->node_] += each->held_;
    const auto rank = [&](const Part* each) {
      return each->held_ == 0 ? std::pair<std::size_t, std::size_t>()
                              : std::pair(of_node[each->node_], each->held_);
    };
    Part& largest = **std::ranges::max_element(parts_, {}, rank);
    largest.hold(0);
    largest.end_();
  }

  const std::size_t limit_;
  std::size_t held_ = 0;
  std::vector<Part*> parts_;
};

}  // namespace weir::kv::cluster
