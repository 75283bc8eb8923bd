/** The limits of a loop. */

export const effortLevels = ['off', 'low', 'medium', 'high', 'xhigh', 'max'] as const;

/** Rounds of a run after which it asks whether to go on, and rounds after which it ends in any case. */
export const defaultMaxRounds = 20;
export const mostRounds = 500;

/** Default length limit of an answer, in tokens. */
export const defaultMaxTokens = 16384;

/** Number of turns in a row whose calls may be cut. */
export const mostCuts = 3;

/** Maximum number of calls of a turn that run at the same time, however many a model requests. */
export const maxAtOnce = 8;

/** Minimum time between two reports of how far a call is, in milliseconds. */
export const progressInterval = 1000;

/** In milliseconds. By then the first request of a process has been sent, and a model that has not answered goes on thinking for a while. */
export const untilReady = 150;
