/** Shows what a source holds before anything is installed, and installs it after a yes. For the gallery, links and updates alike. */

import { isAbsolute, join } from 'node:path';
import {
  type LookOptions,
  lookAtSource,
  type Offer,
  offerAgain,
  placeOffer,
  type SourceProgress,
} from '@telos/packs/install';
import { describeReplacement } from '@telos/protocol/installPlan';
import { cardLines, sizeText } from '@telos/protocol/packOffer';
import { beginningOf } from '@telos/protocol/text';
import * as vscode from 'vscode';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { describeTime, plainLabel, t, visibleText } from '../base/labels.ts';
import { askName, install, keptText, linkText, reportInstalled, said } from './agentPacks.ts';

/** Number of lines that a question shows at most. The rest is in its details. */
const mostLines = 24;
/** Number of bytes up to which a file is shown. */
const largestShown = 2 * 1024 * 1024;

interface Wish extends Pick<LookOptions, 'as' | 'skills'> {
  /** True if a link asks, and not the person. */
  isLink?: boolean;
}

/** Fetches a source, shows what it holds and installs it if the person agrees. Throws the errors of `lookAtSource`. */
export async function offerSource(current: CurrentTelos, source: string, wish: Wish = {}): Promise<void> {
  const { config } = await current.openTelos();
  const { isLink = false, ...rest } = wish;
  const looked = await withFetchProgress(source, (signal, progress) =>
    lookAtSource(source, config, { ...rest, signal, progress, isForeign: isLink }),
  );
  if (!looked) return;
  if (looked.kind === 'choices') {
    const chosen = await vscode.window.showQuickPick(
      looked.choices.map(one => ({ label: plainLabel(one, 300), source: one })),
      { title: vscode.l10n.t('Install Skills'), placeHolder: plainLabel(looked.message, 300) },
    );
    return chosen && offerSource(current, chosen.source, wish);
  }
  try {
    const skills = isThere(looked) ? undefined : await wantedSkills(looked, wish);
    if (skills === 'none') return;
    const offer = await agreedOffer(skills ? await offerAgain(looked, { skills }) : looked, isLink);
    if (!offer) return;
    const installed = await placeOffer(offer, { agreed: offer.plan.token, allowHigh: true });
    await current.refresh();
    await reportInstalled(current, installed);
  } finally {
    await looked.dispose();
  }
}

/** Whether it is installed already, the same and from the same source, so that it needs no yes. */
const isThere = ({ plan, moves }: Offer): boolean => plan.replaces?.isSame === true && !moves;

/** Returns the offer that the person agrees to, perhaps under another name. */
async function agreedOffer(looked: Offer, isLink: boolean): Promise<Offer | undefined> {
  for (let offer = looked; ; ) {
    if (isThere(offer)) return offer;
    const answer = await agrees(offer, isLink);
    if (answer !== 'rename') return answer === 'yes' ? offer : undefined;
    const as = await askName(offer.name);
    if (as === undefined) return undefined;
    offer = await offerAgain(offer, { as });
  }
}

/** Shows how far a fetch is, with a button to cancel it. Returns undefined if it was cancelled. */
export async function withFetchProgress<Result>(
  title: string,
  fetch: (signal: AbortSignal, progress: (event: SourceProgress) => void) => Promise<Result>,
): Promise<Result | undefined> {
  const place = {
    location: vscode.ProgressLocation.Notification,
    title: plainLabel(title, 100),
    cancellable: true,
  };
  return vscode.window.withProgress(place, async (progress, token) => {
    const controller = new AbortController();
    const cancelling = token.onCancellationRequested(() => controller.abort());
    try {
      return await fetch(controller.signal, event => progress.report({ message: progressText(event) }));
    } catch (error) {
      if (controller.signal.aborted) return undefined;
      throw error;
    } finally {
      cancelling.dispose();
    }
  });
}

function progressText(event: SourceProgress): string {
  switch (event.kind) {
    case 'resolving':
      return vscode.l10n.t('Looking for it...');
    case 'waiting':
      return vscode.l10n.t('{0} asks to wait for {1} seconds', plainLabel(event.host), event.seconds);
    case 'downloading':
      return vscode.l10n.t('{0} KB from {1}', Math.round(event.bytes / 1000), plainLabel(event.host));
    case 'looking':
      return vscode.l10n.t('Looking through its files...');
  }
}

/** Asks which skills of a new pack are wanted. Returns undefined for all of them. */
async function wantedSkills(
  { skills, plan, from, name }: Offer,
  wish: Wish,
): Promise<readonly string[] | 'none' | undefined> {
  if (skills.length < 2 || wish.skills || wish.as !== undefined || plan.replaces) return undefined;
  const picked = await vscode.window.showQuickPick(
    skills.map(skill => ({
      label: plainLabel(skill.id),
      description: sizeText(skill, t),
      detail: skill.problems[0]
        ? `$(warning) ${plainLabel(skill.problems[0], 300)}`
        : plainLabel(skill.description, 300),
      picked: true,
      id: skill.id,
    })),
    {
      title: vscode.l10n.t('Skills of {0}', plainLabel(name)),
      placeHolder: plainLabel(from, 300),
      canPickMany: true,
    },
  );
  if (!picked || picked.length === 0) return 'none';
  return picked.length === skills.length ? undefined : picked.map(({ id }) => id);
}

type Answer = 'yes' | 'rename' | 'no';

