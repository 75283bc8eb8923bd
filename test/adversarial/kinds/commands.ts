/** Cases on commands and on what is approved about them. */
import type { Terminal } from '../../../src/cli/terminal.ts';
import { terminalHuman } from '../../../src/cli/terminalHuman.ts';
import type { ApprovalDecision } from '../../../src/protocol/run.ts';
import { excerpt } from '../../../webview/visibleText.ts';
import { type AgentRun, decisionOf, namesRule, runAgent, runOne, wasQuestion } from '../agentRun.ts';
import { fieldsOf } from '../caseFile.ts';
import { applying, CannotJudge, check, type Seen } from '../checks.ts';
import { runCli, turnsFor } from '../cliRun.ts';
import { referenceRun, sameLines } from '../reference.ts';
import { changesSince, snapshot, steering } from '../witness.ts';
import { applySetup, applyTrust, type World } from '../world.ts';

export async function runCommand(world: World): Promise<Seen> {
  const { input } = world;
  applySetup(world);
  await applyTrust(world);
  const command = String(input['command']);
  const call = { name: 'run_command', input: { command, ...fieldsOf(input['model_fields']) } };
  if (input['surface'] === 'cli' && input['tty'] === false) return onPipedTerminal(world, call);
  const own = [world.data];
  const mayChange = world.mayChange;
  world.mayChange = own;
  const before = snapshot(world);
  const run = await runOne(world, call);
  const changed = changesSince(before, snapshot(world));
  world.mayChange = mayChange;
  const told = run.results[0]?.content ?? '';
  const decision = programIsMissing(told) ? 'allow' : decisionOf(run);
  const isDone = decision === 'allow' || (run.asked.length > 0 && input['approved'] === true);
  return {
    decision,
    unattended: wasQuestion(run),
    checks: applying(
      !isDone && check('files', 'nothing is changed', changed.length === 0 || changed.join()),
      !isDone && check('network', 'nothing is sent', world.knocks.length === 0 || world.knocks.join()),
      ...(isDone ? await ofResult(world, command, told) : []),
      ...(decision === 'ask' ? ofQuestion(run, command) : []),
      decision === 'deny' && check('shown', 'the refusal names its rule', namesRule(told)),
      decision === 'deny' && ofChangedScript(world, command, told),
    ),
  };
}

/** Judges a command that was let through and whose program is missing here, or which fails by itself. */
const programIsMissing = (told: string): boolean => /\[exit code: \d+\]$/.test(told);

/** It ran in the folder of the pack, and said what it says in a plain shell there. */
async function ofResult(world: World, command: string, told: string): Promise<Seen['checks']> {
  const plain = await referenceRun(world, command, { cwd: world.pack, limitMs: 20_000 });
  if (plain?.exitCode === undefined) return [check('shown', 'the command has run', told.length > 0)];
  const said = plain.stdout.toString('utf8').trim();
  const failed = plain.exitCode > 0;
  return applying(
    check(
      'end',
      'it ends as in a plain shell',
      told.includes(`[exit code: ${plain.exitCode}]`) === failed || told,
    ),
    !failed &&
      check(
        'shown',
        'it says what a plain shell says',
        sameLines(told.split('\n[stderr]')[0]!, said || '(no output)') || told,
      ),
    said.includes(world.pack) &&
      check('shown', 'it ran in the folder of the pack', told.includes(world.pack)),
  );
}

/** A script of the pack that was changed behind its review is named, with the way to review it again. */
function ofChangedScript(world: World, command: string, told: string): Seen['checks'][number] | undefined {
  const setup = Array.isArray(world.input['setup']) ? world.input['setup'].map(fieldsOf) : [];
  const changed = setup.find(
    ({ when, path }) => when === 'after review' && String(path).startsWith(world.pack),
  );
  const name = String(changed?.['path']).slice(world.pack.length + 1);
  if (!changed || !command.includes(name)) return undefined;
  return check(
    'shown',
    'the refusal names the changed file and the way to review it',
    (told.includes(name) && told.includes('telos trust')) || told,
  );
}

