/** Starts the attempts of one area in namespaces of their own: what escapes there harms nobody, and nobody disturbs what is looked at. */
import { spawn, spawnSync } from 'node:child_process';
import { CannotJudge } from '../../harness/report.ts';
import { secretText, usualKey } from '../world.ts';
import type { Attempt } from './attempt.ts';
import type { AttemptSeen } from './inside.ts';

/** Networks, mounts and terminals of the machine. The world lies where the box has nothing to do with it. */
const script = `
ip link set lo up &&
mount -t tmpfs tmpfs /srv && mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /dev/shm &&
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts /dev/pts || exit 78
for folder in /usr/local/games /etc/opt /var/tmp /var/spool/cron; do test -d $folder && mount -t tmpfs tmpfs $folder; done
mkdir -p /tmp/.X11-unix && mount -t tmpfs tmpfs /tmp/.X11-unix || exit 78
for address in 169.254.169.254 203.0.113.9 10.9.8.7; do ip addr add $address/32 dev lo; done
ip -6 addr add fd00::9/128 dev lo 2>/dev/null
hostname box-world
echo 'nameserver 127.0.0.1' > /srv/resolv.conf
mount --bind /srv/resolv.conf /etc/resolv.conf
mkdir -p /srv/world/secrets && printf '%s\\n' "$LAUNCH_SECRET" > /srv/world/secrets/secret.txt
exec /usr/bin/python3 "$0" /srv/world/secrets "$@"
`;

const here = (name: string): string => new URL(name, import.meta.url).pathname;
const isRoot = process.getuid?.() === 0;

/** Returns what each attempt came to. Throws CannotJudge with the reason where this machine cannot be had. */
export async function runOnOwnMachine(
  attempts: readonly Attempt[],
  bare: boolean,
): Promise<{ seen: AttemptSeen[]; stderr: string }> {
  const flags = isRoot ? '-mnuip' : '-rmnuip';
  const words = [
    flags,
    '--fork',
    '--kill-child',
    '--mount-proc',
    '--propagation',
    'private',
    'sh',
    '-c',
    script,
  ];
  const child = spawn('unshare', [...words, here('launch.py'), process.execPath, here('inside.ts')], {
    env: {
      PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      HOME: '/srv/world',
      LANG: 'C.UTF-8',
      TMPDIR: '/srv/world',
      LAUNCH_SECRET: secretText,
      ANTHROPIC_API_KEY: usualKey,
      BOX_ORDER: JSON.stringify({ attempts, bare }),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let text = '';
  let errors = '';
  child.stdout.setEncoding('utf8').on('data', piece => {
    text += piece;
  });
  child.stderr.setEncoding('utf8').on('data', piece => {
    errors += piece;
  });
  const limit = setTimeout(() => child.kill('SIGKILL'), 580_000);
  const code = await new Promise(resolve => child.once('error', resolve).once('close', resolve));
  clearTimeout(limit);
  const said = text.split('\n').find(line => line.startsWith('{"seen"'));
  if (code === 0 && said) return JSON.parse(said);
  if (code !== 1 && /unshare|mount|ip: |not permitted|ENOENT/.test(`${errors}${code}`) && said === undefined)
    throw new CannotJudge(
      `namespaces of their own cannot be had (unshare, ip, mount and python3 are needed): ${errors.slice(-300)}`,
    );
  throw new Error(`the attempts broke off: ${errors.slice(-1500)}`);
}

/** Returns why no box can work here, found without Telos; undefined if one can. */
export function reasonForNoBox(): string | undefined {
  if (process.platform !== 'linux') return 'these attempts are for Linux';
  const words = ['--unshare-all', '--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev', 'true'];
  const { error, status, stderr } = spawnSync('bwrap', words, { encoding: 'utf8' });
  if (error) return 'bubblewrap (bwrap) is not installed';
  return status === 0 ? undefined : `bubblewrap cannot make namespaces: ${stderr.trim()}`;
}
