/** Recognizes Git's own files, and finds those of them that make Git start a program. */

import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import type { RedFlag } from '@telos/protocol/agentCard';
import { beginningOf } from '@telos/protocol/text';
import { folded } from '../../files/sensitiveNames.ts';

/** Returns true for a name that some file system takes for `.git`. */
export const isRepositoryName = (name: string): boolean => /^(\.git|git~\d)$/.test(folded(name));

/** Returns true for a folder that Git would take for a repository. A link to a folder does not count. */
export async function isRepository(path: string): Promise<boolean> {
  const [own, head, ...folders] = await Promise.all(
    ['', 'HEAD', 'objects', 'refs'].map(name => lstat(join(path, name)).catch(() => undefined)),
  );
  return (
    own?.isDirectory() === true &&
    head?.isFile() === true &&
    folders.every(folder => folder?.isDirectory() === true)
  );
}

/**
 * Names at the top of a repository that ordinary work with Git changes. Hooks and settings are not among them, because they can
 * start programs.
 */
export const rewrittenByGit =
  /^(objects|refs|logs|lfs|reftable|rebase-(merge|apply)|sequencer|HEAD|[A-Z]+_(HEAD|MSG|MODE|RR)|COMMIT_EDITMSG|index|sharedindex\.\w+|packed-refs|shallow|gc\.(pid|log)|[\w-]+\.lock|fsmonitor--daemon(\.\w+)?)$/;

/** Git settings whose value is a program, a folder of programs, or a file with more settings. */
const startsProgram =
  /^\s*(?:\[.*\]\s*)?(?:fsmonitor|sshcommand|hookspath|pager|editor|askpass|gitproxy|textconv|command|clean|smudge|process|driver|external|cmd|program|uploadpack|receivepack|path)\s*=(?!\s*(?:true|false|yes|no|on|off|\d+)?\s*$)/i;

/** Returns the red flags of a repository's file that only Git reads. `label` is its path, with `/`. */
export function repositoryFlags(label: string, text: string): RedFlag[] {
  const kind = 'repository-program';
  if (/\/hooks\//.test(label))
    return label.endsWith('.sample') ? [] : [{ kind, file: label, line: 1, text: '' }];
  if (!/\/config(\.worktree)?$/.test(label)) return [];
  let section = '';
  return text.split('\n').flatMap((line, index) => {
    section = /^\s*\[\s*([\w-]+)/.exec(line)?.[1]?.toLowerCase() ?? section;
    const runs = section === 'alias' ? /=\s*["']?!/.test(line) : startsProgram.test(line);
    return runs ? [{ kind, file: label, line: index + 1, text: beginningOf(line.trim(), 200) } as const] : [];
  });
}

/** Returns true for a text that names a file inside `.git`. */
export const namesRepositoryFile = (text: string): boolean => /(?<![\w-])\.git["']?[\\/]/i.test(text);

/** Settings that `git init`, `git clone`, a branch or a person's name bring, and that start nothing. */
const plainSetting =
  /^(?:core\.(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks)|init\.defaultbranch|user\.(?:name|email)|remote\..+\.(?:url|fetch|tagopt)|branch\..+\.(?:remote|merge|rebase|description)|submodule\..+\.(?:active|url)|extensions\.objectformat)$/s;

/** What names another repository. A command may add one, and neither change nor remove one that is there. */
const namesRemote = /^(?:remote|submodule)\..+\.(?:push)?url$/s;
/** Where a branch is sent to. */
const namesUpstream = /^branch\..+\.(?:remote|merge|pushremote)$/s;

/** Whether each setting of `after` is in `before` as well, or can start no program and sends nothing that was there elsewhere. */
export function addsOnlyPlainSettings(before: string, after: string): boolean {
  const [known, now] = [settingsIn(before), settingsIn(after)];
  if (!now) return false;
  const old = new Set(known?.map(one => JSON.stringify(one)));
  const isThere = new Set(now.map(one => JSON.stringify(one)));
  const remotes = (known ?? []).filter(({ name }) => namesRemote.test(name));
  if (remotes.some(one => !isThere.has(JSON.stringify(one)))) return false;
  const set = new Set([...remotes, ...(known ?? [])].map(({ name }) => name));
  return now.every(
    one =>
      old.has(JSON.stringify(one)) ||
      (plainSetting.test(one.name) &&
        isPlainValue(one.value) &&
        !(set.has(one.name) && (namesRemote.test(one.name) || namesUpstream.test(one.name)))),
  );
}

/**
 * Whether Git reads a value as it is written, and it is no option. Of the transports of an address, some start a program. Git takes
 * quotes, backslashes and comments away from what it reads.
 */
const isPlainValue = (value: string): boolean =>
  !/::|^\s*-|["\\#;]/.test(value) &&
  !/^\s*(?!(?:https?|ssh|git|file|ftps?|git\+ssh|ssh\+git):)[a-z][\w+.-]*:\/\//i.test(value);

/** Fields of a package.json that only describe it. */
const describing =
  /^(?:name|version|description|main|type|keywords|author|contributors|license|private|homepage|bugs|repository)$/;
/** What `npm init` writes where there are no tests. */
const noTest = /^echo \\?"Error: no test specified\\?" && exit 1$/;

/** Whether the text is a package.json that has nothing to run and nothing to fetch, as `npm init` writes it. */
export function describesOnly(text: string): boolean {
  try {
    const { scripts = {}, ...fields } = JSON.parse(text) as { scripts?: Readonly<Record<string, unknown>> };
    const isNoScript = Object.entries(scripts).every(
      ([name, line]) => name === 'test' && typeof line === 'string' && noTest.test(line),
    );
    const names = Object.keys(fields);
    return isNoScript && names.length > 0 && names.every(name => describing.test(name));
  } catch {
    return false;
  }
}

/** Returns the settings of a file, or undefined if it has a line that is not as plain as Git itself writes them. */
function settingsIn(text: string): { name: string; value: string }[] | undefined {
  const found: { name: string; value: string }[] = [];
  let section: string | undefined;
  for (const line of text.split('\n')) {
    const header = /^\s*\[([\w-]+)(?:\s+"((?:[^"\\]|\\["\\])*)")?\]\s*$/.exec(line);
    const setting = /^\s*([a-z][a-z\d-]*)\s*=(.*)$/i.exec(line);
    if (header) section = [header[1]?.toLowerCase(), header[2]].filter(part => part !== undefined).join('.');
    else if (/^\s*(?:[#;].*)?$/.test(line)) continue;
    else if (!setting || section === undefined || line.endsWith('\\')) return undefined;
    else found.push({ name: `${section}.${setting[1]?.toLowerCase()}`, value: setting[2] ?? '' });
  }
  return found;
}
