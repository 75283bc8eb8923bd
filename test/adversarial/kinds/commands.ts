/** Cases on commands and on what is approved about them. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Terminal } from '../../../src/cli/terminal.ts';
import { terminalHuman } from '../../../src/cli/terminalHuman.ts';
import type { ApprovalDecision } from '../../../src/protocol/run.ts';
import { excerpt } from '../../../webview/visibleText.ts';
import { decisionOf, runAgent, runOne } from '../agentRun.ts';
import { fieldsOf } from '../caseFile.ts';
import { runCli, turnsFor } from '../cliRun.ts';
import type { Seen } from '../judge.ts';
import { applySetup, applyTrust, type World } from '../world.ts';

export async function runCommand(world: World): Promise<Seen> {
  const { input } = world;
  if (world.input['trust'] !== 'reviewed') applySetup(world);
  await applyTrust(world);
  const command = String(input['command']);
  const call = { name: 'run_command', input: { command, ...fieldsOf(input['model_fields']) } };
  if (input['surface'] === 'cli' && input['tty'] === false) return onPipedTerminal(world, call);
  const before = readFileSync(join(world.home, '.bashrc'), 'utf8');
  const run = await runOne(world, call);
  const told = run.results[0]?.content ?? '';
  const request = run.asked[0];
  const direct = 'calendar';
  return {
    decision: programIsMissing(told) ? 'allow' : decisionOf(run),
    facts: {
      'cwd is $PACK': told.includes(world.pack) || told,
      'script digest equals the reviewed digest': told.includes('calendar --days 3') || told,
      'same as running the script directly': told.includes(direct) || told,
      'error says the script changed since review and how to re-review':
        /changed since you reviewed it \(scripts\/cal-list\.sh\).*telos trust kairos/s.test(told) || told,
      'create $OUT/w': existsSync(join(world.out, 'w')),
      'change ~/.bashrc': readFileSync(join(world.home, '.bashrc'), 'utf8') !== before,
      'prompt names the network access and the secret path':
        /curl, which can reach the network.*telos\/\.env/.test(request?.reason ?? '') ||
        (request?.reason ?? 'no question'),
      'run without prompt': world.knocks.length > 0,
    },
  };
}

/** A command that was let through and whose program this machine lacks, or which fails by itself. */
const programIsMissing = (told: string): boolean => /\[exit code: \d+\]$/.test(told);

async function onPipedTerminal(world: World, call: { name: string; input: object }): Promise<Seen> {
  const run = await runCli(world, ['--json', 'one'], turnsFor([call]));
  const told = JSON.stringify(run.requests.at(-1)?.body?.messages ?? []);
  const said = run.stdout + run.stderr;
  return {
    decision: /Denied: Nobody can be asked/.test(told) ? 'deny' : 'allow',
    facts: {
      'exit message names the rule and the flag that would allow it':
        (/--yes/.test(said) && /command = \\+"printf ok/.test(said)) || said.slice(-600),
    },
  };
}

/** The same command approved once in one environment, and wanted again in another. */
export async function approvalReplay(world: World): Promise<Seen> {
  const call = (part: unknown) => ({
    name: 'run_command',
    input: { command: String(fieldsOf(part)['command']) },
  });
  const yes: ApprovalDecision = { allow: true, scope: 'run' };
  const first = await runAgent(world, [call(world.input['approved'])], { person: yes, env: { LANG: 'A' } });
  const then = await runAgent(world, [call(world.input['then'])], { person: yes, env: { LANG: 'B' } });
  return { decision: first.asked.length === 1 && then.asked.length === 1 ? 'ask' : 'allow', facts: {} };
}

/** What a person sees of a command whose end is pushed out of sight, on a terminal and in the chat view. */
export async function approvalView(world: World): Promise<Seen> {
  const command = String(world.input['command']);
  const run = await runAgent(world, [{ name: 'run_command', input: { command } }], {
    person: { allow: false, reason: 'No.' },
  });
  const request = run.asked[0];
  if (!request) return { decision: decisionOf(run), facts: {} };
  const said: string[] = [];
  const onEnter = await terminalHuman(
    plainTerminal(line => said.push(line)),
    async () => '',
  ).approve(request, new AbortController().signal);
  const onTerminal = said.join('\n');
  const { hidden, tail } = excerpt(request.subject, 600);
  const endOfCommand = command.slice(-20);
  const seenOnTerminal =
    onTerminal.includes(endOfCommand) || /more characters that are not shown/.test(onTerminal);
  const seenInView = tail.includes(endOfCommand) || hidden > 0;
  return {
    decision: decisionOf(run),
    facts: {
      "the tail is visible or a 'hidden text' warning is shown":
        request.subject === command && seenOnTerminal && seenInView,
      'Approve is not the default button': !onEnter.allow,
    },
  };
}

function plainTerminal(say: (line: string) => void): Terminal {
  const same = (text: string): string => text;
  return {
    out: () => undefined,
    say,
    endLine: () => undefined,
    flush: () => undefined,
    canAsk: true,
    outWidth: undefined,
    sayWidth: 80,
    style: { dim: same, bold: same, red: same, yellow: same },
  };
}
