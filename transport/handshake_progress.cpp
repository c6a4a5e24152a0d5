#include "transport/handshake_progress.hpp"

#include <openssl/ssl.h>

namespace weir::transport {
namespace {

void message(int written, int, int content_type, const void*, std::size_t, SSL*, void* place) {
  if (written == 0 && content_type == SSL3_RT_HANDSHAKE)
    static_cast<const HandshakePlaces::Place*>(place)->move_on();
}

}  // namespace

HandshakeProgress::HandshakeProgress(SSL* ssl, const HandshakePlaces::Place& place) : ssl_(ssl) {
  SSL_ctrl(ssl, SSL_CTRL_SET_MSG_CALLBACK_ARG, 0, const_cast<HandshakePlaces::Place*>(&place));
  SSL_set_msg_callback(ssl, message);
}

HandshakeProgress::~HandshakeProgress() { SSL_set_msg_callback(ssl_, nullptr); }

}  // namespace weir::transport
