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
import * as vscode from 'vscode';
import type { CurrentTelos } from '../base/currentTelos.ts';
import { plainLabel, visibleText } from '../base/labels.ts';
import { askName, install, linkText, reportInstalled, said } from './agentPacks.ts';
import { askToInstall } from './installPage.ts';

/** Number of bytes up to which a file is shown. */
const largestShown = 2 * 1024 * 1024;

interface Wish extends Pick<LookOptions, 'as' | 'skills'> {
  /** True if a link asks, and not the person. */
  isLink?: boolean;
}

/** Fetches a source, shows what it holds and installs it if the person agrees. Throws the errors of `lookAtSource`. */
export async function offerSource(current: CurrentTelos, source: string, wish: Wish = {}): Promise<void> {
  const telos = await current.openTelos();
  const { config } = telos;
  const servers = () => telos.serverParts();
  const { isLink = false, ...rest } = wish;
  const looked = await withFetchProgress(source, (signal, progress) =>
    lookAtSource(source, config, { ...rest, signal, progress, servers, isForeign: isLink }),
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
    const canChoose = !looked.plan.replaces && !wish.skills && wish.as === undefined;
    const agreed = isThere(looked)
      ? { offer: looked, isTrial: false, isOnce: false }
      : await agrees(looked, { isLink, canChoose, canTry: true });
    if (!agreed) return;
    const { offer, isTrial, isOnce } = agreed;
    if (isOnce) return void (await vscode.commands.executeCommand('telos.tryOnce', offer));
    const installed = await placeOffer(offer, { agreed: offer.plan.token, allowHigh: true });
    await current.refresh();
    await reportInstalled(current, installed);
    if (isTrial) await tryOne(current, installed.name);
  } finally {
    await looked.dispose();
  }
}

/** Asks for a request for the first skill of an agent, and runs it. */
async function tryOne(current: CurrentTelos, name: string): Promise<void> {
  const agents = await (await current.openTelos()).agents();
  const agent = agents.find(each => each.name === name);
  const [skill] = agent?.skills ?? [];
  if (skill) await vscode.commands.executeCommand('telos.runTreeSkill', { kind: 'skill', agent, skill });
}

/** Whether it is installed already, the same and from the same source, so that it needs no yes. */
const isThere = ({ plan, moves }: Offer): boolean => plan.replaces?.isSame === true && !moves;

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

/** The user's answer: the offer as it is to be installed, and whether to try it then, or only once without an install; or undefined. */
type Agreed = { offer: Offer; isTrial: boolean; isOnce: boolean } | undefined;

/** Asks on a page whether to install. Its files open beside it. */
export async function agrees(
  looked: Offer,
  { isLink = false, canChoose = false, canTry = false } = {},
): Promise<Agreed> {
  for (let offer = looked; ; ) {
    let files: vscode.Disposable | undefined;
    try {
      const { act, skills } = await askToInstall(offer, { isLink, canChoose, canTry }, async () => {
        files ??= await showFiles(offer);
      });
      if (act === 'cancel') return undefined;
      const isPart = skills.length > 0 && skills.length < offer.skills.length;
      const chosen = isPart ? await offerAgain(offer, { skills }) : offer;
      if (act !== 'rename') return { offer: chosen, isTrial: act === 'try', isOnce: act === 'once' };
      const as = await askName(offer.name);
      if (as === undefined) return undefined;
      offer = await offerAgain(chosen, { as });
    } finally {
      files?.dispose();
    }
  }
}

const scheme = 'telos-offer';

/** Opens the changes that installing would make, file by file. They stay readable until it is disposed. */
async function showFiles(offer: Offer): Promise<vscode.Disposable> {
  const texts = new Map<string, string>();
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
