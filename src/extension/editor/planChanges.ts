/** Shows what a story has changed in the editor's own diff editor, with the files as git has them. */

import { basename } from 'node:path';
import { Git } from '@telos/plans/gitRepository';
import * as vscode from 'vscode';
import { acknowledge } from '../base/acknowledge.ts';
import { plainLabel } from '../base/labels.ts';
import type { StoryNode } from './planItem.ts';

/** Scheme of files as a commit has them: `telos-commit:<path>?<commit>`. */
const scheme = 'telos-commit';
/** In bytes. */
const longestFile = 4 * 1024 * 1024;
type Environment = Readonly<Record<string, string | undefined>>;

/** Where the commits are that were shown. No other one can be read by its address. */
const shown = new Map<string, { repo: string; env: Environment }>();
let isRegistered = false;

/** Opens the changes of a story: those that passed, or those of its last attempt. */
export async function showStoryChanges({ plan, state }: StoryNode, env: Environment): Promise<void> {
  const { folder } = plan;
  const { story, commits, attempts } = state;
  const git = new Git(folder.repo, env);
  try {
    const wanted =
      commits.length > 0
        ? commits.map(({ commit }) => commit)
        : [`refs/telos/${folder.name}/${story.id}/a${attempts}`];
    const files: [vscode.Uri, vscode.Uri | undefined, vscode.Uri | undefined][] = [];
    for (const name of wanted) {
      const [commit, parent] = [await git.tip(name), await git.tip(`${name}^`)];
      if (commit === undefined || parent === undefined) continue;
      for (const one of [commit, parent]) shown.set(one, { repo: folder.repo, env });
      for (const { path, from, before, after } of (await git.difference(parent, commit)).files)
        files.push([
          uriOf(path, commit),
          /^0*$/.test(before) ? undefined : uriOf(from ?? path, parent),
          /^0*$/.test(after) ? undefined : uriOf(path, commit),
        ]);
    }
    if (files.length === 0) {
      acknowledge(vscode.l10n.t('There is no change of {0} to show yet.', plainLabel(story.id)));
      return;
    }
    register();
    await vscode.commands.executeCommand(
      'vscode.changes',
      plainLabel(`${story.id} ${story.title}`, 80),
      files,
    );
  } finally {
    await git.close();
  }
}

const uriOf = (path: string, commit: string): vscode.Uri =>
  vscode.Uri.from({ scheme, path: `/${path}`, query: commit });

/** Lasts as long as the window, as the documents do. */
function register(): void {
  if (isRegistered) return;
  isRegistered = true;
  vscode.workspace.registerTextDocumentContentProvider(scheme, {
    provideTextDocumentContent: async ({ path, query }) => {
      const place = shown.get(query);
      if (!place) throw vscode.FileSystemError.FileNotFound(plainLabel(basename(path)));
      const git = new Git(place.repo, place.env);
      try {
        const text = await git.text(`${query}:${path.slice(1)}`, longestFile);
        if (text === undefined) return vscode.l10n.t('The file is too large to be shown here.');
        return text.includes('\0') ? vscode.l10n.t('The file is not text.') : text;
      } finally {
        await git.close();
      }
    },
  });
}
