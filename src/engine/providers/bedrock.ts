/** Asks Anthropic's models at Amazon Bedrock: the same format at another address, and requests that are signed as AWS wants it. */
import { createHash, createHmac } from 'node:crypto';
import { sentence } from '@telos/protocol/text';
import { TelosError } from '../core/errors.ts';
import type { AnthropicHouse } from './anthropic.ts';
import { awsRegion } from './cloudPlaces.ts';
import { printedBy, type SignInPlace } from './signInProgram.ts';

/** What AWS gives out to sign with. */
export interface AwsKeys {
  id: string;
  secret: string;
  /** Of keys that end. */
  session?: string | undefined;
}

export interface SignedRequest {
  method: string;
  url: URL;
  /** Those that are signed besides the usual ones, in small letters. */
  headers: Readonly<Record<string, string>>;
  body: string;
}

/** The name of the service, which is part of each signature. */
const service = 'bedrock';
/** How long keys of the AWS CLI are used that do not say when they end, and how long before their end new ones are asked for, in milliseconds. */
const keptMs = 300_000;

/** Returns what createAnthropic needs to ask Bedrock. Requests reject with TelosError `auth` if there is nothing to sign them with. */
export const bedrockHouse = (place: SignInPlace): AnthropicHouse => ({
  name: 'bedrock',
  label: 'Amazon Bedrock',
  keyVariable: 'AWS_BEARER_TOKEN_BEDROCK',
  addressVariable: 'AWS_ENDPOINT_URL_BEDROCK_RUNTIME',
  async fitted({ url, body, headers }, signal) {
    const request = { method: 'POST', url: new URL(url), body };
    return { url, body, headers: { ...headers, ...(await bedrockHeaders(place, request, signal)) } };
  },
});

/** Returns the headers that open Bedrock: its own key if there is one, else a signature. Rejects as the house's requests do. */
export async function bedrockHeaders(
  place: SignInPlace,
  request: Omit<SignedRequest, 'headers'>,
  signal: AbortSignal,
): Promise<Record<string, string>> {
  const { env } = place;
  const token = env['AWS_BEARER_TOKEN_BEDROCK']?.trim();
  if (token) return { authorization: `Bearer ${token}` };
  const headers = { 'content-type': 'application/json' };
  const keys = await awsKeys(place, signal);
  return signedHeaders({ ...request, headers }, keys, { region: awsRegion(env) ?? '', service });
}

/** Returns the request's headers with those of its signature, version 4. Valid for minutes. */
export function signedHeaders(
  { method, url, headers, body }: SignedRequest,
  { id, secret, session }: AwsKeys,
  { region, service }: { region: string; service: string },
  now = new Date(),
): Record<string, string> {
  const time = now.toISOString().replace(/[-:]|\.\d{3}/g, '');
  const added = { 'x-amz-date': time, ...(session && { 'x-amz-security-token': session }) };
  const signed = Object.entries({ ...headers, ...added, host: url.host }).sort(byName);
  const names = signed.map(([name]) => name).join(';');
  const canonical = [
    method,
    url.pathname.split('/').map(encoded).join('/'),
    [...url.searchParams]
      .map(pair => pair.map(encoded))
      .sort(byName)
      .map(pair => pair.join('='))
      .join('&'),
    ...signed.map(([name, value]) => `${name}:${value.trim().replace(/\s+/g, ' ')}`),
    '',
    names,
    sha256(body),
  ].join('\n');
  const scope = `${time.slice(0, 8)}/${region}/${service}/aws4_request`;
  const key = scope.split('/').reduce<string | Buffer>((made, part) => hmac(made, part), `AWS4${secret}`);
  const signature = hmac(key, ['AWS4-HMAC-SHA256', time, scope, sha256(canonical)].join('\n')).toString(
    'hex',
  );
  return {
    ...headers,
    ...added,
    authorization: `AWS4-HMAC-SHA256 Credential=${id}/${scope}, SignedHeaders=${names}, Signature=${signature}`,
  };
}

const byName = ([one = '']: readonly string[], [other = '']: readonly string[]): number =>
  one < other ? -1 : 1;
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();
const encoded = (part: string): string =>
  encodeURIComponent(part).replace(/[!'()*]/g, sign => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);

let kept: { whose: string; keys: AwsKeys; until: number } | undefined;

/** Returns the keys of the environment, else those that the AWS CLI has by profile, sign-in or machine. Rejects with TelosError `auth`. */
async function awsKeys(place: SignInPlace, signal: AbortSignal): Promise<AwsKeys> {
  const { env } = place;
  const [id, secret, session] = ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN'].map(
    name => env[name]?.trim(),
  );
  if (id && secret) return { id, secret, session };
  const profile = env['AWS_PROFILE']?.trim();
  const whose = JSON.stringify([
    profile,
    env['AWS_CONFIG_FILE'],
    env['AWS_SHARED_CREDENTIALS_FILE'],
    env['HOME'],
  ]);
  if (kept?.whose === whose && Date.now() < kept.until) return kept.keys;
  const words = [
    'configure',
    'export-credentials',
    '--format',
    'process',
    ...(profile ? ['--profile', profile] : []),
  ];
  const { text, problem } = await printedBy('aws', words, place, signal);
  const read = keysIn(text);
  if (!read)
    throw new TelosError('auth', [
      sentence(
        'There is nothing to sign in to Amazon Bedrock with ({0}).',
        problem ?? 'aws configure export-credentials',
      ),
      sentence('Set AWS_BEARER_TOKEN_BEDROCK, or sign in with: aws sso login'),
    ]);
  kept = { whose, ...read };
  return read.keys;
}

function keysIn(text: string): { keys: AwsKeys; until: number } | undefined {
  try {
    const said = JSON.parse(text) as Readonly<Record<string, unknown>>;
    const { AccessKeyId: id, SecretAccessKey: secret, SessionToken: session, Expiration: end } = said;
    if (typeof id !== 'string' || typeof secret !== 'string') return undefined;
    const until = typeof end === 'string' ? Date.parse(end) - keptMs : Date.now() + keptMs;
    return { keys: { id, secret, session: typeof session === 'string' ? session : undefined }, until };
  } catch {
    return undefined;
  }
}
