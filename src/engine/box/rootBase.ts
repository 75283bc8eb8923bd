/**
 * What all commands of a conversation see of the system, put together once: bubblewrap looks through all mounts for each place that it
 * shows, so a command starts in half the time if it shows most of them as one.
 */
import { join } from 'node:path';
import { isInside } from '../files/paths.ts';
import type { Place } from './view.ts';

export interface RootBase {
  /** The folder in which the places lie. Absolute; it is empty but in the namespaces. */
  root: string;
  /** In the order in which they are made. */
  places: readonly Place[];
  /** See `inBubblewrap`. */
  mask: string;
}

/** In bytes, what a command may put into folders that are in memory. */
const memoryFolders = String(512 * 1024 * 1024);

/** Returns the options of bubblewrap that put the places together. */
export function rootOptions({ root, places, mask }: RootBase): string[] {
  const moved = places.map(place => {
    const from = place.kind === 'read' || place.kind === 'write' ? { from: place.from ?? place.path } : {};
    return { ...place, ...from, path: join(root, place.path) };
  });
  return ['--tmpfs', root, ...moved.flatMap(place => optionsFor(place, mask))];
}

/** Returns the options of bubblewrap for one place. `mask` stands for each file that is hidden. */
export function optionsFor(place: Place, mask: string): string[] {
  switch (place.kind) {
    case 'link':
      return ['--symlink', place.to, place.path];
    case 'empty':
      return place.isFixed ? ['--dir', place.path] : ['--size', memoryFolders, '--tmpfs', place.path];
    case 'hidden':
      return place.isFolder
        ? ['--perms', '0000', '--size', memoryFolders, '--tmpfs', place.path, '--remount-ro', place.path]
        : ['--ro-bind', mask, place.path];
    default:
      return [place.kind === 'read' ? '--ro-bind' : '--bind', place.from ?? place.path, place.path];
  }
}

/**
 * Returns the places of a view that are still to be made over the base: those that it has not, that it has otherwise, or that another place
 * covers. Undefined if the base shows something that the view does not.
 */
export function placesOver({ places: base }: RootBase, view: readonly Place[]): readonly Place[] | undefined {
  const ready = new Map(base.map(place => [place.path, JSON.stringify(place)]));
  const isReady = (place: Place): boolean => ready.get(place.path) === JSON.stringify(place);
  const own = view.filter(place => !isReady(place));
  const isCovered = (path: string): boolean =>
    own.some(each => each.path !== path && isInside(each.path, path));
  const paths = new Set(view.map(({ path }) => path));
  if (base.some(({ path }) => !paths.has(path) && !isCovered(path))) return undefined;
  return view.filter(place => !isReady(place) || isCovered(place.path));
}
