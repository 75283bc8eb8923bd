/** Shows above a SKILL.md what its evals have come to, and runs and records them there. */

import { existsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isInside, realPlace } from '@telos/engine/files';
import { importSkillDigest } from '@telos/engine/skills';
import { importResultFiles } from '@telos/evals/report';
import * as vscode from 'vscode';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { describeError, t } from '../base/labels.ts';
import { isSkillFile } from '../skills/skillFiles.ts';

/** What an eval or a request has come to. `unknown` says nothing of the skill: nothing is recorded, or it is stale. */
export type Outcome = 'passed' | 'failed' | 'unknown';

const filesOf = (skillDir: string): string[] =>
  ['evals.json', 'trigger.json'].map(name => join(skillDir, 'evals', name));

/** Returns what changes when someone edits the skill or what is expected of it. */
function stampOf(skillFile: string): string {
  const parts = [skillFile, ...filesOf(dirname(skillFile))].map(file => {
    const found = statSync(file, { throwIfNoEntry: false });
    return found ? `${found.mtimeMs} ${found.size}` : '';
  });
  return parts.join(' · ');
}

const realFile = (file: string): string => realPlace(file) ?? file;

interface Known {
  stamp: string;
  /** By the item's id. */
  outcomes: Map<string, Outcome>;
}

/** Remembers what the evals of each skill have come to in this window, until its files change. */
export class EvalOutcomes implements vscode.Disposable {
  readonly #known = new Map<string, Known>();
  readonly #changed = new vscode.EventEmitter<void>();
  readonly onDidChange = this.#changed.event;

  dispose(): void {
    this.#changed.dispose();
  }

  /** Notes what came of an item of a skill. */
  note(skillFile: string, id: string, outcome: Outcome): void {
    const stamp = stampOf(skillFile);
    const before = this.#known.get(realFile(skillFile));
    const known = before?.stamp === stamp ? before : { stamp, outcomes: new Map<string, Outcome>() };
    known.outcomes.set(id, outcome);
    this.#known.set(realFile(skillFile), known);
    this.#changed.fire();
  }

