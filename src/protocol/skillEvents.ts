/** Reads the events of skills that a run uses. Those of a skill that such a skill uses are one within the other. */
import type { RunEvent } from './run.ts';

/** Returns the event itself, or the event that it brings of a skill, at whatever depth. */
export const innermost = (event: RunEvent): RunEvent =>
  event.type === 'skill_event' ? innermost(event.event) : event;

/** Returns the event with its innermost one changed. */
export const withInnermost = (event: RunEvent, change: (event: RunEvent) => RunEvent): RunEvent =>
  event.type === 'skill_event' ? { ...event, event: withInnermost(event.event, change) } : change(event);
