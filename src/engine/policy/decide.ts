/** Decides what a tool call may do: allow it, ask a person, or refuse it. No other file decides this. */

import type { DangerKind, JsonObject, ToolCall } from '@telos/protocol/run';
import { type Sentence, sentence } from '@telos/protocol/text';
import { namesHost } from '../addresses.ts';
import type { Config } from '../config.ts';
import { skillTools, toolsInBox } from '../tools/builtin.ts';
import type { RunFolders } from '../tools/tool.ts';
import type { ReviewedAgent } from './agentFiles.ts';
import { isHeldByBox, placed, reachesHosts, staysInBox, withBox } from './boxedCommand.ts';
import { beyondBox, decideOnCommand, readOnlyCommand } from './commandDefaults.ts';
import { dangerOf } from './danger.ts';
import {
  type Allow,
  type Ask,
  allow,
  type boxFacts,
  type Decision,
  type Deny,
  deny,
  type PolicyContext,
  reviewOf,
  runPolicy,
} from './decision.ts';
import { decideOnRead, decideOnWrite } from './fileDefaults.ts';
import type { PolicyRule, PolicyRules } from './policyFile.ts';
import { ask, askWithCard, bound, firstThatCounts, ownWords, withCard } from './question.ts';
import { resolveCall } from './resolveCall.ts';
import { appliesTo, isExact, matchesRule, prohibitionBy, unreadIn } from './ruleMatch.ts';
import { sensitiveWords } from './secretWords.ts';
import { grantName, hostAndPort, type PolicySubject, type PolicySubjectOf, subjectOf } from './subject.ts';
import { beyondWorker } from './workerRole.ts';

/** What the steps of a decision know of a call. */
interface Called {
  wanted: PolicySubject;
  context: PolicyContext;
  rules: PolicyRules | undefined;
  /** Finds what the user's deny rules say. */
  prohibited: () => Promise<Deny | Ask | undefined>;
  /** Finds the decision where no rule of the user applies. */
  byDefault: () => Promise<Decision>;
}

/** A step of a decision. `says` is for `telos policy explain`. */
interface Step {
  says: string;
  verdict(one: Called): Promise<Decision | undefined>;
}

/** The steps in their order. The first one that returns a verdict decides. */
export const decisionSteps: readonly Step[] = [
  { says: 'Hard limits: no answer and no rule lifts a rule that begins with `floor.`', verdict: hardLimits },
  { says: 'Prohibitions: your [[deny]] rules', verdict: prohibitions },
  { says: 'Role, mode and surface of the run', verdict: roleAndMode },
  {
    says: 'Sandbox: whether a command may leave it',
    verdict: ({ wanted, context }) => beyondBox(wanted, context),
  },
  { says: 'Questions that are asked each time, such as about secrets', verdict: askedEachTime },
  { says: 'Grants: your answers for this run', verdict: grants },
  { says: 'Rules: your [[allow]] rules, where the default asks', verdict: allowRules },
  { says: 'Defaults: the rules below', verdict: ({ byDefault }) => byDefault() },
];

/**
 * Decides on a call of a built-in tool or of an MCP server's tool, whose input has been checked. The run's mode makes the verdict
 * stricter, but for `sandbox`. Asks no person, changes nothing, and sends nothing.
 */
export async function decide(call: ToolCall, context: PolicyContext): Promise<Decision> {
  const wanted = await subjectOf(call, context);
  if ('action' in wanted) return wanted;
  const decision = placed(inMode(await verdictOn(wanted, context), wanted, context), wanted, context);
  if (decision.action === 'ask') return bound(withBox(decision, wanted, context), context);
  return wanted.kind === 'command' && decision.action === 'allow'
    ? { ...decision, folder: wanted.folder }
    : decision;
}

