/** Turns one block of Markdown into HTML. Raw HTML in it stays text, and only harmless addresses become links. */
import { Marked } from 'marked';

const marked = new Marked({
  gfm: true,
  tokenizer: {
    // Without these two no text of a model is ever taken for a tag; what looks like one is shown as it was written.
    html: () => undefined,
    tag: () => undefined,
  },
  renderer: {
    link({ href, title, tokens }) {
      const label = this.parser.parseInline(tokens);
      if (!isWebAddress(href)) return label === escapeHtml(href) ? label : `${label} (${escapeHtml(href)})`;
      const tooltip = title ? `${title} (${href})` : href;
      return `<a href="${escapeHtml(href)}" title="${escapeHtml(tooltip)}">${label}</a>`;
    },
    image({ href, text }) {
      if (isEmbeddedImage(href)) return `<img src="${escapeHtml(href)}" alt="${escapeHtml(text)}">`;
      const label = escapeHtml(text ? `Image: ${text}` : 'Image');
      if (!isWebAddress(href)) return `${label} (${escapeHtml(href)})`;
      return `<a href="${escapeHtml(href)}" title="${escapeHtml(href)}">${label}</a>`;
    },
    checkbox({ checked }) {
      return checked ? '☑ ' : '☐ ';
    },
  },
});

/** HTML of `source`; it must still be sanitised before it is attached. */
export function renderMarkdown(source: string): string {
  try {
    return marked.parse(source, { async: false });
  } catch {
    return `<p>${escapeHtml(source)}</p>`;
  }
}

function isWebAddress(href: string): boolean {
  return /^(https?:\/\/|mailto:)/i.test(href);
}

function isEmbeddedImage(href: string): boolean {
  return /^data:image\/(png|jpeg|gif|webp);base64,[a-z0-9+/=]+$/i.test(href);
}

function escapeHtml(text: string): string {
  const entities: Record<string, string> = {
    '&': '&amp;',
    '<': '&lt;',
    '>': '&gt;',
    '"': '&quot;',
    "'": '&#39;',
  };
  return text.replace(/[&<>"']/g, character => entities[character]!);
}
