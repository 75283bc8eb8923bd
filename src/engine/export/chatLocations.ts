/** Computes the setting with which VS Code's own chat uses exported agents. */

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
