/** Writes what a look found as SARIF 2.1.0, which code hosts and editors read. */

import { pathToFileURL } from 'node:url';
import { type Kind, type Rule, rules } from '@telos/engine/policy';
import { type Finding, type FindingLevel, flagWords } from '@telos/protocol/agentCard';
import type { ScanReport } from './scan.ts';

const sarifLevel = { high: 'error', medium: 'warning', low: 'note' } as const;
/** How code hosts rank a rule, from 0 to 10. */
const severity: Record<FindingLevel, string> = { high: '8.0', medium: '5.0', low: '2.0' };
const base = 'SCANNED';

/**
 * Returns the report as a SARIF log. The files are below a folder, whose path is absolute, or came from a source that is named in
 * words. `version` is that of Telos.
 */
export function sarifOf(
  { findings, read, of }: ScanReport,
  place: { folder: string } | { source: string },
  version: string,
): object {
  const kinds = [...new Set(findings.map(({ kind }) => kind))].sort();
  return {
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [
      {
        tool: { driver: { name: 'Telos', version, rules: kinds.map(ruleOf) } },
        columnKind: 'utf16CodeUnits',
        originalUriBaseIds: { [base]: baseOf(place) },
        invocations: [{ executionSuccessful: read === of, properties: { filesLookedInto: read, files: of } }],
        results: findings.map(finding => resultOf(finding, kinds.indexOf(finding.kind))),
      },
    ],
  };
}

const baseOf = (place: { folder: string } | { source: string }): object =>
  'folder' in place
    ? { uri: `${pathToFileURL(place.folder).href.replace(/\/$/, '')}/` }
    : { description: { text: place.source } };

function ruleOf(kind: Kind): object {
  const { level, why, instead, snyk, cisco }: Rule = rules[kind];
  return {
    id: kind,
    shortDescription: { text: asSentence(flagWords(kind)) },
    fullDescription: { text: why },
    help: { text: `${why} Instead: ${instead}` },
    defaultConfiguration: { level: sarifLevel[level] },
    properties: { 'security-severity': severity[level], tags: ['security', ...snyk, ...cisco] },
  };
}

function resultOf({ kind, level, file, line, text }: Finding, ruleIndex: number): object {
  const uri = file.split('/').map(encodeURIComponent).join('/');
  const physicalLocation = { artifactLocation: { uri, uriBaseId: base }, region: { startLine: line } };
  return {
    ruleId: kind,
    ruleIndex,
    level: sarifLevel[level],
    message: { text: `${asSentence(flagWords(kind))}${text === '' ? '' : ` ${text}`}` },
    locations: [{ physicalLocation }],
  };
}

const asSentence = (words: string): string => `${words.charAt(0).toUpperCase()}${words.slice(1)}.`;
