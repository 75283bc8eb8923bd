/**
 * Loaded before the VS Code server, which asks nobody for a token here: lets in only pages that it has served itself, so that no
 * website open in the same browser can reach the terminal behind it.
 */
import { Server } from 'node:http';

const loopback = new Set(['127.0.0.1', 'localhost', '[::1]']);
const emit = Server.prototype.emit;

Server.prototype.emit = function (event, request, answer, ...rest) {
  if ((event !== 'request' && event !== 'upgrade') || isOurs(request.headers)) {
    return emit.call(this, event, request, answer, ...rest);
  }
  if (event === 'request') answer.writeHead(403).end('This server answers to its own pages alone.\n');
  else answer.end('HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n');
  return true;
};

/** The name that was asked for is this machine's own, and the page that asks comes from the same place. */
function isOurs({ host = '', origin }) {
  const asked = hostOf(`http://${host}`);
  const isLocal = asked !== undefined && loopback.has(asked.hostname);
  return isLocal && (origin === undefined || hostOf(origin)?.host === asked.host);
}

function hostOf(url) {
  return URL.canParse(url) ? new URL(url) : undefined;
}