async function verdictOn(wanted: PolicySubject, context: PolicyContext): Promise<Decision> {
  const rules = context.rules?.read();
  const prohibited = once(() => prohibition(wanted, rules, context));
  const byDefault = once(() => defaultDecision(wanted, context));
  for (const { verdict } of decisionSteps) {
    const found = await verdict({ wanted, context, rules, prohibited, byDefault });
    if (found) return found;
  }
  return deny('tool.undecided', 'No rule is about this call.');
}

function once<Of>(find: () => Promise<Of>): () => Promise<Of> {
  let found: Promise<Of> | undefined;
  return () => (found ??= find());
}

/** The others are found when the call is read, as `subjectOf` says. */
async function hardLimits({ rules }: Called): Promise<Deny | undefined> {
  return rules?.broken === undefined ? undefined : brokenRules(rules.broken);
}

async function prohibitions({ prohibited }: Called): Promise<Deny | undefined> {
  const found = await prohibited();
  return found?.action === 'deny' ? found : undefined;
}

async function roleAndMode({ wanted, context, rules }: Called): Promise<Deny | undefined> {
  return (await beyondRole(wanted, context)) ?? (await beyondSurface(wanted, rules, context));
}

async function askedEachTime({ wanted, context, prohibited }: Called): Promise<Deny | Ask | undefined> {
  return (await prohibited()) ?? (await alwaysAsked(wanted, context));
}

async function grants({ wanted, context }: Called): Promise<Allow | undefined> {
  const isGranted = context.memory?.grants.has(grantName(wanted)) || (await isHostAllowed(wanted, context));
  return isGranted ? allow('grant.run', wanted.subject) : undefined;
}

async function allowRules({ wanted, context, rules, byDefault }: Called): Promise<Allow | Ask | undefined> {
  const usual = await byDefault();
  // What a rule of the user allows was meant with all rights.
  if (usual.action !== 'ask' && usual.rule !== 'run.box') return undefined;
  const fitting =
    rules?.allow.filter(one => matchesRule(one, wanted, context) && overrides(one, usual, wanted, context)) ??
    [];
  const rule = await firstThatCounts(fitting, context);
  if (rule) return allow(nameOf(rule), wanted.subject);
  // A rule for every agent answers the question as soon as this agent has been reviewed.
  return usual.action === 'ask' && fitting.some(({ agent }) => agent === '*')
    ? askWithCard(usual, context)
    : undefined;
}

/** Questions about a command alone. Others insist on being asked. */
const aboutCommands = /^(?:run\.command|card\.(?:new|changed))$/;

/**
 * Returns the decision in the run's mode. The mode `sandbox` asks about no command of the user's own skills that stays in there. A review asks about each write, unless the answer to that was for the run. The card
 * names commands without what they write, so these are asked about too.
 */
function inMode(decision: Decision, wanted: PolicySubject, context: PolicyContext): Decision {
  const { action, rule } = decision;
  if (context.mode === 'sandbox' && wanted.kind === 'command' && action === 'ask')
    return aboutCommands.test(rule) && isHeldByBox(wanted, context)
      ? allow('mode.sandbox', wanted.subject)
      : decision;
  if (context.mode !== 'review' || action !== 'allow' || rule === 'grant.run') return decision;
  if (wanted.kind !== 'write' && rule !== 'card.command') return decision;
  const sentences = [sentence('You chose to review each change before it is made.')];
  const question = { rule: 'mode.review', sentences };
  return { ...ask(wanted, question, context), allowedBy: rule };
}

/**
 * Refuses every call. If the file cannot be read in full, its prohibitions are not known, so nothing runs that it might forbid.
 */
export const brokenRules = (problem: string): Deny =>
  deny('policy.broken', `The user's policy file cannot be read whole, and it could forbid this. ${problem}`);

/** Returns a name that can be searched for and that leads to the line of the rule. */
const nameOf = ({ effect, line }: PolicyRule): string => `policy.${effect}:${line}`;

