/** Reads the address of a database, and tells its errors without the password in it. */

import { connect } from 'node:net';
import { reasonOf, TelosError } from '@telos/engine/errors';
import { beginningOf } from '@telos/protocol/text';

export interface DatabaseAddress {
  /** With the password. Nothing shows it. */
  url: string;
  /** Host, port and database, for a person. */
  shown: string;
  host: string;
  port: number;
}

/** The variable that names the database where no option does. */
export const databaseVariable = 'TELOS_DATABASE_URL';

/** Returns the address. Throws TelosError `config`, which does not repeat the text, if it is none of a PostgreSQL database. */
export function databaseAddress(text: string | undefined): DatabaseAddress {
  const how = `Give it as postgres://user:password@host:5432/database, best in ${databaseVariable}.`;
  if (!text?.trim()) throw new TelosError('config', `No database is named. ${how}`);
  const url = parsed(text.trim());
  const name = url ? decoded(url.pathname.slice(1)) : undefined;
  if (!url || !/^postgres(?:ql)?:$/.test(url.protocol) || !url.hostname || !name)
    throw new TelosError('config', `The database address is not a PostgreSQL URL. ${how}`);
  const port = Number(url.port || 5432);
  const host = url.hostname.replace(/^\[|\]$/g, '');
  return { url: text.trim(), shown: `${url.hostname}:${port}/${name}`, host, port };
}

const parsed = (text: string): URL | undefined => (URL.canParse(text) ? new URL(text) : undefined);

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** How long a server may take until it answers at all, in milliseconds. */
const patienceMs = 5_000;

/** Throws TelosError `config` if nothing listens there. The engine itself would try again without end. */
export async function reach(address: DatabaseAddress): Promise<void> {
  const { host, port } = address;
  const socket = connect({ host, port, timeout: patienceMs });
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve);
      socket.once('timeout', () => reject(new Error('it does not answer')));
      socket.once('error', reject);
    });
  } catch (error) {
    throw problemOf(error, address);
  } finally {
    socket.destroy();
  }
}

// 25P03, 40P01 and 40003 ended one transaction, which may be tried again.
const awayCodes = /^(?:ECONN|ENOTFOUND|EAI_|EPIPE|ETIMEDOUT|EHOST|ENET|57P0|08|53[123]00|25P03|40P01|40003)/;
// The engine rolls back on a connection that has ended, so that what the driver says of that hides why it ended.
const awayWords =
  /ECONN|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|onnection terminated|onnection ended|onnection timeout|not queryable|timeout exceeded when trying to connect|server closed|No space left|starting up|shutting down|too many clients|does not answer/;

/** Returns what the database is short of, for a person. Undefined if it is another problem. */
export function shortageOf(error: unknown): string | undefined {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  if (code === '53100' || /No space left/.test(String(message ?? ''))) return 'is full.';
  if (code === '53300' || /too many clients|remaining connection slots/.test(String(message ?? '')))
    return 'has no connection left for one more. Raise its max_connections, or end a worker.';
  return undefined;
}

/** Returns true if the database may come back by itself. */
export function isAway(error: unknown): boolean {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  return awayCodes.test(String(code ?? '')) || awayWords.test(String(message ?? ''));
}

/** Returns the error as one sentence for a person. */
export function problemOf(error: unknown, { url, shown }: DatabaseAddress): TelosError {
  if (error instanceof TelosError) return error;
  const { code } = (error ?? {}) as { code?: string };
  const message = reasonOf(error);
  const failure = (what: string): TelosError => new TelosError('config', `The database ${shown} ${what}`);
  if (/^28/.test(code ?? '') || /password authentication|no pg_hba|role .* does not exist/.test(message))
    return failure('refuses this user or password.');
  if (code === '3D000') return failure('does not exist. Check its name, or have it created.');
  if (code === '42P01' || code === '3F000')
    return failure('is not prepared: no worker has been started on it yet.');
  if (code === '42501' || /permission denied/.test(message))
    return failure('does not let this user create or use its tables.');
  const shortage = shortageOf(error);
  if (shortage) return failure(shortage);
  if (isAway(error)) return failure('cannot be reached. Check that it runs, and that the address is right.');
  return failure(`failed: ${withoutSecrets(message, url)}`);
}

/** Returns the text without the address and the password in it. */
function withoutSecrets(text: string, url: string): string {
  const { password = '' } = parsed(url) ?? {};
  const secrets = [url, password, decoded(password) ?? ''].filter(Boolean);
  return beginningOf(
    secrets.reduce((left, secret) => left.replaceAll(secret, '***'), text),
    300,
  );
}
