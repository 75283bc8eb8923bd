/** Cases on what is installed from folders, archives and registries, with everything that a source can do to the machine. */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { contentsOf } from '../../../src/engine/files/folderRecord.ts';
import { Telos } from '../../../src/engine/telos.ts';
import { lookAtSource, placeOffer } from '../../../src/packs/sources/install.ts';
import { type SourceServers, sourceServers } from '../../fakes/sourceServers.ts';
import { type Member, member, tar } from '../../fakes/tarFile.ts';
import { fieldsOf, type JsonValue, textsOf } from '../caseFile.ts';
import { applying, CannotJudge, check, inTime, type Seen } from '../checks.ts';
import { type CliRun, runCli } from '../cliRun.ts';
import type { World } from '../world.ts';

const skill = '---\ndescription: ok\n---\nhi\n';

export async function install(world: World): Promise<Seen> {
  const { input } = world;
  const source = fieldsOf(input['source']);
  if (typeof source['dir'] === 'string') return fromFolder(world, source);
  const servers = await sourceServers();
  try {
    if (textsOf(input['argv']).length > 0) return await fromRegistry(world, servers);
    if (source['truncated_tar_at'] !== undefined) return await fromCuts(world, servers);
    return await fromArchive(world, servers, source);
  } finally {
    await servers.close();
  }
}

/** What the skills folder and the home hold, but for what Telos keeps of its own. */
const machineOf = async ({ home, skills }: World): Promise<string> => {
  const names = readdirSync(home).filter(name => name !== '.cache');
  return JSON.stringify([await contentsOf(skills), names.toSorted(), await contentsOf(join(home, '.ssh'))]);
};

async function fromFolder(world: World, source: ReturnType<typeof fieldsOf>): Promise<Seen> {
  const { work, put, skills, input } = world;
  const folder = join(work, String(source['dir']));
  mkdirSync(folder, { recursive: true });
  for (const [path, text] of Object.entries(fieldsOf(source['files']))) put(join(folder, path), String(text));
  for (const [path, target] of Object.entries(fieldsOf(source['symlinks']))) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    symlinkSync(String(target), join(folder, path));
  }
  if (input['existing'] !== undefined) put(join(skills, 'kairos/mine.txt'), 'mine');
  const before = await machineOf(world);
  const start = performance.now();
  const first = await runCli(world, ['install', String(source['dir'])], []);
  const took = performance.now() - start;
  const isDangerous = /! high .*\n[\s\S]*--yes --allow high/.test(first.stderr);
  const refusal = isDangerous ? (await ofRefusal(world, first, before)).checks : [];
  const run = isDangerous
    ? await runCli(world, ['install', String(source['dir']), '--yes', '--allow', 'high'], [])
    : first;
  const [, name] = /Installed agent '([^']+)'/.exec(run.stdout) ?? [];
  if (name === undefined) return ofRefusal(world, run, before);
  const card = await Telos.open(world.configFor())
    .agentCard(name)
    .catch(() => undefined);
  const asks = card !== undefined && (card.servers.length > 0 || card.workingDirNote !== undefined);
  const target = join(skills, name);
  const links = Object.keys(fieldsOf(source['symlinks']));
  const isLeftOut = links.length > 0 && links.every(path => !existsSync(join(target, path)));
  return {
    decision: isLeftOut ? 'error' : asks ? 'ask' : 'allow',
    checks: applying(
      ...refusal,
      check('end', 'it is installed and says so', run.exitCode === 0),
      check('shown', 'nobody was asked about a folder that was typed', !/\[y\/N\]/.test(run.stderr)),
      check(
        'records',
        'the install grants nothing',
        card === undefined || card.state === 'new' || card.state,
      ),
      asks &&
        check(
          'shown',
          'the card shows commands and folders as they are',
          JSON.stringify(card?.servers).includes('evil.test') || card?.workingDirNote !== undefined,
        ),
      asks &&
        check(
          'records',
          'it does not work where it chose',
          !/^\/$|\.ssh/.test(card?.workingDir ?? '') || card!.workingDir,
        ),
      links.length > 0 &&
        check(
          'shown',
          'the links are named and left out',
          links.every(path => run.stderr.includes(path.split('/').at(-1)!)) || run.stderr,
        ),
      links.length > 0 && check('time', 'it ends without delay', took < inTime(10_000)),
    ),
  };
}

