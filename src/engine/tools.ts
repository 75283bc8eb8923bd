/** The built-in tools, and how programs and pages are reached. */
export { addressKind, hostKind, isNeverReached, parseWebAddress } from './addresses.ts';
export type { ToolDefinition } from './core/ports.ts';
export { skillTools } from './tools/builtin.ts';
export { commandEnvironment, runLine, shellName } from './tools/command.ts';
export { answerText, fetchOut } from './tools/fetchOut.ts';
export { checkedAddresses, FetchProblem, get, resolveName } from './tools/fetchPage.ts';
export {
  type GitEnvironment,
  type GitRun,
  gitEnvironment,
  gitPatience,
  gitSettings,
  readsAlone,
  runGit,
  serverEnvironment,
  startGit,
} from './tools/gitStart.ts';
export { guardOrphans } from './tools/orphanGuard.ts';
export { newMark, processTable } from './tools/processTable.ts';
export {
  commandPrograms,
  findGit,
  findProgram,
  type ProgramPlaces,
  pathIn,
  programEndings,
  trustedPath,
  withPath,
} from './tools/programPath.ts';
export { openTunnel } from './tools/proxyTunnel.ts';
export {
  type AskHost,
  type CommandBox,
  type CommandLayer,
  type CommandStart,
  type EnclosedCommand,
  type Tool,
  type ToolContext,
  toolError,
} from './tools/tool.ts';
export { certificateProblem, followProxies, proxyFor } from './tools/wayOut.ts';
