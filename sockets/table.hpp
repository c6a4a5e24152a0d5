// This process's view of the shared file (layout.hpp): finding the peer of a connection, bells, who lives.
//
// Threading: any thread. After fork() a child keeps the mapping, and asks for a place of its own with its
// first claim. Errors: no table, no place: the connection stays on TCP.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "sockets/layout.hpp"

namespace weir::sockets {

class Table {
 public:
  // In `directory`, which is made if it is not there, and has to be this user's alone. Null: `why` says why
  // not.
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
  // A place for the end of `key` that is the lower one or not. Nothing: the table is full, or somebody alive
  // has it.
  std::optional<Place> claim(const Key& key, bool lower);
  void release(const Place& place);
  // The other side of the entry is on another host: this process keeps what it knows of it there.
  void take_mirror(const Place& place);
  // Where the process that has this end is asked by other hosts; 0: nobody has it, or it is not.
  std::uint32_t far_port_of(const Key& key, bool lower);

  // The process is about to end: its bells go, and the file with the last process that uses it.
  void leave();

  std::optional<std::uint32_t> claim_bell();
  void release_bell(std::uint32_t bell);
  Bell& bell(std::uint32_t index) { return layout_->bells[index % max_bells]; }
  std::string bell_path(std::uint32_t index) const { return Layout::bell_path(directory_, index); }

  bool alive(std::uint32_t process) const;
  std::uint32_t process() const { return process_; }
  // An operator wants this process's connections on TCP.
  bool is_put_back() const { return layout_->put_back[process_].load() != 0; }
  Layout& layout() { return *layout_; }

 private:
  Table(std::string directory, int file, Layout* layout)
      : directory_(std::move(directory)), file_(file), layout_(layout) {}
  bool enter();
  bool over(const Side& side) const;

  const std::string directory_;
  const int file_;
  Layout* const layout_;
  std::uint32_t process_ = max_processes;
};

// Moves a descriptor where programs that count theirs do not meet it, closed by exec. Closes `fd`; -1 if
// there is none.
int out_of_the_way(int fd);
bool is_out_of_the_way(int fd);                          // it is one of these
void close_aside(int fd);                                // one of these, by us
int next_out_of_the_way(unsigned first, unsigned last);  // the lowest of them; -1: none

}  // namespace weir::sockets
