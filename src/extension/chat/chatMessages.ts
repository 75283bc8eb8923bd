/**
 * Checks what the chat's page asks for: its messages, field by field, and what a click may open. The page shows a
 * model's words, so neither address nor path is trusted.
 */

import { realpath, stat } from 'node:fs/promises';
import { isAbsolute, relative, resolve, sep } from 'node:path';
import { maxDocumentBytes } from '@telos/protocol/attachment';
import { type FormContent, longestFilled, mostFields } from '@telos/protocol/form';
import { type ApprovalDecision, type ApprovalScope, runModes, type SkillRef } from '@telos/protocol/run';
import { type ToHost, type ViewCommand, viewCommands } from '@telos/protocol/webview';

/** More than a person types or pastes. In characters. */
const maxText = 1_000_000;
const maxName = 1_000;
const maxAddress = 32_000;

/** Length of the largest document in base64. */
const maxData = Math.ceil(maxDocumentBytes / 3) * 4;
const maxThumbnail = 60_000;
const maxUris = 50;
const maxRuns = 1000;

const scopes: readonly ApprovalScope[] = ['once', 'run', 'always'];

type Fields = Readonly<Record<string, unknown>>;

/** Returns the message with its known fields only, or undefined if the protocol does not know it. */
export function readToHost(value: unknown): ToHost | undefined {
  if (!isFields(value)) return undefined;
  switch (value['type']) {
    case 'ready':
      return readReady(value);
    case 'submit':
      return readSubmit(value);
    case 'pick_skill':
      return isText(value['text'], maxText) ? { type: 'pick_skill', text: value['text'] } : undefined;
    case 'resend':
      return isText(value['runId'], maxName) && isText(value['text'], maxText)
        ? { type: 'resend', runId: value['runId'], text: value['text'] }
        : undefined;
    case 'resume':
      return isText(value['runId'], maxName) ? { type: 'resume', runId: value['runId'] } : undefined;
    case 'compact':
      return isText(value['focus'], maxText) ? { type: 'compact', focus: value['focus'] } : undefined;
    case 'plan':
      return isText(value['goal'], maxText) ? { type: 'plan', goal: value['goal'] } : undefined;
    case 'context_files':
      return { type: 'context_files', on: value['on'] === true };
    case 'undo_compaction':
      return { type: 'undo_compaction' };
    case 'unqueue':
    case 'run_queued':
      return isText(value['id'], maxName) ? { type: value['type'], id: value['id'] } : undefined;
    case 'habit':
    case 'teach':
      return value['answer'] === 'write' || value['answer'] === 'never'
        ? { type: value['type'], answer: value['answer'] }
        : undefined;
    case 'choose_skill':
    case 'look_around':
    case 'find_models':
      return { type: value['type'] };
    case 'set_mode': {
      const mode = runModes.find(each => each === value['mode']);
      return mode && { type: 'set_mode', mode };
    }
    case 'use_model': {
      const { provider, model } = value;
      return isText(provider, maxName) && isText(model, maxName)
        ? { type: 'use_model', provider, model }
        : undefined;
    }
    case 'choose_folder':
      return isText(value['agent'], maxName) ? { type: 'choose_folder', agent: value['agent'] } : undefined;
    case 'dead_server': {
      const { act, agent, server } = value;
      return (act === 'log' || act === 'off') && isText(agent, maxName) && isText(server, maxName)
        ? { type: 'dead_server', act, agent, server }
        : undefined;
    }
    case 'attach':
      return { type: 'attach' };
    case 'attach_bytes':
      return readBytes(value);
    case 'attach_uris':
      return readUris(value['uris']);
    case 'attach_mention':
      return isText(value['mention'], maxName)
        ? { type: 'attach_mention', mention: value['mention'] }
        : undefined;
    case 'detach':
      return isText(value['id'], maxName) ? { type: 'detach', id: value['id'] } : undefined;
    case 'find_files':
      return isText(value['query'], maxName) ? { type: 'find_files', query: value['query'] } : undefined;
    case 'find_offers':
      return { type: 'find_offers' };
    case 'stop':
      return { type: 'stop' };
    case 'stop_command':
      return isText(value['id'], maxName) ? { type: 'stop_command', id: value['id'] } : undefined;
    case 'to_background':
      return isText(value['callId'], maxName)
        ? { type: 'to_background', callId: value['callId'] }
        : undefined;
    case 'new_conversation':
      return { type: 'new_conversation' };
    case 'approve':
      return readApprove(value);
    case 'open_link':
      return isText(value['url'], maxAddress) ? { type: 'open_link', url: value['url'] } : undefined;
    case 'open_file':
      return readOpenFile(value);
    case 'look_up_files':
      return isTexts(value['paths'], maxUris, maxName)
        ? { type: 'look_up_files', paths: value['paths'] }
        : undefined;
    case 'read_image':
      return isText(value['path'], maxName) ? { type: 'read_image', path: value['path'] } : undefined;
    case 'show_changes':
      return readShowChanges(value);
    case 'undo_runs':
      return isTexts(value['runIds'], maxRuns, maxName)
        ? { type: 'undo_runs', runIds: value['runIds'] }
        : undefined;
    case 'undo_run':
    case 'improve_skill':
    case 'restore':
    case 'branch':
      return isText(value['runId'], maxName) ? { type: value['type'], runId: value['runId'] } : undefined;
    case 'copy':
      return isText(value['text'], maxText) ? { type: 'copy', text: value['text'] } : undefined;
    case 'insert_code':
      return isText(value['text'], maxText) ? { type: 'insert_code', text: value['text'] } : undefined;
    case 'new_file':
      return isText(value['text'], maxText) && isText(value['language'], maxName)
        ? { type: 'new_file', text: value['text'], language: value['language'] }
        : undefined;
    case 'command':
      return isViewCommand(value['command']) ? { type: 'command', command: value['command'] } : undefined;
    default:
      return undefined;
  }
}

