/** Where everything is and what is set: environment and overrides in, plain data out. Nothing here is read again later. */
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';

export interface WorkspaceFolder {
  name: string;
  path: string;
}

/** Plain data; one Telos is opened on one Config. All paths are absolute. */
export interface Config {
  /** The variables in force: the process's own, or what the host has put over them. */
  env: Readonly<Record<string, string>>;
  home: string;
  /** The folder of the call: what a working_dir of `.` means. */
  cwd: string;
  /** `~/.skills`, or `TELOS_SKILLS_DIR`. */
  skillsDir: string;
  /** `~/.config/telos`, or `TELOS_CONFIG_DIR`. */
  configDir: string;
  /** `~/.local/share/telos`, or `TELOS_DATA_DIR`; logs and run files lie below it. */
  dataDir: string;
  /** Trusted workspace folders only; the host leaves the others out. */
  workspaceFolders: readonly WorkspaceFolder[];
  /** `TELOS_PROVIDER`, a flag or a setting; undefined lets Telos choose. */
  provider: string | undefined;
  /** `TELOS_MODEL`, a flag or a setting; undefined means the provider's default. */
  model: string | undefined;
  /** A recorded run to play back with the provider `replay`. */
  replayFile: string | undefined;
}

/** What a frontend knows better than the environment; undefined leaves the environment in force. */
export interface ConfigOverrides {
  env?: Readonly<Record<string, string | undefined>>;
  home?: string;
  cwd?: string;
  workspaceFolders?: readonly WorkspaceFolder[];
  provider?: string | undefined;
  model?: string | undefined;
  replayFile?: string | undefined;
}

/** A leading `~` is the home folder; a relative path starts at `base`. Returns an absolute path. */
export function expandPath(path: string, home: string, base: string): string {
  if (path === '~') return home;
  if (path.startsWith('~/') || path.startsWith('~\\')) return join(home, path.slice(2));
  return resolve(base, path);
}

export function loadConfig(overrides: ConfigOverrides = {}): Config {
  const env = definedOnly(overrides.env ?? process.env);
  const home = overrides.home ?? env['HOME'] ?? homedir();
  const cwd = overrides.cwd ?? process.cwd();
  const folder = (variable: string, fallback: string): string =>
    env[variable] ? expandPath(env[variable], home, cwd) : join(home, fallback);
  return {
    env,
    home,
    cwd,
    skillsDir: folder('TELOS_SKILLS_DIR', '.skills'),
    configDir: folder('TELOS_CONFIG_DIR', '.config/telos'),
    dataDir: folder('TELOS_DATA_DIR', '.local/share/telos'),
    workspaceFolders: overrides.workspaceFolders ?? [],
    provider: overrides.provider ?? (env['TELOS_PROVIDER'] || undefined),
    model: overrides.model ?? (env['TELOS_MODEL'] || undefined),
    replayFile: overrides.replayFile ?? (env['TELOS_REPLAY_FILE'] || undefined),
  };
}

function definedOnly(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const result: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) if (value !== undefined) result[name] = value;
  return result;
}
