/** Stores which agents the user has reviewed and accepted, each bound to the bytes that its files had then. */

import { createHash } from 'node:crypto';
import { readdir, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { AgentCard } from '@telos/protocol/agentCard';
import { type Sentence, sentence, spoken } from '@telos/protocol/text';
import { TelosError } from '../core/errors.ts';
import { writeOwn } from '../files/atomicWrite.ts';
import { lockName } from '../files/lockText.ts';
import { loadRegularFile, readText } from '../files/regularFile.ts';
import { obeyedAt } from '../files/sensitiveNames.ts';
import { isKeptBeside, type LockedPack, lockedPack } from '../skills/lockFile.ts';
import type { CardFacts } from './agentCard.ts';
import { type AgentFiles, type ReviewedAgent, readAgentFiles } from './agentFiles.ts';
import { type AgentFile, FileDigests } from './agentReader.ts';

/** An accepted card, with the time of its acceptance. */
export interface Review extends CardFacts {
  agent: string;
  /** The agent's own folder. Absolute path. */
  folder: string;
  digest: string;
  /** ISO time. */
  reviewedAt: string;
  /** Digest of each file at that time, to find out what has changed. */
  files: Readonly<Record<string, string>>;
  /** Files that the agent's own scripts have added since. No person has looked at them. */
  added?: readonly string[];
  /** True if a run has changed the agent's files since. What a person typed and what a model wrote can then no longer be distinguished. */
  changedByRun?: boolean;
}

export interface ReviewState {
  state: AgentCard['state'];
  files: AgentFiles;
  /** The accepted review. It grants something only while `state` is `reviewed`. */
  review?: Review;
}

/** Stores one file per agent in a folder of the user's configuration. So two windows never overwrite each other's reviews. */
export class AgentReviews {
  readonly #folder: string;
  readonly #digests = new FileDigests();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Returns the current state of the agent. Reads its files as far as they have changed. Throws errors of the file system. */
  async stateOf(agent: ReviewedAgent): Promise<ReviewState> {
    const review = readReview(this.#fileOf(agent));
    const files = await readAgentFiles(agent, this.#digests, review);
    if (!review) return { state: 'new', files };
    if (review.digest === files.digest && !files.tooLarge) return { state: 'reviewed', files, review };
    // An update can have put something into the working folder, so the next card covers everything in it.
    const all = review.workFolder === undefined ? files : await readAgentFiles(agent, this.#digests);
    return { state: 'changed', files: all, review };
  }

  /** Returns the card as it is to be shown now. Throws errors of the file system. */
  async cardOf(agent: ReviewedAgent): Promise<AgentCard> {
    const { state, files, review } = await this.stateOf(agent);
    const note = agent.diagnostics?.find(({ code }) => code === 'agent-working-dir')?.message;
    const { workFolder: _work, ...facts } = await cardFrom(agent, files);
    return {
      agent: agent.name,
      folder: agent.packDir,
      origin: spoken([originOf(agent, files)]),
      originSaid: originOf(agent, files),
      state,
      digest: files.digest,
      workingDir: agent.workingDir,
      ...(note === undefined ? {} : { workingDirNote: note }),
      ...facts,
      changes: state === 'changed' && review ? changesBetween(review, files) : [],
      ...(review ? { reviewedAt: review.reviewedAt } : {}),
    };
  }

  /**
   * Accepts the card that was shown, but for the lines in `without`. Throws TelosError `config` if the agent's files have changed by now, or are too many to be
   * reviewed. Throws errors of the file system.
   */
  async accept(
    agent: ReviewedAgent,
    shown: Pick<AgentCard, 'digest'>,
    now: Date,
    without: readonly string[] = [],
  ): Promise<void> {
    const { files } = await this.stateOf(agent);
    const { redFlags: _flags, leftOut: _leftOut, ...facts } = await cardFrom(agent, files);
    const { files: after } = await this.stateOf(agent);
    if (files.digest !== shown.digest || after.digest !== shown.digest) {
      const why = sentence(
        "The files of agent '{0}' changed while you reviewed its permissions.",
        agent.name,
      );
      throw new TelosError('config', [why, sentence('Review them again.')], {
        remedy: { kind: 'review_agent', agent: agent.name },
      });
    }
    if (files.tooLarge)
      throw new TelosError('config', [
        sentence(
          "The folder of agent '{0}' ({1}) is too large to be reviewed; its calls are asked about one by one.",
          agent.name,
          agent.packDir,
        ),
      ]);
    const review: Review = {
      agent: agent.name,
      folder: agent.packDir,
      digest: shown.digest,
      reviewedAt: now.toISOString(),
      ...withoutLines(facts, without),
      files: digestsOf(files),
    };
    await this.#write(agent, review);
  }

  /**
   * Accepts the data that a granted script has added to the agent's own folder since `before`, or has written to what it added
   * earlier. Returns the labels of these files. Returns none, and accepts nothing, if anything else has changed as well.
   */
  async acceptAdditions(agent: ReviewedAgent, before: ReviewState): Promise<readonly string[]> {
    const review = readReview(this.#fileOf(agent));
    if (before.state !== 'reviewed' || !review || review.digest !== before.review?.digest) return [];
    const now = await readAgentFiles(agent, this.#digests, review);
    if (now.digest === review.digest || now.tooLarge || now.escapes.length > 0) return [];
    const changes = changesBetween(review, now);
    const isAddition = ({ path, change }: AgentCard['changes'][number]): boolean => {
      const file = now.files.get(path);
      const isNew = change === 'added' || (change === 'changed' && review.added?.includes(path) === true);
      return isNew && file !== undefined && isData(path, file);
    };
    if (changes.length === 0 || !changes.every(isAddition)) return [];
    const paths = changes.map(({ path }) => path);
    for (const path of paths) if (await startsAsScript(now.files.get(path)!.path)) return [];
    const added = [...new Set([...(review.added ?? []), ...paths])];
    await this.#write(agent, { ...review, digest: now.digest, added, files: digestsOf(now) });
    return paths;
  }

  /**
   * Accepts the texts that the person has changed or added since the review, if they name nothing new. Returns the labels of these
   * files. Returns none, and accepts nothing, if anything else has changed as well or a run has changed the agent.
   */
  async acceptTyping(agent: ReviewedAgent): Promise<readonly string[]> {
    if (readReview(this.#fileOf(agent)) === undefined) return [];
    const { state, files, review } = await this.stateOf(agent);
    if (state !== 'changed' || !review || review.changedByRun || files.tooLarge) return [];
    const paths = changesBetween(review, files).map(({ path }) => path);
    if (paths.length === 0 || !paths.every(path => isTyped(path, files.files.get(path)))) return [];
    for (const path of paths) {
      const file = files.files.get(path);
      if (file && (await startsAsScript(file.path))) return [];
    }
    if (!namesNothingNew(await cardFrom(agent, files), review, paths)) return [];
    const { files: after } = await this.stateOf(agent);
    if (after.digest !== files.digest) return [];
    await this.#write(agent, { ...review, digest: files.digest, files: digestsOf(files) });
    return paths;
  }

  /** Notes that a run of the agent has changed its files since `before`. Its next card is then shown whatever has changed. */
  async noteRun(agent: ReviewedAgent, before: ReviewState): Promise<void> {
    const { state, files, review } = await this.stateOf(agent);
    if (state !== 'changed' || !review || files.digest === before.files.digest) return;
    await this.#write(agent, { ...review, changedByRun: true });
  }

  /** Returns everything that was accepted and not revoked, whether or not the agents still exist. */
  async list(): Promise<Review[]> {
    const names = await readdir(this.#folder).catch(() => []);
    const found = await Promise.all(
      names
        .filter(name => /^[\da-f]{24}\.json$/.test(name))
        .map(name => readReview(join(this.#folder, name))),
    );
    return found.filter(review => review !== undefined).sort((a, b) => (a.agent < b.agent ? -1 : 1));
  }

  /** Makes the agent new again. Returns false if it was not accepted. */
  async revoke(review: Pick<Review, 'agent' | 'folder'>): Promise<boolean> {
    const file = this.#fileOf({ name: review.agent, packDir: review.folder });
    const was = readReview(file) !== undefined;
    await rm(file, { force: true });
    return was;
  }

  async #write(agent: ReviewedAgent, review: Review): Promise<void> {
    await writeOwn(this.#fileOf(agent), `${JSON.stringify(review, null, 2)}\n`);
  }

  /** Returns the file for a name and folder. Another folder with the same name is another agent. */
  #fileOf({ name, packDir }: Pick<ReviewedAgent, 'name' | 'packDir'>): string {
    const key = createHash('sha256').update(`${packDir}\0${name}`).digest('hex').slice(0, 24);
    return join(this.#folder, `${key}.json`);
  }
}

const digestsOf = ({ files }: AgentFiles): Record<string, string> =>
  Object.fromEntries([...files].map(([label, { sha256 }]) => [label, sha256]));

/** Endings of files that are only read. What programs load, run or obey by itself has others, or a name of its own. */
const dataEnding =
  /\.(json|jsonl|ndjson|csv|tsv|txt|log|md|html?|xml|ya?ml|db|sqlite3?|pdf|png|jpe?g|gif|svg|webp|docx|xlsx|pptx|zip)$/i;

/** Whether a file of the agent is data by all that is known of it. */
const isData = (label: string, { executable, isLink, ofRepository }: AgentFile): boolean =>
  !executable && !isLink && !ofRepository && dataEnding.test(label) && obeyedAt(label, label) === undefined;

/** Returns true for a text that people write and programs do not obey by themselves. A removed one counts as well. */
function isTyped(label: string, file: AgentFile | undefined): boolean {
  const isPlain = file === undefined || !(file.executable || file.isLink || file.ofRepository);
  return isPlain && /\.(md|txt)$/i.test(label);
}

/** Returns true if the card has no line that the person has not accepted, and no red flag but in files that are as they were. */
function namesNothingNew(
  card: CardFacts & Pick<AgentCard, 'redFlags'>,
  review: Review,
  changed: readonly string[],
): boolean {
  const lists = [
    ...(['hosts', 'scripts', 'commands', 'variables', 'writes', 'servers', 'folders'] as const),
    'hooks' as const,
  ];
  const isKnown = lists.every(name => {
    const accepted = (review[name] ?? []).map(each => JSON.stringify(each));
    return (card[name] ?? []).every(each => accepted.includes(JSON.stringify(each)));
  });
  return isKnown && card.redFlags.every(({ file }) => file in review.files && !changed.includes(file));
}

async function startsAsScript(path: string): Promise<boolean> {
  const start = await loadRegularFile(path).catch(() => undefined);
  return start === undefined || start.subarray(0, 2).toString('latin1') === '#!';
}

/** Returns what the card grants after the person has switched lines off. */
function withoutLines(
  { hosts, scripts, commands = [], variables, writes = [], hooks, ...facts }: CardFacts,
  without: readonly string[],
): CardFacts {
  const left = (names: readonly string[]): string[] => names.filter(name => !without.includes(name));
  const lists = {
    hosts: left(hosts),
    scripts: left(scripts),
    commands: left(commands),
    variables: left(variables),
    writes: left(writes),
    ...(hooks && { hooks: left(hooks) }),
  };
  return { ...facts, ...lists };
}

/** Returns undefined if the file is missing or is not a review. Then nothing was accepted. */
function readReview(file: string): Review | undefined {
  try {
    const value = JSON.parse(readText(file)) as Partial<Record<keyof Review, unknown>>;
    const texts = [value.agent, value.folder, value.digest, value.reviewedAt];
    const { hosts, scripts, commands = [], variables, writes = [], servers, hooks = [] } = value;
    const lists = [hosts, scripts, commands, variables, writes, servers, hooks];
    const whole =
      texts.every(text => typeof text === 'string') &&
      lists.every(Array.isArray) &&
      (value.workFolder === undefined || typeof value.workFolder === 'string') &&
      typeof value.files === 'object' &&
      value.files !== null;
    // A review of an earlier version names no folders, so it covers none.
    return whole ? ({ folders: [], ...value } as unknown as Review) : undefined;
  } catch {
    return undefined;
  }
}

function changesBetween(review: Review, { files, folders }: AgentFiles): AgentCard['changes'] {
  const before = new Map([...accessOf(review.folders), ...Object.entries(review.files)]);
  const after = new Map(accessOf(folders));
  for (const [label, { sha256 }] of files) after.set(label, sha256);
  return [...new Set([...before.keys(), ...after.keys()])].sort().flatMap(path => {
    const was = before.get(path);
    const now = after.get(path);
    if (now === was) return [];
    const change = now === undefined ? 'removed' : was === undefined ? 'added' : 'changed';
    return [{ path, change } as const];
  });
}

const accessOf = (folders: Review['folders']): [string, string][] =>
  folders.map(({ path, access }) => [path, access]);

/** Says where an installed pack came from and in which version, and whether files were edited since, by the lock file beside it. */
function lockedOrigin({ packDir }: ReviewedAgent, { files }: AgentFiles): string | undefined {
  const entry = lockedPack(join(dirname(packDir), lockName), basename(packDir));
  if (!entry) return undefined;
  const there = new Map(
    [...files].filter(([path]) => !isKeptBeside(path)).map(([path, { sha256 }]) => [path, sha256]),
  );
  const paths = [...new Set([...there.keys(), ...Object.keys(entry.files)])];
  const edited = paths.filter(path => there.get(path) !== entry.files[path]?.slice(7, 71)).sort();
  const more = edited.length > 5 ? ` and ${edited.length - 5} more` : '';
  const since =
    edited.length === 0 ? 'no file edited since' : `edited since: ${edited.slice(0, 5).join(', ')}${more}`;
  return `${entry.source}, ${exactVersion(entry)}, installed ${entry.installedAt.slice(0, 10)}; ${since}`;
}

function exactVersion({ resolved, digest }: LockedPack): string {
  if ('commit' in resolved) return `commit ${resolved.commit}`;
  return 'version' in resolved ? `version ${resolved.version}` : `digest ${digest.slice(0, 12)}`;
}

function originOf(agent: ReviewedAgent, files: AgentFiles): Sentence {
  const { source, packDir } = agent;
  switch (source) {
    case 'project':
      return sentence('the workspace folder {0}', packDir);
    case 'linked':
      return sentence('the linked folder {0}', packDir);
    case 'builtin':
      return sentence('Telos itself');
    case 'user': {
      const locked = lockedOrigin(agent, files);
      return locked === undefined ? sentence('your folder {0}', packDir) : { text: '{0}', values: [locked] };
    }
  }
}

/** Looking at all that an agent can do takes a part of the engine that most runs do not need. */
const cardFrom = async (agent: ReviewedAgent, files: AgentFiles) =>
  (await import('./agentCard.ts')).cardOf(agent, files);
