/** Reads an agent's own description of itself, agent.toml; a broken one is a diagnostic and the agent loads without it. */
import { basename, join } from 'node:path';
import type { Diagnostic } from './agent.ts';
import { readToml, textDefects, textOf } from './toml.ts';

export interface AgentToml {
  /** The folder's name where the file gives none. */
  name: string;
  description: string | undefined;
  /** As it is written: `.`, a path that may start with `~`; undefined means the default. */
  workingDir: string | undefined;
  diagnostics: readonly Diagnostic[];
}

/** What the pack's agent.toml says, or the defaults where there is none. */
export function readAgentToml(packDir: string): AgentToml {
  const file = join(packDir, 'agent.toml');
  const { table, diagnostics } = readToml(file, 'agent-toml', 'The agent was loaded without it.');
  const place = { code: 'agent-toml-value', file, line: 1 };
  const passedOver = textDefects(table, ['name', 'description', 'working_dir'], place);
  return {
    name: textOf(table, 'name') ?? basename(packDir),
    description: textOf(table, 'description'),
    workingDir: textOf(table, 'working_dir'),
    diagnostics: [...diagnostics, ...passedOver],
  };
}
