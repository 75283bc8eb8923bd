/** Starts, steers and follows a run. */

export { atMost, endedByReader, untilAborted } from './cancellation.ts';
export { mostRounds } from './core/limits.ts';
export type { Budget } from './core/ports.ts';
export { type Human, newToken } from './core/ports.ts';
export { allowAll, denyAll, QuestionOver, type SignInPort } from './human.ts';
export { unseen } from './run/commandChanges.ts';
export { Conversation, storedConversation } from './run/conversation.ts';
export { landLayer } from './run/landLayer.ts';
export { countedCall } from './run/meter.ts';
export { boxState } from './run/openBox.ts';
export type { EarlierConversation, RunRequest, StepBox } from './run/request.ts';
export { readOnlyTools } from './run/runTools.ts';
export {
  checkServer,
  type ListedServer,
  listServers,
  type ServerParts,
  type ServerRef,
} from './run/serverCheck.ts';

export const importServerCheck = () => import('./run/serverCheck.ts');
