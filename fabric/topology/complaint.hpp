// What is wrong with a file that the user wrote, where, and how to fix it.
//
// Readers do not stop at the first mistake: they add it to a Complaints and continue with a default, so that
// one run shows every mistake. The caller may use a reader's result only if there is no complaint.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace weir::fabric {

// A position in a file; lines and columns count from 1, and 0 means the file as a whole.
struct Place {
  std::shared_ptr<const std::string> file;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
};

struct Complaint {
  Place place;
  std::string what;  // "cable is -5 m long"
  std::string fix;   // "give a length of 0 m or more"
};

// "FILE:LINE:COLUMN: what; fix", the format that compilers and editors know.
std::string text(const Complaint& complaint);

class Complaints {
 public:
  void add(Place place, std::string what, std::string fix);
  bool none() const { return all_.empty(); }
  const std::vector<Complaint>& all() const { return all_; }
  // One line each, in order of file position; at most twenty, then the number of further ones.
  std::string text() const;

 private:
  std::vector<Complaint> all_;
};

}  // namespace weir::fabric
