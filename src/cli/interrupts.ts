/** Ctrl-C once ends the run cleanly; Ctrl-C twice ends at once. */

export const cancelledExitCode = 130;

const endingSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** `signal` aborts at the first interrupt, after `onFirst`; `release` gives the signals back to the process. */
export function abortOnInterrupt(onFirst: () => void): { signal: AbortSignal; release: () => void } {
  const controller = new AbortController();
  const interrupt = (): void => {
    if (controller.signal.aborted) process.exit(cancelledExitCode);
    onFirst();
    controller.abort();
  };
  for (const name of endingSignals) process.on(name, interrupt);
  return {
    signal: controller.signal,
    release() {
      for (const name of endingSignals) process.off(name, interrupt);
    },
  };
}
