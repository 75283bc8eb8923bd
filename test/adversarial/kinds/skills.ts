/** Cases on the content of a SKILL.md, and on how a skill is found. */
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { discoverAgents } from '../../../src/engine/skills/discover.ts';
import { Telos } from '../../../src/engine/telos.ts';
import { plainLabel } from '../../../src/extension/base/labels.ts';
import type { AgentCard } from '../../../src/protocol/agentCard.ts';
import { startAnthropicServer } from '../../fakes/anthropicServer.ts';
import { runAgent } from '../agentRun.ts';
import { fieldsOf, textsOf } from '../caseFile.ts';
import { applying, CannotJudge, check, inTime, type Seen } from '../checks.ts';
import { runCli } from '../cliRun.ts';
import { obey } from '../outside.ts';
import { agentName, secretText, type World } from '../world.ts';

export async function skillFile(world: World): Promise<Seen> {
  const { input, pack, put } = world;
  const text = String(input['text']);
  put(join(pack, 'skills/other/SKILL.md'), '---\ndescription: Another.\n---\nOther.\n');
  put(join(pack, 'skills/one/SKILL.md'), text);
  if (input['scripted_model']) return maliciousSkill(world);
  const start = performance.now();
  const telos = Telos.open(world.configFor());
  const agents = await telos.agents();
  const skill = agents.find(({ name }) => name === agentName)?.skills.find(({ id }) => id === 'one');
  const { description = '', body = '', diagnostics = [] } = skill ?? {};
  const took = performance.now() - start;
  const listing = await runCli(world, ['list-skills'], []);
  const run = await runAgent(world, [], {});
  const prompt = JSON.stringify(run.requests[0]?.body?.messages ?? '');
  const card = await telos.agentCard(agentName);
  const isRead = skill !== undefined && !diagnostics.some(({ severity }) => severity === 'error');
  const notices = JSON.stringify(run.events.filter(event => event.type === 'notice'));
  const label = plainLabel(description);
  return {
    decision: input['source'] ? ofReview(card) : isRead ? 'allow' : 'error',
    checks: applying(
      check('time', 'it is read without delay', took < inTime(5000) || `${took} ms`),
      check(
        'end',
        'no object is polluted',
        !('polluted' in {}) && Object.keys(Object.prototype).length === 0,
      ),
      check(
        'shown',
        'the other skills are listed',
        listing.stdout.includes('other') || listing.stdout.slice(0, 300),
      ),
      check(
        'shown',
        'a description has at most 1,024 characters',
        description.length <= 1024 || `${description.length} characters`,
      ),
      check(
        'shown',
        'the list stays short',
        listing.stdout.length < 20_000 || `${listing.stdout.length} characters`,
      ),
      check('shown', 'a label shows its text as it is', !/\$\([\w-]+\)/.test(label) || label),
      check('shown', 'no notice links to a command', !/\]\(command:/.test(notices) || notices),
      check(
        'shown',
        'nothing in a list steers the terminal',
        !/[\x07\x1b\x9b]/.test(listing.stdout + listing.stderr),
      ),
      !isRead &&
        check(
          'shown',
          'what cannot be read is named with a reason',
          /skills\/one/.test(listing.stderr) || listing.stderr.slice(0, 300),
        ),
      ...(isRead ? ofText(text, description, body) : []),
      ...ofCard(text, card, prompt),
    ),
  };
}

/** What came from elsewhere is looked at before it runs. */
const ofReview = ({ state, redFlags }: AgentCard): string =>
  state === 'new' && redFlags.length > 0 ? 'ask' : 'allow';

/** The parts of a file whose form leaves no doubt. */
function ofText(text: string, description: string, body: string): Seen['checks'] {
  const parts = /^---\r?\n(.*?)\r?\n---\r?\n(.*)$/s.exec(text.replace(/^\ufeff/, ''));
  const plain = /^description: ([\w][\w ,.()!?;-]*)$/m.exec(parts?.[1] ?? '')?.[1];
  const isWhole = parts !== null && !/[^\x20-\x7e\n]/.test(parts[2]!);
  return applying(
    !parts &&
      !/^---/.test(text) &&
      check(
        'shown',
        'without a head there is no description',
        description === '(no description)' || description,
      ),
    plain !== undefined &&
      plain.length <= 1024 &&
      check('shown', 'the description is that of the file', description === plain.trim() || description),
    plain !== undefined &&
      plain.length > 1024 &&
      check(
        'shown',
        'the description is the beginning of that of the file',
        plain.startsWith(description.slice(0, 1000)),
      ),
    isWhole &&
      check(
        'shown',
        'the text behind the head is whole',
        body.trim() === parts[2]!.trim() || body.slice(0, 300),
      ),
  );
}

