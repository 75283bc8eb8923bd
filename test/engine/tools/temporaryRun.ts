/** Real folders of a run for the tests of tools and policy: a home, a working folder, a pack with a skill, and somewhere else. */
import { mkdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import type { ToolContext } from '../../../src/engine/tools/tool.ts';
import { tempFolder } from '../../fakes/tempFolder.ts';

export interface TemporaryRun {
  root: string;
  home: string;
  work: string;
  pack: string;
  skill: string;
  outside: string;
  context: ToolContext;
  /** Writes a file below the root, with its folders, and returns its path. */
  put(path: string, content?: string | Buffer): string;
  remove(): void;
}

export function temporaryRun(): TemporaryRun {
  const folder = tempFolder();
  const root = realpathSync(folder.path);
  const place = (name: string): string => {
    mkdirSync(join(root, name), { recursive: true });
    return join(root, name);
  };
  const [home, work, pack] = [place('home'), place('work'), place('pack')];
  const [skill, outside] = [place('pack/skills/one'), place('outside')];
  return {
    root,
    home,
    work,
    pack,
    skill,
    outside,
    context: {
      workingDir: work,
      packDir: pack,
      skillDir: skill,
      commandDir: pack,
      env: { HOME: home, PATH: process.env['PATH'] ?? '' },
      signal: new AbortController().signal,
    },
    put(path, content = '') {
      folder.add({ [path]: content });
      return join(root, path);
    },
    remove: folder.remove,
  };
}
