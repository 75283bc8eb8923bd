/** Loaded before a program that must not reach any network: each socket that is opened ends it. */
import { Socket } from 'node:net';

Socket.prototype.connect = () => {
  process.stderr.write('a socket was opened\n');
  process.exit(99);
};