/** Applies the user's deny rules. A call that a rule may be about is asked about each time: earlier grants were not for that. */
async function prohibition(
  wanted: PolicySubject,
  rules: PolicyRules | undefined,
  context: PolicyContext,
): Promise<Deny | Ask | undefined> {
  const about = rules?.deny.filter(rule => appliesTo(rule, context)) ?? [];
  const hasPlaces = about.some(({ path }) => path !== undefined);
  const looking = wanted.kind === 'command' && hasPlaces ? await readOnlyCommand(wanted, context) : undefined;
  const command = looking?.action === 'allow' ? looking.readOnly : undefined;
  let unclear: PolicyRule | undefined;
  for (const rule of about) {
    const found = prohibitionBy(rule, wanted, context.home, command);
    if (found === 'forbidden') return forbiddenBy(rule, rules);
    if (found === 'unclear') unclear ??= rule;
  }
  return unclear && unclearBy(unclear, wanted, rules, context);
}

const forbiddenBy = (rule: PolicyRule, rules: PolicyRules | undefined): Deny =>
  deny(
    nameOf(rule),
    `A [[deny]] rule forbids it: ${rules?.file}, line ${rule.line}.${rule.path ? ` It is about ${rule.path}.` : ''}`,
  );

function unclearBy(
  rule: PolicyRule,
  wanted: PolicySubject,
  rules: PolicyRules | undefined,
  context: PolicyContext,
): Ask {
  const unread = unreadIn(wanted, context.home);
  const [path, file] = [rule.path ?? '', rules?.file ?? ''];
  const sentences = [
    sentence('It could reach {0}, which a [[deny]] rule forbids ({1}, line {2}).', path, file, rule.line),
    ...(unread.length > 0 ? [sentence('Not everything in it can be read: {0}.', unread.join(', '))] : []),
  ];
  return askEachTime(wanted, 'policy.unclear', sentences, context);
}

async function beyondRole(wanted: PolicySubject, context: PolicyContext): Promise<Deny | undefined> {
  const { role, mode } = context;
  if ((role === undefined && mode !== 'plan') || /^(read|fetch|workflow)$/.test(wanted.kind))
    return undefined;
  const looking = wanted.kind === 'command' ? await readOnlyCommand(wanted, context) : undefined;
  if (looking?.action === 'allow') return undefined;
  if (role === 'worker') return beyondWorker(wanted, context);
  if (role !== 'read-only') return deny('mode.plan', planOnlyReads);
  return (
    looking ?? deny('role.read-only', 'This step only looks: it writes no files and runs no other commands.')
  );
}

/** For the model, which must not look for another way. */
export const planOnlyReads =
  'This run only plans: it reads files and pages, and changes nothing. Say in the plan what this call would do; the person has it carried out in another mode.';

async function beyondSurface(
  wanted: PolicySubject,
  rules: PolicyRules | undefined,
  context: PolicyContext,
): Promise<Deny | undefined> {
  if (context.surface !== 'discord' || wanted.kind !== 'command') return undefined;
  const exact = rules?.allow.filter(rule => isExact(rule) && matchesRule(rule, wanted, context)) ?? [];
  if (await firstThatCounts(exact, context)) return undefined;
  return deny(
    'surface.discord',
    'From Discord only a command runs that a rule of policy.toml names exactly.',
  );
}

/**
 * Asks each time about calls through which secrets could leave, whatever has been granted. The same holds for calls that may
 * reach Telos's own files.
 */
