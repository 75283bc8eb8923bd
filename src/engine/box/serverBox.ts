/** The box of an MCP server that is to run in one: the same as that of commands, with a home of its own. */
import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { sentence } from '@telos/protocol/text';
import { type Config, expandPath, telosFolders } from '../config.ts';
import { TelosError } from '../core/errors.ts';
import { isInside, realPlace } from '../files/paths.ts';
import type { AskHost, CommandBox, RunFolders } from '../tools/tool.ts';
import { commandBox } from './commandBox.ts';
import { findBox } from './findBox.ts';
import { boxNetwork, type NetworkOptions } from './forwarder.ts';

/**
 * Returns what opens the boxes of an agent's servers. They reach what `askHost` lets them reach; without it, nothing. The box itself
 * throws TelosError `mcp` where none works: a server that is to run in a box never runs outside of one.
 */
export function serverBoxes(
  config: Pick<Config, 'env' | 'home' | 'dataDir' | 'configDir'>,
  agent: string,
  folders: RunFolders,
  network: NetworkOptions = {},
  askHost?: AskHost,
): (server: string, args: readonly string[]) => Promise<{ box: CommandBox; askHost?: AskHost }> {
  return async (server, args) => {
    const finding = await findBox({ ...folders, env: config.env }, config.dataDir);
    if (!finding.works)
      throw new TelosError('mcp', [
        sentence(
          'its entry says that it runs in a sandbox ("sandbox": true), and none works here: {0}',
          finding.why.replace(/\.$/, ''),
        ),
      ]);
    // As the first write of an agent does.
    mkdirSync(folders.workingDir, { recursive: true });
    const named = args.flatMap(word => folderOf(expandPath(word, config.home, folders.packDir)) ?? []);
    const closed = [config.home, ...telosFolders(config)].map(each => realPlace(each) ?? each);
    const seen = named.filter(folder => !closed.some(each => isInside(folder, each)));
    const all = { ...folders, alsoReadable: [...(folders.alsoReadable ?? []), ...seen] };
    const conversation = JSON.stringify(['server', agent, server]);
    const box = commandBox({ finding, config, folders: all, conversation, network: boxNetwork(network) });
    return { box, ...(askHost && { askHost }) };
  };
}

/** Returns the folder that a path names, or the folder of its file: a program is rarely one file. */
function folderOf(path: string): string | undefined {
  const real = realPlace(path);
  const stats = real === undefined ? undefined : statSync(real, { throwIfNoEntry: false });
  if (real === undefined || !stats) return undefined;
  return stats.isDirectory() ? real : stats.isFile() ? dirname(real) : undefined;
}