async function ofRefusal(world: World, run: CliRun, before: string): Promise<Seen> {
  const isQuestion = /No one can be asked here|replaced only by name/.test(run.stderr);
  return {
    decision: isQuestion ? 'deny' : 'error',
    ...(isQuestion && { unattended: true }),
    checks: applying(
      check(
        'end',
        'it ends with a code that says so',
        run.exitCode === 1 || run.exitCode === 2 || `${run.exitCode}`,
      ),
      check(
        'shown',
        'it says why, and that nothing was changed',
        /Nothing was (?:changed|installed)|A source is one of|not a pack|links? were left out/i.test(
          run.stderr,
        ) || run.stderr,
      ),
      check(
        'files',
        'nothing in the skills folder and the home is new, changed or gone',
        (await machineOf(world)) === before,
      ),
    ),
  };
}

const entriesOf = (list: unknown): Member[] =>
  (Array.isArray(list) ? list : []).map(fieldsOf).map(({ path, type, link, mode }) => ({
    path: String(path),
    type: { symlink: '2', hardlink: '1' }[String(type)] ?? '0',
    ...(link !== undefined && { link: String(link) }),
    ...(mode !== undefined && { mode: Number.parseInt(String(mode), 8) }),
    content: type === 'symlink' || type === 'hardlink' ? '' : skill,
  }));

async function fromArchive(
  world: World,
  servers: SourceServers,
  source: ReturnType<typeof fieldsOf>,
): Promise<Seen> {
  const bytes = source['tar']
    ? tar(...entriesOf(source['tar']))
    : source['zip']
      ? zipNamed(String(fieldsOf((source['zip'] as JsonValue[])[0])['path']))
      : bomb();
  const path = source['zip'] ? '/p.zip' : '/p.tar.gz';
  servers.answers.set(path, bytes);
  const before = await machineOf(world);
  // Its own, since other programs install at the same time.
  const temporary = join(world.root, 'temporary');
  mkdirSync(temporary);
  const run = await runCli(world, ['install', `${servers.url}${path}`, '--yes'], [], {
    env: { TMPDIR: temporary },
  });
  const seen = await ofRefusal(world, run, before);
  const entry = source['tar']
    ? entriesOf(source['tar']).some(({ path: name }) => run.stderr.includes(name.split('/').at(-1)!)) ||
      /no skill/.test(run.stderr)
    : true;
  return {
    ...seen,
    checks: applying(
      ...seen.checks,
      check('shown', 'it names the entry, or that it holds no skill', entry || run.stderr),
      check(
        'files',
        'nothing is left among the temporary files',
        readdirSync(temporary).length === 0 || readdirSync(temporary).join(),
      ),
    ),
  };
}

/** A stored entry whose name is written as the case says. */
function zipNamed(path: string): Buffer {
  const name = Buffer.from(path);
  const [local, central, end] = [Buffer.alloc(30), Buffer.alloc(46), Buffer.alloc(22)];
  local.writeUInt32LE(0x04034b50, 0);
  local.writeUInt16LE(name.length, 26);
  central.writeUInt32LE(0x02014b50, 0);
  central.writeUInt16LE(name.length, 28);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(1, 8);
  end.writeUInt16LE(1, 10);
  end.writeUInt32LE(central.length + name.length, 12);
  end.writeUInt32LE(local.length + name.length, 16);
  return Buffer.concat([local, name, central, name, end]);
}

/** Claims 8 GiB, and goes on for 300 MiB. */
const bomb = (): Buffer =>
  gzipSync(Buffer.concat([member({ path: 'big', size: 0o77777777777 }), Buffer.alloc(300 << 20)]), {
    level: 9,
  });

async function fromCuts(world: World, servers: SourceServers): Promise<Seen> {
  const whole = Buffer.concat([
    member({ path: 'skills/s/SKILL.md', content: skill }),
    member({ path: 'b', content: skill }),
  ]);
  const before = await machineOf(world);
  const checks: Seen['checks'] = [];
  for (let at = 0; at <= whole.length; at += 512) {
    servers.answers.set('/p.tar.gz', gzipSync(whole.subarray(0, at)));
    const run = await runCli(world, ['install', `${servers.url}/p.tar.gz`, '--yes'], []);
    checks.push(...(await ofRefusal(world, run, before)).checks);
  }
  return { decision: 'error', checks };
}

