/**
 * What the chat view is measured against, as scripts of a page: `plain` appends the text once a frame and does nothing else, `parsed`
 * turns all of the text so far into HTML once a frame. The bundler puts in which of the two it is.
 */
import DOMPurify from 'dompurify';
import { marked } from 'marked';
import type { RunEvent } from '../../src/protocol/run.ts';
import type { ToWebview } from '../../src/protocol/webview.ts';

declare const side: 'plain' | 'parsed';

const frame = document.createElement('div');
frame.innerHTML =
  '<main><div class="conversation"><div class="scroller"><div class="content"><div class="markdown prose"></div></div></div></div></main>';
document.getElementById('root')?.append(...frame.childNodes);
const scroller = document.querySelector('.scroller') as HTMLElement;
const place = document.querySelector('.markdown') as HTMLElement;
const plainText = document.createTextNode('');
if (side === 'plain') {
  place.style.whiteSpace = 'pre-wrap';
  place.append(plainText);
}

let whole = '';
let waiting: RunEvent[] = [];

window.addEventListener('message', ({ data }: MessageEvent<ToWebview>) => {
  if (data.type !== 'events' && data.type !== 'conversation') return;
  if (waiting.length === 0) requestAnimationFrame(draw);
  waiting.push(...data.events);
});

function draw(): void {
  const events = waiting;
  waiting = [];
  const text = events.map(event => (event.type === 'text' ? event.text : '')).join('');
  if (side === 'plain') plainText.appendData(text);
  else {
    whole += text;
    place.innerHTML = DOMPurify.sanitize(marked.parse(whole, { async: false }));
  }
  if (events.some(({ type }) => type === 'run_end')) place.dataset['ended'] = 'yes';
  scroller.scrollTop = scroller.scrollHeight;
}
