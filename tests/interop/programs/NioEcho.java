// An echo server and its client on java.nio: a selector, non-blocking channels, direct buffers. A third argument behind the port
// makes the client measure: that many round trips of 100 bytes, printed as round trips a second.
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;

public class NioEcho {
  static final int[] SIZES = {100, 300_000};

  public static void main(String[] words) throws Exception {
    InetSocketAddress at = new InetSocketAddress(words[1], Integer.parseInt(words[2]));
    if (words[0].equals("serve")) {
      serve(at);
    } else if (words.length > 3) {
      measure(at, Integer.parseInt(words[3]));
    } else {
      call(at, 200);
    }
  }

  static void serve(InetSocketAddress at) throws Exception {
    Selector selector = Selector.open();
    ServerSocketChannel server = ServerSocketChannel.open();
    server.bind(at).configureBlocking(false);
    server.register(selector, SelectionKey.OP_ACCEPT);
    for (;;) {
      selector.select();
      for (SelectionKey key : selector.selectedKeys()) {
        if (key.isAcceptable()) {
          SocketChannel accepted = server.accept();
          accepted.setOption(StandardSocketOptions.TCP_NODELAY, true).configureBlocking(false);
          accepted.register(selector, SelectionKey.OP_READ, ByteBuffer.allocateDirect(1 << 16));
          continue;
        }
        echo(key);
      }
      selector.selectedKeys().clear();
    }
  }

  // Reads once, and writes what there is; what finds no room waits for OP_WRITE.
  static void echo(SelectionKey key) throws Exception {
    SocketChannel channel = (SocketChannel) key.channel();
    ByteBuffer buffer = (ByteBuffer) key.attachment();
    if (key.isReadable() && channel.read(buffer) < 0) {
      channel.close();
      return;
    }
    buffer.flip();
    channel.write(buffer);
    key.interestOps(buffer.hasRemaining() ? SelectionKey.OP_WRITE : SelectionKey.OP_READ);
    buffer.compact();
  }

  static void exchange(SocketChannel channel, Selector selector, ByteBuffer out, ByteBuffer in) throws Exception {
    while (in.hasRemaining()) {
      if (out.hasRemaining()) channel.write(out);
      if (channel.read(in) > 0) continue;
      channel.keyFor(selector).interestOps(out.hasRemaining() ? SelectionKey.OP_READ | SelectionKey.OP_WRITE : SelectionKey.OP_READ);
      selector.select();
      selector.selectedKeys().clear();
    }
  }

  static SocketChannel connect(InetSocketAddress at, Selector selector) throws Exception {
    SocketChannel channel = SocketChannel.open(at);
    channel.setOption(StandardSocketOptions.TCP_NODELAY, true).configureBlocking(false);
    channel.register(selector, SelectionKey.OP_READ);
    return channel;
  }

  static void call(InetSocketAddress at, int turns) throws Exception {
    Selector selector = Selector.open();
    SocketChannel channel = connect(at, selector);
    for (int turn = 0; turn < turns; ++turn) {
      int size = SIZES[turn % SIZES.length];
      ByteBuffer out = ByteBuffer.allocateDirect(size), in = ByteBuffer.allocateDirect(size);
      for (int i = 0; i < size; ++i) out.put((byte) (i * 7 + turn));
      out.flip();
      exchange(channel, selector, out, in);
      in.flip();
      for (int i = 0; i < size; ++i) {
        if (in.get(i) == (byte) (i * 7 + turn)) continue;
        System.out.println("byte " + i + " of turn " + turn + " is wrong");
        System.exit(1);
      }
    }
    System.out.println("all " + turns + " echoed");
    channel.close();
  }

  static void measure(InetSocketAddress at, int turns) throws Exception {
    Selector selector = Selector.open();
    SocketChannel channel = connect(at, selector);
    ByteBuffer out = ByteBuffer.allocateDirect(100), in = ByteBuffer.allocateDirect(100);
    long begun = System.nanoTime();
    for (int turn = 0; turn < turns; ++turn) {
      out.clear();
      in.clear();
      exchange(channel, selector, out, in);
    }
    System.out.println(turns * 1_000_000_000L / (System.nanoTime() - begun) + " round trips a second");
    channel.close();
  }
}
