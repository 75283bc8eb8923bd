/** Connects the view to the extension host: messages, what is kept for a reload, and texts in the language of the reader. */

import type { FromActionPage } from '@telos/protocol/actionPage';
import type { FromInstallPage } from '@telos/protocol/installPage';
import type { FromPlanPage, PlanPagePlace } from '@telos/protocol/planPage';
import type { SkillRef } from '@telos/protocol/run';
import { type Say, withValues } from '@telos/protocol/text';
import type { ToHost } from '@telos/protocol/webview';

/** All state that the view keeps by itself. The host sends the events again. */
export interface Kept {
  id: string | null;
  draft: string;
  /** The skill chosen for the next request. Null leaves the choice to its words. */
  next?: SkillRef | null;
  wrapsCode?: boolean;
}

/** What the pages say to the host. */
type FromPage = ToHost | FromPlanPage | FromActionPage | FromInstallPage;

interface VsCodeApi {
  postMessage(message: FromPage): void;
  getState(): Kept | undefined;
  setState(state: Kept | PlanPagePlace): void;
}

declare function acquireVsCodeApi(): VsCodeApi;

let acquired: VsCodeApi | undefined;

/** The page may ask for it once. A test without a page never does. */
function api(): VsCodeApi {
  acquired ??= acquireVsCodeApi();
  return acquired;
}

export function post(message: FromPage): void {
  api().postMessage(message);
}

export function kept(): Kept {
  return api().getState() ?? { id: null, draft: '' };
}

export function keep(state: Kept): void {
  api().setState(state);
}

/** The host creates the page and knows the language. A test without a page reads English. */
const page = typeof document === 'undefined' ? undefined : document;
const table: Readonly<Record<string, string>> = JSON.parse(
  page?.getElementById('root')?.dataset['words'] ?? '{}',
);

/** Keeps what the page is about, as the host has written it into it. A window can be closed before the page is told anything. */
export function keepPlace(): void {
  const place = page?.getElementById('root')?.dataset['place'];
  if (place !== undefined) api().setState(JSON.parse(place) as PlanPagePlace);
}

/** Language of dates and lists. Numbers keep the English form, which models and logs also use. */
export const language = page?.documentElement.lang || 'en';

/** Translates a text. The first argument is the unchanged English text, so that a test can find it. */
export const t: Say = (text, ...values) => withValues(table[text] ?? text, values);
