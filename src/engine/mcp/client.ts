/** Connects to one MCP server, of whatever revision of the protocol it speaks. This file is loaded with the first server. */
import { beginningOf, type Sentence, sentence } from '@telos/protocol/text';
import { untilAborted } from '../cancellation.ts';
import { TelosError } from '../core/errors.ts';
import { mapStrings } from '../redact.ts';
import type { McpLimits } from './callClock.ts';
import type { McpServer } from './config.ts';
import type { McpConnection } from './connection.ts';
import { type Link, type McpSurroundings, mayBeOlder, remoteLink, stdioLink } from './link.ts';
import {
  Client,
  ProtocolError,
  ProtocolErrorCode,
  SdkError,
  SdkErrorCode,
  SKILLS_EXTENSION_ID,
  type Transport,
} from './sdk.ts';
import { Session } from './session.ts';

/**
 * Starts or reaches a server and lists its tools. A server is asked first for what it speaks, and greeted in the older way if it does not
 * know the question. If an address does not know the current transport, the previous one is tried, as the specification requires. Throws
 * TelosError `mcp` with the reason, and the abort reason on abort. In both cases nothing is left running.
 */
export async function connectServer(
  label: string,
  server: McpServer,
  surroundings: McpSurroundings,
  limits: McpLimits,
  signal: AbortSignal,
): Promise<McpConnection> {
  const attempt = (at: McpServer, isOld: boolean) => connect(label, at, surroundings, limits, signal, isOld);
  try {
    return await attempt(server, server.type === 'sse').catch(error => {
      // Older programs may exit at a question that they do not know, and older addresses fail at it or stay silent.
      if (server.type === 'sse' || !isNegotiation(error)) throw error;
      return attempt(server, true);
    });
  } catch (error) {
    if (server.type !== 'streamable-http' || !mayBeOlder(error)) throw error;
    return await attempt({ ...server, type: 'sse' }, true).catch(() => {
      // The answer to the transport that the entry names is the helpful one.
      throw signal.aborted ? signal.reason : error;
    });
  }
}

async function connect(
  label: string,
  server: McpServer,
  surroundings: McpSurroundings,
  limits: McpLimits,
  signal: AbortSignal,
  isOld: boolean,
): Promise<McpConnection> {
  signal.throwIfAborted();
  const { redact } = surroundings;
  const link = server.type === 'stdio' ? stdioLink(server, surroundings) : remoteLink(server, surroundings);
  const deadline = new AbortController();
  const timer = setTimeout(() => deadline.abort(), limits.connectMs);
  // Not `AbortSignal.any`: the SDK leaves its listeners, with which Node would hold the session as long as the process lives.
  const stopping = new AbortController();
  const stop = stopping.signal;
  const abort = (): void => stopping.abort();
  for (const one of [signal, deadline.signal]) one.addEventListener('abort', abort);
  const client = clientFor(surroundings, limits);
  const session = new Session(label, client, link, limits, surroundings);
  try {
    const connecting = client.connect(link.transport as Transport, {
      signal: stop,
      timeout: limits.connectMs,
      ...(isOld && { prior: { kind: 'legacy' as const } }),
    });
    link.started();
    await untilAborted(connecting, stop);
    void session.subscribe();
    await untilAborted(session.listTools(stop), stop);
    return session;
  } catch (error) {
    await session.close();
    if (signal.aborted) throw signal.reason;
    const reason = deadline.signal.aborted
      ? silence(link, limits)
      : (revisionOf(error) ?? link.explain(error));
    throw new TelosError('mcp', [mapStrings(reason, redact)], { cause: error });
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
  }
}

function clientFor({ canAsk, root }: McpSurroundings, limits: McpLimits): Client {
  const capabilities = {
    ...(canAsk && { elicitation: { form: {}, url: {} }, sampling: {} }),
    ...(root !== undefined && { roots: {} }),
    extensions: { [SKILLS_EXTENSION_ID]: {} },
  };
  // A server that says nothing to the question is an old one, and still has time for its greeting.
  const probe = { timeoutMs: limits.connectMs / 3 };
  return new Client(
    { name: 'telos', title: 'Telos', version: '1' },
    { capabilities, inputRequired: { autoFulfill: false }, versionNegotiation: { mode: 'auto', probe } },
  );
}

function silence(link: Link, limits: McpLimits): Sentence {
  const seconds = limits.connectMs / 1000;
  const said = link.firstError();
  return said === undefined
    ? sentence('it did not answer within {0} s', seconds)
    : sentence('it did not answer within {0} s; it said: {1}', seconds, said);
}

const negotiations: readonly unknown[] = [SdkErrorCode.EraNegotiationFailed, SdkErrorCode.RequestTimeout];

/** Returns true if the question for what a server speaks has failed, rather than the server. */
const isNegotiation = (error: unknown): boolean =>
  error instanceof TelosError && error.cause instanceof SdkError && negotiations.includes(error.cause.code);

/** Returns a phrase for a server of a revision that Telos does not know; undefined for any other failure. */
function revisionOf(error: unknown): Sentence | undefined {
  if (!(error instanceof Error)) return undefined;
  const isUnknown =
    error instanceof ProtocolError && error.code === ProtocolErrorCode.UnsupportedProtocolVersion;
  const { supported } = (isUnknown ? (error.data ?? {}) : {}) as { supported?: unknown };
  const [, answered] = /^Server's protocol version is not supported: (.+)/s.exec(error.message) ?? [];
  const revisions = Array.isArray(supported) ? supported.join(', ') : answered;
  return revisions ? sentence('it speaks MCP {0} only', beginningOf(revisions, 60)) : undefined;
}
