#include "rpc/interceptor.hpp"

#include <exception>
#include <string>

namespace weir::rpc {
namespace {

template <class Interceptor, class Call>
Result<void> before(Interceptor& one, Call& call) {
  try {
    return one.before(call);
  } catch (const std::exception& thrown) {
    return fail(Errc::failed, std::string("an interceptor threw: ") + thrown.what());
  } catch (...) {
    return fail(Errc::failed, "an interceptor threw what is no std::exception");
  }
}

// The call has ended, and its result is on its way: an exception here could no longer fail it.
template <class Interceptor, class Call>
void after(Interceptor& one, Call& call, const CallEnd& end) {
  try {
    one.after(call, end);
  } catch (...) {
    return;
  }
}

}  // namespace

Result<void> ask(const ServerChain& chain, Context& context) {
  for (std::size_t i = 0; i < chain.size(); ++i) {
    Result<void> passed = before(*chain[i], context);
    if (passed) continue;
    CallEnd end;
    end.error = &passed.error();
    while (i-- > 0) after(*chain[i], context, end);
    return passed;
  }
  return {};
}

void tell(const ServerChain& chain, Context& context, const CallEnd& end) {
  for (std::size_t i = chain.size(); i-- > 0;) after(*chain[i], context, end);
}

Result<void> ask(const ClientChain& chain, OutgoingCall& call) {
  for (std::size_t i = 0; i < chain.size(); ++i) {
    Result<void> passed = before(*chain[i], call);
    if (passed) continue;
    CallEnd end;
    end.error = &passed.error();
    while (i-- > 0) after(*chain[i], call.method, end);
    return passed;
  }
  return {};
}

void tell(const ClientChain& chain, std::string_view method, const CallEnd& end) {
  for (std::size_t i = chain.size(); i-- > 0;) after(*chain[i], method, end);
}

}  // namespace weir::rpc
