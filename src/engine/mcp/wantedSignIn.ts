/** A sign-in that a run asks its user for before it has a server. */
import type { WantedSignIn } from '../tools/tool.ts';
import { type Attempt, moreOf, phraseOf } from './renewableServer.ts';
import type { McpSignIn } from './signIn.ts';

export interface SignInSteps {
  connect(server: string): Promise<Attempt>;
  /** Receives the server, or why it is missing. */
  add(attempt: Attempt): void;
  /** Asks for a further sign-in after this one. */
  ask?(next: WantedSignIn): void;
}

/**
 * Returns the sign-in at `server`. If the server has moved to another authorization server when it is reached with the new token, its
 * sign-in there is asked for once.
 */
export function wantedSignIn(
  at: Pick<WantedSignIn, 'server' | 'place'>,
  access: McpSignIn,
  { connect, add, ask }: SignInSteps,
): WantedSignIn {
  const { server } = at;
  const orProblem = async <T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> => {
    try {
      return await work;
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      add({ server, error: phraseOf(error) });
      return undefined;
    }
  };
  return {
    ...at,
    ...moreOf(access),
    origins: signal => orProblem(access.origins(signal), signal),
    async signIn(signal) {
      const work = access.signIn(signal).then(() => connect(server));
      const attempt = await orProblem(work, signal);
      if (!attempt) return;
      const next = ask && (await movedSignIn(attempt, access, signal));
      if (next) ask(wantedSignIn(at, next, { connect, add }));
      else add(attempt);
    },
  };
}

/** Returns the sign-in that `attempt` lacks, if it is at another authorization server than the one that was made. */
async function movedSignIn(
  attempt: Attempt,
  made: McpSignIn,
  signal: AbortSignal,
): Promise<McpSignIn | undefined> {
  const { signIn } = attempt;
  if (!('error' in attempt) || !signIn?.isWanted) return undefined;
  // Where the sign-in cannot be found, the refusal of the attempt is what there is to say.
  await signIn.origins(signal).catch(() => undefined);
  return signIn.issuer === undefined || signIn.issuer === made.issuer ? undefined : signIn;
}
