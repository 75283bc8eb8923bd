/** Seals results for the suite that asked, so that a database holds nothing of what a run has read and written. */
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import type { AnswerJob } from './worker.ts';

/** Most that a result takes in the database, in bytes. */
export const mostSealed = 256 * 1024;
/** Most that a result is when it is opened, in bytes. */
const mostOpened = 16 * 1024 * 1024;

const cipher = 'aes-256-gcm';
const rawHead = Buffer.from('302a300506032b656e032100', 'hex');

/** The keys of one suite, which are never written down, or of one plan, which is found again. */
export interface SuiteKeys {
  publicKey: string;
  privateKey: KeyObject;
}

const rawOf = (key: KeyObject): Buffer =>
  key.export({ type: 'spki', format: 'der' }).subarray(rawHead.length);
const keyFrom = (raw: Buffer): KeyObject =>
  createPublicKey({ key: Buffer.concat([rawHead, raw]), type: 'spki', format: 'der' });

export function suiteKeys(): SuiteKeys {
  const { publicKey, privateKey } = generateKeyPairSync('x25519');
  return { publicKey: rawOf(publicKey).toString('base64'), privateKey };
}

/** Returns the keys whose private one is in the text that `keptKeys` has returned. Throws if it is none. */
export function readKeys(kept: string): SuiteKeys {
  const privateKey = createPrivateKey(kept);
  return { publicKey: rawOf(createPublicKey(privateKey)).toString('base64'), privateKey };
}

/** Returns the private key as text, for a file that only its owner can read. */
export const keptKeys = ({ privateKey }: SuiteKeys): string =>
  privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();

/** Returns a word that only who has these keys can make. Who can answer with it has read where it was put. */
export const proofFor = (keys: SuiteKeys, name: string): string =>
  createHmac('sha256', keptKeys(keys)).update(`proof of ${name}`).digest('base64url');

const secretOf = (privateKey: KeyObject, publicKey: KeyObject): Buffer =>
  Buffer.from(hkdfSync('sha256', diffieHellman({ privateKey, publicKey }), '', 'telos result', 32));

/** Returns the value as text that only the suite with this key can read. Throws if the key is none. */
export function seal(value: unknown, suite: string): string {
  const once = generateKeyPairSync('x25519');
  const iv = randomBytes(12);
  const encrypt = createCipheriv(
    cipher,
    secretOf(once.privateKey, keyFrom(Buffer.from(suite, 'base64'))),
    iv,
  );
  const content = deflateRawSync(JSON.stringify(value));
  const body = [encrypt.update(content), encrypt.final()];
  return Buffer.concat([rawOf(once.publicKey), iv, encrypt.getAuthTag(), ...body]).toString('base64');
}

/** Returns what was sealed for this suite, or undefined if the text is anything else. */
export function unseal(text: unknown, { privateKey }: SuiteKeys): unknown {
  if (typeof text !== 'string' || text.length > mostSealed) return undefined;
  try {
    const all = Buffer.from(text, 'base64');
    const [once, iv, tag, body] = [
      all.subarray(0, 32),
      all.subarray(32, 44),
      all.subarray(44, 60),
      all.subarray(60),
    ];
    const decrypt = createDecipheriv(cipher, secretOf(privateKey, keyFrom(once)), iv).setAuthTag(tag);
    const content = Buffer.concat([decrypt.update(body), decrypt.final()]);
    return JSON.parse(inflateRawSync(content, { maxOutputLength: mostOpened }).toString('utf8'));
  } catch {
    return undefined;
  }
}

/** What works on stories. All that it says goes out sealed. */
export interface StoryAnswers {
  answer(
    given: unknown,
    tell: (proven: { proof: string; facts: readonly object[] }) => Promise<void>,
    signal: AbortSignal,
  ): Promise<{ proof: string; end: object } | { refused: string }>;
}

/** Returns what answers both kinds of jobs. */
export const answerEither =
  (evals: AnswerJob, stories: StoryAnswers): AnswerJob =>
  async (given, signal, tell) => {
    const { format, replyTo = '' } = Object(given) as { format?: unknown; replyTo?: unknown };
    if (format !== 'telos-story-order') return evals(given, signal, tell);
    const answer = await stories.answer(
      given,
      async ({ proof, facts }) => {
        for (const sealed of sealedFacts(proof, facts, String(replyTo))) await tell(sealed);
      },
      signal,
    );
    return 'refused' in answer ? answer : { sealed: seal(answer, String(replyTo)) };
  };

/** Returns the facts in as few seals as hold them. */
function sealedFacts(proof: string, facts: readonly object[], replyTo: string): string[] {
  const whole = seal({ proof, facts }, replyTo);
  if (whole.length < mostSealed - 1_024 || facts.length === 1) return [whole];
  const half = Math.ceil(facts.length / 2);
  return [facts.slice(0, half), facts.slice(half)].flatMap(part => sealedFacts(proof, part, replyTo));
}
