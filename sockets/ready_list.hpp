// A queue in which each element is at most once. The links lie in the elements, so nothing is allocated.
//
// Threading: the owner's mutex.
#pragma once

#include <cstddef>

namespace weir::sockets {

struct ReadyLink {
  ReadyLink* next = nullptr;
  ReadyLink* previous = nullptr;
};

// `Element` derives from ReadyLink.
template <class Element>
class ReadyList {
 public:
  ReadyList() { ends_.next = ends_.previous = &ends_; }
  ReadyList(const ReadyList&) = delete;
  ReadyList& operator=(const ReadyList&) = delete;

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }

  void push_back(Element& element) {
    ReadyLink& link = element;
    if (link.next != nullptr) return;
    link.previous = ends_.previous;
    link.next = &ends_;
    link.previous->next = link.next->previous = &link;
    ++size_;
  }
  // The list is not empty.
  Element& pop_front() {
    auto& first = static_cast<Element&>(*ends_.next);
    remove(first);
    return first;
  }
  void remove(Element& element) {
    ReadyLink& link = element;
    if (link.next == nullptr) return;
    link.previous->next = link.next;
    link.next->previous = link.previous;
    link.next = link.previous = nullptr;
    --size_;
  }

 private:
  ReadyLink ends_;
  std::size_t size_ = 0;
};

}  // namespace weir::sockets
