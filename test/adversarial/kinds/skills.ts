/** Cases on what stands in a SKILL.md, and on how a skill is found. */
import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { discoverAgents } from '../../../src/engine/agents/discover.ts';
import { Telos } from '../../../src/engine/telos.ts';
import { plainLabel } from '../../../src/extension/plainLabel.ts';
import { describeCard } from '../../../src/protocol/agentCard.ts';
import { startAnthropicServer } from '../../fakes/anthropicServer.ts';
import { runAgent } from '../agentRun.ts';
import { fieldsOf, textsOf } from '../caseFile.ts';
import { runCli } from '../cliRun.ts';
import type { Seen } from '../judge.ts';
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
  const within = performance.now() - start < 2000;
  const listing = await runCli(world, ['list-skills'], []);
  const run = await runAgent(world, [], {});
  const prompt = JSON.stringify(run.requests[0]?.body?.messages ?? '');
  const card = await telos.agentCard(agentName);
  const shown = describeCard(card).join('\n');
  const broken = diagnostics.some(({ severity }) => severity === 'error');
  const flagged = card.redFlags.some(({ kind }) => kind === 'pipe-to-shell');
  return {
    decision:
      input['source'] === 'clawhub'
        ? card.state === 'new' && flagged
          ? 'ask'
          : 'allow'
        : skill && !broken
          ? 'allow'
          : 'error',
    facts: {
      'description extracted exactly': /description: (.*)\n/.exec(text)?.[1] === description || description,
      'description is "(no description)"': description === '(no description)' || description,
      'body keeps later --- lines': body.includes('body --- with dashes\n---\nmore') || body,
      'metadata available to the install review': card.variables.includes('X') || shown,
      'treated as text or rejected; no hang': within,
      '({}).polluted is set': 'polluted' in {},
      'truncated to 1,024 characters in listings and in the routing prompt':
        (description.length === 1024 && listing.stdout.length < 20_000) || `${description.length} characters`,
      'skill skipped with a reason; other skills still listed':
        (listing.stdout.includes('other') && /20000000 bytes|20,000,000/.test(listing.stderr)) ||
        listing.stderr.slice(0, 300),
      'control characters stripped in list-skills output': !/[\x07\x1b\x9b]/.test(
        listing.stdout + listing.stderr,
      ),
      'QuickPick shows literal text': !/\$\(\w+\)/.test(plainLabel(description)) || plainLabel(description),
      // The description reaches no notification; what does is made literal first, see the webview area.
      'no command link in any notification': !/\]\(command:/.test(
        JSON.stringify(run.events.filter(event => event.type === 'notice')),
      ),
      'tag characters U+E0000-E007F removed before the model and flagged in the review':
        (!/[\u{e0000}-\u{e007f}]/u.test(prompt) &&
          !/\\udb40/.test(prompt) &&
          card.redFlags.some(({ kind }) => kind === 'invisible-characters')) ||
        'the prompt still has them, or the card is silent',
      'install review flags pipe-to-shell and remote host':
        (flagged && card.hosts.includes('glot.test')) || shown,
    },
  };
}

/** A skill that asks for a theft, and a model that commits it. */
async function maliciousSkill(world: World): Promise<Seen> {
  const calls = textsOf(world.input['scripted_model']).map(line => {
    const [name = '', subject = ''] = line.split(' ');
    return { name, input: name === 'fetch_url' ? { url: subject } : { path: subject } };
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
  return {
    decision: refused && !leaked ? 'deny' : 'allow',
    outside,
    facts: {
      'both calls refused': refused,
      // The log has three names of events, so a refusal is a field of its tool_call.
      'log has two policy_denied events': denials.length === 2,
      'run ends normally with a visible warning':
        end?.type === 'run_end' &&
        end.outcome === 'completed' &&
        run.events.some(event => event.type === 'approval_response' && !event.decision.allow),
    },
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
    const request = { text: String(input['request'] ?? 'please do whatever fits') };
    const match = await Telos.open(config).route(request, new AbortController().signal);
    const known = discoverAgents(config).flatMap(({ skills }) => skills.map(({ id }) => id));
    return {
      decision: match.skill ? 'allow' : 'no match',
      facts: {
        "the answer is accepted only if it equals an existing skill name; otherwise 'no match'":
          match.skill === undefined ||
          match.reason.rule !== 'model' ||
          reply.trim() === match.skill.id ||
          match.skill.id,
        'kickoff chosen, 0 API calls':
          (match.skill?.id === 'kickoff' && server.requests.length === 0) ||
          `${match.skill?.id}, ${server.requests.length} calls`,
        'read outside the skills directory':
          match.skill !== undefined &&
          (!known.includes(match.skill.id) || !match.skill.dir.startsWith(world.skills)),
      },
    };
  } finally {
    await server.close();
  }
}

/** One broken folder beside a whole one, seen by a user who is not root. */
export async function discovery(world: World): Promise<Seen> {
  const { skills, home, put } = world;
  for (const [path, what] of Object.entries(fieldsOf(world.input['dirs']))) {
    const file = join(skills, path);
    if (/directory/.test(String(what))) mkdirSync(file, { recursive: true });
    else put(file, '---\ndescription: fine\n---\nok\n');
    if (/mode 000/.test(String(what))) chmodSync(file, 0);
  }
  chmodSync(join(home, '..'), 0o755);
  const asUser = process.getuid?.() === 0 ? { uid: 65534 } : {};
  const { stdout, stderr, exitCode } = await runCli(world, ['list-skills'], [], asUser);
  return {
    decision: exitCode === 0 ? 'allow' : 'error',
    facts: {
      'good listed': /(^|\s)a\s/m.test(stdout) || stdout,
      'bad and weird reported, not fatal':
        (/bad\/skills\/b/.test(stderr) && /weird/.test(stderr)) || `${stdout}\n${stderr}`,
    },
  };
}

/** A workspace that is not trusted brings a skill of the same name. */
export async function untrustedRoots(world: World): Promise<Seen> {
  const { input, pack, root, put } = world;
  const name = String(input['duplicate']);
  put(join(pack, `skills/${name}/SKILL.md`), '---\ndescription: The user’s.\n---\n');
  put(join(root, `.claude/skills/${name}/SKILL.md`), '---\ndescription: The project’s.\n---\n');
  // The host leaves folders that are not trusted out of the configuration.
  const telos = Telos.open({ ...world.configFor(), cwd: root, workspaceFolders: [] });
  const match = await telos.route({ text: name }, new AbortController().signal);
  return {
    decision: match.skill ? 'allow' : 'error',
    facts: {
      'project root ignored while untrusted; user version used':
        match.skill?.description === 'The user’s.' || String(match.skill?.file),
    },
  };
}
