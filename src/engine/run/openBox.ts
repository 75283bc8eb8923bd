/** Gives the commands of a run their box, where the person wants one and one works. */
import type { DoctorBox } from '@telos/protocol/doctorReport';
import type { ToolResult } from '@telos/protocol/run';
import { hostKind } from '../addresses.ts';
import type { BoxOptions } from '../box/commandBox.ts';
import type { Config } from '../config.ts';
import { standInFolders } from '../files/agentHome.ts';
import { isInside } from '../files/paths.ts';
import { boxFacts, type NoBox, type PolicyContext, type RunMemory } from '../policy/decision.ts';
import { workFoldersOf } from '../skills/workFolders.ts';
import { toolsInBox } from '../tools/builtin.ts';
import { findProgram } from '../tools/programPath.ts';
import type { CommandBox, RunFolders, StandIn, Tool } from '../tools/tool.ts';

export interface OpenedBox {
  facts: Pick<PolicyContext, 'hasBox' | 'noBox' | 'boxRequired' | 'standIns' | 'worksDirectly'>;
  box?: CommandBox;
  /** Returns the tools as they are offered where commands run like this. */
  offered(tools: readonly Tool[]): readonly Tool[];
}

/** What the questions of a conversation have said, for its later runs. Of the last conversations only. */
const said = new Map<string, NoBox>();
/** The hosts that a person has allowed an agent in a conversation. Of the last ones only. */
const allowedHosts = new Map<string, RunMemory['hosts']>();
const mostKept = 100;

/**
 * Returns the box of a conversation's commands, or why there is none. Their hosts are decided on with `policy`. `more` is what
 * `commandBox` takes. Never throws.
 */
export async function openBox(
  config: Config,
  folders: RunFolders,
  conversation: string,
  policy: PolicyContext,
  more: Partial<Pick<BoxOptions, 'shown' | 'keepsRepository' | 'unchanged' | 'sharesNetwork'>> = {},
): Promise<OpenedBox> {
  const owner = policy.agent && { name: policy.agent.name, packDir: policy.packDir };
  const none: OpenedBox = { facts: {}, offered: tools => tools };
  if (config.sandbox === 'off') return none;
  const { memory, agent } = policy;
  if (memory) memory.hosts = kept(allowedHosts, JSON.stringify([conversation, agent?.name]), memory.hosts);
  const finding = await find(config, folders);
  const facts = boxFacts(config.sandbox, finding);
  if (!finding.works) return { ...none, facts: { ...facts, ...sayOnce(facts, conversation) } };
  const make = async (): Promise<CommandBox> => {
    const [{ commandBox }, { boxNetwork }] = await Promise.all([
      import('../box/commandBox.ts'),
      import('../box/forwarder.ts'),
    ]);
    const network = boxNetwork({ holdsSecret: policy.holdsSecret, ownHosts: () => ownHosts(policy) });
    return commandBox({
      ...more,
      finding,
      config,
      folders,
      conversation,
      network,
      ...(owner && { owner }),
    });
  };
  const layers = finding.kind === 'bubblewrap' && finding.features.layers;
  const hasLayers =
    layers && (await import('../box/layer.ts')).carriesLayer(folders.workingDir, config.dataDir);
  const standIns = standInsOf(
    finding.kind,
    config,
    folders.workingDir,
    standInFolders(config.dataDir, conversation, owner),
  );
  const leave = config.sandbox === 'required' ? 'closed' : 'open';
  return {
    facts: { ...facts, standIns, ...(!hasLayers && { worksDirectly: true }) },
    box: madeLater(make, config.dataDir, hasLayers),
    offered: tools => toolsInBox(tools, leave),
  };
}

/** Returns where commands find other folders than at the same path outside. On macOS nothing is at another path. */
function standInsOf(
  kind: 'bubblewrap' | 'seatbelt',
  { home }: Pick<Config, 'home'>,
  workingDir: string,
  { home: ownHome, temporary }: { home: string; temporary: string },
): StandIn[] {
  const at = (path: string, place: string): StandIn => ({ path: kind === 'seatbelt' ? place : path, place });
  return [at('/tmp', temporary), ...(isInside(workingDir, home) ? [] : [at(home, ownHome)])];
}

