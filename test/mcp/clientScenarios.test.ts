/** The client scenarios of the protocol's own conformance suite, for the revisions that Telos speaks: no failure and no warning. */
import { deepEqual, equal, ok } from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type TempFolder, tempFolder } from '../fakes/tempFolder.ts';

const fromRoot = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const suite = fromRoot('node_modules/@modelcontextprotocol/conformance/dist/index.js');
const client = fromRoot('test/mcp/scenarioClient.ts');

/** Those of the extension for skills (SEP-2640), which runs at the newest revision. */
const ofSkills = [
  'sep-2640-client-no-prefetch',
  'sep-2640-client-verify-digest',
  'sep-2640-client-verify-size',
  'sep-2640-client-verify-frontmatter',
];

/** What the suite has, by revision. A scenario of two revisions runs at the wire of each. */
const auth = [
  'auth/metadata-default',
  'auth/metadata-var1',
  'auth/metadata-var2',
  'auth/metadata-var3',
  'auth/basic-cimd',
  'auth/scope-from-www-authenticate',
  'auth/scope-from-scopes-supported',
  'auth/scope-omitted-when-undefined',
  'auth/scope-step-up',
  'auth/scope-retry-limit',
  'auth/token-endpoint-auth-basic',
  'auth/token-endpoint-auth-post',
  'auth/token-endpoint-auth-none',
  'auth/pre-registration',
];
const revisions: Readonly<Record<string, readonly string[]>> = {
  '2025-11-25': [
    'initialize',
    'tools_call',
    'elicitation-sep1034-client-defaults',
    'sse-retry',
    ...auth,
    'json-schema-2020-12-preservation',
  ],
  '2026-07-28': [
    'tools_call',
    'request-metadata',
    ...auth,
    'auth/resource-mismatch',
    'auth/offline-access-scope',
    'auth/offline-access-not-supported',
    'auth/authorization-server-migration',
    'auth/iss-supported',
    'auth/iss-not-advertised',
    'auth/iss-supported-missing',
    'auth/iss-wrong-issuer',
    'auth/iss-unexpected',
    'auth/iss-normalized',
    'auth/metadata-issuer-mismatch',
    'sep-2322-client-request-state',
    'http-standard-headers',
    'http-custom-headers',
    'http-invalid-tool-headers',
    'json-schema-ref-no-deref',
    'json-schema-2020-12-preservation',
  ],
};

interface Check {
  id: string;
  status: 'SUCCESS' | 'FAILURE' | 'WARNING' | 'INFO' | 'SKIPPED';
  description: string;
  errorMessage?: string;
}

for (const [revision, scenarios] of Object.entries(revisions))
  describe(`client scenarios of ${revision}`, () => {
    it('are all that the suite has', async () => {
      const { text } = await run(['list', '--client', '--spec-version', revision]);
      const listed = [...text.matchAll(/^ {2}- (\S+)/gm)].map(([, name]) => name);
      deepEqual(listed, scenarios);
    });
    all(scenarios, ['--spec-version', revision]);
  });

describe('client scenarios of skills', () => all(ofSkills, []));

function all(scenarios: readonly string[], more: readonly string[]): void {
  let results: TempFolder;
  before(() => {
    results = tempFolder();
  });
  after(() => results.remove());

  for (const scenario of scenarios) {
    it(scenario, async function () {
      // The suite measures this one against a clock, and takes a busy machine for a slow client.
      if (scenario === 'sse-retry') this.retries(3);
      const folder = join(results.path, scenario, String(Date.now()));
      const command = `"${process.execPath}" "${client}"`;
      const { code, text } = await run([
        ...['client', '--command', command, '--scenario', scenario],
        ...[...more, '--output-dir', folder],
      ]);
      const checks = checksIn(folder);
      const wrong = checks.filter(({ status }) => status === 'FAILURE' || status === 'WARNING');
      deepEqual(
        wrong.map(({ id, status, description, errorMessage }) => [id, status, errorMessage ?? description]),
        [],
      );
      ok(
        checks.some(({ status }) => status === 'SUCCESS'),
        text,
      );
      equal(code, 0, text);
    });
  }
}

function checksIn(folder: string): Check[] {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const file = files.find(name => name.endsWith('checks.json'));
  return file === undefined ? [] : (JSON.parse(readFileSync(join(folder, file), 'utf8')) as Check[]);
}

const run = (args: readonly string[]): Promise<{ code: number; text: string }> =>
  new Promise(resolve => {
    const options = { timeout: 60_000, maxBuffer: 64 * 1024 * 1024 };
    execFile(process.execPath, [suite, ...args], options, (error, stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), text: `${stdout}\n${stderr}` }),
    );
  });
