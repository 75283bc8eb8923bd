/** Reads an agent's own description of itself, agent.toml; a broken one is a diagnostic and the agent loads without it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, TomlError } from 'smol-toml';
import type { Diagnostic } from './agent.ts';

export interface AgentToml {
  name?: string;
  description?: string;
  working_dir?: string;
}

/** Returns what the file says, or nothing where there is none, with the defects found on the way. */
export function readAgentToml(packDir: string): { fields: AgentToml; diagnostics: Diagnostic[] } {
  const file = join(packDir, 'agent.toml');
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    return { fields: {}, diagnostics: [] };
  }
  try {
    const table = parse(text);
    const fields: AgentToml = {};
    for (const key of ['name', 'description', 'working_dir'] as const) {
      const value = table[key];
      if (typeof value === 'string' && value.trim()) fields[key] = value.trim();
    }
    return { fields, diagnostics: [] };
  } catch (error) {
    const line = error instanceof TomlError ? error.line : 1;
    const [reason] = (error instanceof Error ? error.message : String(error)).split('\n');
    const message = `agent.toml is not valid TOML: ${reason}. The agent was loaded without it.`;
    return { fields: {}, diagnostics: [{ severity: 'error', code: 'agent-toml', message, file, line }] };
  }
}
