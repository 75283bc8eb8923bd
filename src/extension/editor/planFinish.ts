/** Ends a plan in the editor: asks before what others see or what cannot be brought back, and says what was done. */

import type { Plan } from '@telos/plans/plan';
import type { FinishKind } from '@telos/protocol/plan';
import * as vscode from 'vscode';
import { acknowledge } from '../base/acknowledge.ts';
import { plainLabel } from '../base/labels.ts';
import { agreesToFinish } from './planQuestions.ts';

/** Merges, squashes, publishes, keeps or drops the plan's branch. Throws the errors of `Plan.finish`. */
export async function finishInEditor(plan: Plan, how: FinishKind): Promise<void> {
  const { branch = '' } = (await plan.look()).state;
  const name = plainLabel(branch);
  const { t } = vscode.l10n;
  if (!(await agreesToFinish(how, name))) return;
  const { commit = '', into = '', remote, url, kept } = await plan.finish(how);
  for (const { dir, why } of kept) {
    const said = t('The worktree {0} is kept: {1}.', plainLabel(dir, 300), plainLabel(why, 300));
    void vscode.window.showWarningMessage(said);
  }
  if (url)
    acknowledge(t('The pull request is open.'), {
      title: t('Show It'),
      act: () => vscode.env.openExternal(vscode.Uri.parse(url, true)),
    });
  else if (remote !== undefined)
    acknowledge(
      t(
        'Pushed {0} to {1}. gh is not installed, so open the pull request where the repository is.',
        name,
        plainLabel(remote),
      ),
    );
  else if (how === 'drop') acknowledge(t('{0} was discarded.', name));
  else if (how === 'keep') acknowledge(t('Kept: branch {0}', name));
  else acknowledge(t('Merged into {0}: {1}', plainLabel(into), commit.slice(0, 8)));
}