async function alwaysAsked(wanted: PolicySubject, context: PolicyContext): Promise<Ask | undefined> {
  if (wanted.kind === 'mcp' && (wanted.aboveTelos || wanted.reach.unread.length > 0)) {
    const why = wanted.aboveTelos
      ? sentence("It names a folder that contains Telos's own files.")
      : sentence('Not everything in its input can be checked: {0}.', wanted.reach.unread.join(', '));
    return askEachTime(wanted, 'mcp.unclear', [why], context);
  }
  // What only touches files sends nothing, and need not be searched for secrets.
  if (wayOut(wanted) === undefined) return undefined;
  const holds = context.holdsSecret?.(wanted.subject) === true;
  const sensitive = context.memory?.sensitive;
  const way = wayOut(wanted, holds ? undefined : sensitive);
  if (way === undefined || (!holds && sensitive === undefined)) return undefined;
  // A command that only looks at files runs here, without a shell.
  if (wanted.kind === 'command' && (await readOnlyCommand(wanted, context)).action === 'allow')
    return undefined;
  // Each host that a boxed command reaches is asked about after a secret was read. Its words may be for one that is granted.
  if (wanted.kind === 'command' && staysInBox(wanted, context) && !(holds && (await reachesHosts(context))))
    return undefined;
  return askEachTime(wanted, `${way.kind}.${holds ? 'secret' : 'after-sensitive'}`, [way.why], context);
}

const askEachTime = (
  wanted: PolicySubject,
  rule: string,
  sentences: readonly Sentence[],
  context: PolicyContext,
): Ask => ask(wanted, { rule, sentences: [...sentences, ...ownWords(wanted)] }, context);

/**
 * Returns how the content of a call can leave this machine, with what was read before; undefined if it cannot. Without `read`, the
 * call itself holds a secret.
 */
function wayOut(wanted: PolicySubject, read?: string): { kind: string; why: Sentence } | undefined {
  switch (wanted.kind) {
    case 'fetch': {
      const { host } = wanted.url;
      if (wanted.program !== undefined)
        return read === undefined
          ? { kind: 'run', why: sentence('The name of the host holds a secret that is loaded here.') }
          : {
              kind: 'run',
              why: sentence(
                'This run has read {0}, and {1} would get whatever the command sends.',
                read,
                host,
              ),
            };
      return {
        kind: 'fetch',
        why:
          read === undefined
            ? sentence('The address holds a secret that is loaded here, and {0} would get it.', host)
            : sentence('This run has read {0}, and {1} would get whatever is in the address.', read, host),
      };
    }
    case 'mcp': {
      const server = JSON.stringify(wanted.facts.server);
      return {
        kind: 'mcp',
        why:
          read === undefined
            ? sentence(
                'The input holds a secret that is loaded here, and the MCP server {0} would get it.',
                server,
              )
            : sentence(
                'This run has read {0}, and the MCP server {1} would get whatever is in the input.',
                read,
                server,
              ),
      };
    }
    case 'command':
      return {
        kind: 'run',
        why:
          read === undefined
            ? sentence(
                'The command holds a secret that is loaded here, and whatever it reaches would get it.',
              )
            : sentence(
                'This run has read {0}, and whatever it reaches would get whatever is in the command.',
                read,
              ),
      };
    default:
      return undefined;
  }
}

/**
 * Returns true if the rule answers the question. A rule for a whole folder covers ordinary files only. Files that hold secrets or
 * are obeyed must be named one by one. So must a place of secrets that is passed to a command, which can send it away at once.
 */
function overrides(
  rule: PolicyRule,
  question: Pick<Ask, 'rule'>,
  wanted: PolicySubject,
  { home }: PolicyContext,
): boolean {
  if (wanted.kind === 'command') {
    if (isExact(rule)) return true;
    const isNamed = wanted.dangers.every(({ kind }) => dangersOfRule(rule, wanted).includes(kind));
    return isNamed && sensitiveWords(wanted.subject, wanted.folder, home).length === 0;
  }
  return !rule.path?.endsWith('/**') || /^((read|write)\.outside$|card\.)/.test(question.rule);
}

