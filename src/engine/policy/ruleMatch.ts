/** Does a rule of the user fit what a call wants? */
import { isInside } from '../tools/paths.ts';
import { isSensitive } from '../tools/secretNames.ts';
import { wordsMatch } from './commandWords.ts';
import type { PolicyContext } from './decision.ts';
import type { RuleDraft } from './policyEdit.ts';
import type { PolicyRule } from './policyFile.ts';
import { hostAndPort, hostFits, type Wanted } from './wanted.ts';

/** True for a rule that allows exactly this call. */
export function ruleFits(rule: PolicyRule, wanted: Wanted, context: PolicyContext): boolean {
  if (!isAbout(rule, context)) return false;
  const tool = wanted.kind === 'mcp' && rule.server !== undefined ? wanted.facts.tool : wanted.tool;
  if (rule.server !== undefined && (wanted.kind !== 'mcp' || wanted.facts.server !== rule.server))
    return false;
  return rule.tool === tool && covers(rule, wanted);
}

/** An agent of the workspace can call itself anything, so a rule for a name alone is not for it. */
export function isAbout({ effect, agent, pack }: PolicyRule, context: PolicyContext): boolean {
  if (agent === '*') return pack === undefined || pack === context.agent?.packDir;
  if (context.agent?.name !== agent) return false;
  if (pack !== undefined) return pack === context.agent.packDir;
  return effect === 'deny' || context.agent.source !== 'project';
}

/** Exactly what an allow rule names, and nothing that only looks like it. */
function covers(rule: PolicyRule, wanted: Wanted): boolean {
  switch (wanted.kind) {
    case 'command':
      if (rule.command !== undefined)
        return (
          rule.command === wanted.subject && (rule.folder === undefined || rule.folder === wanted.folder)
        );
      return rule.argv !== undefined && wanted.words !== undefined && wordsMatch(rule.argv, wanted.words);
    case 'fetch':
      return rule.host !== undefined && hostFits(rule.host, wanted.url, wanted.host === 'public');
    case 'mcp':
      return rule.digest !== undefined && rule.server !== undefined && rule.digest === wanted.facts.digest;
    case 'read':
    case 'write':
      if (rule.path === undefined) return false;
      // What holds secrets or gets executed in an open folder is named one by one, or asked about.
      return rule.path.endsWith('/**')
        ? isInside(rule.path.slice(0, -3), wanted.subject) && !isSensitive(wanted.subject)
        : rule.path === wanted.subject;
  }
}

/** True for a rule that names one command and no open arguments. */
export const isExact = ({ command, argv }: PolicyRule): boolean =>
  command !== undefined || (argv !== undefined && argv.at(-1) !== '*');

/** The rule that an answer of `always` stores for exactly this; undefined without an agent to bind it to. */
export function draftFor(wanted: Wanted, context: PolicyContext): RuleDraft | undefined {
  if (!context.agent) return undefined;
  const { name: agent, packDir: pack } = context.agent;
  switch (wanted.kind) {
    case 'command':
      return { agent, pack, tool: wanted.tool, command: wanted.subject, folder: wanted.folder };
    case 'fetch': {
      const host = wanted.host === 'public' ? wanted.url.hostname : hostAndPort(wanted.url);
      return { agent, pack, tool: wanted.tool, host };
    }
    case 'mcp': {
      const { server, tool, digest } = wanted.facts;
      return { agent, pack, tool, server, digest };
    }
    default:
      return { agent, pack, tool: wanted.tool, path: wanted.subject };
  }
}
