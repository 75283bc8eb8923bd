/**
 * Many runs at once in one engine, as it is shipped: `node manyRunsProcess.ts <url> <runs> <folder>`; tells its parent what they came to.
 * The sources would be stripped of their types at the first call of each tool, while all runs wait.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Human } from '../../src/engine/core/ports.ts';

export interface EngineReport {
  outcomes: Record<string, number>;
  /** Events and questions that belonged to another run. */
  foreign: string[];
  approvals: number;
  /** Processor time of all runs together, in milliseconds. */
  processorMs: number;
  /** The most that the process ever held, in megabytes. */
  peakMegabytes: number;
}

const built = new URL('../../dist/telos.js', import.meta.url).href;
const { loadConfig, Telos } = (await import(built)) as typeof import('../../src/engine/telos.ts');
const [url = '', runs = '0', folder = ''] = process.argv.slice(2);
const workDir = join(folder, 'work');
const config = loadConfig({
  env: {
    PATH: process.env['PATH'] ?? '',
    HOME: folder,
    TELOS_SKILLS_DIR: join(folder, 'skills'),
    TELOS_CONFIG_DIR: join(folder, 'config'),
    TELOS_DATA_DIR: join(folder, 'data'),
    TELOS_ROUTING_MODE: 'name',
    TELOS_SANDBOX: 'off',
    ANTHROPIC_API_KEY: 'key-for-tests-0123456789',
    ANTHROPIC_BASE_URL: url,
  },
  home: folder,
  cwd: workDir,
});
const telos = Telos.open(config);
const report: EngineReport = { outcomes: {}, foreign: [], approvals: 0, processorMs: 0, peakMegabytes: 0 };
const before = process.cpuUsage();

await Promise.all(Array.from({ length: Number(runs) }, (_, index) => run(`r${index}`)));
const { user, system } = process.cpuUsage(before);
report.processorMs = (user + system) / 1000;
report.peakMegabytes = process.resourceUsage().maxRSS / 1024;
process.send?.(report, () => process.exit());

async function run(name: string): Promise<void> {
  mkdirSync(join(workDir, name), { recursive: true });
  const own = `mark-${name}-`;
  const look = (what: string, text: string): void => {
    for (const [mark] of text.matchAll(/mark-r\d+-/g))
      if (mark !== own) report.foreign.push(`${what} of ${name} held ${mark}`);
  };
  const person: Human = {
    async approve(request) {
      report.approvals++;
      const subject = JSON.stringify(request);
      look('a question', subject);
      if (!subject.includes(name)) report.foreign.push(`${name} was asked about ${request.subject}`);
      return { allow: true, scope: 'once' };
    },
    ask: async questions => questions.map(() => ''),
  };
  const request = { text: own, skill: { agent: 'kairos', skill: 'kickoff' } };
  for await (const event of telos.run(request, person, new AbortController().signal)) {
    look(event.type, JSON.stringify(event));
    if (event.type !== 'run_end') continue;
    const said = event.outcome + (event.error ? `: ${event.error.message}` : '');
    report.outcomes[said] = (report.outcomes[said] ?? 0) + 1;
    if (event.rounds !== 20) report.foreign.push(`${name} had ${event.rounds} rounds`);
  }
}