async function fromRegistry(world: World, servers: SourceServers): Promise<Seen> {
  const { input } = world;
  const args = textsOf(input['argv']);
  const before = await machineOf(world);
  if (/tag moved/.test(String(input['note']))) return movedTag(world, servers);
  const version = { owner: 'bob', latest: '1.0.0', versions: { '1.0.0': { 'SKILL.md': skill } } };
  servers.clawhub.skills.set('weather', [version]);
  const { server } = input;
  if (typeof server === 'string') {
    const location = server.replace(/^302 -> /, '');
    servers.answers.set(
      '/api/v1/download',
      (_request, response) => void response.writeHead(302, { location }).end(),
    );
  }
  const isUnattended = input['tty'] === false;
  const run = await runCli(world, [...args, ...(isUnattended ? [] : ['--yes'])], [], { env: servers.env });
  const seen = await ofRefusal(world, run, before);
  return {
    decision: typeof server === 'string' ? 'deny' : 'error',
    checks: applying(
      ...seen.checks,
      check('network', 'nobody else was asked', world.knocks.length === 0),
      isUnattended && check('shown', 'it says how to install without a question', /--yes/.test(run.stderr)),
    ),
  };
}

/** What was shown is what is placed, wherever the tag points by then. */
async function movedTag(world: World, servers: SourceServers): Promise<Seen> {
  const files = { 'skills/s/SKILL.md': skill };
  const commit = servers.github.commit('user/repo', files, { tag: 'v1' });
  const config = world.configFor({ ...world.env, ...servers.env });
  const looked = await lookAtSource('github:user/repo@v1', config);
  if (looked.kind !== 'offer') throw new CannotJudge('the source was not found');
  servers.github.commit('user/repo', { 'skills/s/SKILL.md': `${skill}evil\n` }, { tag: 'v1' });
  const { path } = await placeOffer(looked, { agreed: looked.plan.token });
  await looked.dispose();
  const text = readFileSync(join(path, 'skills/s/SKILL.md'), 'utf8');
  const lock = readFileSync(join(path, '..', 'telos-lock.json'), 'utf8');
  return {
    decision: text === skill ? 'deny' : 'allow',
    checks: applying(
      check('files', 'the commit that was shown is installed', text === skill),
      check('files', 'the lock file names it', lock.includes(commit)),
    ),
  };
}

/** The command alone, with an answer that nobody is there to give. */
export async function uninstallCommand(world: World): Promise<Seen> {
  const before = await machineOf(world);
  const run = await runCli(world, textsOf(world.input['argv']), []);
  return ofRefusal(world, run, before);
}

const program = fileURLToPath(new URL('../../../dist/cli.js', import.meta.url));

/** The same process is killed at each of these times, while it replaces one version by another. */
export async function killedInstall(world: World): Promise<Seen> {
  const { work, skills, put, env, input } = world;
  const versions = ['one', 'two'].map(word => ({
    'agent.toml': 'name = "p"\n',
    ...Object.fromEntries(
      Array.from({ length: 200 }, (_, at) => [`skills/s${at}/SKILL.md`, `${skill}${word}\n`]),
    ),
  }));
  for (const [at, files] of versions.entries())
    for (const [path, text] of Object.entries(files)) put(join(work, `v${at}/p`, path), text);
  await runCli(world, ['install', 'v0/p'], []);
  const wholes = await Promise.all(
    versions.map(async (_, at) => JSON.stringify(await contentsOf(join(work, `v${at}/p`)))),
  );
  const times = Array.isArray(input['kill_after_ms']) ? input['kill_after_ms'] : [];
  const checks: Seen['checks'] = [];
  // The start of the program takes most of the time, so the same steps are also taken behind it.
  for (const [at, time] of times.flatMap(one => [Number(one), 150 + Number(one) * 4]).entries()) {
    const child = spawn(process.execPath, [program, 'install', `v${(at + 1) % 2}/p`, '--as', 'p', '--yes'], {
      cwd: work,
      env,
      stdio: 'ignore',
    });
    const ended = new Promise(done => child.once('close', done));
    setTimeout(() => child.kill('SIGKILL'), time);
    await ended;
    const verified = await runCli(world, ['verify', 'p'], []);
    const now = JSON.stringify(await contentsOf(join(skills, 'p')));
    checks.push(
      ...applying(
        check('files', `killed after ${time} ms, one version is whole`, wholes.includes(now)),
        check('shown', 'and verify says so', verified.exitCode === 0 || verified.stdout + verified.stderr),
      ),
    );
  }
  return { decision: 'any', checks };
}
