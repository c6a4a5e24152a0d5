#include "rpc/interceptor.hpp"

namespace weir::rpc {

Result<void> ask(const ServerChain& chain, Context& context) {
  for (std::size_t i = 0; i < chain.size(); ++i) {
    Result<void> passed = chain[i]->before(context);
    if (passed) continue;
    CallEnd end;
    end.error = &passed.error();
    while (i-- > 0) chain[i]->after(context, end);
    return passed;
  }
  return {};
}

void tell(const ServerChain& chain, Context& context, const CallEnd& end) {
  for (std::size_t i = chain.size(); i-- > 0;) chain[i]->after(context, end);
}

Result<void> ask(const ClientChain& chain, OutgoingCall& call) {
  for (std::size_t i = 0; i < chain.size(); ++i) {
    Result<void> passed = chain[i]->before(call);
    if (passed) continue;
    CallEnd end;
    end.error = &passed.error();
    while (i-- > 0) chain[i]->after(call.method, end);
    return passed;
  }
  return {};
}

void tell(const ClientChain& chain, std::string_view method, const CallEnd& end) {
  for (std::size_t i = chain.size(); i-- > 0;) chain[i]->after(method, end);
}

}  // namespace weir::rpc
