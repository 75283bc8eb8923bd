/** Finds sentences of Telos that stand in English in a German window. */
import type { Locator } from 'playwright-core';

/** Words that are the same in both languages, or too short to tell. */
const shortest = 3;

/**
 * Returns the texts that are an English text of the table, with whatever values, and are not written so in German too. `table` holds
 * the German by the English text.
 */
export function englishIn(texts: readonly string[], table: Readonly<Record<string, string>>): string[] {
  const german = new Set(Object.values(table));
  const patterns = Object.entries(table)
    .filter(([english, translated]) => english !== translated && /[A-Za-z]{3}/.test(english))
    .filter(([english]) => english.replaceAll(/\{\d\}/g, '').trim().length > shortest)
    .map(([english]) => patternOf(english));
  const said = new Set(texts.map(text => text.replaceAll(/\s+/g, ' ').trim()).filter(Boolean));
  return [...said].filter(text => !german.has(text) && patterns.some(pattern => pattern.test(text)));
}

function patternOf(english: string): RegExp {
  const parts = english
    .split(/\{\d\}/)
    .map(part => part.replaceAll(/\s+/g, ' ').replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`);
}

/** The visible texts of a place, one for each element that has text of its own, and its names and titles. */
export function textsIn(place: Locator): Promise<string[]> {
  return place.evaluateAll(elements =>
    elements.flatMap(element =>
      [element, ...element.querySelectorAll('*')].flatMap(each => [
        [...each.childNodes]
          .filter(node => node.nodeType === Node.TEXT_NODE)
          .map(node => node.textContent ?? '')
          .join(''),
        each.getAttribute('title') ?? '',
        each.getAttribute('aria-label') ?? '',
        each.getAttribute('placeholder') ?? '',
      ]),
    ),
  );
}
