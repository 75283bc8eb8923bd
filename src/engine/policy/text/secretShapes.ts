/** Recognizes secrets in a text by their shapes, which services publish so that they can be found. */

/** A key of a service, with as much behind its mark as the service puts there. */
const keys =
  /(?<![\w-])(?:sk-(?:ant-|proj-|or-v1-)?[\w-]{20,200}|(?:sk|rk)_live_\w{16,200}|gh[opsur]_\w{36,255}|github_pat_\w{22,255}|glpat-[\w-]{20,100}|xox[abeprs]-[\w-]{20,200}|(?:AKIA|ASIA)[A-Z\d]{16}|AIza[\w-]{35}|ya29\.[\w-]{20,200}|SG\.[\w-]{16,40}\.[\w-]{16,80}|npm_\w{36}|hf_[A-Za-z]{30,60}|pypi-[\w-]{50,300}|dop_v1_[\da-f]{64}|shp(?:at|ss)_[\da-f]{32}|lin_api_\w{32,64}|\d{8,10}:AA[\w-]{32,35}|eyJ[\w-]{16,500}\.eyJ[\w-]{16,2000}\.[\w-]{16,1000})(?![\w-])/;
const privateKey = /-----BEGIN (?:[A-Z]{2,10} ){0,3}PRIVATE KEY-----(?!(?:\\?n|\s)*(?:\.\.\.|<|…))/;
/** A value that is assigned to a name of secrets. */
const assigned =
  /(?:api_?key|secret|(?:api|access|auth|bearer|hooks?|bot|refresh|gateway|session)_?token|passw(?:or)?d|private_?key|access_?key)["'\x60]?\s{0,9}[:=]\s{0,9}["'\x60]([\w+/=.~-]{20,200})["'\x60]/i;

/** Letters that writers of examples put where a secret goes. */
const placeholder =
  /x{4}|\.{3}|(?:your|example|placeholder|changeme|dummy|sample|redacted|insert|abcdef|123456|fake|test|replace)/i;

/** Returns the part of a line that is a secret, or undefined if there is none or only an example of one. */
export function secretIn(line: string): string | undefined {
  if (privateKey.test(line)) return privateKey.exec(line)?.[0];
  const key = keys.exec(line)?.[0];
  if (key !== undefined) return isRandom(key.replace(/^[a-z]{2,6}[-_.]/i, '')) ? key : undefined;
  const value = assigned.exec(line)?.[1];
  return value !== undefined && /\d/.test(value) && /[a-z]/i.test(value) && isRandom(value)
    ? value
    : undefined;
}

/** The words without which there is none, see `WordMasks`. */
secretIn.words = [
  ...[
    'sk-',
    'sk ',
    'rk ',
    'gho',
    'ghp',
    'ghs',
    'ghu',
    'ghr',
    'github',
    'glpat',
    'xox',
    'aki',
    'asi',
    'aiz',
    'ya2',
  ],
  ...[
    'sg.',
    'npm',
    'hf ',
    'pypi',
    'dop',
    'shp',
    'lin',
    ':aa',
    'eyj',
    'private',
    'api',
    'secret',
    'token',
    'pass',
  ],
  ...['access'],
];

/** Returns false for a word to be filled in, and for anything with few different characters. */
function isRandom(value: string): boolean {
  if (placeholder.test(value)) return false;
  return new Set(value).size >= Math.min(12, value.length / 2) && /[A-Za-z]/.test(value) && /\d/.test(value);
}

/** Returns the line with only the beginning of a secret, so that a report does not give it away. */
export function withoutSecret(line: string): string {
  const secret = secretIn(line);
  return secret === undefined || privateKey.test(secret)
    ? line
    : line.replace(secret, `${secret.slice(0, 6)}…`);
}