function readReady({ id, have }: Fields): ToHost | undefined {
  if (id !== null && !isText(id, maxName)) return undefined;
  if (!Number.isSafeInteger(have) || (have as number) < 0) return undefined;
  return { type: 'ready', id, have: have as number };
}

function readOpenFile({ path, line, endLine }: Fields): ToHost | undefined {
  if (!isText(path, maxAddress)) return undefined;
  if (!isLine(line)) return { type: 'open_file', path };
  return { type: 'open_file', path, line, ...(isLine(endLine) && endLine >= line && { endLine }) };
}

const isLine = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) > 0 && (value as number) < 1e7;

function readShowChanges({ runId, path }: Fields): ToHost | undefined {
  if (!isText(runId, maxName)) return undefined;
  if (path === undefined) return { type: 'show_changes', runId };
  return isText(path, maxAddress) ? { type: 'show_changes', runId, path } : undefined;
}

function readSubmit({ text, skill, withoutSkill, anew, instead }: Fields): ToHost | undefined {
  if (!isText(text, maxText)) return undefined;
  const submit = {
    type: 'submit',
    text,
    ...(withoutSkill === true && { withoutSkill }),
    ...(anew === true && { anew }),
    ...(instead === true && { instead }),
  } as const;
  if (skill === undefined) return submit;
  const ref = readSkillRef(skill);
  return ref && { ...submit, skill: ref };
}

function readBytes({ name, data, size, thumbnail }: Fields): ToHost | undefined {
  if (!isText(name, maxName) || !isText(data, maxData) || !/^[A-Za-z0-9+/]*={0,2}$/.test(data))
    return undefined;
  if (!Number.isSafeInteger(size) || (size as number) < Math.floor((data.length * 3) / 4) - 2)
    return undefined;
  const bytes = { type: 'attach_bytes', name, data, size: size as number } as const;
  const isPicture =
    isText(thumbnail, maxThumbnail) && /^data:image\/(png|jpeg);base64,[A-Za-z0-9+/]+={0,2}$/.test(thumbnail);
  return isPicture ? { ...bytes, thumbnail } : bytes;
}

function readUris(uris: unknown): ToHost | undefined {
  return isTexts(uris, maxUris, maxAddress) ? { type: 'attach_uris', uris } : undefined;
}

const isTexts = (value: unknown, most: number, maxLength: number): value is string[] =>
  Array.isArray(value) && value.length <= most && value.every(one => isText(one, maxLength));

