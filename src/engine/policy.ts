/** Decides on calls: rules, permissions of agents, and what is kept out of texts. */
export { cardOf } from './policy/agentCard.ts';
export { ownFolders, readAgentFiles } from './policy/agentFiles.ts';
export { FileDigests } from './policy/agentReader.ts';
export { dangerOf } from './policy/danger.ts';
export { openPolicyFile, openReviews } from './policy/decision.ts';
export {
  describePermission,
  listPermissions,
  type Permission,
  permissionId,
  revokePermission,
} from './policy/grants.ts';
export { removeRule, switchesOf, switchTool, type UserRule, writeRule } from './policy/policyEdit.ts';
export { type PolicyRule, type PolicyRules, ruleProblem } from './policy/policyFile.ts';
export { type DefaultRule, defaultRule, defaultRules } from './policy/question.ts';
export { isBuiltin } from './policy/subject.ts';
export type { Kind } from './policy/text/commandLooks.ts';
export { compiledEnding, longestRead, scriptEnding } from './policy/text/fileKinds.ts';
export { findingsInText, findRedFlags, shownLine } from './policy/text/redFlags.ts';
export {
  isRepository,
  isRepositoryName,
  repositoryFlags,
  rewrittenByGit,
} from './policy/text/repositoryFiles.ts';
export {
  basePrograms,
  byWeight,
  isAtLeast,
  type Rule,
  rules,
  rulesVersion,
  sends,
} from './policy/text/weight.ts';
export { isSecretName, mapStrings, redactor, secretsIn } from './redact.ts';

export const importDecide = () => import('./policy/decide.ts');
export const importDecision = () => import('./policy/decision.ts');
export const importGrants = () => import('./policy/grants.ts');
export const importPolicyEdit = () => import('./policy/policyEdit.ts');
export const importRedact = () => import('./redact.ts');
