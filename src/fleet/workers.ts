/** What runs on a worker. */
export { answerOrder, type WorkerParts } from './evalWorker.ts';
export { beatMs, failedFacts, Signs, suiteFacts, workerFacts } from './presence.ts';
export { StoryWorker } from './stories/storyWorker.ts';
export { acceptWorkerCard, isDigest, type WaitingCard, waitingCards } from './stories/workerCards.ts';
export { findPostgres, startTryDatabase, type TryDatabase, tryFolder, tryPackage } from './tryDatabase.ts';
export { Turns } from './turns.ts';
export { runWorker } from './worker.ts';