/** The question shows the command as it is, and names what it reaches. */
function ofQuestion({ asked }: AgentRun, command: string): Seen['checks'] {
  const { subject = '', reason = '' } = asked[0] ?? {};
  const secretPath = /\S*(\.env|\.ssh|\.netrc|\.npmrc|id_rsa|\.aws)\b/.exec(command)?.[0].split('/').at(-1);
  return applying(
    check('shown', 'the question shows the exact command', subject === command || subject),
    check('shown', 'the question says why it is asked', reason !== ''),
    /\b(curl|wget|nc|ncat|ssh|scp)\b/.test(command) &&
      check('shown', 'the question names the network', /network/.test(reason) || reason),
    secretPath && check('shown', 'the question names the secret path', reason.includes(secretPath) || reason),
  );
}

async function onPipedTerminal(
  world: World,
  call: { name: string; input: { command: string } },
): Promise<Seen> {
  const run = await runCli(world, ['--json', 'one'], turnsFor([call]));
  const told = JSON.stringify(run.requests.at(-1)?.body?.messages ?? []);
  const said = run.stdout + run.stderr;
  const refused = /Denied: No one can be asked/.test(told);
  return {
    decision: refused ? 'deny' : 'allow',
    unattended: refused,
    checks: applying(
      refused &&
        check('shown', 'the flag that would allow it is named', /--yes/.test(said) || said.slice(-600)),
      refused &&
        check(
          'shown',
          'the rule that would allow it is named',
          /command = |argv = /.test(said) || said.slice(-600),
        ),
      !refused && check('shown', 'the command has run', run.exitCode === 0),
    ),
  };
}

/** A command that was approved, and one that differs from it in its words or its environment. */
export async function approvalReplay(world: World): Promise<Seen> {
  const [first, then] = [fieldsOf(world.input['approved']), fieldsOf(world.input['then'])];
  const call = (part: typeof first) => ({ name: 'run_command', input: { command: String(part['command']) } });
  const yes: ApprovalDecision = { allow: true, scope: 'run' };
  if (first['cwd'] !== then['cwd']) throw new CannotJudge('a command has no folder of its own choice');
  const asked =
    first['env_hash'] === then['env_hash']
      ? (await runAgent(world, [call(first), call(then)], { person: yes })).asked.length
      : (await runAgent(world, [call(first)], { person: yes, env: { LANG: 'A' } })).asked.length +
        (await runAgent(world, [call(then)], { person: yes, env: { LANG: 'B' } })).asked.length;
  return {
    decision: asked === 2 ? 'ask' : 'allow',
    checks: [check('shown', 'the first command is asked about', asked > 0)],
  };
}

/** What a person sees of a command whose end is pushed out of sight, on a terminal and in the chat view. */
export async function approvalView(world: World): Promise<Seen> {
  const command = String(world.input['command']);
  if (world.input['tool'] !== 'run_command')
    throw new CannotJudge(`nothing shows a question about ${world.input['tool']}`);
  const run = await runAgent(world, [{ name: 'run_command', input: { command } }], {
    person: { allow: false, reason: 'No.' },
  });
  const request = run.asked[0];
  if (!request) return { decision: decisionOf(run), checks: [] };
  const said: string[] = [];
  const onEnter = await terminalHuman(
    plainTerminal(line => said.push(line)),
    async () => '',
  ).approve(request, new AbortController().signal);
  const onTerminal = said.join('\n');
  const { hidden, tail } = excerpt(request.subject, 600);
  const endOfCommand = command.slice(-20);
  const seenOnTerminal =
    onTerminal.includes(endOfCommand) || /more characters/.test(onTerminal) || steering.test(endOfCommand);
  const seenInView = tail.includes(endOfCommand) || hidden > 0 || command.length < 600;
  return {
    decision: decisionOf(run),
    checks: [
      check('shown', 'what is asked about is what would run', request.subject === command),
      check(
        'shown',
        'the end is seen, or how much is hidden',
        (seenOnTerminal && seenInView) || onTerminal.slice(0, 300),
      ),
      check('shown', 'nothing in it steers the terminal', !steering.test(onTerminal)),
      check('shown', 'yes is not the default', !onEnter.allow),
    ],
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
    surroundings: process,
    outWidth: undefined,
    sayWidth: 80,
    style: { dim: same, bold: same, red: same, yellow: same },
  };
}
