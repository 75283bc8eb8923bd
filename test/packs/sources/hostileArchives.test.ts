import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { unpack } from '../../../src/packs/sources/fetched.ts';
import { type Member, member, tar } from '../../fakes/tarFile.ts';
import { type TempFolder, tempFolder } from '../../fakes/tempFolder.ts';

const skill = { path: 'skills/s/SKILL.md', content: '---\ndescription: D\n---\nB\n' };

/** A record of the extended format: its own length, a key and a value. */
function pax(key: string, value: string): Member {
  const rest = ` ${key}=${value}\n`;
  let length = rest.length + 1;
  while (`${length}${rest}`.length !== length) length = `${length}${rest}`.length;
  return { path: 'PaxHeader', type: 'x', content: `${length}${rest}` };
}

describe('an archive', () => {
  let folder: TempFolder;
  let root: string;

  beforeEach(() => {
    folder = tempFolder();
    root = join(folder.path, 'tree');
    mkdirSync(root);
  });
  afterEach(() => folder.remove());

  const open = (bytes: Buffer): ReturnType<typeof unpack> =>
    unpack({ bytes, url: 'https://example.com/a', sha256: '' }, root, 0, new AbortController().signal);

  const refused = async (bytes: Buffer, why: RegExp): Promise<void> => {
    await rejects(open(bytes), (error: Error) => {
      match(error.message, why);
      match(error.message, /Nothing was installed/);
      return true;
    });
    deepEqual(readdirSync(folder.path), ['tree'], 'nothing beside the folder');
  };

  const hostile: readonly [string, Buffer, RegExp][] = [
    ['leads to the folder above', tar(skill, { path: '../evil.txt' }), /"\.\.\/evil\.txt" leads out/],
    ['leads up from below', tar({ path: 'a/../../evil.txt' }), /leads out/],
    ['has an absolute path', tar({ path: '/tmp/evil.txt' }), /absolute/],
    ['has a drive', tar({ path: 'C:/evil.txt' }), /absolute/],
    ['has a backslash', tar({ path: '..\\..\\evil.txt' }), /backslash/],
    ['has a line break in a name', tar({ path: 'a\nb' }), /control character/],
    [
      'writes through a link',
      tar({ path: 'ln', type: '2', link: 'b' }, { path: 'ln/evil' }),
      /is there twice/,
    ],
    [
      'has a second name of a file',
      tar(skill, { path: 'x', type: '1', link: 'skills/s/SKILL.md' }),
      /second name/,
    ],
    ['has a device', tar({ path: 'd', type: '3' }), /device/],
    ['has a pipe', tar({ path: 'd', type: '6' }), /device or a pipe/],
    ['has a file twice', tar(skill, skill), /is there twice/],
    [
      'has a file and a link of one name',
      tar(skill, { ...skill, type: '2', link: 'x', content: '' }),
      /is there twice/,
    ],
    ['names another path in an attribute', tar(pax('path', '../evil'), { path: 'fine.txt' }), /leads out/],
    [
      'names another size in an attribute',
      tar(pax('size', '0'), { path: 'fine.txt', content: 'x' }),
      /two sizes/,
    ],
    ['has a file with holes', tar(pax('GNU.sparse.major', '1'), { path: 'fine.txt' }), /file with holes/],
    ['sets a link for all', tar({ ...pax('linkpath', 'x'), type: 'g' }, skill), /all entries at once/],
    ['sets a size for all', tar({ ...pax('size', '0'), type: 'g' }, skill), /all entries at once/],
    ['sets a path for all', tar({ ...pax('path', 'x'), type: 'g' }, skill), /all entries at once/],
    ['has an unknown type', tar({ path: 'x', type: 'S' }), /unknown type/],
    ['has a skill twice but for case', tar(skill, { path: 'skills/S/SKILL.md' }), /is there twice/],
    ['is 30 folders deep', tar({ path: `${'d/'.repeat(30)}f` }), /24 folders deep/],
    ['has 6,000 files', tar(...Array.from({ length: 6000 }, (_, at) => ({ path: `f${at}` }))), /5000 files/],
    ['claims more than it has', tar({ path: 'x', content: 'abc', size: 99999 }), /cut off/],
  ];
  for (const [what, bytes, why] of hostile) it(`is refused if it ${what}`, () => refused(bytes, why));

  const partly: readonly [string, Member[], left: string[], there: string[]][] = [
    ['a link that leads out', [{ path: 'ln', type: '2', link: '/etc/passwd' }], ['ln'], []],
    ['a link that climbs out', [{ path: 'a/ln', type: '2', link: '../../x' }], ['a/ln'], []],
    ['a link that leads nowhere', [{ path: 'ln', type: '2', link: 'gone' }], ['ln'], []],
    ['a link to what is around it', [{ path: 'skills/s/up', type: '2', link: '..' }], ['skills/s/up'], []],
    [
      'the second of twins but for case',
      [{ path: 'skills/S/b.md' }, { path: 'Skills/x.md' }],
      ['skills/S', 'Skills'],
      [],
    ],
    [
      'the second of twins but for their Unicode form',
      [{ path: 'caf\u00e9' }, { path: 'cafe\u0301' }],
      ['cafe\u0301'],
      ['caf\u00e9'],
    ],
    [
      'what Windows opens as a device',
      [{ path: 'docs/aux.md' }, { path: 'con/x' }],
      ['docs/aux.md', 'con'],
      [],
    ],
  ];
  for (const [what, members, left, there] of partly)
    it(`is unpacked without ${what}, which is named`, async () => {
      deepEqual((await open(tar(skill, ...members))).leftOut, left);
      const files = readdirSync(root, { recursive: true, encoding: 'utf8' });
      deepEqual(files.toSorted(), [...there, 'skills', 'skills/s', 'skills/s/SKILL.md'].toSorted());
    });

  it('has in place of a link what that leads to within it, also over other links', async () => {
    const links: Member[] = [
      { path: 'plugin/skills', type: '2', link: '../shared' },
      { path: 'shared/t', type: '2', link: '../skills/s/' },
      { path: 'over', type: '2', link: 'plugin/skills/t/SKILL.md' },
    ];
    const { leftOut } = await open(tar(...links, { path: 'shared/a.md', content: 'A' }, skill));
    deepEqual(leftOut, []);
    equal(readFileSync(join(root, 'plugin/skills/a.md'), 'utf8'), 'A');
    equal(readFileSync(join(root, 'over'), 'utf8'), readFileSync(join(root, 'skills/s/SKILL.md'), 'utf8'));
  });

  it('is refused at each cut, and leaves nothing that looks whole', async () => {
    const whole = Buffer.concat([
      member(skill),
      member({ path: 'b', content: 'x'.repeat(600) }),
      Buffer.alloc(1024),
    ]);
    for (let at = 0; at <= whole.length - 1024; at += 512)
      await refused(gzipSync(whole.subarray(0, at)), /cut off/).finally(() =>
        execFileSync('rm', ['-rf', `${root}/skills`, `${root}/b`]),
      );
    const packed = gzipSync(whole);
    await refused(packed.subarray(0, packed.length - 20), /cannot be unpacked/);
  });

  it('is refused as a bomb before it fills memory or disk', async () => {
    const bomb = join(folder.path, 'bomb.ts');
    const source = new URL('../../../src/packs/sources/fetched.ts', import.meta.url).href;
    writeFileSync(
      bomb,
      `
      import { createGzip } from 'node:zlib';
      import { mkdirSync } from 'node:fs';
      import { unpack } from '${source}';
      const gzip = createGzip(); const pieces = [];
      gzip.on('data', piece => pieces.push(piece));
      const header = Buffer.from('${member({ path: 'big', size: 0o77777777777 }).toString('base64')}', 'base64');
      gzip.write(header);
      const zeros = Buffer.alloc(1 << 20);
      for (let at = 0; at < 300; at++) if (!gzip.write(zeros)) await new Promise(done => gzip.once('drain', done));
      await new Promise(done => gzip.end(done));
      const before = process.resourceUsage().maxRSS;
      const started = process.cpuUsage();
      try { await unpack({ bytes: Buffer.concat(pieces), url: 'https://example.com/a', sha256: '' }, ${JSON.stringify(root)}, 0, new AbortController().signal); console.log('unpacked'); }
      catch (error) { console.log(error.message); }
      const { user, system } = process.cpuUsage(started);
      console.error((user + system) / 1e6, process.resourceUsage().maxRSS - before);
    `,
    );
    const { stdout, stderr } = spawnSync(process.execPath, [bomb], { encoding: 'utf8' });
    match(stdout, /larger than 100 MiB|200 times its size/);
    const [seconds = 0, more = 0] = stderr.trim().split('\n').at(-1)!.split(' ').map(Number);
    ok(more < 128 * 1024, `${more} KB`);
    ok(seconds < 2, `${seconds} s of the processor`);
    deepEqual(readdirSync(root), []);
  });

  it('names the links that it leaves out, and keeps no mode but that of a script', async () => {
    const { leftOut } = await open(
      tar(
        skill,
        { path: 'skills/s/ln', type: '2', link: 'NONE.md' },
        { path: 'su', mode: 0o4755, content: 'x' },
        { path: '.git/hooks/x' },
      ),
    );
    deepEqual(leftOut.toSorted(), ['.git/', 'skills/s/ln']);
    equal(statSync(join(root, 'su')).mode & 0o7777, 0o755);
    ok(!existsSync(join(root, 'skills/s/ln')) && !existsSync(join(root, '.git')));
  });

  describe('of the kind zip', () => {
    const zip = (files: Readonly<Record<string, string | Uint8Array>>, ...flags: string[]): Buffer => {
      const place = tempFolder(files);
      try {
        const names = flags.includes('-0') ? Object.keys(files) : ['.', '-x', 'out.zip'];
        execFileSync('zip', ['-q', '-r', '-X', ...flags, 'out.zip', ...names], {
          cwd: place.path,
        });
        return readFileSync(join(place.path, 'out.zip'));
      } finally {
        place.remove();
      }
    };
    /** Replaces every occurrence of a name by another of the same length. */
    const renamed = (bytes: Buffer, from: string, to: string, only?: 'local' | 'central'): Buffer => {
      const copy = Buffer.from(bytes);
      let seen = 0;
      for (let at = copy.indexOf(from); at >= 0; at = copy.indexOf(from, at + 1)) {
        const isLocal = seen++ === 0;
        if (only === undefined || (only === 'local') === isLocal) copy.write(to, at);
      }
      return copy;
    };

    /** Takes sizes and sum out of the entries, as a program does that writes to a pipe. */
    const streamed = (bytes: Buffer): Buffer => {
      const copy = Buffer.from(bytes);
      for (const [signature, flags] of [
        [[0x50, 0x4b, 3, 4], 6],
        [[0x50, 0x4b, 1, 2], 8],
      ] as const)
        for (
          let at = copy.indexOf(Buffer.from(signature));
          at >= 0;
          at = copy.indexOf(Buffer.from(signature), at + 1)
        ) {
          copy.writeUInt16LE(copy.readUInt16LE(at + flags) | 8, at + flags);
          if (flags === 6) copy.fill(0, at + 14, at + 26);
        }
      return copy;
    };
    /** A zip that packs another one without compressing it, and lists an entry of that one, too. */
    const within = (): Buffer => {
      const inner = zip({ 'in.txt': 'inner' }, '-0', '-D');
      const bytes = zip({ 'x.zip': inner, 'yy.txt': 'inner' }, '-0', '-D');
      const last = bytes.lastIndexOf(Buffer.from([0x50, 0x4b, 1, 2]));
      const offset = bytes.indexOf(Buffer.from([0x50, 0x4b, 3, 4]), 30);
      const local = bytes.subarray(offset);
      bytes.writeUInt32LE(offset, last + 42);
      for (let at = 0; at < 12; at++) bytes[last + 16 + at] = local[14 + at] ?? 0;
      bytes.write('in.txt', last + 46);
      return bytes;
    };

    it('is unpacked as zip packs it, with its scripts', async () => {
      await open(zip({ 'skills/s/SKILL.md': 'x'.repeat(5000), 'run.sh': '#!/bin/sh\n' }));
      equal(readFileSync(join(root, 'skills/s/SKILL.md'), 'utf8').length, 5000);
      equal(statSync(join(root, 'run.sh')).mode & 0o111, 0o111);
    });

    const plain = zip({ 'a/bb/evil.txt': 'x', 'SKILL.md': 'y' }, '-D');
    const cases: readonly [string, Buffer, RegExp][] = [
      ['leads out', renamed(plain, 'a/bb/evil.txt', '../../evil.tx'), /leads out/],
      ['has backslashes', renamed(plain, 'a/bb/evil.txt', '..\\..\\evil.t'), /backslash/],
      ['names an entry in two ways', renamed(plain, 'a/bb/evil.txt', 'a/bb/good.txt', 'central'), /two ways/],
      ['was cut off', plain.subarray(0, plain.length - 10), /cut off/],
      ['has bytes before its beginning', Buffer.concat([Buffer.from('PK  '), plain]), /not where it says/],
    ];
    for (const [what, bytes, why] of cases) it(`is refused if it ${what}`, () => refused(bytes, why));

    it('is unpacked if it was written as a stream, with sizes and sum behind the content', async () => {
      const bytes = streamed(zip({ 'SKILL.md': 'x'.repeat(500), 'b.txt': 'y' }, '-D'));
      await open(bytes);
      equal(readFileSync(join(root, 'SKILL.md'), 'utf8').length, 500);
    });

    it('is refused if it was written as a stream and states other sizes all the same', async () => {
      const bytes = streamed(zip({ 'SKILL.md': 'x'.repeat(500) }, '-D'));
      bytes.writeUInt32LE(499, 22);
      await refused(bytes, /two ways/);
      const unsaid = zip({ 'SKILL.md': 'x'.repeat(500) }, '-D');
      unsaid.fill(0, 14, 26);
      await refused(unsaid, /two ways/);
    });

    it('is refused if two entries share their bytes', () =>
      refused(within(), /shares its bytes with another entry/));

    it('is refused if its content is not what its sum says', async () => {
      const stored = zip({ 'a.txt': 'aaaaaaaa' }, '-0');
      await refused(renamed(stored, 'aaaaaaaa', 'aaaabaaa'), /sum differs/);
    });

    it('is refused as a bomb', () => refused(zip({ big: '0'.repeat(40_000_000) }), /200 times its size/));

    it('has what a link in it leads to, and leaves out one that leads out', async () => {
      const place = tempFolder({ 'SKILL.md': 'x' });
      symlinkSync('SKILL.md', join(place.path, 'in'));
      execFileSync('zip', ['-q', '-r', '-y', 'in.zip', 'SKILL.md', 'in'], { cwd: place.path });
      deepEqual((await open(readFileSync(join(place.path, 'in.zip')))).leftOut, []);
      equal(readFileSync(join(root, 'in'), 'utf8'), 'x');
      rmSync(root, { recursive: true });
      mkdirSync(root);
      symlinkSync('/etc/passwd', join(place.path, 'out'));
      execFileSync('zip', ['-q', '-r', '-y', 'out.zip', 'out', 'SKILL.md'], { cwd: place.path });
      deepEqual((await open(readFileSync(join(place.path, 'out.zip')))).leftOut, ['out']);
      place.remove();
    });
  });
});
