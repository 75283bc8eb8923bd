/** Computes the setting with which VS Code's own chat uses agents, and the folders that it names. */

import { createHash } from 'node:crypto';
import { dirname, join } from 'node:path';
import type { Agent } from '@telos/engine/skills';

/** Value of `chat.pluginLocations`: folders of plugins, and whether each is used. */
export type PluginLocations = Readonly<Record<string, boolean>>;

/** Returns the setting with the folder, or undefined if it is there already. */
export const withLocation = (locations: PluginLocations, folder: string): PluginLocations | undefined =>
  locations[folder] === true ? undefined : { ...locations, [folder]: true };

/** Returns the setting without the folder, or undefined if it is not there. */
export function withoutLocation(locations: PluginLocations, folder: string): PluginLocations | undefined {
  if (!Object.hasOwn(locations, folder)) return undefined;
  return Object.fromEntries(Object.entries(locations).filter(([path]) => path !== folder));
}

/** Returns the folder of the copies for VS Code's chat. Each lies in a folder of its own, as projects have agents of one name. */
const chatCopies = (dataDir: string): string => join(dataDir, 'chat-plugins');

/** Returns the folder of an agent's copy. */
export function chatCopy({ name, packDir }: Pick<Agent, 'name' | 'packDir'>, dataDir: string): string {
  const place = createHash('sha256').update(packDir).digest('hex').slice(0, 12);
  return join(chatCopies(dataDir), place, name);
}

/** Returns true if the path is one that `chatCopy` can have returned. */
export const isChatCopy = (path: string, dataDir: string): boolean =>
  dirname(dirname(path)) === chatCopies(dataDir) &&
  join(path) === path &&
  /[\\/][0-9a-f]{12}[\\/][a-z0-9][a-z0-9.-]*$/.test(path);

/** Returns the folder from which the chat uses the agent, or undefined if it does not. */
export function folderInChat(
  agent: Pick<Agent, 'name' | 'packDir'>,
  dataDir: string,
  locations: PluginLocations,
): string | undefined {
  return [chatCopy(agent, dataDir), agent.packDir].find(
    folder => Object.hasOwn(locations, folder) && locations[folder] === true,
  );
}
