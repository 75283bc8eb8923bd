/**
 * Threads of comments on the lines of plan.md. What a person has written is sent together, the planner answers in the thread, and the
 * person resolves it. A thread stays in the window's memory until the plan is approved.
 */

import { readJournal } from '@telos/plans/state';
import * as vscode from 'vscode';
import { escapeMarkdown, plainLabel } from '../base/labels.ts';
import type { PlanNode } from './planItem.ts';
import type { PlansTree } from './plansTree.ts';

interface Entry {
  by: 'you' | 'telos';
  text: string;
  /** As it was sent to the planner. Missing until then. */
  sent?: string;
}

interface Thread {
  dir: string;
  shown: vscode.CommentThread;
  entries: Entry[];
}

/** A thread as the window keeps it. Lines count from 0. */
interface KeptThread {
  line: number;
  entries: Entry[];
  isResolved: boolean;
}

const memoryKey = 'telos.plan.comments';
/** In characters; longer lines are cut where they are quoted. */
const longestQuote = 120;

export class PlanComments implements vscode.Disposable {
  readonly #tree: PlansTree;
  readonly #memory: vscode.Memento;
  readonly #controller = vscode.comments.createCommentController('telos.plan', 'Telos');
  readonly #changed = new vscode.EventEmitter<void>();
  readonly #subscriptions: vscode.Disposable;
  readonly #threads = new Set<Thread>();
  /** Plans whose kept threads are shown again. */
  readonly #restored = new Set<string>();
  /** Fires when a thread was opened, answered or resolved. */
  readonly onDidChange = this.#changed.event;

