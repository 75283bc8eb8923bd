/** Agents and skills for other hosts. */
export {
  chatCopy,
  folderInChat,
  isChatCopy,
  type PluginLocations,
  withLocation,
  withoutLocation,
} from './export/chatLocations.ts';
export {
  type ExportedAgent,
  type ExportForm,
  type ExportOptions,
  ExportRefused,
  exportAgents,
} from './export/exportAgents.ts';
export { linkSkills, unlinkSkills } from './export/linkSkills.ts';

export const importChatLocations = () => import('./export/chatLocations.ts');
export const importExportAgents = () => import('./export/exportAgents.ts');
export const importManifests = () => import('./export/manifests.ts');
