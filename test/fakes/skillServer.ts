/**
 * Fakes an MCP server of 2026-07-28 that serves skills over its standard streams. Arguments: the folder whose folders are its skills, a file
 * into which it writes each request, and what is wrong with it.
 */
import { createHash } from 'node:crypto';
import { appendFileSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

type Fields = Readonly<Record<string, unknown>>;

const [, , folder = '.', log, fault = ''] = process.argv;
const revision = '2026-07-28';
const send = (message: Fields): void => {
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
};

createInterface({ input: process.stdin })
  .on('line', line => answer(JSON.parse(line)))
  .on('close', () => process.exit(0));

function answer({ id, method, params }: { id?: number | string; method: string; params?: Fields }): void {
  if (id === undefined) return;
  if (log) appendFileSync(log, `${method} ${params?.['uri'] ?? ''}\n`);
  const result = resultOf(method, params ?? {});
  if (!result) return void send({ id, error: { code: -32601, message: 'Method not found' } });
  send({ id, result: { resultType: 'complete', ttlMs: 0, cacheScope: 'private', ...result } });
}

function resultOf(method: string, params: Fields): Fields | undefined {
  const extensions = { 'io.modelcontextprotocol/skills': {} };
  if (method === 'server/discover')
    return { supportedVersions: [revision], capabilities: { tools: {}, resources: {}, extensions } };
  if (method === 'tools/list') return { tools: [] };
  if (method === 'skills/list') return { skills: names().map(entryOf) };
  if (method !== 'resources/read') return undefined;
  const uri = String(params['uri']);
  const text = readFileSync(join(folder, decodeURIComponent(uri.slice('skill://'.length))), 'utf8');
  const other = fault === 'tampers' && uri.endsWith('SKILL.md') ? text.replace('a', 'b') : text;
  return { contents: [{ uri, mimeType: 'text/markdown', text: other }] };
}

const names = (): string[] =>
  readdirSync(folder, { withFileTypes: true }).flatMap(entry => (entry.isDirectory() ? [entry.name] : []));

function entryOf(name: string): Fields {
  const files = readdirSync(join(folder, name), { recursive: true, withFileTypes: true });
  const resources = files.flatMap(file => {
    if (!file.isFile()) return [];
    const path = join(file.parentPath, file.name);
    const bytes = readFileSync(path);
    const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
    const inner = path.slice(folder.length + 1);
    return [{ uri: `skill://${inner}`, digest, size: bytes.length }];
  });
  const [, description] =
    /^description: (.*)$/m.exec(readFileSync(join(folder, name, 'SKILL.md'), 'utf8')) ?? [];
  const uri = `skill://${name}/SKILL.md`;
  if (fault === 'escapes') {
    const digest = resources[0]?.digest;
    return {
      ...{ uri, frontmatter: { name, description } },
      resources: [...resources, { uri: `skill://${name}/..%2f..%2fescaped.md`, digest, size: 5 }],
    };
  }
  return { uri, frontmatter: { name, description }, resources: fault === 'dynamic' ? 'dynamic' : resources };
}