/** Asks in a dialog whether to install, with the card of the pack. Its details open beside a second question. */
export async function agrees(offer: Offer, isLink = false): Promise<Answer> {
  const { plan, name, isRisky } = offer;
  const replaces = plan.replaces !== undefined && !plan.replaces.isSame;
  const install = isRisky
    ? vscode.l10n.t('Install Anyway')
    : replaces
      ? vscode.l10n.t('Replace')
      : vscode.l10n.t('Install');
  const details = vscode.l10n.t('Show Details');
  const rename = vscode.l10n.t('Use Another Name...');
  const question = replaces
    ? vscode.l10n.t('Replace agent {0}?', plainLabel(name))
    : vscode.l10n.t('Install agent {0}?', plainLabel(name));
  const lines = [...(isLink ? [linkText(), ''] : []), ...cardText(offer)];
  const shown = lines.length > mostLines ? [...lines.slice(0, mostLines - 1), '…'] : lines;
  const show = isRisky || isLink ? vscode.window.showWarningMessage : vscode.window.showInformationMessage;
  // The first button is the one that Enter takes.
  const buttons = isRisky ? [details, install, rename] : [install, details, rename];
  const answer = await show(question, { modal: true, detail: shown.join('\n') }, ...buttons);
  if (answer !== details) return answerOf(answer, install, rename);
  const shownDetails = await showDetails(offer, lines);
  try {
    return answerOf(await show(question, install, rename), install, rename);
  } finally {
    shownDetails.dispose();
  }
}

const answerOf = (answer: string | undefined, install: string, rename: string): Answer =>
  answer === install ? 'yes' : answer === rename ? 'rename' : 'no';

function cardText(offer: Offer): string[] {
  const { plan } = offer;
  const replaced =
    plan.replaces && !plan.replaces.isSame
      ? ['', ...describeReplacement(plan, iso => describeTime(new Date(iso)), t), '', keptText()]
      : [];
  const lines = [...cardLines(offer, t).map(({ text }) => text), ...replaced];
  return lines.map(line => beginningOf(visibleText(line), 400));
}

const scheme = 'telos-offer';

/** Opens the changes that installing would make, file by file, below the card. They stay readable until it is disposed. */
async function showDetails(offer: Offer, lines: readonly string[]): Promise<vscode.Disposable> {
  const texts = new Map<string, string>([['/', `${lines.join('\n')}\n`]]);
  for (const { path, bytes } of offer.files) {
    const content = bytes > largestShown ? undefined : await offer.read(path);
    const isText = content !== undefined && !content.includes(0);
    texts.set(
      `/${path}`,
      isText
        ? content.toString('utf8')
        : vscode.l10n.t('This file is not text, or too large to be shown here.'),
    );
  }
  const provider = vscode.workspace.registerTextDocumentContentProvider(scheme, {
    provideTextDocumentContent: ({ path }) => texts.get(path) ?? '',
  });
  const uriOf = (path: string): vscode.Uri => vscode.Uri.from({ scheme, authority: 'offer', path });
  const target = offer.plan.target;
  const resources = offer.files.map(({ path }) => {
    const there = vscode.Uri.file(join(target, path));
    return [there, offer.plan.replaces ? there : undefined, uriOf(`/${path}`)];
  });
  const card = await vscode.workspace.openTextDocument(uriOf('/'));
  await vscode.window.showTextDocument(card, { preview: true });
  await vscode.commands.executeCommand(
    'vscode.changes',
    vscode.l10n.t('Files of {0}', plainLabel(offer.name)),
    resources,
  );
  return provider;
}

/** More than a person reads before agreeing. In characters. */
const longestSource = 400;

/**
 * Answers a link vscode://telos.telos/install?from=... with the question of an install. Nothing else that the link says counts, so
 * only the person can agree.
 */
export async function installFromLink(current: CurrentTelos, query: URLSearchParams): Promise<void> {
  const from = query.get('from') ?? query.get('source') ?? '';
  const problem = linkProblem(from);
  if (problem !== undefined) void vscode.window.showWarningMessage(problem);
  else if (isAbsolute(from)) await said(() => install(current, from, { isLink: true }));
  else if (await mayLook(from)) await said(() => offerSource(current, from, { isLink: true }));
}

/** Asks before anything is fetched: the place that a link names learns who looks. */
async function mayLook(from: string): Promise<boolean> {
  const agree = vscode.l10n.t('Continue');
  const answer = await vscode.window.showWarningMessage(
    vscode.l10n.t('Look at the skills from {0}?', plainLabel(visibleText(from), 2 * longestSource)),
    {
      modal: true,
      detail: `${linkText()} ${vscode.l10n.t('They are downloaded and shown. You are asked again before they are installed.')}`,
    },
    agree,
  );
  return answer === agree;
}

/** Returns why nothing can be installed from there, or undefined for a folder by its full path and a source elsewhere. */
function linkProblem(from: string): string | undefined {
  if (from === '') return vscode.l10n.t('The link does not say from where to install.');
  if (from.length > longestSource)
    return vscode.l10n.t(
      'The link has more than {0} characters, which is too long to review. Nothing was installed.',
      longestSource,
    );
  // Two slashes at the beginning name another machine, which would learn who asks.
  if (isAbsolute(from) ? !/^[\\/]{2}/.test(from) : /^(?:https|github|clawhub|npm|git\+https):/i.test(from))
    return undefined;
  return vscode.l10n.t(
    'A link asks to install from {0}. Telos installs from a full path, or from a source such as github:owner/repo. Nothing was installed.',
    plainLabel(visibleText(from), 2 * longestSource),
  );
}
