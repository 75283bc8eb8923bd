/** Asks on a page whether to install a pack: what it does, what it asks for, what was found in it. */
import type { Offer } from '@telos/packs/install';
import {
  type FromInstallPage,
  type InstallAct,
  type InstallShown,
  installActs,
} from '@telos/protocol/installPage';
import { describeReplacement } from '@telos/protocol/installPlan';
import { offerParts, sizeText } from '@telos/protocol/packOffer';
import { beginningOf } from '@telos/protocol/text';
import * as vscode from 'vscode';
import { drawPage } from '../base/drawPage.ts';
import { describeTime, plainLabel, t, visibleText } from '../base/labels.ts';

import { keptText, linkText } from './agentPacks.ts';

/** A longer line is one that nobody reads. In characters. */
const longestLine = 400;
const mostSamples = 3;
/** A file of requests that is larger is not read for samples. In bytes. */
const largestRequests = 100_000;

export interface InstallWish {
  act: Exclude<InstallAct, 'files'>;
  /** The ids of the skills that the person wants. */
  skills: readonly string[];
}

/**
 * Shows the page, and resolves with the answer; with `cancel` if the page is closed. `showFiles` shows the pack's files beside it.
 * `canChoose` lets the person leave skills out, `canTry` run one without an install.
 */
export async function askToInstall(
  offer: Offer,
  { isLink, canChoose, canTry }: { isLink: boolean; canChoose: boolean; canTry: boolean },
  showFiles: () => Promise<unknown>,
): Promise<InstallWish> {
  const shown = await shownOf(offer, isLink, canChoose, canTry);
  const panel = vscode.window.createWebviewPanel('telos.install', shown.title, vscode.ViewColumn.Active, {
    retainContextWhenHidden: true,
  });
  try {
    return await new Promise(resolve => {
      panel.onDidDispose(() => resolve({ act: 'cancel', skills: [] }));
      panel.webview.onDidReceiveMessage(async (message: FromInstallPage | undefined) => {
        if (message?.type === 'ready') await panel.webview.postMessage({ type: 'install', shown });
        if (message?.type !== 'install_act') return;
        const act = installActs.find(each => each === message.act);
        if (act === 'files') await showFiles();
        else if (act) resolve({ act, skills: skillsIn(message, offer) });
      });
      const { extensionUri } = vscode.extensions.getExtension('telos.telos')!;
      drawPage(panel.webview, extensionUri, 'installPage');
    });
  } finally {
    panel.dispose();
  }
}

/** Those of the pack alone count. */
const skillsIn = ({ skills }: { skills: unknown }, offer: Offer): string[] =>
  Array.isArray(skills) ? offer.skills.map(({ id }) => id).filter(id => skills.includes(id)) : [];

async function shownOf(
  offer: Offer,
  isLink: boolean,
  canChoose: boolean,
  canTry: boolean,
): Promise<InstallShown> {
  const { plan, name, isRisky, from, skills, description } = offer;
  const replaces = plan.replaces && !plan.replaces.isSame ? plan.replaces : undefined;
  const parts = offerParts(offer, t);
  const replaced = replaces
    ? [...describeReplacement(plan, iso => describeTime(new Date(iso)), t).filter(Boolean), keptText()]
    : [];
  const install = isRisky ? t('Install Anyway') : replaces ? t('Replace') : t('Install');
  return {
    title: replaces ? t('Replace agent {0}?', plainLabel(name)) : t('Install agent {0}?', plainLabel(name)),
    from: short(t('From: {0}', from)),
    description: short(description),
    skills: skills.map(skill => ({
      id: skill.id,
      description: short(skill.description),
      size: sizeText(skill, t),
      ...(skill.problems[0] !== undefined && { problem: short(skill.problems[0]) }),
    })),
    canChoose: canChoose && skills.length > 1,
    samples: await samplesOf(offer),
    wants: parts.wants.map(short),
    findings: parts.findings.map(({ text, level }) => ({ text: short(text), level })),
    checked: parts.checked,
    notes: [...(isLink ? [linkText()] : []), ...replaced, ...parts.notes].map(short),
    isRisky,
    actions: [
      // The first button is the one that Enter takes.
      ...(isRisky ? [{ act: 'files' as const, label: t('Show Files') }] : []),
      { act: 'install', label: install },
      ...(replaces || isRisky ? [] : [{ act: 'try' as const, label: t('Install and Try') }]),
      ...(canTry ? [{ act: 'once' as const, label: isRisky ? t('Try Once Anyway') : t('Try Once') }] : []),
      ...(isRisky ? [] : [{ act: 'files' as const, label: t('Show Files') }]),
      { act: 'rename', label: t('Use Another Name...') },
      { act: 'cancel', label: t('Cancel') },
    ],
  };
}

const short = (line: string): string => beginningOf(visibleText(line), longestLine);

/** Requests that the author wrote for the skills, or else the names of the skills. */
async function samplesOf(offer: Offer): Promise<string[]> {
  const files = offer.files.filter(
    ({ path, bytes }) => /(?:^|\/)evals\/trigger\.json$/.test(path) && bytes <= largestRequests,
  );
  const written = await Promise.all(files.slice(0, mostSamples).map(({ path }) => requestsIn(offer, path)));
  // One of each skill first.
  const [firsts, others] = [
    written.flatMap(each => each.slice(0, 1)),
    written.flatMap(each => each.slice(1)),
  ];
  const found = [...firsts, ...others].map(request => beginningOf(visibleText(request), 120));
  const names = offer.skills.map(({ id }) => `/${id}`);
  return (found.length > 0 ? found : names).slice(0, mostSamples);
}

async function requestsIn(offer: Offer, path: string): Promise<string[]> {
  try {
    const entries: unknown = JSON.parse((await offer.read(path)).toString('utf8'));
    if (!Array.isArray(entries)) return [];
    return entries.flatMap(entry =>
      entry?.should_trigger === true && typeof entry.query === 'string' ? [entry.query] : [],
    );
  } catch {
    return []; // A defect of the file is among the problems of the pack.
  }
}
