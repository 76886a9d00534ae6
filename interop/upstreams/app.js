// The same application as app.py, in Node.
const { createHash } = require('node:crypto');
const { EventEmitter } = require('node:events');
const { createServer } = require('node:http');

const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
// A page whose load event comes only after it shows the message from its WebSocket.
const PAGE = `<!doctype html><p>nothing</p><img src="/wait"><script>
new WebSocket('wss://' + location.host + '/chat').onmessage = ({ data }) => {
  document.querySelector('p').textContent = 'received ' + data;
  fetch('/seen');
};
</script>`;
const seen = new EventEmitter();

const server = createServer((request, response) => {
  if (request.url === '/silent') return;
  if (request.url === '/broken') {
    response.writeHead(200, { 'Content-Length': 1000 });
    response.write('begun', () => request.socket.resetAndDestroy());
  } else if (request.url === '/page') {
    response.writeHead(200, { 'Content-Type': 'text/html' });
    response.end(PAGE);
  } else if (request.url === '/seen') {
    seen.emit('seen');
    response.end();
  } else if (request.url === '/wait') {
    seen.once('seen', () => response.end());
  } else if (request.url === '/hints') {
    response.writeEarlyHints({ link: '</style.css>; rel=preload; as=style' });
    response.writeHead(200, { Trailer: 'X-End' });
    response.addTrailers({ 'X-End': 'yes' });
    response.end('hinted');
  } else if (request.method === 'POST') {
    request.pipe(response);
  } else {
    const { host, 'x-forwarded-proto': proto } = request.headers;
    response.end(`node received ${host} over ${proto}\n`);
  }
});
server.on('upgrade', (request, socket) => {
  const accept = createHash('sha1').update(request.headers['sec-websocket-key'] + GUID).digest('base64');
  socket.end(
    'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
      `Sec-WebSocket-Accept: ${accept}\r\n\r\n\x81\x05hello`,
    'latin1',
  );
});
server.listen(Number(process.argv[2]), '127.0.0.1', () => {
  console.log(`port ${server.address().port}`);
});
