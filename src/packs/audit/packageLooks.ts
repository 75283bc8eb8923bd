/** Finds what shows only when the files of a package are seen together, or a file as a whole. */

import { isSecretName, type Kind, rules, sends, shownLine } from '@telos/engine/policy';
import type { Finding, FindingLevel } from '@telos/protocol/agentCard';
import { type BinaryForm, namesToRun } from './binaryFile.ts';
import { Declarations } from './declarations.ts';

const prose = /\.(?:md|markdown|txt|rst)$/i;
/** Texts that a model follows: skills, and the commands and roles of plugins. */
const skillName = /(?:^|\/)(?:skills?|(?:commands|agents)\/(?:[^/]+\/){0,3}[^/]+)\.md$/i;
const address = /\bhttps?:\/\/([\w.-]{3,253})/gi;
/** All variables of a process at once. */
const wholeEnvironment =
  /JSON\.stringify\(\s{0,9}process\.env\s{0,9}\)|\bdict\(\s{0,9}os\.environ\s{0,9}\)|\b(?:env|printenv)\s{0,9}\|\s{0,9}(?:curl|wget|nc)\b/;
const ownEntry = /find-(?:generic|internet)-password\b.{0,80}\s-s\s/;
const namedVariable =
  /\bprocess\.env(?:\.|\[["'])([A-Z][A-Z0-9_]{2,60})\b|\b(?:environ(?:\.get)?|getenv)[([]["']([A-Z][A-Z0-9_]{2,60})["']/g;
const lifecycle = /^(?:pre|post)?(?:install|prepare)$/;
/** Files that another runner starts by itself. */
const startedElsewhere = /(?:^|\/)(?:\.lsp\.json|lspServers\.json)$/i;
const mostUndeclared = 5;
/** Characters that are kept to find what they run, and those before and after a name that say so. */
/** Places of what tells about a package, tests it and builds it. */
const aside =
  /(?:^|\/)(?:(?:\w{1,20}[-_])?docs?|tests?|__tests__|spec|examples?|benchmarks?|evals|\.(?:github|circleci|gitlab|devcontainer|vscode))\/|(?:^|\/)(?:readme|changelog|contributing|security|release-notes|install)\b[^/]*\.(?:md|rst|txt)$|(?:^|\/)[\w.-]+\.(?:test|spec)\.\w+$/i;
/** Names that many folders have. A text that says one alone means that beside it or above it, or that of the user's own folder. */
const usual =
  /^(?:dockerfile|makefile|package\.json|(?:readme|changelog|contributing|security|index|license)(?:\.\w+)?)$/i;
/** What is hidden from a reader weighs the same anywhere. */
const always: ReadonlySet<Finding['kind']> = new Set([
  'invisible-characters',
  'link-out',
  'hidden-repository',
]);
const mostKept = 8_000_000;
const mostSkillText = 64_000_000;
const around = 300;

/** Takes the files of one package, in any order. */
export class PackageLooks {
  #described = '';
  readonly #chains: { file: string; line: number; text: string; hosts: string[] }[] = [];
  readonly #variables = new Map<string, { file: string; line: number }>();
  readonly #findings: Finding[] = [];
  readonly #declarations = new Declarations();
  readonly #texts: { file: string; text: string }[] = [];
  #kept = 0;
  /** Texts of skills and their paths, in small letters. */
  readonly #told: { file: string; text: string }[] = [];
  #toldLength = 0;
  /** Files that are no text, by the last part of their path. */
  readonly #binaries = new Map<string, { file: string; form: BinaryForm }[]>();

  addBinary(file: string, form: BinaryForm): void {
    const name = nameOf(file);
    this.#binaries.set(name, [...(this.#binaries.get(name) ?? []), { file, form }]);
  }

  add(file: string, text: string, findings: readonly Finding[]): void {
    this.#kept += text.length;
    if (this.#kept <= mostKept) this.#texts.push({ file, text });
    if (prose.test(file)) this.#described += `${text}\n`;
    else this.#addCode(file, text, findings);
    if (/(?:^|\/)package\.json$/.test(file)) this.#addScripts(file, text);
    if (startedElsewhere.test(file)) this.#find('not-run', file, 1, '');
    if (!skillName.test(file)) {
      this.#declarations.addOther(file, text);
      return;
    }
    this.#toldLength += text.length;
    if (this.#toldLength <= mostSkillText)
      this.#told.push({ file: file.toLowerCase(), text: text.toLowerCase() });
    this.#declarations.addSkill(file, text);
    const found = /["']?\binstall["']?\s{0,9}:\s{0,9}\[[^\]]{0,200}/.exec(text);
    if (found) this.#find('not-run', file, lineAt(text, found.index), found[0]);
  }

  /**
   * Returns the findings with their weight, when all files were added. What no text of a skill names, such as docs, tests and what
   * builds the package, is at most medium: no model comes to it by itself.
   */
  weighed(findings: readonly Finding[]): Finding[] {
    // What was not kept may name any file.
    if (this.#told.length === 0 || this.#toldLength > mostSkillText) return [...findings];
    return findings.map(finding => {
      const isAside = aside.test(finding.file) && !skillName.test(finding.file);
      if (finding.level !== 'high' || !isAside || always.has(finding.kind)) return finding;
      return this.#isTold(finding.file.toLowerCase()) ? finding : { ...finding, level: 'medium' };
    });
  }

  /** Returns true if a text of a skill names the file: by its name, or, if many folders have one of that name, by a path, a link or its place. */
  #isTold(file: string): boolean {
    const name = nameOf(file);
    if (!usual.test(name)) return this.#told.some(({ text }) => text.includes(name));
    const [folder = ''] = file.split('/').slice(-2, -1);
    const ways = [
      `](${name}`,
      `](./${name}`,
      `../${name}`,
      `}/${name}`,
      ...(folder && [`${folder}/${name}`]),
    ];
    const place = file.slice(0, -name.length);
    const [stem = name] = name.split('.');
    return this.#told.some(({ file: from, text }) =>
      from.startsWith(place) ? text.includes(stem) : ways.some(each => text.includes(each)),
    );
  }

  /** Returns what was found, when all files were added. */
  findings(): Finding[] {
    const described = this.#described.toLowerCase();
    for (const { file, line, text, hosts } of this.#chains) {
      // One entry of a keychain by its name is how honest scripts keep their own key.
      const isForeign = !ownEntry.test(text) && hosts.some(host => !described.includes(host));
      this.#find('reads-and-sends', file, line, text, isForeign ? 'high' : 'medium');
    }
    const unnamed = [...this.#variables].filter(([name]) => !this.#described.includes(name));
    for (const [name, { file, line }] of unnamed.slice(0, mostUndeclared))
      this.#find('undeclared', file, line, name);
    for (const { kind, file, line, text } of this.#declarations.incoherences(described))
      this.#find(kind, file, line, text);
    this.#findBinaries();
    return this.#findings;
  }

  /** A picture is said once, and weighs little. A file that is no text weighs as much as a script if the package runs it. */
  #findBinaries(): void {
    const run = this.#binaries.size > 0 ? this.#namedToRun() : new Map<string, string>();
    for (const [name, files] of this.#binaries)
      for (const { file, form } of files) {
        const line = run.get(name);
        const level = line !== undefined ? 'high' : form === 'unknown' ? 'medium' : 'low';
        this.#find('not-looked-into', file, 1, line ?? '', level);
      }
  }

  /** Returns the names of the binary files that a text runs, with the line that does. */
  #namedToRun(): Map<string, string> {
    const found = new Map<string, string>();
    for (const { text } of this.#texts)
      for (const { index, 0: name } of text.matchAll(/[^\s"'`()<>|;&$,=/\\]+/g)) {
        const said = name.replace(/[.:!?]+$/, '');
        if (!this.#binaries.has(said) || found.has(said)) continue;
        const piece = text.slice(Math.max(0, index - around), index + said.length + around);
        if (namesToRun(piece, said)) found.set(said, lineAround(text, index));
      }
    return found;
  }

  #addCode(file: string, text: string, findings: readonly Finding[]): void {
    const dump = wholeEnvironment.exec(text);
    const read = findings.find(({ kind }) => kind === 'credential-path');
    if ((read || dump) && (sends.test(text) || /\|\s{0,9}(?:curl|wget|nc)\b/.test(dump?.[0] ?? ''))) {
      const line = read?.line ?? lineAt(text, dump!.index);
      const hosts = [...text.matchAll(address)].map(([, host = '']) => host.toLowerCase());
      this.#chains.push({ file, line, text: read?.text ?? dump![0], hosts });
    }
    for (const { index, 1: one, 2: two } of text.matchAll(namedVariable)) {
      const name = one ?? two ?? '';
      if (isSecretName(name) && !this.#variables.has(name))
        this.#variables.set(name, { file, line: lineAt(text, index) });
    }
  }

  #addScripts(file: string, text: string): void {
    try {
      const { scripts } = JSON.parse(text) as { scripts?: Record<string, unknown> };
      for (const [name, command] of Object.entries(scripts ?? {}))
        if (lifecycle.test(name)) this.#find('not-run', file, 1, `${name}: ${String(command)}`);
    } catch {
      // What is not JSON has no scripts.
    }
  }

  #find(kind: Kind, file: string, line: number, text: string, level: FindingLevel = rules[kind].level): void {
    this.#findings.push({ kind, level, file, line, text: shownLine(text) });
  }
}

const nameOf = (file: string): string => file.slice(file.lastIndexOf('/') + 1);

function lineAround(text: string, index: number): string {
  const end = text.indexOf('\n', index);
  return text.slice(text.lastIndexOf('\n', index) + 1, end < 0 ? undefined : end);
}

const lineAt = (text: string, index: number): number => text.slice(0, index).split('\n').length;
