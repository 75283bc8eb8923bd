/** Finds, reads, checks and installs skills and agents. */
export { type Agent, type Missing, readAgentToml, type Skill } from './skills/agent.ts';
export { agentsCalled, skillCalled } from './skills/catalog.ts';
export { addClawhubOrigin, clawhubChanges } from './skills/clawhubFiles.ts';
export {
  type Discovery,
  discover,
  discoverAgents,
  exportedFolder,
  type FileAgent,
  hasFilesAround,
  isTelosPack,
  ownMcpConfig,
} from './skills/discover.ts';
export { findSkills } from './skills/findSkills.ts';
export { findKey, findValue, parseSkillFile, splitFrontmatter, withoutMark } from './skills/frontmatter.ts';
export { type InstalledPack, installPack, worksInOf } from './skills/install.ts';
export { copyPack, PackTooLarge, readOrigin } from './skills/installPlace.ts';
export { lintSkill, mendText, skillsBelow } from './skills/lint.ts';
export {
  digestOf,
  entryDigest,
  filesOf,
  isKeptBeside,
  type LockedPack,
  lockChange,
  lockedPack,
  lockPath,
  type Resolved,
  readLock,
} from './skills/lockFile.ts';
export { type Machine, thisMachine } from './skills/machine.ts';
export {
  descriptionProblems,
  longestDescription,
  type PackSkills,
  packSkills,
  problemsElsewhere,
  skillNameProblem,
} from './skills/packSkills.ts';
export {
  type FetchedFrom,
  type InstallOptions,
  partsNotRun,
  planInstall,
  textOfToml,
  type WholePlan,
} from './skills/planInstall.ts';
export { portabilityOf } from './skills/portability.ts';
export { hasHooks, hooksOfAgent, ownHookFile, ownHooks } from './skills/readHooks.ts';
export { type Readiness, readinessOf } from './skills/readiness.ts';
export {
  addSamplePack,
  agentNameProblem,
  copySampleFolder,
  packNameProblem,
  placeFolder,
  writeNewSkill,
} from './skills/scaffold.ts';
export { contentDigest, skillDigest } from './skills/skillDigest.ts';
export { synopsisOf } from './skills/skillFields.ts';
export { type FileSkill, openSkill, readSkillText, skillFileIn } from './skills/skillFile.ts';
export type { SkillSettingKey, SkillSettings } from './skills/skillSettings.ts';
export { projectFoldersAt, workFoldersOf, worksIn } from './skills/workFolders.ts';

export const importAgent = () => import('./skills/agent.ts');
export const importAgentsToml = () => import('./skills/agentsToml.ts');
export const importInstall = () => import('./skills/install.ts');
export const importLint = () => import('./skills/lint.ts');
export const importMachine = () => import('./skills/machine.ts');
export const importReadiness = () => import('./skills/readiness.ts');
export const importSkillCopies = () => import('./skills/skillCopies.ts');
export const importSkillDigest = () => import('./skills/skillDigest.ts');
export const importSkillSettings = () => import('./skills/skillSettings.ts');
export const importWorkFolders = () => import('./skills/workFolders.ts');