/** Returns a box that is made for the first command. If one cannot be made, the next start looks again whether one works. */
function madeLater(make: () => Promise<CommandBox>, dataDir: string, hasLayers: boolean): CommandBox {
  let made: Promise<CommandBox> | undefined;
  return {
    hasLayers,
    rest: () => void made?.then(box => box.rest?.()).catch(() => undefined),
    async enclose(start, ask, layered) {
      made ??= make();
      const enclosed = await (await made).enclose(start, ask, layered);
      return {
        ...enclosed,
        failureIn(errors) {
          const failure = enclosed.failureIn?.(errors);
          if (failure !== undefined) void import('../box/findBox.ts').then(box => box.forgetBox(dataDir));
          return failure;
        },
      };
    },
  };
}

/** What a program says that misses a file, a right, a program or the network. */
const misses =
  /read-only file system|permission denied|not permitted|resource busy|no such file|not found|does not (?:exist|appear to be)|(?:unable to|can ?not|can't|could not|couldn't|failed to) (?:access|create|find|open|read|write)|unreachable|could ?n['o]t resolve|name resolution|connection refused|EROFS|EACCES|EBUSY|EPERM|ENOENT|ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ENETUNREACH/i;

/** Returns what the model should know of a command that has failed in the box; undefined if the box seems to have no part in it. */
export function boxNote(
  { content, isError }: ToolResult,
  { workingDir, boxRequired }: PolicyContext,
): string | undefined {
  if (isError && content.includes('hardlink different from source'))
    return 'Files of the folder get other numbers once they are linked in the sandbox: use git clone --no-hardlinks.';
  if (!isError || !misses.test(content)) return undefined;
  const next = boxRequired
    ? 'No command may leave it: do it another way, or tell the user what is missing.'
    : 'If it needs more than that, call it again with outside_box and why, and the user is asked.';
  return `It ran in a sandbox: it writes only in ${workingDir} and a temporary folder, sees little else, and reaches only hosts that the user allows. ${next}`;
}

/** Returns the hosts of this machine that rules and answers name for commands, with their ports. Each connection is decided on. */
function ownHosts({ rules, memory }: PolicyContext): string[] {
  const ruled = (rules?.read().allow ?? []).filter(({ tool }) => tool === 'run_command');
  const named = [...ruled.map(({ host }) => host ?? ''), ...(memory?.hosts.keys() ?? [])];
  return named.filter(host => hostKind(host.replace(/:\d+$/, '')) === 'loopback');
}

function sayOnce({ noBox }: OpenedBox['facts'], conversation: string): OpenedBox['facts'] {
  if (!noBox) return {};
  return { noBox: kept(said, conversation, noBox) };
}

/** Returns what is kept by that name, or keeps `fresh`. */
function kept<Value>(all: Map<string, Value>, name: string, fresh: Value): Value {
  const value = all.get(name) ?? fresh;
  all.delete(name);
  all.set(name, value);
  const [oldest] = all.keys();
  if (all.size > mostKept && oldest !== undefined) all.delete(oldest);
  return value;
}

/** Returns what is wanted of the box, and whether one works here. Never throws. */
export async function boxState(config: Config): Promise<DoctorBox> {
  const wanted = config.sandbox;
  if (wanted === 'off') return { wanted };
  const { cwd } = config;
  const workFolders = workFoldersOf(config, []);
  const folders = { workingDir: cwd, packDir: cwd, skillDir: cwd, workFolders };
  const finding = await find(config, folders);
  if (!finding.works) return { wanted, state: finding };
  const isDirect = !(finding.kind === 'bubblewrap' && finding.features.layers);
  const lacksPerl =
    finding.kind === 'bubblewrap' &&
    isDirect &&
    findProgram('perl', { ...folders, env: config.env }) === undefined;
  const lacks = { ...(isDirect && { isDirect }), ...(lacksPerl && { lacksPerl }) };
  return { wanted, state: { works: true, kind: finding.kind, ...lacks } };
}

async function find(
  { env, dataDir }: Pick<Config, 'env' | 'dataDir'>,
  folders: Pick<RunFolders, 'workingDir' | 'packDir' | 'skillDir' | 'workFolders'>,
) {
  const { findBox } = await import('../box/findBox.ts');
  return findBox({ ...folders, env }, dataDir);
}
