/** Reaches a user who is elsewhere, by messengers. */
export { decisionOf, type Messenger } from './away/messenger.ts';
export { answersTopic } from './away/ntfy.ts';
export {
  hasMessengers,
  isTelegramUser,
  isTopic,
  type MessengerKind,
  messengerKinds,
  messengerVariables,
  newSecret,
  newTopic,
  portIn,
  readAwaySettings,
  safeAddress,
} from './away/settings.ts';

export const importAskAway = () => import('./away/askAway.ts');
