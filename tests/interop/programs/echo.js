// An echo server and its client on net.Socket: node echo.js serve|call HOST PORT.
const net = require('net');
const [what, host, port] = process.argv.slice(2);
const sizes = [100, 100000], rounds = 50;

if (what === 'serve') {
  net.createServer(socket => {
    socket.on('data', bytes => socket.write(bytes));
    socket.on('error', () => {});
  }).listen(+port, host);
} else {
  const messages = sizes.map(size => Buffer.alloc(size).map((_, i) => i * 7 + size));
  let turn = 0, received = 0;
  const socket = net.connect(+port, host, () => socket.write(messages[0]));
  socket.setNoDelay();
  socket.on('data', bytes => {
    const expected = messages[turn % messages.length];
    if (!bytes.equals(expected.subarray(received, received + bytes.length))) {
      console.log(`wrong bytes behind ${received} of turn ${turn}`);
      process.exit(1);
    }
    received += bytes.length;
    if (received < expected.length) return;
    received = 0;
    if (++turn === rounds * messages.length) {
      console.log(`all ${turn} echoed`);
      socket.end();
    } else {
      socket.write(messages[turn % messages.length]);
    }
  });
}