  constructor(tree: PlansTree, memory: vscode.Memento) {
    this.#tree = tree;
    this.#memory = memory;
    this.#controller.options = {
      prompt: vscode.l10n.t('What should be different here?'),
      placeHolder: vscode.l10n.t('The planner reads this with the line'),
    };
    this.#controller.commentingRangeProvider = {
      provideCommentingRanges: ({ uri, lineCount }) =>
        this.#planOf(uri) ? [new vscode.Range(0, 0, lineCount - 1, 0)] : [],
    };
    this.#subscriptions = vscode.Disposable.from(
      this.#controller,
      this.#changed,
      tree.onDidLook(() => this.#look()),
    );
    void this.#look();
  }

  /** Adds what the person has written to its thread. */
  add({ thread: shown, text }: vscode.CommentReply): void {
    const plan = this.#planOf(shown.uri);
    if (!plan || text.trim() === '') return;
    const known = [...this.#threads].find(one => one.shown === shown);
    const thread = known ?? { dir: plan.folder.dir, shown, entries: [] };
    this.#threads.add(thread);
    thread.entries.push({ by: 'you', text: text.trim() });
    shown.state = vscode.CommentThreadState.Unresolved;
    this.#draw(thread);
    this.#keep();
  }

  /** Resolves a thread. One that the planner has not seen goes away. */
  resolve(shown: vscode.CommentThread): void {
    const thread = [...this.#threads].find(one => one.shown === shown);
    if (!thread) {
      shown.dispose();
      return;
    }
    if (thread.entries.every(({ sent }) => sent === undefined)) this.#remove(thread);
    else {
      thread.entries = thread.entries.filter(({ by, sent }) => by === 'telos' || sent !== undefined);
      shown.state = vscode.CommentThreadState.Resolved;
      shown.collapsibleState = vscode.CommentThreadCollapsibleState.Collapsed;
      this.#draw(thread);
    }
    this.#keep();
  }

  /** The number of threads of a plan that are not resolved. */
  openIn(dir: string): number {
    return this.#of(dir).filter(({ shown }) => shown.state !== vscode.CommentThreadState.Resolved).length;
  }

  /** The number of comments that the planner has not been sent. */
  unsentIn(dir: string): number {
    return this.#of(dir)
      .flatMap(({ entries }) => entries)
      .filter(isUnsent).length;
  }

  /** Returns what is to be sent, in the order of its lines, each with the line that it is about, and counts it as sent. */
  takeUnsent(dir: string, text: string): string[] {
    const lines = text.split('\n');
    const sent = this.#of(dir)
      .toSorted((one, other) => lineOf(one) - lineOf(other))
      .flatMap(thread =>
        thread.entries.filter(isUnsent).map(entry => {
          const line = lineOf(thread);
          const quoted = plainLabel(lines[line] ?? '', longestQuote);
          entry.sent = `On line ${line + 1}, "${quoted}": ${entry.text}`;
          return entry.sent;
        }),
      );
    this.#keep();
    return sent;
  }

  dispose(): void {
    this.#subscriptions.dispose();
  }

  #of(dir: string): Thread[] {
    return [...this.#threads].filter(thread => thread.dir === dir);
  }

  /** The plan whose plan.md this is, while it waits for the person. */
  #planOf({ scheme, fsPath }: vscode.Uri): PlanNode | undefined {
    return this.#tree.plans.find(
      ({ folder, look }) =>
        scheme === 'file' && folder.path('plan.md') === fsPath && look?.state.phase === 'plan_review',
    );
  }

  async #look(): Promise<void> {
    for (const plan of this.#tree.plans) {
      const phase = plan.look?.state.phase;
      if (phase === 'plan_review') {
        this.#restore(plan);
        await this.#takeAnswers(plan);
      } else if (phase !== undefined && phase !== 'planning') {
        for (const thread of this.#of(plan.folder.dir)) this.#remove(thread);
      }
    }
    this.#keep();
  }

  /** Shows what the planner has said to the comments that it was sent. */
  async #takeAnswers({ folder }: PlanNode): Promise<void> {
    const waiting = this.#of(folder.dir).filter(({ entries }) => entries.at(-1)?.sent !== undefined);
    if (waiting.length === 0) return;
    const lines = await readJournal(folder.journal, folder.seal);
    const at = lines.findLastIndex(line => line.type === 'plan_reviewed' && line.decision === 'changes');
    const review = lines[at];
    const written = lines.slice(at + 1).find(line => line.type === 'plan_written');
    if (review?.type !== 'plan_reviewed' || written?.type !== 'plan_written') return;
    for (const thread of waiting) {
      const number = review.comments.indexOf(thread.entries.at(-1)?.sent ?? '') + 1;
      if (number === 0) continue;
      const reply = written.replies?.find(({ comment }) => comment === number)?.text;
      const text = reply ?? vscode.l10n.t('plan.md was rewritten with this.');
      thread.entries.push({ by: 'telos', text });
      this.#draw(thread);
    }
  }

  #restore({ folder }: PlanNode): void {
    if (this.#restored.has(folder.dir)) return;
    this.#restored.add(folder.dir);
    const kept = this.#memory.get<Record<string, KeptThread[]>>(memoryKey)?.[folder.dir] ?? [];
    for (const { line, entries, isResolved } of kept) {
      const place = new vscode.Range(line, 0, line, 0);
      const shown = this.#controller.createCommentThread(vscode.Uri.file(folder.path('plan.md')), place, []);
      shown.state = isResolved ? vscode.CommentThreadState.Resolved : vscode.CommentThreadState.Unresolved;
      const thread = { dir: folder.dir, shown, entries };
      this.#threads.add(thread);
      this.#draw(thread);
    }
  }

  #draw({ shown, entries }: Thread): void {
    shown.label = vscode.l10n.t('On the plan');
    shown.comments = entries.map(({ by, text, sent }) => ({
      // As it is written: a model's text opens no link and loads no image.
      body: new vscode.MarkdownString(escapeMarkdown(text).replaceAll('\n', '\n\n')),
      mode: vscode.CommentMode.Preview,
      author: { name: by === 'you' ? vscode.l10n.t('You') : 'Telos' },
      ...(by === 'you' && sent === undefined && { label: vscode.l10n.t('not sent yet') }),
    }));
  }

  #remove(thread: Thread): void {
    this.#threads.delete(thread);
    thread.shown.dispose();
  }

  #keep(): void {
    const all: Record<string, KeptThread[]> = {};
    for (const thread of this.#threads) {
      const isResolved = thread.shown.state === vscode.CommentThreadState.Resolved;
      all[thread.dir] = [
        ...(all[thread.dir] ?? []),
        { line: lineOf(thread), entries: thread.entries, isResolved },
      ];
    }
    const before = this.#memory.get<Record<string, KeptThread[]>>(memoryKey) ?? {};
    // Plans that are not shown again yet keep theirs.
    for (const [dir, threads] of Object.entries(before))
      if (!this.#restored.has(dir) && this.#tree.plans.some(({ folder }) => folder.dir === dir))
        all[dir] ??= threads;
    if (JSON.stringify(all) !== JSON.stringify(before)) void this.#memory.update(memoryKey, all);
    this.#changed.fire();
  }
}

const isUnsent = ({ by, sent }: Entry): boolean => by === 'you' && sent === undefined;

const lineOf = ({ shown }: Thread): number => shown.range?.end.line ?? 0;
