/** Looks at a fetched pack before it is installed: what it holds, what its files name, and what a person should see. Runs nothing. */

import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '@telos/engine/config';
import { loadText } from '@telos/engine/files';
import { cardOf, FileDigests, readAgentFiles } from '@telos/engine/policy';
import { type openSkill, ownMcpConfig, type PackSkills, packSkills } from '@telos/engine/skills';
import type { FolderContents } from '@telos/engine/undo';
import type { Finding } from '@telos/protocol/agentCard';
import type { OfferedFile, OfferedSkill, PackLook, SourceFinding } from '@telos/protocol/packOffer';
import type { ScanReport } from '../audit/scan.ts';
import { scanFolder, scanFolders } from '../audit/scanFolder.ts';
import type { Verdict } from './fetched.ts';
import { type FetchOptions, fetchPack, reachFor, temporaryFolder } from './fetchSource.ts';
import { type Source, sourceText } from './sourceText.ts';

/** What a look at a source finds without installing it. */
export interface ScannedSource extends ScanReport {
  /** The source as text in its shortest form. */
  source: string;
  /** Where it comes from and in which version, in words. */
  from: string;
  name: string;
  /** Links and the like that would not be installed. */
  leftOut: readonly string[];
  /** What the registry says of it. */
  verdict?: Verdict;
}

/**
 * Fetches what the source leads to, looks for what is dangerous in it and removes it again. Throws TelosError `pack` for what was
 * refused or cannot be reached, UnclearSource if it has to be said more exactly, and the abort reason on abort.
 */
export async function scanSource(
  source: Source,
  config: Config,
  options: FetchOptions = {},
): Promise<ScannedSource> {
  const temporary = await temporaryFolder();
  try {
    const reach = await reachFor(source, config, options);
    const { root, candidate, found, leftOut } = await fetchPack(source, join(temporary.path, 'tree'), reach);
    const base = join(root, candidate.path);
    const folders = candidate.skills?.map(folder => join(base, folder)) ?? [base];
    const { verdict, from } = found;
    return {
      source: sourceText(source),
      from,
      name: candidate.name,
      leftOut,
      ...(verdict && { verdict }),
      ...(await scanFolders(base, folders)),
    };
  } finally {
    await temporary.remove();
  }
}

/** An install leaves pipes, sockets and devices out, and says so: they are no danger then. */
const findingsOfCopy = (found: readonly Finding[]): Finding[] =>
  found.filter(({ kind }) => kind !== 'special-file');

/** Returns what is found in a folder, the worst first, or nothing if there are no high-severity findings. */
export async function dangersIn(folder: string): Promise<readonly SourceFinding[]> {
  const findings = findingsOfCopy((await scanFolder(folder)).findings);
  return findings.some(({ level }) => level === 'high') ? findings : [];
}

/** Returns what is in the pack's folder, whose contents are known. Throws errors of the file system. */
export async function lookAtPack(
  folder: string,
  name: string,
  contents: FolderContents,
  config: Config,
): Promise<PackLook> {
  const { skills, skipped } = packSkills(folder);
  const { mcpConfig } = ownMcpConfig(folder);
  const agent = {
    name,
    packDir: folder,
    workingDir: join(config.workingRoot, name),
    source: 'user' as const,
    skills,
    ...(mcpConfig !== undefined && { mcpConfig }),
  };
  const files = await readAgentFiles(agent, new FileDigests());
  const { redFlags: _flags, leftOut: _leftOut, workFolder: _work, ...card } = await cardOf(agent, files);
  const all = await offeredFiles(folder, contents);
  const { findings, read, of, rules } = await scanFolder(folder);
  return {
    skills: skills.map(skill => offeredSkill(skill, folder, all)),
    files: all,
    card,
    findings: findingsOfCopy(findings),
    counts: { read, of, rules },
    steps: [
      ...new Set(skills.flatMap(({ metadata }) => metadata.install.flatMap(({ command }) => command ?? []))),
    ],
    notRun: [...skipped.map(notLoaded), ...(await notRunIn(folder, contents))],
  };
}

const notLoaded = ({ id, why }: PackSkills['skipped'][number]): string =>
  `${id.includes('/') ? id : `skills/${id}`} (${why}, so the plugin goes without it)`;

async function offeredFiles(folder: string, contents: FolderContents): Promise<OfferedFile[]> {
  const files = Object.entries(contents).filter(([, text]) => text.startsWith('sha256:'));
  return Promise.all(
    files.map(async ([path, digest]) => ({
      path,
      digest,
      bytes: (await lstat(join(folder, path)).catch(() => undefined))?.size ?? 0,
    })),
  );
}

function offeredSkill(
  { id, kind, dir, file, description, synopsis, diagnostics }: ReturnType<typeof openSkill>,
  folder: string,
  files: readonly OfferedFile[],
): OfferedSkill {
  const place = (kind ? file : dir).slice(folder.length + 1).replaceAll('\\', '/');
  const own = files.filter(({ path }) => path === place || path.startsWith(place && `${place}/`));
  return {
    id,
    description: synopsis ?? description,
    bytes: own.reduce((sum, { bytes }) => sum + bytes, 0),
    scripts: own.filter(
      ({ path, digest }) =>
        digest.endsWith('+x') || /\.(?:sh|bash|py|js|mjs|ts|rb|pl|php|ps1|bat|cmd)$/i.test(path),
    ).length,
    problems: diagnostics
      .filter(({ severity }) => severity !== 'info')
      .map(({ message, line }) => `line ${line}: ${message}`),
  };
}

/** Names of scripts that npm runs by itself. */
const lifecycle = /^(?:pre|post)?(?:install|prepare|pack|publish|uninstall)(?:Only)?$/;

async function notRunIn(folder: string, contents: FolderContents): Promise<string[]> {
  const paths = Object.keys(contents);
  const servers = paths
    .filter(path => /(?:^|\/)\.lsp\.json$/.test(path))
    .map(path => `${path} (language servers)`);
  const bins = paths.some(path => path.startsWith('bin/')) ? ['bin/ (programs)'] : [];
  const scripts: string[] = [];
  for (const path of paths.filter(one => /(?:^|\/)package\.json$/.test(one)).slice(0, 20)) {
    const content = await loadText(join(folder, path)).catch(() => '');
    for (const name of scriptsIn(content)) scripts.push(`${path}: ${name} (a script of npm)`);
  }
  return [...servers, ...bins, ...scripts];
}

function scriptsIn(content: string): string[] {
  try {
    const { scripts } = JSON.parse(content) as { scripts?: unknown };
    return Object.keys((scripts as object | undefined) ?? {}).filter(name => lifecycle.test(name));
  } catch {
    return [];
  }
}
