/** The line to the extension host. */
import type { SkillRef } from '../src/protocol/run.ts';
import type { ToHost } from '../src/protocol/webview.ts';

/** All that the view keeps by itself; the events come from the host again. */
export interface Kept {
  id: string | null;
  draft: string;
  /** The skill that was chosen for the next request; null is the choice by its words. */
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
