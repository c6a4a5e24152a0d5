#include "rpc/codec/method.hpp"

namespace weir::rpc {

Error wrong_integer(std::string_view function, const WrongInteger& wrong) {
  std::string what = "an item of the stream";
  if (wrong.position > 0)
    what = "argument " + std::to_string(wrong.position) + " of " + std::string(function);
  const std::uint64_t half = std::uint64_t{1} << (wrong.bits - 1);
  const std::string least = wrong.is_signed ? std::string("-").append(std::to_string(half)) : "0";
  const std::string most = std::to_string(wrong.is_signed ? half - 1 : half - 1 + half);
  return {Errc::bad_arguments, what + " is " + wrong.value + ", which is no " + (wrong.is_signed ? "" : "u") +
                                   "int" + std::to_string(wrong.bits) + "_t: that is " + least + " to " +
                                   most + "; nothing was sent"};
}

}  // namespace weir::rpc
