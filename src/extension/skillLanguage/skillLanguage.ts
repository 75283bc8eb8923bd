/** SKILL.md as a language: problems with their fixes, completion, hover, and what can be done with the skill above its first line. */
import * as vscode from 'vscode';
import type { CurrentTelos } from '../currentTelos.ts';
import { completionProvider, hoverProvider } from './completion.ts';
import { lensProvider, registerRunSkillFile } from './lenses.ts';
import { SkillProblems } from './problems.ts';
import { quickFixProvider } from './quickFixes.ts';

/** By the file's name: newer editors have a language of their own for it, older ones call it Markdown. */
const skillFiles: vscode.DocumentFilter = {
  scheme: 'file',
  pattern: '**/{SKILL,Skill,skill,SKILLS,Skills,skills}.{md,MD}',
};

export function registerSkillLanguage(
  current: CurrentTelos,
  log: vscode.LogOutputChannel,
): vscode.Disposable {
  return vscode.Disposable.from(
    new SkillProblems(current, log),
    vscode.languages.registerCompletionItemProvider(skillFiles, completionProvider, ' '),
    vscode.languages.registerHoverProvider(skillFiles, hoverProvider),
    vscode.languages.registerCodeActionsProvider(skillFiles, quickFixProvider, {
      providedCodeActionKinds: [vscode.CodeActionKind.QuickFix],
    }),
    vscode.languages.registerCodeLensProvider(skillFiles, lensProvider),
    registerRunSkillFile(current),
  );
}
