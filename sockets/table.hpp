// This process's view of the shared file (layout.hpp): finding a connection's peer, bells, living processes.
//
// Threading: any thread. After fork() a child keeps the mapping and gets its own place with its first claim.
// Errors: without a table or a place the connection stays on TCP.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "sockets/layout.hpp"

namespace weir::sockets {

// The name of a bell's pipe. Each owner of a bell has another one. Allocates nothing.
class BellPath {
 public:
  BellPath(const std::string& prefix, std::uint32_t bell, std::uint32_t generation);
  const char* text() const { return text_.data(); }  // empty: the prefix is too long

 private:
  std::array<char, 256> text_{};
};

class Table {
 public:
  // Opens the table in `directory`, which is created if needed and must be this user's alone.
  // Null: `why` says why not.
  static std::unique_ptr<Table> open(const std::string& directory, std::string& why);
  ~Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  struct Place {
    Entry* entry;
    unsigned side;
    Side& mine() const { return entry->sides[side]; }
    Side& peer() const { return entry->sides[1 - side]; }
  };
  // Takes a place for the lower or the other end of `key`. nullopt: the table is full, or a
  // living process has that place.
  std::optional<Place> claim(const Key& key, bool lower);
  void release(const Place& place);
  // The entry's other side is on another host: this process keeps its copy of those words there.
  void take_mirror(const Place& place);
  // The port where other hosts ask the process that has this end; 0: nobody has it, or no such port.
  std::uint32_t far_port_of(const Key& key, bool lower);

  // The process is about to end: removes its bells, and the file if no other process uses it.
  void leave();

  std::optional<std::uint32_t> claim_bell();
  void release_bell(std::uint32_t bell);
  Bell& bell(std::uint32_t index) { return layout_->bells[index % max_bells]; }
  BellPath bell_path(std::uint32_t index, std::uint32_t generation) const {
    return {bell_prefix_, index, generation};
  }
  BellPath bell_path(std::uint32_t index) const {
    return bell_path(index, layout_->bells[index].generation.load());
  }

  bool alive(std::uint32_t process) const;
  // The process that has that end. Its number alone does not say it: the next process has the number of one
  // that was killed.
  bool alive(const Side& end) const;
  std::uint32_t process() const { return process_; }
  // An operator wants this process's connections on TCP.
  bool is_put_back() const { return layout_->put_back[process_].load() != 0; }
  Layout& layout() { return *layout_; }

 private:
  Table(std::string directory, int file, Layout* layout)
      : directory_(std::move(directory)),
        bell_prefix_(Layout::bell_prefix(directory_)),
        file_(file),
        layout_(layout) {}
  bool enter();
  bool over(const Side& side) const;

  const std::string directory_, bell_prefix_;
  const int file_;
  Layout* const layout_;
  std::uint32_t process_ = max_processes;
};

// Why other users might reach into the folder, and the next step. Empty: it is this user's alone.
std::string why_not_private(const std::string& directory);

// Moves a descriptor to where programs that count theirs do not meet it, and has exec close it. Closes `fd`;
// -1 if no descriptor is left.
int out_of_the_way(int fd);
bool is_out_of_the_way(int fd);                          // it is one of these
void close_aside(int fd);                                // closes one of ours
int next_out_of_the_way(unsigned first, unsigned last);  // the lowest of them; -1: none

}  // namespace weir::sockets
