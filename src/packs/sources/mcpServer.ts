/** Fetches skills that an MCP server of the user's serves. Each file is what the server's list says of it, or nothing is installed. */
import { createHash } from 'node:crypto';
import { TelosError } from '@telos/engine/errors';
import type { ServedSkill, ServedSkills } from '@telos/engine/mcp';
import { importServerCheck, type ServerParts, type ServerRef } from '@telos/engine/run';
import type { Resolved } from '@telos/engine/skills';
import { sentence } from '@telos/protocol/text';
import type { Found, Resolver } from './fetched.ts';
import { type Reach, type Source, sourceText, UnclearSource } from './sourceText.ts';
import { TreeWriter } from './treeWriter.ts';

type Mcp = Extract<Source, { kind: 'mcp' }>;
type Exact = Extract<Resolved, { kind: 'mcp' }>;

export const mcpServer: Resolver<'mcp', 'mcp'> = {
  async resolve(source, reach): Promise<Found> {
    const parts = await partsOf(sourceText(source), reach);
    const at = await serverCalled(source, parts);
    const served = await withSkills(at, parts, reach.signal, skills =>
      wanted(at, source.name, skills, reach.signal),
    );
    const digest = digestOf(served);
    const { agent, server } = at;
    const name = source.name ?? server;
    return {
      resolved: { kind: 'mcp', agent, server, ...(source.name !== undefined && { name }), digest, path: '' },
      from: `the MCP server '${server}' of ${agent}`,
      version: digest.slice(7, 14),
      name,
    };
  },

  async fetch(resolved, root, reach) {
    const text = sourceText({ ...resolved, name: resolved.name });
    const parts = await partsOf(text, reach);
    const writer = new TreeWriter(root, text);
    await withSkills(resolved, parts, reach.signal, async skills => {
      const served = await wanted(resolved, resolved.name, skills, reach.signal);
      refuseOther(resolved, served, text);
      for (const skill of served) await writeSkill(skill, skills, writer, reach.signal);
    });
    writer.finish();
    return { leftOut: writer.leftOut };
  },
};

async function partsOf(text: string, { servers }: Reach): Promise<ServerParts> {
  if (servers) return servers();
  throw new UnclearSource(
    `${text} is an MCP server of this machine, which neither a link nor a project can name. Nothing was installed.`,
  );
}

/** Throws UnclearSource if several agents have a server of that name. */
async function serverCalled(source: Mcp, parts: ServerParts): Promise<ServerRef> {
  const { listServers } = await importServerCheck();
  const { servers } = await listServers(parts);
  const named = servers.filter(
    ({ agent, server }) => server === source.server && (source.agent === undefined || agent === source.agent),
  );
  const [first, ...others] = named;
  if (!first)
    throw new TelosError('pack', [
      sentence("No agent has an MCP server '{0}'.", source.server),
      sentence('Nothing was installed.'),
    ]);
  if (others.length > 0)
    throw new UnclearSource(
      `Several agents have an MCP server '${source.server}'.`,
      named.map(({ agent }) => sourceText({ ...source, agent })),
    );
  return first;
}

async function withSkills<Result>(
  at: ServerRef,
  parts: ServerParts,
  signal: AbortSignal,
  work: (skills: ServedSkills) => Promise<Result>,
): Promise<Result> {
  const { withServer } = await importServerCheck();
  return withServer(at, parts, signal, async ({ skills }) => {
    try {
      return await work(skills);
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (error instanceof TelosError) throw error;
      const why = error instanceof Error ? error.message : String(error);
      throw new TelosError('pack', [
        sentence("The MCP server '{0}' does not serve its skills as it lists them: {1}.", at.server, why),
        sentence('Nothing was installed.'),
      ]);
    }
  });
}

/** Returns the skills that are meant. Throws TelosError `pack` if there are none, and UnclearSource if none has the name. */
async function wanted(
  { agent, server }: ServerRef,
  name: string | undefined,
  skills: ServedSkills,
  signal: AbortSignal,
): Promise<readonly ServedSkill[]> {
  const all = await skills.list(signal);
  if (all.length === 0)
    throw new TelosError('pack', [
      sentence("The MCP server '{0}' serves no skills.", server),
      sentence('Nothing was installed.'),
    ]);
  const found = name === undefined ? all : all.filter(one => one.name === name);
  if (found.length > 0) return found;
  const choices = all.map(one => sourceText({ kind: 'mcp', agent, server, name: one.name }));
  throw new UnclearSource(`The MCP server '${server}' serves no skill called '${name}'.`, choices);
}

/** A skill without a digest has no files that stay the same, which `files` says. */
const digestOf = (served: readonly ServedSkill[]): string =>
  `sha256:${createHash('sha256')
    .update(
      served
        .map(({ uri, digest }) => `${uri} ${digest ?? ''}`)
        .sort()
        .join('\n'),
    )
    .digest('hex')}`;

function refuseOther({ digest, server }: Exact, served: readonly ServedSkill[], text: string): void {
  if (digestOf(served) === digest) return;
  throw new TelosError('pack', [
    sentence("The MCP server '{0}' serves other files now than those that were looked at.", server),
    sentence('Nothing was installed.'),
    sentence('Install {0} again to see the new ones.', text),
  ]);
}

async function writeSkill(
  skill: ServedSkill,
  skills: ServedSkills,
  writer: TreeWriter,
  signal: AbortSignal,
): Promise<void> {
  for (const { path, bytes } of await skills.files(skill, signal)) {
    const place = writer.admit({ path: `skills/${skill.name}/${path}`, kind: 'file' }, bytes.length);
    if (place !== undefined) await writer.write(place, bytes, false);
  }
}