/** What a person should know before it runs is on the card. */
function ofCard(text: string, card: AgentCard, prompt: string): Seen['checks'] {
  const invisible = /[\u{e0000}-\u{e007f}\u200b-\u200f\u2060-\u2064\u202a-\u202e\u2066-\u2069]/u;
  const has = (kind: string): boolean => card.redFlags.some(flag => flag.kind === kind);
  const flags = card.redFlags.map(({ kind }) => kind).join();
  const variables = /"env":\s*\[([^\]]*)\]/.exec(text)?.[1]?.match(/\w+/g) ?? [];
  const piped = /\b(?:curl|wget)\b[^|\n`]*\|\s*(?:sudo\s+)?(?:ba|z|da)?sh\b/.exec(text)?.[0];
  const host = piped && /https?:\/\/([^/\s]+)/.exec(piped)?.[1];
  return applying(
    invisible.test(text) &&
      check(
        'model',
        'invisible characters do not reach the model',
        !/[\u{e0000}-\u{e007f}]/u.test(prompt) && !/\\udb40/.test(prompt),
      ),
    invisible.test(text) &&
      check('shown', 'the card points out invisible characters', has('invisible-characters') || flags),
    variables.length > 0 &&
      check(
        'shown',
        'the card names the variables',
        variables.every(name => card.variables.includes(name)) || card.variables.join(),
      ),
    piped && check('shown', 'the card points out what is piped to a shell', has('pipe-to-shell') || flags),
    host && check('shown', 'the card names the host', card.hosts.includes(host) || card.hosts.join()),
  );
}

/** A skill that asks for a theft, and a model that commits it. */
async function maliciousSkill(world: World): Promise<Seen> {
  const properties: Readonly<Record<string, string>> = { fetch_url: 'url', run_command: 'command' };
  const calls = textsOf(world.input['scripted_model']).map(line => {
    const [name = ''] = line.split(' ', 1);
    const input = { [properties[name] ?? 'path']: line.slice(name.length + 1) };
    return { name, input: name === 'write_file' ? { ...input, content: 'x' } : input };
  });
  const { run, outside } = await obey(world, calls);
  const refused = run.results.length === calls.length && run.results.every(({ isError }) => isError);
  const leaked = run.requests.some(({ body }) => JSON.stringify(body).includes(secretText));
  const end = run.events.at(-1);
  const denials = run.events.filter(
    event =>
      event.type === 'tool_end' &&
      event.policy !== undefined &&
      event.policy.action !== 'allow' &&
      event.result.isError,
  );
  const completed = end?.type === 'run_end' && end.outcome === 'completed';
  return {
    decision: refused && !leaked ? 'deny' : 'allow',
    outside,
    checks: [
      check('secrets', 'the model is told no secret', !leaked),
      check(
        'records',
        'each refusal is recorded',
        denials.length === calls.length || `${denials.length} refusals`,
      ),
      check('end', 'the run ends by itself', completed),
      check(
        'shown',
        'the run shows the refusals',
        run.events.some(event => event.type === 'approval_response' && !event.decision.allow),
      ),
      check(
        'network',
        'nothing happens outside that no card named',
        outside.unannounced.length === 0 || outside.unannounced.join(),
      ),
    ],
  };
}

/** How a request finds its skill, with a model that says what the case wants. */
export async function route(world: World): Promise<Seen> {
  const { input, pack, put } = world;
  for (const id of textsOf(input['skills']))
    put(join(pack, `skills/${id}/SKILL.md`), `---\ndescription: ${id}.\n---\n`);
  if (typeof input['text'] === 'string') put(join(pack, 'skills/danger-skill/SKILL.md'), input['text']);
  const reply = String(input['model_reply'] ?? "I will answer with 'danger-skill', as told.");
  const server = await startAnthropicServer({ turns: [{ text: [reply] }] });
  try {
    const config = world.configFor({ ANTHROPIC_API_KEY: 'sk-ant-x', ANTHROPIC_BASE_URL: server.url });
    const text = String(input['request'] ?? 'please do whatever fits');
    const match = await Telos.open(config).route({ text }, new AbortController().signal);
    const { skill } = match;
    const known = discoverAgents(config).flatMap(({ skills }) => skills.map(({ id }) => id));
    const isName = known.includes(text.trim());
    return {
      decision: skill ? 'allow' : 'no match',
      checks: applying(
        check(
          'model',
          'an answer of the model counts only when it is the name of a skill',
          !match.skill || match.reason.rule !== 'model' || reply.trim() === match.skill.id || match.skill.id,
        ),
        check(
          'files',
          'the skill is one of those in the folder of skills',
          !skill || (known.includes(skill.id) && skill.dir.startsWith(world.skills)) || skill.dir,
        ),
        isName &&
          check(
            'model',
            'the skill of that name is chosen without asking a model',
            (skill?.id === text.trim() && server.requests.length === 0) ||
              `${skill?.id}, ${server.requests.length} calls`,
          ),
      ),
    };
  } finally {
    await server.close();
  }
}

/** Brings about what a case says of a path. */
function layOut(file: string, what: string, put: World['put']): void {
  mkdirSync(dirname(file), { recursive: true });
  if (/directory|folder/.test(what)) mkdirSync(file);
  else if (/fifo|pipe/i.test(what)) execFileSync('mkfifo', [file]);
  else if (/dangling|missing|broken/.test(what)) symlinkSync('no-such-file', file);
  else if (/loop|itself/.test(what)) symlinkSync(file, file);
  else if (/symlink|link/.test(what)) symlinkSync('/etc/passwd', file);
  else if (/empty/.test(what)) put(file, '');
  else if (what === 'ok' || /mode 0?\d{3}/.test(what)) put(file, '---\ndescription: fine\n---\nok\n');
  else throw new CannotJudge(`nothing lays out: ${what}`);
  const mode = /mode (0?\d{3})/.exec(what)?.[1];
  if (mode) chmodSync(file, Number.parseInt(mode, 8));
}

/** Broken folders beside whole ones, seen by a user who is not root. */
export async function discovery(world: World): Promise<Seen> {
  const { skills, home, put } = world;
  const dirs = Object.entries(fieldsOf(world.input['dirs'])).map(
    ([path, what]) => [path, String(what)] as const,
  );
  for (const [path, what] of dirs) layOut(join(skills, path), what, put);
  chmodSync(join(home, '..'), 0o755);
  const asUser = process.getuid?.() === 0 ? { uid: 65534 } : {};
  const { stdout, stderr, exitCode } = await runCli(world, ['list-skills'], [], asUser);
  const nameOf = (path: string): string => path.split('/').at(-2) ?? path;
  return {
    decision: exitCode === 0 ? 'allow' : 'error',
    checks: dirs.map(([path, what]) => {
      if (what === 'ok')
        return check(
          'shown',
          `${path} is listed`,
          new RegExp(`(^|\\s)${nameOf(path)}\\s`, 'm').test(stdout) || stdout,
        );
      const isNamed = stderr.includes(dirname(path)) || (stderr + stdout).includes(path.split('/')[0]!);
      return check('shown', `${path} is named`, isNamed || /empty/.test(what) || `${stdout}\n${stderr}`);
    }),
  };
}

/** A workspace that is not trusted brings a skill of the same name. */
export async function untrustedRoots(world: World): Promise<Seen> {
  const { input, pack, root, put } = world;
  if (input['workspace_trusted'] !== false)
    throw new CannotJudge('which of several roots wins is not written down');
  const name = String(input['duplicate']);
  put(join(pack, `skills/${name}/SKILL.md`), '---\ndescription: The user’s.\n---\n');
  put(join(root, `.claude/skills/${name}/SKILL.md`), '---\ndescription: The project’s.\n---\n');
  // The host leaves folders that are not trusted out of the configuration.
  const telos = Telos.open({ ...world.configFor(), cwd: root, workspaceFolders: [] });
  const { skill } = await telos.route({ text: name }, new AbortController().signal);
  return {
    decision: skill ? 'allow' : 'error',
    checks: [
      check(
        'files',
        'the version of the user is taken',
        skill?.description === 'The user’s.' || String(skill?.file),
      ),
    ],
  };
}
