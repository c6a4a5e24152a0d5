// What is wrong with a file that the user wrote, where, and what to do about it.
//
// Readers do not stop at the first mistake: they note it in a Complaints and go on with a default, so that
// one run shows every mistake. Whoever called the reader uses its result only if there is no complaint.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace weir::fabric {

// A position in a file; lines and columns count from 1, 0 is "the file as a whole".
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

// "FILE:LINE:COLUMN: what; fix", as compilers and editors know it.
std::string text(const Complaint& complaint);

class Complaints {
 public:
  void add(Place place, std::string what, std::string fix);
  bool none() const { return all_.empty(); }
  const std::vector<Complaint>& all() const { return all_; }
  // One line each, in order of file position; of a flood only the first twenty, and how many more there are.
  std::string text() const;

 private:
  std::vector<Complaint> all_;
};

}  // namespace weir::fabric