/** Returns the dangers that the fixed words of an open rule name: its writer has meant them. */
function dangersOfRule(
  { argv = [] }: PolicyRule,
  { folder }: PolicySubjectOf<'command'>,
): readonly DangerKind[] {
  const line = argv.slice(0, -1).map(word => `'${word.replaceAll("'", `'\\''`)}'`);
  const around = { folder, workingDir: folder, home: folder };
  return dangerOf(line.join(' '), around).dangers.map(({ kind }) => kind);
}

/** Decides if no rule of the user applies. */
async function defaultDecision(wanted: PolicySubject, context: PolicyContext): Promise<Decision> {
  switch (wanted.kind) {
    case 'read':
      return decideOnRead(wanted, context);
    case 'write':
      return decideOnWrite(wanted, context);
    case 'command':
      return decideOnCommand(wanted, context);
    case 'fetch':
      return decideOnFetch(wanted, context);
    case 'workflow':
      return allow('workflow.step', wanted.subject);
    case 'mcp': {
      const { server, tool } = wanted.facts;
      const [name, of] = [JSON.stringify(tool), JSON.stringify(server)];
      const sentences = [
        sentence('{0} can do anything that the MCP server {1} can.', name, of),
        sentence('“Always” covers every call of {0}, until its description changes.', `${server}.${tool}`),
        ...ownWords(wanted),
      ];
      return ask(wanted, { rule: 'mcp.first-use', sentences }, context);
    }
  }
}

/** Decides by the address alone. Resolving its name would itself leave the machine before a person has agreed. */
async function decideOnFetch(wanted: PolicySubjectOf<'fetch'>, context: PolicyContext): Promise<Decision> {
  const { url, host, program } = wanted;
  if (host !== 'public') {
    const [, port = ''] = /:(\d+)$/.exec(hostAndPort(url)) ?? [];
    if (program !== undefined) {
      const where = sentence(
        '{0} wants to reach {1}, which is on this machine or in your network.',
        program,
        wanted.subject,
      );
      return ask(wanted, { rule: 'run.host-private', sentences: [where] }, context);
    }
    const why =
      host === 'loopback'
        ? sentence('The agent wants to contact {0}, port {1}, on this machine.', url.hostname, port)
        : sentence('The agent wants to contact {0}, port {1}, in your private network.', url.hostname, port);
    return ask(wanted, { rule: 'fetch.private', sentences: [why] }, context);
  }
  const review = await reviewOf(context);
  const usualPort = url.port === '';
  const isNamed = (hosts: readonly string[]): boolean => namesHost(hosts, url);
  const granted = review?.state === 'reviewed' && isNamed(review.review?.hosts ?? []);
  if (granted && usualPort) return allow('card.host', wanted.subject);
  const why =
    program === undefined
      ? sentence('The agent wants to contact {0}.', url.host)
      : sentence('{0} wants to reach {1}.', program, wanted.subject);
  const rule = program === undefined ? 'fetch.public' : 'run.host';
  const question = ask(wanted, { rule, sentences: [why] }, context);
  return withCard(question, context, review, card => usualPort && isNamed(card.hosts));
}

/** Returns true if the person has allowed the host for the conversation, and the agent's files are as they were then. */
async function isHostAllowed(wanted: PolicySubject, context: PolicyContext): Promise<boolean> {
  const { hosts } = context.memory ?? {};
  if (wanted.kind !== 'fetch' || wanted.program === undefined || !hosts?.has(wanted.subject)) return false;
  return hosts.get(wanted.subject) === (await reviewOf(context))?.files.digest;
}

/** Decides on a call for an explanation. Without an agent, rules for every agent and the call's folder count. Asks no person. */
export async function explainCall(
  tool: string,
  input: JsonObject,
  config: Pick<Config, 'configDir' | 'dataDir' | 'home' | 'env' | 'cwd'>,
  agent: ReviewedAgent | undefined,
  box: ReturnType<typeof boxFacts>,
  folders: RunFolders = {
    workingDir: config.cwd,
    packDir: config.cwd,
    skillDir: config.cwd,
    commandDir: config.cwd,
  },
): Promise<Decision> {
  const context = { ...runPolicy(config, agent, folders), ...box };
  const tools = box.hasBox ? toolsInBox(skillTools, box.boxRequired ? 'closed' : 'open') : skillTools;
  const { call } = resolveCall({ id: 'explain', name: tool, input }, tools, context);
  return decide(call, context);
}