function readSkillRef(value: unknown): SkillRef | undefined {
  if (!isFields(value)) return undefined;
  const { agent, skill } = value;
  return isText(agent, maxName) && isText(skill, maxName) ? { agent, skill } : undefined;
}

function readApprove({ token, decision }: Fields): ToHost | undefined {
  const answer = readDecision(decision);
  return answer && isText(token, maxName) ? { type: 'approve', token, decision: answer } : undefined;
}

function readDecision(value: unknown): ApprovalDecision | undefined {
  if (!isFields(value)) return undefined;
  const { allow, scope, reason, without, command, answer, content, isSkipped } = value;
  if (allow === true && content !== undefined) {
    const filled = scope === 'once' ? readContent(content) : undefined;
    return filled && { allow, scope: 'once', content: filled };
  }
  if (allow === true && command !== undefined)
    return scope === 'once' && isText(command, maxAddress) ? { allow, scope, command } : undefined;
  if (allow === true && answer !== undefined)
    return scope === 'once' && isText(answer, maxAddress) ? { allow, scope, answer } : undefined;
  if (allow === true && scopes.includes(scope as ApprovalScope)) {
    if (without === undefined) return { allow: true, scope: scope as ApprovalScope };
    const isList = Array.isArray(without) && without.every(name => isText(name, maxAddress));
    // Without the lines that were left out, the yes would be wider than what was meant.
    return isList ? { allow: true, scope: scope as ApprovalScope, without } : undefined;
  }
  if (allow !== false || !isText(reason, maxText)) return undefined;
  return { allow: false, reason, ...(isSkipped === true && { isSkipped }) };
}

/** Returns what was filled into a form; undefined for anything else. */
function readContent(value: unknown): FormContent | undefined {
  if (!isFields(value)) return undefined;
  const isFilled = (one: unknown): boolean =>
    isText(one, longestFilled) ||
    typeof one === 'boolean' ||
    Number.isFinite(one) ||
    (Array.isArray(one) && one.every(item => isText(item, maxName)));
  const entries = Object.entries(value);
  return entries.length <= mostFields && entries.every(([, one]) => isFilled(one))
    ? (Object.fromEntries(entries) as FormContent)
    : undefined;
}

function isViewCommand(value: unknown): value is ViewCommand {
  return viewCommands.some(command => command === value);
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isText(value: unknown, maxLength: number): value is string {
  return typeof value === 'string' && value.length <= maxLength;
}

/**
 * Returns the address in normal form if its scheme is safe for a browser or mail program. Otherwise returns undefined.
 */
export function openableLink(url: string): string | undefined {
  if (!URL.canParse(url)) return undefined;
  const parsed = new URL(url);
  return ['https:', 'http:', 'mailto:'].includes(parsed.protocol) ? parsed.href : undefined;
}

/**
 * Returns the real path of a regular file inside one of `folders`, with links resolved on both sides. Returns undefined
 * for everything else. A relative path starts at `base`.
 */
export async function openableFile(
  path: string,
  folders: readonly string[],
  base: string | undefined,
): Promise<string | undefined> {
  // Two slashes name another machine, which even a look would reach.
  if (/\0|^[\\/]{2}/.test(path) || (!isAbsolute(path) && base === undefined)) return undefined;
  const written = sep === '/' ? path.replaceAll('\\', '/') : path;
  const wanted = resolve(base ?? '', written);
  const roots = await Promise.all(folders.map(realpathOrNothing));
  // What lies elsewhere by its words alone is not looked at.
  if (![...folders, ...roots].some(folder => folder !== undefined && isInside(wanted, folder)))
    return undefined;
  const file = await realpathOrNothing(wanted);
  if (file === undefined || !(await stat(file)).isFile()) return undefined;
  return roots.some(root => root !== undefined && isInside(file, root)) ? file : undefined;
}

function isInside(file: string, folder: string): boolean {
  const way = relative(folder, file);
  return way !== '' && way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

async function realpathOrNothing(path: string): Promise<string | undefined> {
  try {
    return await realpath(path);
  } catch {
    return undefined;
  }
}
