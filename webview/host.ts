/** Connects the view to the extension host. */
import type { SkillRef } from '../src/protocol/run.ts';
import type { ToHost } from '../src/protocol/webview.ts';

/** All state that the view keeps by itself. The host sends the events again. */
export interface Kept {
  id: string | null;
  draft: string;
  /** The skill chosen for the next request. Null leaves the choice to its words. */
  next?: SkillRef | null;
}

interface VsCodeApi {
  postMessage(message: ToHost): void;
  getState(): Kept | undefined;
  setState(state: Kept): void;
}

declare function acquireVsCodeApi(): VsCodeApi;

const api = acquireVsCodeApi();

export function post(message: ToHost): void {
  api.postMessage(message);
}

export function kept(): Kept {
  return api.getState() ?? { id: null, draft: '' };
}

export function keep(state: Kept): void {
  api.setState(state);
}
