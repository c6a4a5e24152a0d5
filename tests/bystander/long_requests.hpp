// Requests to weir-server that take long because of the size of what they work on.
//
// A row is a few requests in order, because some need a value that they may destroy. Words that begin with a
// star stand for many: see expand(). The rows work in a database of their own, which the set-up empties.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::bystander {

// Requests with "; " between them.
using LongRequests = std::string_view;

// Every command that may take long because the value is large.
std::span<const LongRequests> requests_of_large_values();
// Whatever can be done with a hash of many fields that expire.
std::span<const LongRequests> requests_of_expiring_fields();

// Make the values on which the rows work, with so many elements; begin with one of these.
std::vector<std::string> make_large_values(std::size_t elements);
std::vector<std::string> make_expiring_fields(std::size_t elements);

// The encoded requests of a row. *N is the number of elements, *fields a field for each of them, *pairs a
// field and a value for each, and *gets a GET of each field.
std::vector<std::string> expand(LongRequests row, std::size_t elements);

// Commands that the rows need not contain, and why. A container stands for all its subcommands.
struct NeverLong {
  std::string_view why;
  std::string_view names;  // with blanks between them
};
std::span<const NeverLong> never_long();

}  // namespace weir::bystander
