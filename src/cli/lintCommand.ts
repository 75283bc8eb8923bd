/** Implements `telos lint`: checks skill files, says what each needs, and fixes what a program can fix. */

import { isUtf8 } from 'node:buffer';
import { accessSync, constants, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { reasonOf } from '@telos/engine/errors';
import { type Diagnostic, readRegularFile, writeWhole } from '@telos/engine/files';
import {
  type Discovery,
  discover,
  type FileSkill,
  lintSkill,
  type Machine,
  mendText,
  openSkill,
  portabilityOf,
  type Readiness,
  readAgentToml,
  readinessOf,
  type Skill,
  skillsBelow,
  thisMachine,
} from '@telos/engine/skills';
import { counted } from '@telos/protocol/text';
import { type ConfigOptions, configFor } from './cliConfig.ts';
import type { Terminal } from './terminal.ts';
import { terminalJson, terminalText } from './terminalText.ts';

export interface LintOptions extends ConfigOptions {
  json?: boolean;
  fix?: boolean;
  verbose?: boolean;
  portable?: boolean;
}

interface Checked extends Readiness {
  agent: string | undefined;
  skill: Skill;
  bodyBytes: number;
  diagnostics: readonly Diagnostic[];
}

/** Returns the exit code: 1 for an error in a file or if there are no skills. It is 2 if the folder does not exist. */
export async function lintCommand(
  folder: string | undefined,
  options: LintOptions,
  terminal: Terminal,
): Promise<number> {
  const config = configFor(options, terminal);
  if (!config) return 2;
  const started = performance.now();
  const root = folder === undefined ? undefined : resolve(config.cwd, folder);
  if (root !== undefined && !statSync(root, { throwIfNoEntry: false })?.isDirectory()) {
    terminal.say(terminalText(`The folder ${root} does not exist.`));
    return 2;
  }
  if (root !== undefined && !isReadable(root)) {
    terminal.say(terminalText(`The folder ${root} may not be read.`));
    return 1;
  }
  const known = root === undefined ? discover(config) : undefined;
  const found = known ? skillsOf(known) : skillsBelow(root ?? '').map(skill => ({ skill }));
  const settings = known ? settingsDefects(known) : readAgentToml(root ?? '').diagnostics;
  const mended = options.fix
    ? await mend(
        found.map(({ skill }) => skill),
        terminal,
      )
    : new Set<string>();
  const machine = thisMachine(config.env);
  const checked = found.map(({ skill, agent }: { skill: FileSkill; agent?: string }) => {
    // A fixed file is read again, since a Skill reads its file only once.
    const current = mended.has(skill.file)
      ? openSkill(skill.file, skill.source, skill.id, skill.within, skill.kind)
      : skill;
    return check(current, agent, machine, options);
  });
  const totals = {
    ...totalsOf(checked, settings),
    fixed: mended.size,
    milliseconds: Math.round(performance.now() - started),
  };
  if (options.json)
    terminal.out(`${terminalJson({ skills: checked.map(record), settings: settings.map(plain), totals })}\n`);
  else report(checked, settings, totals, root, options, terminal);
  const isStuck = options.portable === true && 'portable' in totals.codes;
  return totals.errors > 0 || checked.length === 0 || isStuck ? 1 : 0;
}

function isReadable(folder: string): boolean {
  try {
    accessSync(folder, constants.R_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

const skillsOf = ({ agents }: Discovery): { agent: string; skill: FileSkill }[] =>
  agents.flatMap(agent => agent.skills.map(skill => ({ agent: agent.name, skill })));

/** Returns the defects of the files that say how agents are loaded: agents.toml and each agent.toml. */
const settingsDefects = ({ agents, diagnostics }: Discovery): readonly Diagnostic[] => [
  ...diagnostics,
  ...agents.flatMap(agent => agent.diagnostics),
];

function check(
  skill: FileSkill,
  agent: string | undefined,
  machine: Machine,
  { portable }: LintOptions,
): Checked {
  return {
    agent,
    skill,
    bodyBytes: Buffer.byteLength(skill.body),
    diagnostics: [...lintSkill(skill), ...(portable ? portabilityOf(skill) : [])],
    ...readinessOf(skill, machine),
  };
}

/** Fixes skill files and returns those that were changed. */
async function mend(skills: readonly FileSkill[], terminal: Terminal): Promise<Set<string>> {
  const mended = new Set<string>();
  for (const skill of skills) {
    const { file } = skill;
    if (mended.has(file) || !lintSkill(skill).some(({ edit }) => edit)) continue;
    try {
      const bytes = readRegularFile(file);
      // Skipped: written back as UTF-8, letters of another encoding would be lost permanently.
      if (!isUtf8(bytes)) continue;
      const text = bytes.toString('utf8');
      const better = mendText(text, file);
      if (better === text) continue;
      await writeWhole(file, better);
      mended.add(file);
    } catch (error) {
      // A file that cannot be written does not keep the others from being fixed.
      const reason = reasonOf(error);
      terminal.say(terminal.style.red(terminalText(`${file} was not fixed: ${reason}`)));
    }
  }
  return mended;
}

/** Returns what `--json` prints about a skill. */
function record({ agent, skill, bodyBytes, ready, missing, diagnostics }: Checked) {
  return {
    path: skill.file,
    ...(agent === undefined ? {} : { agent }),
    id: skill.id,
    name: skill.name,
    description: skill.description,
    synopsis: skill.synopsis ?? null,
    bodyBytes,
    requires: { ...skill.metadata.requires, os: skill.metadata.os },
    ready,
    missing: missing.map(({ sentences: _, ...rest }) => rest),
    diagnostics: diagnostics.map(plain),
  };
}

const plain = ({ sentences: _, fixSentence: __, ...rest }: Diagnostic) => rest;

function totalsOf(checked: readonly Checked[], settings: readonly Diagnostic[]) {
  const all = [...settings, ...checked.flatMap(({ diagnostics }) => diagnostics)];
  const kinds = checked.flatMap(({ missing }) => [...new Set(missing.map(({ kind }) => kind))]);
  const severity = (wanted: Diagnostic['severity']): number =>
    all.filter(diagnostic => diagnostic.severity === wanted).length;
  return {
    skills: checked.length,
    ready: checked.filter(({ ready }) => ready).length,
    errors: severity('error'),
    warnings: severity('warning'),
    hints: severity('info'),
    bodyBytes: checked.reduce((sum, { bodyBytes }) => sum + bodyBytes, 0),
    synopses: checked.filter(({ skill }) => skill.synopsis !== undefined).length,
    /** Diagnostics by their code. */
    codes: tally(all.map(({ code }) => code)),
    /** Skills by the kind of what is missing for them. */
    missing: tally(kinds),
  };
}

function tally(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

function report(
  checked: readonly Checked[],
  settings: readonly Diagnostic[],
  totals: ReturnType<typeof totalsOf> & { fixed: number },
  root: string | undefined,
  { fix, verbose }: LintOptions,
  terminal: Terminal,
): void {
  const shown = [...settings, ...checked.flatMap(({ diagnostics }) => diagnostics)].filter(
    ({ severity, code }) => verbose || severity !== 'info' || code === 'portable',
  );
  for (const { file, line, severity, message, fix: how } of shown) {
    const word = severity === 'info' ? 'hint' : severity;
    terminal.out(terminalText(`${file}:${line}: ${word}: ${message}${how ? ` ${how}` : ''}\n`));
  }
  if (checked.length === 0) {
    terminal.say(terminalText(root ? `No SKILL.md found in ${root}.` : 'No skills found.'));
    return;
  }
  const { skills, ready, errors, warnings, hints, fixed } = totals;
  const mendable = shown.filter(({ severity, edit }) => edit && severity !== 'info').length;
  const parts = [
    `${counted(skills, 'skill')}, ${ready} ready on this machine: ${counted(errors, 'error')}, ${counted(warnings, 'warning')}, ${counted(hints, 'hint')}.`,
    fix ? `${counted(fixed, 'file')} fixed.` : mendable > 0 ? `\`--fix\` fixes ${mendable} of them.` : '',
    hints > 0 && !verbose ? '`--verbose` shows the hints.' : '',
  ];
  terminal.say(parts.filter(Boolean).join(' '));
}