  /** Forgets the skills whose folder has the file. */
  forget(file: string): void {
    const real = realFile(file);
    const held = [...this.#known.keys()].filter(skillFile => isInside(dirname(skillFile), real));
    for (const skillFile of held) this.#known.delete(skillFile);
    if (held.length > 0) this.#changed.fire();
  }

  /** Returns undefined if nothing has been run since the files have changed. */
  of(skillFile: string): readonly Outcome[] | undefined {
    const known = this.#known.get(realFile(skillFile));
    return known?.stamp === stampOf(skillFile) ? [...known.outcomes.values()] : undefined;
  }
}

/** Runs the evals and the requests of a skill's file, or records its evals. */
export type RunFile = (skillFile: string, records: boolean) => Promise<void>;

const commands = { run: 'telos.runEvals', record: 'telos.recordEvals' } as const;

/** Registers the lines. What is stored of earlier runs is read when a skill with evals is shown. */
export function registerEvalLenses(
  current: CurrentTelos,
  outcomes: EvalOutcomes,
  runFile: RunFile,
): vscode.Disposable {
  const run =
    (records: boolean) =>
    async (uri: vscode.Uri): Promise<void> => {
      try {
        const open = vscode.workspace.textDocuments.find(({ uri: { fsPath } }) => fsPath === uri.fsPath);
        if (open?.isDirty && !(await open.save())) return;
        await runFile(uri.fsPath, records);
      } catch (error) {
        void vscode.window.showErrorMessage(describeError(error));
      }
    };
  const stored = new StoredOutcomes(current);
  const provider: vscode.CodeLensProvider = {
    onDidChangeCodeLenses: outcomes.onDidChange,
    async provideCodeLenses({ uri }) {
      const dir = dirname(uri.fsPath);
      if (!vscode.workspace.isTrusted || !isSkillFile(uri.path) || !filesOf(dir).some(existsSync)) return [];
      return lensesFor(uri, outcomes.of(uri.fsPath) ?? (await stored.of(uri.fsPath)));
    },
  };
  const pattern = '**/{SKILL,Skill,skill,SKILLS,Skills,skills}.{md,MD}';
  return vscode.Disposable.from(
    outcomes,
    vscode.languages.registerCodeLensProvider({ scheme: 'file', pattern }, provider),
    vscode.commands.registerCommand(commands.run, run(false)),
    vscode.commands.registerCommand(commands.record, run(true)),
    vscode.workspace.onDidSaveTextDocument(({ uri }) => outcomes.forget(uri.fsPath)),
  );
}

function lensesFor(uri: vscode.Uri, known: readonly Outcome[] = []): vscode.CodeLens[] {
  const top = new vscode.Range(0, 0, 0, 0);
  const passed = known.filter(outcome => outcome === 'passed').length;
  const open = known.filter(outcome => outcome === 'unknown').length;
  const shown = [
    t('Run Evals'),
    ...(known.length > 0 ? [t('{0} of {1} pass', passed, known.length)] : []),
    ...(open > 0 ? [t('{0} to record', open)] : []),
  ];
  const failed = known.includes('failed');
  const icon = failed ? 'error' : known.length === 0 || open > 0 ? 'beaker' : 'pass';
  const [evals] = filesOf(dirname(uri.fsPath));
  return [
    new vscode.CodeLens(top, {
      title: `$(${icon}) ${shown.join(' · ')}`,
      tooltip: t('Plays the recorded runs and measures the requests, without a model'),
      command: commands.run,
      arguments: [uri],
    }),
    ...(evals !== undefined && existsSync(evals)
      ? [
          new vscode.CodeLens(top, {
            title: t('Record...'),
            tooltip: t(
              'Runs the evals with the model that is set, after a question, and keeps the recordings',
            ),
            command: commands.record,
            arguments: [uri],
          }),
        ]
      : []),
  ];
}

/** What the command line has stored of a skill's runs, as long as the skill is the same. */
class StoredOutcomes {
  readonly #current: CurrentTelos;
  readonly #read = new Map<string, { stamp: string; outcomes: Promise<Outcome[] | undefined> }>();

  constructor(current: CurrentTelos) {
    this.#current = current;
  }

  of(skillFile: string): Promise<Outcome[] | undefined> {
    const stamp = stampOf(skillFile);
    const known = this.#read.get(skillFile);
    if (known?.stamp === stamp) return known.outcomes;
    // What cannot be read is not known.
    const outcomes = this.#readOf(skillFile).catch(() => undefined);
    this.#read.set(skillFile, { stamp, outcomes });
    return outcomes;
  }

  async #readOf(skillFile: string): Promise<Outcome[] | undefined> {
    const telos = await this.#current.openTelos();
    const all = (await telos.agents()).flatMap(({ name, skills }) =>
      skills.map(({ id, file }) => ({ agent: name, skill: id, file })),
    );
    const one = all.find(({ file }) => realFile(file) === realFile(skillFile));
    if (!one) return undefined;
    const [{ latestResults }, { skillDigest }] = await Promise.all([
      importResultFiles(),
      importSkillDigest(),
    ]);
    const results = latestResults(telos.config.dataDir, one);
    if (!results || results.skillDigest !== (await skillDigest(dirname(skillFile)))) return undefined;
    const byEval = new Map<unknown, Outcome>();
    for (const { eval: id, configuration, status, passed } of results.runs) {
      if (configuration !== 'with_skill') continue;
      const outcome = status !== 'graded' ? 'unknown' : passed ? 'passed' : 'failed';
      const before = byEval.get(id);
      byEval.set(id, before === undefined || before === 'passed' ? outcome : before);
    }
    return [...byEval.values()];
  }
}
