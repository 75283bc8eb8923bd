/** The one way by which HTML made from a model's words gets into the page. */
import DOMPurify from 'dompurify';

const tags =
  'a blockquote br code del em h1 h2 h3 h4 h5 h6 hr img li ol p pre span strong table tbody td th thead tr ul';

/** The HTML as nodes that hold no script, style, form, remote image or unknown address. */
export function sanitize(html: string): DocumentFragment {
  const fragment = DOMPurify.sanitize(html, {
    ALLOWED_TAGS: ['#text', ...tags.split(' ')],
    ALLOWED_ATTR: ['href', 'title', 'src', 'alt', 'align', 'start', 'class'],
    ADD_URI_SAFE_ATTR: ['align', 'start'],
    ALLOWED_URI_REGEXP: /^(?:https?:\/\/|mailto:)/i,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    RETURN_DOM_FRAGMENT: true,
  });
  for (const image of fragment.querySelectorAll('img')) {
    if (!image.src.startsWith('data:image/')) image.remove();
  }
  return fragment;
}
