/** Renders a conversation as one inert, self-contained page: no scripts, no addresses, all text escaped. */

import { createHash } from 'node:crypto';
import { codePointOf, steering } from '../../protocol/text.ts';
import type { KeptConversation } from './runHistory.ts';
import type { StoredRun } from './runSummary.ts';
import {
  attachedTo,
  figuresOf,
  inputText,
  partsOf,
  type RunPart,
  requestOf,
  restOfInput,
  shownPart,
  skippedText,
} from './runText.ts';

const style = `
:root { color-scheme: light dark; --text: #1f2328; --dim: #59636e; --line: #d1d9e0; --box: #f6f8fa; --bad: #b3261e; --back: #fff; }
@media (prefers-color-scheme: dark) { :root { --text: #e6edf3; --dim: #9198a1; --line: #3d444d; --box: #151b23; --bad: #ff8e86; --back: #0d1117; } }
body { font: 15px/1.6 system-ui, sans-serif; color: var(--text); background: var(--back); max-width: 50rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; border-top: 1px solid var(--line); margin-top: 3rem; padding-top: 1rem; }
h3 { font-size: 1rem; margin-bottom: 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 1rem; color: var(--dim); font-size: .85rem; } dd { margin: 0; }
.text, .said { white-space: pre-wrap; } .said { background: var(--box); border-radius: 8px; padding: .6rem .9rem; margin-bottom: .8rem; }
pre { background: var(--box); border: 1px solid var(--line); border-radius: 6px; padding: .6rem .8rem; overflow: auto; max-height: 30rem; font-size: .85rem; white-space: pre-wrap; }
code { font-family: ui-monospace, monospace; font-size: .9em; background: var(--box); border-radius: 4px; padding: 0 .25em; } pre code { padding: 0; background: none; }
details { margin: .6rem 0; } summary { cursor: pointer; } .note { color: var(--dim); border-left: 3px solid var(--line); padding-left: .8rem; margin: .6rem 0; }
.failed { color: var(--bad); }
`;

/** Returns a whole HTML document. */
export function conversationPage({ title, runs }: KeptConversation): string {
  const hash = createHash('sha256').update(style).digest('base64');
  const policy = `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title>
<style>${style}</style>
</head>
<body>
<h1>${escaped(title)}</h1>
${runs.map(runSection).join('\n')}
</body>
</html>
`;
}

function runSection(run: StoredRun): string {
  const request = requestOf(run);
  const attached = attachedTo(run);
  const figures = figuresOf(run.summary).map(([name, value]) => `<dt>${name}</dt><dd>${escaped(value)}</dd>`);
  return [
    '<section>',
    `<h2>${escaped(run.summary.skill || 'Without a skill')}</h2>`,
    `<dl>${figures.join('')}</dl>`,
    ...(request ? [`<div class="said">${escaped(request)}</div>`] : []),
    ...(attached.length > 0 ? [`<p class="note">With it: ${escaped(attached.join(', '))}</p>`] : []),
    ...partsOf(run.events).map(partHtml),
    ...(run.skippedLines > 0 ? [`<p class="note">${skippedText(run.skippedLines)}</p>`] : []),
    '</section>',
  ].join('\n');
}

function partHtml(part: RunPart): string {
  switch (part.kind) {
    case 'text':
      return proseHtml(part.text.trim());
    case 'note':
      return `<p class="note">${escaped(part.text)}</p>`;
    case 'question':
      return part.questions
        .map(
          (question, index) =>
            `<p class="note">${escaped(question)} <b>${escaped(part.answers[index] ?? '')}</b></p>`,
        )
        .join('');
    case 'tool': {
      const { call, result, asked } = part;
      const state = !result ? 'without a result' : result.isError ? 'failed' : '';
      const notes = [state, asked].filter(Boolean).join(', ');
      const line = `<b>${escaped(call.name)}</b> <code>${escaped(shownPart(inputText(call)))}</code>`;
      const bodies = [restOfInput(call), result?.content ?? ''].filter(text => text.trim() !== '');
      const heading = notes
        ? `${line} <span class="${result?.isError ? 'failed' : ''}">${escaped(notes)}</span>`
        : line;
      return `<details><summary>${heading}</summary>${bodies.map(text => `<pre>${escaped(shownPart(text))}</pre>`).join('')}</details>`;
    }
  }
}

/** Renders only the Markdown that reads badly as plain text: code, headings, emphasis. Everything is escaped first. */
function proseHtml(text: string): string {
  const parts: string[] = [];
  let lines: string[] = [];
  let fence: string | undefined;
  const close = (): void => {
    const body = lines.join('\n');
    if (fence !== undefined) parts.push(`<pre><code>${escaped(body)}</code></pre>`);
    else if (body.trim())
      parts.push(`<div class="text">${inlineHtml(escaped(body.replace(/^\n+|\n+$/g, '')))}</div>`);
    lines = [];
  };
  for (const line of text.split(/\r\n?|\n/)) {
    const marks = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    const heading = fence === undefined ? /^(#{1,6}) +(.*)$/.exec(line) : null;
    if (marks && (fence === undefined || (marks.startsWith(fence) && line.trim() === marks))) {
      close();
      fence = fence === undefined ? marks : undefined;
    } else if (heading) {
      close();
      parts.push(`<h3>${inlineHtml(escaped(heading[2] ?? ''))}</h3>`);
    } else {
      lines.push(line);
    }
  }
  close();
  return parts.join('\n');
}

/** Takes text that is already escaped. */
const inlineHtml = (text: string): string =>
  text.replace(/`([^`\n]+)`|\*\*([^*\n]+)\*\*/g, (_whole, code?: string, strong?: string) =>
    code === undefined ? `<b>${strong}</b>` : `<code>${code}</code>`,
  );

const steeringCharacters = new RegExp(steering.source, 'g');

/** Escapes text for HTML. Characters that control or reorder text are shown as code points. */
function escaped(text: string): string {
  return text
    .replaceAll('\r\n', '\n')
    .replace(steeringCharacters, codePointOf)
    .replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`);
}
