/** Asks models of Anthropic and Google at Google's Vertex AI: in their makers' formats, at other addresses, with a token of Google. */
import { createSign } from 'node:crypto';
import { join } from 'node:path';
import { type Sentence, sentence } from '@telos/protocol/text';
import type { Config } from '../config.ts';
import { TelosError } from '../core/errors.ts';
import { loadText } from '../files/regularFile.ts';
import { answerText, fetchOut } from '../tools/fetchOut.ts';
import type { AnthropicHouse } from './anthropic.ts';
import type { GeminiHouse } from './gemini.ts';
import { printedBy, type SignInPlace } from './signInProgram.ts';

type Place = SignInPlace & Pick<Config, 'home'>;
type Fields = Readonly<Record<string, unknown>>;

const usualTokens = 'https://oauth2.googleapis.com/token';
const scope = 'https://www.googleapis.com/auth/cloud-platform';
/** How long before its end a token is not used any more, and how long one is used that does not say when it ends, in milliseconds. */
const spareMs = 300_000;

const house = {
  name: 'vertex',
  label: 'Vertex AI',
  keyVariable: undefined,
  addressVariable: 'ANTHROPIC_VERTEX_BASE_URL',
} as const;

/** Returns what createAnthropic needs to ask Vertex AI. Requests reject with TelosError `auth` if no one has signed in. */
export const vertexHouse = (config: Place): AnthropicHouse => ({
  ...house,
  async fitted({ url, body, headers: given }, signal) {
    const { model, ...rest } = JSON.parse(body) as { model: string };
    // This house has the version in the body.
    const { 'anthropic-version': version, ...headers } = given;
    return {
      url: `${url.replace(/\/v1\/messages.*$/, '')}/publishers/anthropic/models/${encodeURIComponent(model)}:streamRawPredict`,
      body: JSON.stringify({ anthropic_version: version, ...rest }),
      headers: { ...headers, ...(await vertexHeaders(config, signal)) },
    };
  },
});

/** The same, for createGemini. */
export const vertexGemini = (config: Place): GeminiHouse => ({
  ...house,
  headers: signal => vertexHeaders(config, signal),
});

/** Returns the headers that open Vertex AI. Rejects with TelosError `auth` if no one has signed in, or the sign-in is refused. */
export async function vertexHeaders(config: Place, signal: AbortSignal): Promise<Record<string, string>> {
  return { authorization: `Bearer ${await googleToken(config, signal)}` };
}

interface Token {
  token: string;
  until: number;
}

let kept: (Token & { whose: string }) | undefined;

/** Returns a token for the file that the person has signed in with, or that `gcloud` makes. */
async function googleToken(config: Place, signal: AbortSignal): Promise<string> {
  const { env, home } = config;
  const named = env['GOOGLE_APPLICATION_CREDENTIALS']?.trim();
  const folder = env['CLOUDSDK_CONFIG']?.trim() || join(env['APPDATA'] || join(home, '.config'), 'gcloud');
  const file = named || join(folder, 'application_default_credentials.json');
  const text = await loadText(file).catch(error => {
    if (!named) return '';
    throw signInProblem(error instanceof Error ? error.message : String(error));
  });
  const whose = `${file} ${text}`;
  if (kept?.whose === whose && Date.now() < kept.until) return kept.token;
  const made = (text && (await tokenOfFile(text, file, signal))) || (await tokenOfProgram(config, signal));
  kept = { whose, ...made };
  return made.token;
}

/** Returns undefined for a file of another kind, which gcloud reads. */
async function tokenOfFile(text: string, file: string, signal: AbortSignal): Promise<Token | undefined> {
  const said = fieldsIn(text);
  if (!said) throw signInProblem(sentence('{0} is not JSON', file));
  const word = (name: string): string => (typeof said[name] === 'string' ? said[name] : '');
  const address = word('token_uri') || usualTokens;
  if (word('type') === 'service_account')
    return askToken(address, signal, {
      grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
      assertion: assertionOf(
        word('client_email'),
        word('private_key'),
        word('private_key_id'),
        address,
        file,
      ),
    });
  if (word('type') === 'authorized_user')
    return askToken(address, signal, {
      grant_type: 'refresh_token',
      client_id: word('client_id'),
      client_secret: word('client_secret'),
      refresh_token: word('refresh_token'),
    });
  return undefined;
}

/** Returns what a service account proves itself with: a JWT that it has signed. */
function assertionOf(email: string, key: string, keyId: string, audience: string, file: string): string {
  const now = Math.floor(Date.now() / 1000);
  const parts = [
    { alg: 'RS256', typ: 'JWT', kid: keyId },
    { iss: email, scope, aud: audience, iat: now, exp: now + 3600 },
  ].map(part => Buffer.from(JSON.stringify(part)).toString('base64url'));
  try {
    return [...parts, createSign('RSA-SHA256').update(parts.join('.')).sign(key, 'base64url')].join('.');
  } catch {
    throw signInProblem(sentence('the key in {0} cannot be used', file));
  }
}

async function askToken(address: string, signal: AbortSignal, form: Record<string, string>): Promise<Token> {
  const body = new URLSearchParams(form);
  const response = await fetchOut(address, { method: 'POST', body, redirect: 'manual', signal });
  const said = fieldsIn(await answerText(response)) ?? {};
  const { access_token: token, expires_in: seconds, error, error_description: why } = said;
  if (response.ok && typeof token === 'string')
    return { token, until: Date.now() + (typeof seconds === 'number' ? seconds * 1000 - spareMs : 0) };
  throw signInProblem(String(why ?? error ?? response.status));
}

async function tokenOfProgram(place: SignInPlace, signal: AbortSignal): Promise<Token> {
  const { text, problem } = await printedBy('gcloud', ['auth', 'print-access-token'], place, signal);
  const token = text.trim();
  if (!/^\S+$/.test(token)) throw signInProblem(problem ?? 'gcloud auth print-access-token');
  return { token, until: Date.now() + spareMs };
}

const signInProblem = (why: string | Sentence): TelosError =>
  new TelosError('auth', [
    sentence('There is no sign-in to Google that works ({0}).', why),
    sentence('Sign in with: gcloud auth application-default login'),
  ]);

function fieldsIn(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Fields) : undefined;
  } catch {
    return undefined;
  }
}
