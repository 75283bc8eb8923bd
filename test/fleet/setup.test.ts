import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { loadConfig } from '../../src/engine/config.ts';
import { cliHome } from '../cli/cliProcess.ts';

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const modules = fileURLToPath(new URL('../../node_modules', import.meta.url));
const { services } = parse(read('examples/fleet/compose.yaml'));
const { worker, database, git } = services;
const own = (text: string): string => text.replace(/\$\{\w+:[?-][^}]*\}/, '7');

describe("the files of a team's setup", () => {
  it('start a worker with words and variables that it knows', async () => {
    const home = cliHome();
    const packages = join(home.dataDir, 'packages');
    mkdirSync(packages, { recursive: true });
    symlinkSync(modules, join(packages, 'node_modules'));
    const env = Object.fromEntries(
      Object.entries<string>(worker.environment).map(([name, text]) => [name, own(text)]),
    );
    const { maxCostPerDay } = loadConfig({ env, home: home.folder.path, cwd: home.workDir }).budget;
    assert.equal(maxCostPerDay, 7);
    const url = `postgres://telos:7@127.0.0.1:1/fleet`;
    const { code, stderr } = await home.runProcess(['worker', ...worker.command], {
      env: { ...env, TELOS_DATABASE_URL: url },
    });
    home.remove();
    assert.equal(code, 2);
    assert.match(stderr, /^The database 127\.0\.0\.1:1\/fleet cannot be reached\./);
  });

  it('name the database, its user and the git server as the services have them', () => {
    const { username, password, hostname, port, pathname } = new URL(
      own(worker.environment.TELOS_DATABASE_URL),
    );
    assert.equal(username, database.environment.POSTGRES_USER);
    assert.equal(password, own(database.environment.POSTGRES_PASSWORD));
    assert.equal(pathname, `/${database.environment.POSTGRES_DB}`);
    assert.ok(services[hostname] && database.ports.includes(`127.0.0.1:${port}:${port}`));
    const repository = worker.command.find((word: string) => word.startsWith('git://'));
    const { port: gitPort, pathname: project } = new URL(repository);
    assert.ok(git.ports.includes(`127.0.0.1:${gitPort}:${gitPort}`));
    const steps = read('examples/fleet/README.md');
    assert.ok(steps.includes(`git init --bare /srv/git${project}`) && steps.includes(repository));
  });

  it('install the version of the engine that Telos is tested with', () => {
    const { peerDependencies } = JSON.parse(read('package.json'));
    const [, version] = /@dbos-inc\/dbos-sdk@(\S+)/.exec(read('examples/fleet/Containerfile')) ?? [];
    assert.equal(version, peerDependencies['@dbos-inc/dbos-sdk']);
  });
});
