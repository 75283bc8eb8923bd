import { spawnSync } from 'node:child_process';

/** A program that gives the next one mounts of its own, gone with it; undefined where none may do so. */
export function mountingWrapper(): string[] | undefined {
  const ways = [
    ['unshare', '--mount'],
    ['unshare', '--user', '--map-root-user', '--mount'],
  ];
  return ways.find(([command = '', ...args]) => {
    const script = 'mount -t tmpfs -o size=64k none /mnt && mount -o remount,ro /mnt';
    return spawnSync(command, [...args, 'sh', '-c', script], { stdio: 'ignore' }).status === 0;
  });
}
