/** `telos doctor`: what is in force and where it comes from, and what of it does not work. */
import { Telos } from '../engine/telos.ts';
import { describeReport, isBroken } from '../protocol/doctorReport.ts';
import { abortOnInterrupt, cancelledExitCode } from './interrupts.ts';
import { type ConfigOptions, configFor } from './openConfig.ts';
import type { Terminal } from './terminal.ts';
import { terminalJson, terminalText } from './terminalText.ts';

/** Returns the exit code: 1 when something is broken. */
export async function doctorCommand(
  options: ConfigOptions & { json?: boolean },
  terminal: Terminal,
): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  const { signal, release } = abortOnInterrupt(() => {});
  try {
    const report = await Telos.open(config).doctor(signal);
    if (options.json) terminal.out(`${terminalJson(report)}\n`);
    else
      terminal.out(
        `${describeReport(report)
          .map(line => terminalText(line.replaceAll('\n', ' ')))
          .join('\n')}\n`,
      );
    return isBroken(report) ? 1 : 0;
  } catch (error) {
    if (signal.aborted) return cancelledExitCode;
    throw error;
  } finally {
    release();
  }
}
